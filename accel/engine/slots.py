"""Places in an engine: as many requests as it serves at a time, the best of those that wait next.

An engine that orders its own queue can't be told that an early call has become a demand, nor that a better one has
come. So it is given little more than it begins at once, and the rest waits here, where the order is looked up when a
place becomes free.

Equal engines have one line. Each takes from it when it has room, what `replicas.choose` would give to no other one that
has room, too. So nothing waits for a busy engine while another one is idle.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakSet

from .admission import Admission, Need
from .batching import TOPOLOGY_AWARE, Policy, Waiting
from .protocols import Priority, Session
from .replicas import KEPT_BLOCKS, Prefixes, choose

ANSWER_WEIGHT = 0.1
"""Of the last answer, in the mean of their lengths."""


class Room(NamedTuple):
    """What an engine takes at a time."""

    places: int
    starting: int = 0
    """How many may have a place before they have begun; 0 is any number."""
    kv_blocks: int | None = None
    """Of its KV cache; None where it doesn't say."""


def room_for_batches(batch_tokens: int) -> Room | None:
    """Of an engine that computes batches of so many tokens: one, and what the next one is made of. Places are tokens.
    None for 0, any number."""
    return Room(2 * batch_tokens) if batch_tokens else None


@dataclass(eq=False, slots=True)
class Turn:
    """Of a request: it waits, or has a place."""

    given: asyncio.Future[Slots]
    priority: Priority
    blocks: Sequence[int]
    """Of its prompt,"""
    own: int
    """and what it takes of the KV cache besides."""
    size: int
    """How many places it takes; it needs one that is free."""
    only: Slots | None
    """The one that can serve it; None: each can."""
    pieces: int = 0
    """Of its answer, so far."""

    @property
    def has_place(self) -> bool:
        return self.given.done() and not self.given.cancelled() and self.given.exception() is None

    @property
    def slots(self) -> Slots:
        """Where it has its place."""
        return self.given.result()

    def begin(self) -> None:
        """To be called with each piece of the answer."""
        self.pieces += 1
        if self.pieces == 1:
            self.slots.begun()


