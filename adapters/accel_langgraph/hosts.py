"""What LangChain's configuration and the objects of a program tell about a run, for graphs and chains alike."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.messages import SystemMessage
from langchain_core.prompts import BasePromptTemplate
from langchain_core.prompts.message import BaseMessagePromptTemplate
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.base import RunnableBinding
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool
from langchain_core.tracers._streaming import _StreamingCallbackHandler  # guarded: see test_framework_facts
from langgraph._internal._constants import CONFIG_KEY_RUNTIME  # guarded as well
from langsmith import run_trees
from langsmith._internal import _context  # guarded as well

from accel.graph.topology import Control
from accel.parts.references import References, Ways
from accel.run import deadline, switch
from accel.run.scope import scope
from accel.run.settings import Host
from accel.run.switch import Mode
from accel.run.waits.waiting import loop_here
from accel.text.objects import is_a, public
from accel.trace.ambient import FRAMEWORK_VARS, LISTENERS, data_of, held
from accel.trace.beside import COORDINATES

from .components import holds, is_component
from .computes import set_to
from .guards import guard_of
from .surroundings import Metadata, Tags

FRAMEWORK_VARS.update(("child_runnable_config", "tracing_callback_v2", "run_collector", "langgraph_tool_call_writer"))
FRAMEWORK_VARS.update(
    var for module in (_context, run_trees) for var in vars(module).values() if is_a(var, ContextVar)
)  # where traces belong
FRAMEWORK_VARS.update(("active_span_id", "active_instrument_tags"))  # LlamaIndex' for the same, on all threads
LISTENERS.update((BaseCallbackHandler, BaseCallbackManager))
_COORDINATES = frozenset({"checkpoint_ns", "checkpoint_id", "checkpoint_map"})
COORDINATES.update(("thread_id", *_COORDINATES))
_THEIRS = re.compile(
    r"accel(_|$)|lc_|ls_|__|langgraph_(step|node|triggers|path|checkpoint_ns|version|api_url|plan|host)$|checkpoint_(ns|id)$"
)
"""Metadata that frameworks set for themselves, and Accel;"""
_THEIR_TAGS = ("seq:step:", "map:key:", "graph:step:", "langsmith:")
"""tags likewise."""


def configurable_of(*layers: Mapping[str, Any] | None) -> dict[str, Any]:
    """The configurable values of configurations, later ones first; of one around us, if there is one."""
    return _over("configurable", layers)


def asked_by(*layers: Mapping[str, Any] | None) -> Mode | None:
    """How much Accel is to do in a run, by the metadata of its configurations, later ones first, and of one around us.
    Raises ConfigurationError."""
    for layer in (*reversed(layers), var_child_runnable_config.get()):
        asked = switch.asked_by(layer.get("metadata")) if layer else None
        if asked is not None:
            return asked
    return None


def within_s(*layers: Mapping[str, Any] | None) -> float | None:
    """When a run is to be over, found as `asked_by` finds how much Accel is to do."""
    for layer in (*reversed(layers), var_child_runnable_config.get()):
        within = deadline.asked_by(layer.get("metadata")) if layer else None
        if within is not None:
            return within
    return None


def _over(name: str, layers: Iterable[Mapping[str, Any] | None]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    around: Mapping[str, Any] | None = var_child_runnable_config.get()
    for layer in (around, *layers):
        found |= (layer or {}).get(name) or {}
    return found


def _users(configurable: Mapping[str, Any]) -> dict[str, Any]:
    """The values that belong to the user and may be read by components."""
    return {k: v for k, v in configurable.items() if not k.startswith("__") and k not in _COORDINATES}


_UNCHANGING = frozenset((str, int, float, bool, type(None)))
_NOTHING: tuple[dict[str, Any], Hashable] = {}, data_of({})


class _Seen:
    """What components may read of the configuration, and of the runtime context, which LangGraph makes of what it was
    given before the first node."""

    def __init__(self, configurable: Mapping[str, Any]) -> None:
        self._last = _NOTHING
        self._first = self._data(configurable)
        self._made: Hashable = None

    def _data(self, configurable: Mapping[str, Any]) -> Hashable:
        """The data of the user's values. Every call asks, and mostly they are the same ones, which can't change."""
        users, (before, data) = _users(configurable), self._last
        if len(users) != len(before) or not all(
            type(value) in _UNCHANGING and name in users and users[name] is value for name, value in before.items()
        ):
            data = data_of(users)
            self._last = users, data
        return data

    def now(self) -> Hashable:
        current = var_child_runnable_config.get()
        if current is None or scope.get() is None:
            return self._first, True
        here = current.get("configurable") or {}
        context = held(context_of(here))
        self._made = self._made or context
        return self._data(here), context == self._made


def context_of(configurable: Mapping[str, Any]) -> Any:
    """The runtime context of the graph around us."""
    return getattr(configurable.get(CONFIG_KEY_RUNTIME), "context", None)


def host_of(
    layers: Sequence[Mapping[str, Any] | None],
    control: Control,
    references: References,
    modes: Any = None,
    context: Any = None,
) -> Host:
    """layers: the configuration of the object, and of the call over it. references: see `references_of`. modes:
    LangGraph's of a stream. context: its runtime context."""
    given: dict[str, Any] = {}
    for layer in layers:
        given |= layer or {}
    configurable = configurable_of(*layers)
    metadata = {key: value for key, value in _over("metadata", layers).items() if not _THEIRS.match(key)}
    tags = {str(tag) for layer in (var_child_runnable_config.get(), *layers) for tag in (layer or {}).get("tags") or ()}
    context = context_of(configurable) if context is None else context
    early_config: RunnableConfig = {
        "configurable": {k: v for k, v in configurable.items() if not k.startswith("__")},
        "tags": Tags(given.get("tags") or ()),
        "metadata": Metadata(given.get("metadata") or {}),
    }
    if "recursion_limit" in given:
        early_config["recursion_limit"] = given["recursion_limit"]
    if "max_concurrency" in given:
        early_config["max_concurrency"] = given["max_concurrency"]

    around: Mapping[str, Any] | None = var_child_runnable_config.get()
    guard = next(filter(None, (guard_of((layer or {}).get("callbacks")) for layer in (around, *layers))), None)

    def set_config() -> None:
        var_child_runnable_config.set(early_config)

    return Host(
        control=control,
        config=_Seen(configurable).now,
        beside={
            "configurable": _users(configurable),
            "metadata": metadata,
            "tag": {tag for tag in tags if not tag.startswith(_THEIR_TAGS)},
            "context": context,
        },
        streaming=_listened(modes, given.get("callbacks")),
        max_concurrency=given.get("max_concurrency"),
        loop=loop_here(),
        set_config=set_config,
        holds=holds if guard is None else lambda component: guard,
        guard=guard_of if guard is None else lambda manager: None,
        references=references,
    )


def references_of(roots: Sequence[Any], opened: tuple[type, ...], ways: Ways) -> References:
    """What a program refers to. roots: what its code can be reached from. opened: classes of the frameworks that are
    looked into on the way. ways: those that earlier runs have found."""
    return References(roots, is_component, lambda value: is_a(value, opened), _says, ways)


def _says(value: Any, held: bool) -> Any:
    """What of a prompt, a tool, a runnable with arguments or one that ranks is the program's text."""
    if is_a(value, SystemMessage):
        return None if held else value.content
    if is_a(value, BasePromptTemplate | BaseMessagePromptTemplate):
        return public(value)
    if is_a(value, BaseTool):
        return value.name, value.description, value.args_schema
    return value.kwargs if is_a(value, RunnableBinding) else set_to(value)


def _listened(modes: Any, callbacks: Any) -> bool:
    """Whether somebody listens to tokens: then LangChain streams where a program invokes."""
    handlers = callbacks.handlers if is_a(callbacks, BaseCallbackManager) else callbacks or ()
    return "messages" in ([modes] if is_a(modes, str) else modes or ()) or any(
        is_a(handler, _StreamingCallbackHandler) for handler in handlers
    )
