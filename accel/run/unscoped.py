"""Component calls that belong to no run while early calls are under way, e.g. from a thread that lost its context.

They are neither recorded nor predicted, but they count as being inside their component, so that no early call joins
them in an instance that takes fewer calls (invariant 7).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextvars import ContextVar
from functools import partial
from typing import Any

from ..parts.components import agreed
from ..parts.methods import Method
from .gates import entering, leave
from .steps import atake, take
from .waiting import Party

_around: ContextVar[Party | None] = ContextVar("accel_around", default=None)
"""The call of no run that the current code is inside of."""


def call(method: Method, component: Any, wrapped: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The call itself, with its component's gate around it where early calls may enter it."""
    limit = agreed(component)
    if not limit or (method.direct and _around.get() is not None):
        return wrapped(*args, **kwargs)
    party, work = Party(component, _around.get()), partial(wrapped, *args, **kwargs)
    if method.kind == "sync":
        take(entering(party, limit, in_task=False))
        with _Inside(party):
            return work()
    if method.opens:
        return _opened(party, limit, work)
    if method.kind == "async":
        return _coroutine(party, limit, work)
    return _stream(party, limit, work) if method.kind == "stream" else _astream(party, limit, work)


class _Inside:
    """Around a call that has entered its component. No generator: programs that rest wait for it."""

    __slots__ = ("_before", "_party")

    def __init__(self, party: Party) -> None:
        self._party = party

    def __enter__(self) -> None:
        self._before = _around.set(self._party)

    def __exit__(self, *_: object) -> None:
        _around.reset(self._before)
        leave(self._party)


async def _coroutine(party: Party, limit: int, work: Callable[[], Any]) -> Any:
    await atake(entering(party, limit, in_task=True))
    with _Inside(party):
        return await work()


async def _opened(party: Party, limit: int, work: Callable[[], Any]) -> AsyncGenerator[Any, None]:
    stream = await _coroutine(party, limit, work)
    return _astream(Party(party.component), limit, lambda: stream)


def _stream(party: Party, limit: int, work: Callable[[], Any]) -> Generator[Any, None, None]:
    take(entering(party, limit, in_task=False))
    try:
        yield from work()
    finally:
        leave(party)


async def _astream(party: Party, limit: int, work: Callable[[], Any]) -> AsyncGenerator[Any, None]:
    await atake(entering(party, limit, in_task=True))
    try:
        async for chunk in work():
            yield chunk
    finally:
        leave(party)