class Entrance:
    """Where requests wait for a place in any of several equal engines. Lives on one loop."""

    def __init__(self, policy: Policy = TOPOLOGY_AWARE) -> None:
        self.waiting: Waiting[Turn] = Waiting(policy)
        self.engines: list[Slots] = []
        self._answer_tokens = 0.0
        """In the mean of the last ones."""
        self._met: WeakSet[Session] = WeakSet()
        """Runs whose end tells that others may go on."""
        self._closed_by: Callable[[], Exception] | None = None

    @asynccontextmanager
    async def place(
        self, priority: Priority, token_ids: Sequence[int] = (), *, size: int = 1, only: Slots | None = None
    ) -> AsyncGenerator[Turn, None]:
        """Wait for a place, and give it back in the end. token_ids: of the prompt. size: how many places the request
        takes; it needs one that is free. only: the engine that can serve it, if not all can."""
        turn = await self._turn(priority, token_ids, size, only)
        try:
            yield turn
            if turn.pieces:
                self._answer_tokens += ANSWER_WEIGHT * (turn.pieces - self._answer_tokens)
        finally:
            turn.slots.leave(turn)
            self.admit()

    async def _turn(self, priority: Priority, token_ids: Sequence[int], size: int, only: Slots | None) -> Turn:
        if self._closed_by is not None:
            raise self._closed_by()
        loop = asyncio.get_running_loop()
        if priority.session is not None and priority.session not in self._met:
            self._met.add(priority.session)
            priority.session.on_end(lambda: self.look_again(loop))
        prefixes = self.engines[0].prefixes
        blocks = prefixes.blocks(token_ids)
        own = prefixes.needs(len(token_ids) + self._answer_tokens) - len(blocks)
        turn = Turn(loop.create_future(), priority, blocks, own, size, only)
        ticket = self.waiting.add([turn], priority)
        # Behind what the line has to know of it, which another thread may be telling it just now.
        forget = priority.on_raise(lambda: self.look_again(loop))
        self.admit()
        try:
            await turn.given
        except asyncio.CancelledError:
            if turn.has_place:  # it had just got it
                turn.slots.leave(turn)
                self.admit()
            raise
        finally:
            forget()
            self.waiting.leave(ticket)
        return turn

    def admit(self) -> None:
        """Give away what places are free, one by one: the idlest engine takes first."""
        for engine in self.engines:
            engine.refuses = False
        while len(self.waiting) and any(engine.take() for engine in sorted(self.engines, key=lambda one: one.load)):
            pass

    def best(self, turn: Turn) -> Slots | None:
        """Of the engines that have room for a request the one to serve it."""
        if turn.only is not None:
            return turn.only
        up = [engine for engine in self.engines if engine.load < math.inf] or self.engines
        free = [engine for engine in up if engine.has_room(turn.priority) and not engine.refuses]
        if not free:
            return None
        return free[choose([one.load for one in free], [one.prefixes.reuse(turn.blocks).found for one in free])]

    def look_again(self, loop: asyncio.AbstractEventLoop) -> None:
        """The program has come to wait for something that waits here, or a run is over, or an engine is back; called on
        any thread."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(self.admit)

    def close(self, error: Callable[[], Exception]) -> None:
        """What waits ends with an error, and so does what comes."""
        self._closed_by = error
        for turn in self.waiting:
            if not turn.given.done():
                turn.given.set_exception(error())


class Slots:
    """One engine's. Early work takes a place only while some are free for demands, and while no other prompt is
    being prefilled: it backs off when the engine is busy with them (invariant 8)."""

    def __init__(
        self,
        places: int,
        starting: int = 0,
        policy: Policy = TOPOLOGY_AWARE,
        entrance: Entrance | None = None,
        others: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """places, starting: see `Room`. entrance: of equal engines. others: how many requests the engine has that come
        from elsewhere; infinite while it can't serve."""
        self.room = Room(places, starting)
        self._policy = policy
        self._others = others
        self._taken = 0
        self._starting = 0
        self.prefixes = Prefixes(0)
        """What the engine should have in its cache, once it is known what a block is."""
        self._entrance = entrance or Entrance(policy)
        self._entrance.engines.append(self)
        self._waiting: Waiting[Turn] = Waiting(
            policy, shared=self._entrance.waiting, serves=lambda turn: turn.only is None or turn.only is self
        )
        self.refuses = False
        """Its KV cache had no room for something that it looked at last."""

    def caches(self, block_tokens: int, kv_blocks: int | None) -> None:
        """The engine keeps prompts in blocks of so many tokens, so many in all: None where it doesn't say. By that its
        reuse is known, and runs are admitted."""
        self.room = self.room._replace(kv_blocks=kv_blocks)
        self.prefixes = Prefixes(block_tokens, kv_blocks or KEPT_BLOCKS)
        self._waiting.caches(self.prefixes, lambda turn: turn.blocks)
        if block_tokens and kv_blocks:
            self._waiting.admit(Admission(kv_blocks, lambda turn: Need(turn.blocks, turn.own)))

    @asynccontextmanager
    async def place(
        self, priority: Priority, token_ids: Sequence[int] = ()
    ) -> AsyncGenerator[Callable[[], None], None]:
        """Wait for a place for a prompt here, and give it back in the end. Gives a function to be called with each
        piece of the answer."""
        async with self._entrance.place(priority, token_ids, only=self) as turn:
            yield turn.begin

    @property
    def load(self) -> float:
        return self._taken + self._others()

    def has_room(self, priority: Priority) -> bool:
        """For one of this priority."""
        return (
            self._taken < self._policy.places(self.room.places, priority)
            and self._starting < (self.room.starting or self.room.places)
            and self._policy.may_begin(priority, self._starting)
        )

    def take(self) -> bool:
        """The best of what waits, if there is room and no other engine should rather serve it. Whether something has
        changed: it was taken, or has to be served by another engine."""
        if self._taken >= self.room.places or self._starting >= (self.room.starting or self.room.places):
            return False
        refused, self.refuses = self.refuses, False
        taken: list[Turn] = []

        def accept(turn: Turn) -> bool | None:
            if turn.given.done():  # cancelled just now: it takes no place
                return None
            if taken or not self.has_room(turn.priority):
                return False
            if self._entrance.best(turn) is not self:
                return None
            taken.append(turn)
            return True

        self._waiting.take(accept)
        for turn in taken:
            self._taken += turn.size
            self._starting += 1
            self.prefixes.note(turn.blocks)
            turn.given.set_result(self)
        self.refuses = self._waiting.refused
        return bool(taken) or (self.refuses and not refused)

    def begun(self) -> None:
        self._starting -= 1
        self._entrance.admit()

    def leave(self, turn: Turn) -> None:
        """It is over, or has been given up."""
        self._taken -= turn.size
        if not turn.pieces:
            self._starting -= 1
        self._waiting.ended(turn)
