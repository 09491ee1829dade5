"""Places in an engine: as many requests as it serves at a time, the best of those that wait next.

An engine that orders its own queue can't be told that an early call has become a demand, nor that a better one has
come. So it is given little more than it begins at once, and the rest waits here, where the order is looked up when a
place becomes free.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from .batching import TOPOLOGY_AWARE, Policy, Reuse, Waiting
from .protocols import Priority
from .replicas import Prefixes


@dataclass(eq=False, slots=True)
class _Turn:
    given: asyncio.Future[None]
    priority: Priority
    blocks: Sequence[int]
    """Of its prompt."""


class Slots:
    """Lives on one loop. Early work takes a place only while some are free for demands, and while no other prompt is
    being prefilled: it backs off when the engine is busy with them (invariant 8). `starting`: how many may have a place
    before they have begun; 0 is any number."""

    def __init__(self, places: int, starting: int = 0, policy: Policy = TOPOLOGY_AWARE) -> None:
        self._places = places
        self._most_starting = starting or places
        self._taken = 0
        self._starting = 0
        self.prefixes = Prefixes(0)
        """What the engine should have in its cache, once it is known what a block is."""
        self._waiting: Waiting[_Turn] = Waiting(policy, reuse=self._reuse)

    def _reuse(self, turn: _Turn) -> Reuse:
        return self.prefixes.reuse(turn.blocks)

    @asynccontextmanager
    async def place(
        self, priority: Priority, token_ids: Sequence[int] = ()
    ) -> AsyncGenerator[Callable[[], None], None]:
        """Wait for a place for a prompt, and give it back in the end. Gives a function to be called when the request
        has begun, any number of times."""
        await self._turn(priority, token_ids)
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

    async def _turn(self, priority: Priority, token_ids: Sequence[int]) -> None:
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        forget = priority.on_raise(lambda: self._raised(loop))
        ticket = self._waiting.add([_Turn(turn, priority, self.prefixes.blocks(token_ids))], priority)
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
            self._waiting.leave(ticket)

    def _admit(self) -> None:
        if self._taken < self._places and self._starting < self._most_starting:
            self._waiting.take(self._accept)

    def _accept(self, turn: _Turn) -> bool:
        if turn.given.done():  # cancelled just now: it takes no place
            return True
        places = self._waiting.policy.places(self._places, turn.priority)
        if self._taken >= places or self._starting >= self._most_starting:
            return False
        if not self._waiting.policy.may_begin(turn.priority, self._starting):
            return False
        self._taken += 1
        self._starting += 1
        self.prefixes.note(turn.blocks)
        turn.given.set_result(None)
        return True

    def _raised(self, loop: asyncio.AbstractEventLoop) -> None:
        """The program has come to wait for something that waits here; called on any thread."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(self._admit)
