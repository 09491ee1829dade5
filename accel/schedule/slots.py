"""Places in an engine: as many requests as it serves at a time, the best of those that wait next.

An engine that orders its own queue can't be told that an early call has become a demand, nor that a better one has
come. So it is given no more than it begins at once, and the rest waits here, where the order is looked up when a place
becomes free.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from ..engine import Priority
from .batching import TOPOLOGY_AWARE, Policy, Waiting

_Turn = tuple["asyncio.Future[None]", Priority]


class Slots:
    """Lives on one loop. Early work takes a place only while some are free for demands: it backs off when the engine
    is busy with them (invariant 8)."""

    def __init__(self, places: int, policy: Policy = TOPOLOGY_AWARE) -> None:
        self._places = places
        self._taken = 0
        self._waiting: Waiting[_Turn] = Waiting(policy)

    @asynccontextmanager
    async def place(self, priority: Priority) -> AsyncGenerator[None, None]:
        """Wait for a place, and give it back in the end."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.add([(turn, priority)], priority)
        self._admit()
        if not turn.done():
            forget = priority.on_raise(lambda: self._raised(loop))
            self._admit()  # it may have been raised just before
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._leave()  # it had just got its place
                raise
            finally:
                forget()
        try:
            yield
        finally:
            self._leave()

    def _leave(self) -> None:
        self._taken -= 1
        self._admit()

    def _admit(self) -> None:
        self._waiting.drop(lambda turn: turn[0].done())
        self._waiting.take(self._accept)

    def _accept(self, next_turn: _Turn) -> bool:
        turn, priority = next_turn
        if self._taken >= self._waiting.policy.places(self._places, priority):
            return False
        self._taken += 1
        turn.set_result(None)
        return True

    def _raised(self, loop: asyncio.AbstractEventLoop) -> None:
        """The program has come to wait for something that waits here; called on any thread."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(self._admit)
