"""Component calls that belong to no run while early calls are under way, e.g. from a thread that lost its context.

They are neither recorded nor predicted, but they count as being inside their component, so that no early call joins
them in an instance that takes fewer calls (invariant 7).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..components import facts_of
from ..intercept import Method
from .gates import aenter, enter, leave
from .waiting import Party

_around: ContextVar[Party | None] = ContextVar("accel_around", default=None)
"""The call of no run that the current code is inside of."""


def call(method: Method, component: Any, wrapped: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The call itself, with its component's gate around it where early calls may enter it."""
    facts = facts_of(component)
    if not facts.pure:
        return wrapped(*args, **kwargs)
    party, limit = Party(component, _around.get()), facts.concurrency or 1
    if method.kind == "sync":
        enter(party, limit)
        with _inside(party):
            return wrapped(*args, **kwargs)
    if method.kind == "async":
        return _coroutine(party, limit, wrapped, args, kwargs)
    if method.opens:
        return _opened(party, limit, wrapped, args, kwargs)
    if method.kind == "stream":
        return _stream(party, limit, wrapped, args, kwargs)
    return _astream(party, limit, wrapped, args, kwargs)


@contextmanager
def _inside(party: Party) -> Generator[None, None, None]:
    before = _around.set(party)
    try:
        yield
    finally:
        _around.reset(before)
        leave(party)


async def _coroutine(party: Party, limit: int, wrapped: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    await aenter(party, limit)
    with _inside(party):
        return await wrapped(*args, **kwargs)


def _stream(
    party: Party, limit: int, wrapped: Callable[..., Any], args: Any, kwargs: Any
) -> Generator[Any, None, None]:
    enter(party, limit)
    try:
        yield from wrapped(*args, **kwargs)
    finally:
        leave(party)


async def _opened(
    party: Party, limit: int, wrapped: Callable[..., Any], args: Any, kwargs: Any
) -> AsyncGenerator[Any, None]:
    stream = await _coroutine(party, limit, wrapped, args, kwargs)
    return _astream(Party(party.component), limit, lambda: stream, (), {})


async def _astream(
    party: Party, limit: int, wrapped: Callable[..., Any], args: Any, kwargs: Any
) -> AsyncGenerator[Any, None]:
    await aenter(party, limit)
    try:
        async for chunk in wrapped(*args, **kwargs):
            yield chunk
    finally:
        leave(party)
