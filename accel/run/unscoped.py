"""Component calls that belong to no run while runs are going on, e.g. from a thread that lost its context.

They are neither recorded nor predicted, but they count as being inside their component, so that no early call joins
them in an instance that takes one call at a time (invariant 7).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

from ..components import facts_of
from ..intercept import Method
from .gates import Gate, gate_of


def call(method: Method, component: Any, wrapped: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The call itself, with its component's gate around it."""
    limit = facts_of(component).concurrency or 1
    gate = gate_of(component)
    if method.kind == "sync":
        _enter(gate, limit)
        try:
            return wrapped(*args, **kwargs)
        finally:
            gate.leave()
    if method.kind == "async":
        return _coroutine(gate, limit, wrapped, args, kwargs)
    if method.opens:
        return _opened(gate, limit, wrapped, args, kwargs)
    if method.kind == "stream":
        return _stream(gate, limit, wrapped, args, kwargs)
    return _astream(gate, limit, wrapped, args, kwargs)


def _enter(gate: Gate, limit: int) -> None:
    while (wait := gate.enter(limit)) is not None:
        wait.result()


async def _aenter(gate: Gate, limit: int) -> None:
    while (wait := gate.enter(limit)) is not None:
        await asyncio.wrap_future(wait)


async def _coroutine(gate: Gate, limit: int, wrapped: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    await _aenter(gate, limit)
    try:
        return await wrapped(*args, **kwargs)
    finally:
        gate.leave()


def _stream(gate: Gate, limit: int, wrapped: Callable[..., Any], args: Any, kwargs: Any) -> Generator[Any, None, None]:
    _enter(gate, limit)
    try:
        yield from wrapped(*args, **kwargs)
    finally:
        gate.leave()


async def _opened(
    gate: Gate, limit: int, wrapped: Callable[..., Any], args: Any, kwargs: Any
) -> AsyncGenerator[Any, None]:
    stream = await _coroutine(gate, limit, wrapped, args, kwargs)
    return _astream(gate, limit, lambda: stream, (), {})


async def _astream(
    gate: Gate, limit: int, wrapped: Callable[..., Any], args: Any, kwargs: Any
) -> AsyncGenerator[Any, None]:
    await _aenter(gate, limit)
    try:
        async for chunk in wrapped(*args, **kwargs):
            yield chunk
    finally:
        gate.leave()
