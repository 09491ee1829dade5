"""What a component asks LangGraph for from within: `get_config`, `get_store`, `get_stream_writer`, `get_runtime`; and
the metadata and tags of what runs it, which chains, tools and subgraphs around it may have added to.

The node it is called in has them, an early call has not. A component that asks for them is never called early again
(`accel.run.issued.nested.asks`), and what it asked for early it has not got. The user's own configurable values an
early call has, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import langgraph.config
from langchain_core.runnables.config import var_child_runnable_config

from accel.parts.methods import patches
from accel.run.issued.nested import asks
from accel.run.scope import scope
from accel.trace import tracing
from accel.trace.sites import is_frameworks, is_ours

_ASKS = "asks LangGraph for its surroundings"
_READS = "reads the metadata or the tags that it is run with"
_OF_NODE = frozenset({"checkpoint_ns", "checkpoint_id", "checkpoint_map"})
"""Configurable values that differ from node to node."""


def install() -> None:
    """All four of LangGraph's functions read the configuration by one name in one module: put ours there."""
    patches.put(langgraph.config, "var_child_runnable_config", _Asked())


class _Asked:
    """Stands for the variable where components ask for its value."""

    def get(self) -> Any:
        config = var_child_runnable_config.get()
        here = scope.get()
        if config is None or here is None or here.call is None:
            return config
        return _Watched(config, lambda key: key == "configurable")


class _Watched(dict[str, Any]):
    """A configuration, or its configurable values, that says when more is looked at than the user's own."""

    __slots__ = ("_free", "_source")

    def __init__(self, source: Any, free: Callable[[object], bool]) -> None:
        super().__init__(source)
        self._source = source
        self._free = free

    def __bool__(self) -> bool:
        return bool(self._source)

    def __contains__(self, key: object) -> bool:
        if not self._free(key):
            asks(_ASKS)
        return key in self._source

    def __getitem__(self, key: str) -> Any:
        return self._seen(key, self._source[key] if key in self else self._source[key])

    def get(self, key: str, default: Any = None) -> Any:
        return self._seen(key, self._source[key]) if key in self else default

    def _seen(self, key: str, value: Any) -> Any:
        return _Watched(value, _is_users) if key == "configurable" and type(value) is dict else value


def _is_users(key: object) -> bool:
    return not (isinstance(key, str) and (key.startswith("__") or key in _OF_NODE))


class Metadata(dict[str, Any]):
    """Of an early call: what the run was given, for frameworks to hand on."""

    def copy(self) -> Metadata:
        return Metadata(dict.copy(self))


class Tags(list[str]):
    """The same."""

    def copy(self) -> Tags:
        return Tags(list.copy(self))


def _through(name: str) -> Any:
    def method(self: _Watched, *args: Any, **kwargs: Any) -> Any:
        asks(_ASKS)
        return getattr(self._source, name)(*args, **kwargs)

    return method


def _by_frameworks(kind: type, name: str) -> Any:
    done = getattr(kind, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        module = sys._getframe(1).f_globals.get("__name__", "")
        if not (is_ours(module) or is_frameworks(module) or module.startswith(tracing.MODULES)):
            asks(_READS)
        return done(self, *args, **kwargs)

    return method


_OF_ALL = ("__iter__", "__len__", "__reversed__", "__eq__", "__ne__", "__repr__", "__setitem__", "__delitem__")
_OF_DICTS = ("__or__", "__ror__", "__ior__", "keys", "values", "items", "popitem", "update", "setdefault")
for _name in (*_OF_ALL, *_OF_DICTS, "__reduce_ex__", "copy", "pop", "clear"):
    setattr(_Watched, _name, _through(_name))
for _name in (*_OF_ALL, *_OF_DICTS, "__contains__", "__getitem__", "get"):
    setattr(Metadata, _name, _by_frameworks(dict, _name))
for _name in (*_OF_ALL, "__contains__", "__getitem__", "__add__", "count", "index"):
    setattr(Tags, _name, _by_frameworks(list, _name))
