"""What LangChain's configuration and the objects of a program tell about a run, for graphs and chains alike."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tracers._streaming import _StreamingCallbackHandler  # guarded: see test_framework_facts
from langsmith._internal import _context  # guarded as well

from accel.intercept import scope
from accel.references import References
from accel.run.ambient import FRAMEWORK_VARS
from accel.run.settings import Host
from accel.run.topology import Control
from accel.run.waiting import loop_here
from accel.values import freeze, snapshot

from .components import holds, is_component

FRAMEWORK_VARS.update(("child_runnable_config", "tracing_callback_v2", "run_collector", "langgraph_tool_call_writer"))
FRAMEWORK_VARS.update(var for var in vars(_context).values() if isinstance(var, ContextVar))  # where traces belong
_COORDINATES = frozenset({"thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map"})


def configurable_of(*layers: Mapping[str, Any] | None) -> dict[str, Any]:
    """The configurable values of configurations, later ones first; of one around us, if there is one."""
    found: dict[str, Any] = {}
    for layer in (var_child_runnable_config.get(), *layers):
        found |= (layer or {}).get("configurable") or {}
    return found


def _users(configurable: Mapping[str, Any]) -> Hashable:
    """The values that belong to the user and may be read by components."""
    return freeze({k: snapshot(v) for k, v in configurable.items() if not k.startswith("__") and k not in _COORDINATES})


def host_of(
    given: Mapping[str, Any],
    configurable: Mapping[str, Any],
    control: Control,
    roots: Iterable[Any],
    opened: tuple[type, ...],
    modes: Any = None,
) -> Host:
    """given: the configuration of the call over that of the object. roots: what the program's code can be reached from.
    opened: classes of the frameworks that are looked into on the way. modes: LangGraph's of a stream."""
    first = _users(configurable)

    def config_now() -> Hashable:
        current = var_child_runnable_config.get()
        if current is None or scope.get() is None:
            return first
        return _users(current.get("configurable") or {})

    early_config: RunnableConfig = {
        "configurable": {k: v for k, v in configurable.items() if not k.startswith("__")},
        "tags": list(given.get("tags") or ()),
        "metadata": dict(given.get("metadata") or {}),
    }

    def set_config() -> None:
        var_child_runnable_config.set(early_config)

    return Host(
        control=control,
        config=config_now,
        streaming=_listened(modes, given.get("callbacks")),
        max_concurrency=given.get("max_concurrency"),
        loop=loop_here(),
        set_config=set_config,
        holds=holds,
        references=References(roots, is_component, lambda value: isinstance(value, opened)),
    )


def _listened(modes: Any, callbacks: Any) -> bool:
    """Whether somebody listens to tokens: then LangChain streams where a program invokes."""
    handlers = callbacks.handlers if isinstance(callbacks, BaseCallbackManager) else callbacks or ()
    return "messages" in ([modes] if isinstance(modes, str) else modes or ()) or any(
        isinstance(handler, _StreamingCallbackHandler) for handler in handlers
    )
