"""A run that ends with the stream it gives, read to its end, closed or thrown away."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any

from ..run import Run
from ..scope import Scope, Within, scope
from ..unfollowed import Unfollowed
from ..waits.inner import close, step

_END = object()


def inside(run: Run | Unfollowed) -> Within[Any]:
    """Around the code of a run's program, each time that it goes on."""
    return run.inside() if isinstance(run, Unfollowed) else Within(scope, Scope(run))


def streamed(begin: Callable[[], Run | Unfollowed], open_: Callable[[], Iterator[Any]]) -> Generator[Any, None, None]:
    """What `open_` gives, with the handle of a new run set while that works and at no other time."""
    run = begin()
    parts, completed, within = iter(open_()), False, inside(run)
    try:
        while True:
            with within:
                part = next(parts, _END)
            if part is _END:
                completed = True
                return
            yield part
    finally:
        try:
            closed = getattr(parts, "close", None)
            if closed is not None:
                closed()
        finally:
            run.finish(completed)


async def astreamed(
    begin: Callable[[], Run | Unfollowed], open_: Callable[[], AsyncIterator[Any]]
) -> AsyncGenerator[Any, None]:
    """As `streamed`."""
    run = begin()
    parts, completed, within = open_(), False, inside(run)
    further: Callable[..., Awaitable[Any]] = step  # which matters where the stream begins
    try:
        while True:
            with within:
                part = await further(parts, _END)
            further = anext
            if part is _END:
                completed = True
                return
            yield part
    finally:
        try:
            await close(parts)
        finally:
            run.finish(completed)
