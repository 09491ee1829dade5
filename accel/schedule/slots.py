"""Places in an engine: as many requests as it serves at a time, the most urgent of those that wait next.

An engine that orders its own queue can't be told that an early call has become a demand. So what it can't begin yet
waits here, where the order is looked up when a place becomes free.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from ..engine import Priority
from .waiting import Waiting

RESERVED = 0.25
"""The share of places that early work leaves to demands."""


def early_places(places: int) -> int:
    """How many of so many places early work may fill."""
    return max(1, int(places * (1 - RESERVED)))


class Slots:
    """Lives on one loop. Early work (priority above 0) takes a place only while a quarter of them is free: it backs off
    when the engine is busy with demands (invariant 8)."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._early_places = early_places(places)
        self._taken = 0
        self._waiting: Waiting[tuple[asyncio.Future[None], Priority]] = Waiting()

    @asynccontextmanager
    async def place(self, priority: Priority) -> AsyncGenerator[None, None]:
        """Wait for a place, and give it back in the end."""
        if not self._has_room(priority) or len(self._waiting):
            loop = asyncio.get_running_loop()
            turn: asyncio.Future[None] = loop.create_future()
            self._waiting.add((turn, priority), priority)
            forget = priority.on_raise(lambda: self._raised(loop))
            self._admit()
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._leave()  # it had just got its place
                raise
            finally:
                forget()
        else:
            self._taken += 1
        try:
            yield
        finally:
            self._leave()

    def _has_room(self, priority: Priority) -> bool:
        return self._taken < (self._places if priority.value <= 0 else self._early_places)

    def _leave(self) -> None:
        self._taken -= 1
        self._admit()

    def _admit(self) -> None:
        self._waiting.drop(lambda held: held[0].done())
        while len(self._waiting):
            turn, priority = self._waiting.first()
            if not self._has_room(priority):
                return
            self._waiting.take()
            self._taken += 1
            turn.set_result(None)

    def _raised(self, loop: asyncio.AbstractEventLoop) -> None:
        """The program has come to wait for something that waits here; called on any thread."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(self._admit)
