"""Asynchronous streams inside ours: ours closes them.

An event loop that ends closes all streams that it has seen begin, at once, and so does the garbage collector with those
of one cycle. One that is being closed by another one at that moment would be an error, in a place where programs have
none.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable
from typing import Any


def step(stream: AsyncIterator[Any], end: Any) -> Awaitable[Any]:
    """The next part of an inner stream, `end` after the last one. The loop does not see it begin, nor thrown away."""
    before = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(firstiter=None, finalizer=_left_to_ours)
    try:
        return anext(stream, end)
    finally:
        sys.set_asyncgen_hooks(*before)


async def close(stream: Any) -> None:
    """Close an inner stream, if it can be: with ours, and not when somebody comes to throw it away."""
    closed = getattr(stream, "aclose", None)
    if closed is not None:
        await closed()


class Closing:
    """Around handing on an inner stream: it is closed where ours is."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is GeneratorExit:
            await close(self._stream)


def _left_to_ours(stream: Any) -> None:
    """It is thrown away together with ours, which closes it."""
