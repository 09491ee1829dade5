"""What graphs give their checkpointers.

LangGraph saves writes from whichever thread comes to it, so they are written down by test, not by call of a graph.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from .normal import plain

written: list[Any] = []
"""What was given to checkpointers since the test began."""


def in_order() -> list[Any]:
    """It, as it can be compared: checkpoints as they came, and then writes, which come before, after or beside them."""
    writes = [given for given in written if given[1] == "writes"]
    return [*(given for given in written if given[1] != "writes"), *sorted(writes, key=repr)]


def watch_checkpointer(saver: Any) -> None:
    """Have a checkpointer write down what it is given, in place."""
    cls = type(saver)
    if isinstance(saver, BaseCheckpointSaver) and not hasattr(cls, "accel_watched"):
        saver.__class__ = _watching(cls)


_classes: dict[type, type] = {}


def _watching(cls: type) -> type:
    if cls in _classes:
        return _classes[cls]
    base: Any = cls

    def note(what: str, *given: Any) -> None:
        written.append(plain((what, *given)))

    @wraps(base.put)
    def put(self: Any, config: Any, checkpoint: Any, metadata: Any, *args: Any, **kwargs: Any) -> Any:
        note("checkpoint", checkpoint, metadata)
        return base.put(self, config, checkpoint, metadata, *args, **kwargs)

    @wraps(base.aput)
    async def aput(self: Any, config: Any, checkpoint: Any, metadata: Any, *args: Any, **kwargs: Any) -> Any:
        note("checkpoint", checkpoint, metadata)
        return await base.aput(self, config, checkpoint, metadata, *args, **kwargs)

    @wraps(base.put_writes)
    def put_writes(self: Any, config: Any, writes: Any, *args: Any, **kwargs: Any) -> Any:
        note("writes", list(writes))
        return base.put_writes(self, config, writes, *args, **kwargs)

    @wraps(base.aput_writes)
    async def aput_writes(self: Any, config: Any, writes: Any, *args: Any, **kwargs: Any) -> Any:
        note("writes", list(writes))
        return await base.aput_writes(self, config, writes, *args, **kwargs)

    members = {"put": put, "aput": aput, "put_writes": put_writes, "aput_writes": aput_writes, "accel_watched": True}
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    _classes[cls] = type(cls.__name__, (cls,), {**members, **names})
    return _classes[cls]
