"""Which graphs and chains can only be awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

from langchain_core.runnables import Runnable, RunnableLambda
from langgraph._internal._runnable import RunnableCallable
from langgraph.pregel import Pregel


def only_awaited(obj: Any) -> bool:
    """Whether a part of it has nothing but a coroutine."""
    return any(map(_only_awaited, _parts(obj, set())))


def _parts(obj: Any, seen: set[int]) -> Iterator[Any]:
    """Its runnables, and those inside them."""
    if id(obj) in seen:
        return
    seen.add(id(obj))
    yield obj
    inner: Iterable[Any] = ()
    if isinstance(obj, Pregel):
        inner = (node.bound for node in obj.nodes.values())
    elif isinstance(obj, Runnable):
        steps = getattr(obj, "steps", None) or getattr(obj, "steps__", None) or ()
        inner = [*(steps.values() if isinstance(steps, dict) else steps), getattr(obj, "bound", None)]
        inner = [*inner, *(getattr(obj, "tools_by_name", None) or {}).values()]
    for part in inner:
        yield from _parts(part, seen)


def _only_awaited(part: Any) -> bool:
    if isinstance(part, RunnableCallable):
        return part.func is None and part.afunc is not None
    if isinstance(part, RunnableLambda):
        return not hasattr(part, "func")
    function, coroutine = getattr(part, "func", None), getattr(part, "coroutine", None)
    return function is None and asyncio.iscoroutinefunction(coroutine)
