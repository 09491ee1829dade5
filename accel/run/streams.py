"""A run that ends with the stream it gives, read to its end, closed or thrown away."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import Any

from .crowd import Member
from .inner import step
from .run import Run
from .scope import handle_of, scope

_END = object()


def streamed(begin: Callable[[], Run | Member], open_: Callable[[], Iterator[Any]]) -> Generator[Any, None, None]:
    """What `open_` gives, with the handle of a new run set while that works and at no other time."""
    run = begin()
    handle, parts, completed = handle_of(run), iter(open_()), False
    try:
        while True:
            token = scope.set(handle)
            try:
                part = next(parts)
            except StopIteration:
                completed = True
                return
            finally:
                scope.reset(token)
            yield part
    finally:
        try:
            close = getattr(parts, "close", None)
            if close is not None:
                close()
        finally:
            run.finish(completed)


async def astreamed(
    begin: Callable[[], Run | Member], open_: Callable[[], AsyncIterator[Any]]
) -> AsyncGenerator[Any, None]:
    """As `streamed`."""
    run = begin()
    handle, parts, completed = handle_of(run), open_(), False
    try:
        while True:
            token = scope.set(handle)
            try:
                part = await step(parts, _END)
            finally:
                scope.reset(token)
            if part is _END:
                completed = True
                return
            yield part
    finally:
        try:
            close = getattr(parts, "aclose", None)
            if close is not None:
                await close()
        finally:
            run.finish(completed)
