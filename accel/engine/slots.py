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
from weakref import WeakSet

from .admission import Admission, Need
from .batching import TOPOLOGY_AWARE, Policy, Reuse, Waiting
from .protocols import Priority, Session
from .replicas import KEPT_BLOCKS, Prefixes

ANSWER_WEIGHT = 0.1
"""Of the last answer, in the mean of their lengths."""


@dataclass(eq=False, slots=True)
class _Turn:
    given: asyncio.Future[None]
    priority: Priority
    blocks: Sequence[int]
    """Of its prompt,"""
    own: int
    """and what it takes of the KV cache besides."""


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
        self._answer_tokens = 0.0
        """In the mean of the last ones."""
        self._met: WeakSet[Session] = WeakSet()
        """Runs whose end tells that others may go on."""

    def _reuse(self, turn: _Turn) -> Reuse:
        return self.prefixes.reuse(turn.blocks)

    def caches(self, block_tokens: int, kv_blocks: int | None) -> None:
        """The engine keeps prompts in blocks of so many tokens, so many in all: None where it doesn't say. By that its
        reuse is known, and runs are admitted."""
        self.prefixes = Prefixes(block_tokens, kv_blocks or KEPT_BLOCKS)
        if block_tokens and kv_blocks:
            self._waiting.admit(Admission(kv_blocks, lambda turn: Need(turn.blocks, turn.own)))

    @asynccontextmanager
    async def place(
        self, priority: Priority, token_ids: Sequence[int] = ()
    ) -> AsyncGenerator[Callable[[], None], None]:
        """Wait for a place for a prompt, and give it back in the end. Gives a function to be called with each piece of
        the answer."""
        turn = await self._turn(priority, token_ids)
        begun, pieces = False, 0

        def begin() -> None:
            nonlocal begun, pieces
            pieces += 1
            if not begun:
                begun = True
                self._starting -= 1
                self._admit()

        try:
            yield begin
            if pieces:
                self._answer_tokens += ANSWER_WEIGHT * (pieces - self._answer_tokens)
        finally:
            self._taken -= 1
            self._waiting.ended(turn)
            begin()
            self._admit()

    async def _turn(self, priority: Priority, token_ids: Sequence[int]) -> _Turn:
        loop = asyncio.get_running_loop()
        given: asyncio.Future[None] = loop.create_future()
        forget = priority.on_raise(lambda: self._look_again(loop))
        if priority.session is not None and priority.session not in self._met:
            self._met.add(priority.session)
            priority.session.on_end(lambda: self._look_again(loop))
        blocks = self.prefixes.blocks(token_ids)
        turn = _Turn(given, priority, blocks, self.prefixes.needs(len(token_ids) + self._answer_tokens) - len(blocks))
        ticket = self._waiting.add([turn], priority)
        self._admit()
        try:
            await given
        except asyncio.CancelledError:
            if given.done() and not given.cancelled():  # it had just got its place
                self._taken -= 1
                self._starting -= 1
                self._waiting.ended(turn)
                self._admit()
            raise
        finally:
            forget()
            self._waiting.leave(ticket)
        return turn

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

    def _look_again(self, loop: asyncio.AbstractEventLoop) -> None:
        """The program has come to wait for something that waits here, or a run is over; called on any thread."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(self._admit)
