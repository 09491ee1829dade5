"""What a program finds in LangGraph's store is somebody's data, like documents: no plan holds it (`Trace.read`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from langgraph.store.base import BaseStore

from accel.parts.methods import patches
from accel.process.coroutines import around
from accel.run.scope import scope
from accel.text.values import snapshot, texts_of

_READS = ("get", "search", "batch")
_AREADS = ("aget", "asearch", "abatch")
_CLASSES = patches.Classes()


def install_all() -> None:
    """Hear of what stores of all classes give that exist now."""
    for cls in (BaseStore, *_CLASSES.new(BaseStore)):
        _CLASSES.note(cls)
        for name in (*_READS, *_AREADS):
            own = vars(cls).get(name)
            if (
                own is not None
                and not getattr(own, "__isabstractmethod__", False)
                and not patches.is_wrapped(cls, name)
            ):
                patches.wrap(cls, name, _aread if name in _AREADS else _read)


def _read(wrapped: Callable[..., Any], store: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    result = wrapped(*args, **kwargs)
    _note(result)
    return result


def _aread(wrapped: Callable[..., Any], store: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    awaited = wrapped(*args, **kwargs)
    return awaited if scope.get() is None else around(_noted(awaited), awaited)


async def _noted(awaited: Awaitable[Any]) -> Any:
    result = await awaited
    _note(result)
    return result


def _note(result: Any) -> None:
    here = scope.get()
    if here is not None and not here.early:
        for value in _values(result):
            for text in texts_of(snapshot(value)):
                here.run.trace.read(text)


def _values(result: Any) -> Iterator[Any]:
    """Those of an item, or of all items in a list."""
    if isinstance(result, list):
        for each in result:
            yield from _values(each)
    elif hasattr(result, "value"):
        yield result.value
