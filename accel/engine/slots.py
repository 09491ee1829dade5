"""Places in an engine: as many requests as it serves at a time, the best of those that wait next.

An engine that orders its own queue can't be told that an early call has become a demand, nor that a better one has
come. So it is given little more than it begins at once, and the rest waits here, where the order is looked up when a
place becomes free.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

from .batching import TOPOLOGY_AWARE, Policy, Waiting
from .protocols import Priority

_Turn = tuple["asyncio.Future[None]", Priority]


class Slots:
    """Lives on one loop. Early work takes a place only while some are free for demands, and while no other prompt is
    being prefilled: it backs off when the engine is busy with them (invariant 8). `starting`: how many may have a place
    before they have begun; 0 is any number."""

    def __init__(self, places: int, starting: int = 0, policy: Policy = TOPOLOGY_AWARE) -> None:
        self._places = places
        self._most_starting = starting or places
        self._taken = 0
        self._starting = 0
        self._waiting: Waiting[_Turn] = Waiting(policy)

    @asynccontextmanager
    async def place(self, priority: Priority) -> AsyncGenerator[Callable[[], None], None]:
        """Wait for a place, and give it back in the end. Gives a function to be called when the request has begun, any
        number of times."""
        await self._turn(priority)
        begun = False

        def begin() -> None:
            nonlocal begun
            if not begun:
                begun = True
                self._starting -= 1
                self._admit()

        try:
            yield begin
        finally:
            self._taken -= 1
            begin()
            self._admit()

    async def _turn(self, priority: Priority) -> None:
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        forget = priority.on_raise(lambda: self._raised(loop))
        self._waiting.add([(turn, priority)], priority)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it had just got its place
                self._taken -= 1
                self._starting -= 1
                self._admit()
            raise
        finally:
            forget()

    def _admit(self) -> None:
        self._waiting.drop(lambda turn: turn[0].done())
        self._waiting.take(self._accept)

    def _accept(self, next_turn: _Turn) -> bool:
        turn, priority = next_turn
        places = self._waiting.policy.places(self._places, priority)
        if self._taken >= places or self._starting >= self._most_starting:
            return False
        if not self._waiting.policy.may_begin(priority, self._starting):
            return False
        self._taken += 1
        self._starting += 1
        turn.set_result(None)
        return True

    def _raised(self, loop: asyncio.AbstractEventLoop) -> None:
        """The program has come to wait for something that waits here; called on any thread."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(self._admit)
