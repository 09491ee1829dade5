"""Which runs keep their context in an engine's KV cache at a time (ThunderAgent: admission of programs).

A run's calls read again what its earlier ones left in the cache. Where more runs are under way than the cache has room
for, each throws out what the next call of another would have found. So a run is *admitted* with a call, stays so until
its end, and its context counts: no further one is admitted above `AIM` of the capacity. Contexts grow; above
`PAUSED_ABOVE` runs between two calls are *paused*, the youngest first, until `AIM` is reached. A paused run's next call
waits in line: those that had been admitted before come first, then new ones, the smallest first.

Only what is read again counts: how much of its context a run's next call begins with is noted for each program, and
runs of programs whose calls share next to nothing hold nothing between them. Where there are no others, none waits.

An engine that has nothing to do takes what waits: a run alone is never paused, and runs that hold contexts here and
wait elsewhere keep nobody from going on. Early calls are admitted with their run, never before a demand that waits, and
what a run's demand waits for is no place that its own early call has: both have the run's. Nothing starves: who has
waited for `AGING_S` comes before all others that are not admitted, and after `TURN_S` a run lets them pass.

A context is what blocks of the cache the last call's prompt has, the calls under way and their answers besides; blocks
that runs share count once. Synchronous, is told the time. Lives on an engine's loop; runs may end in any thread.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Generic, NamedTuple, TypeVar
from weakref import WeakSet

from .protocols import Priority, Session
from .tickets import AGING_S, Ticket

T = TypeVar("T", bound=Hashable)

PAUSED_ABOVE, AIM = 0.95, 0.80
"""Shares of the capacity."""
AWAY_S = 10.0
"""A run whose next call doesn't come for so long counts as paused."""
READ_AGAIN, WEIGHT = 0.5, 0.2
"""A program's runs hold their contexts if their next calls begin with so much of them, in the mean; the weight of the
last one in it. A program that nobody knows does."""
TURN_S = 600.0
"""A run that has been admitted for so long is paused after its call where others have waited for `AGING_S`."""


class Need(NamedTuple):
    """What a call takes of the KV cache."""

    blocks: Sequence[int]
    """The whole blocks of its prompt, each named by all that precedes it, too."""
    own: int
    """How many more, of the prompt's rest and the answer."""


@dataclass(eq=False, slots=True)
class _Stay:
    """Of an admitted run."""

    began_s: float
    arrived_s: float
    """When the run began."""
    running: dict[Hashable, Need] = field(default_factory=dict)
    last: Sequence[int] = ()
    """The blocks of the call that ended last,"""
    kept: Sequence[int] = ()
    """the same, as long as they count: while none is running."""
    left_s: float = 0.0
    """When it ended."""
    forget: Callable[[], None] = lambda: None
    """Of the run's end."""


class Admission(Generic[T]):
    """`need`: what an entry takes. A call of no run is a run by itself."""

    def __init__(self, capacity: int, need: Callable[[T], Need]) -> None:
        """capacity: blocks of the KV cache."""
        self._capacity = capacity
        self._need = need
        self._stays: dict[Hashable, _Stay] = {}
        self._between: OrderedDict[Hashable, None] = OrderedDict()
        """Of these, those with no call under way, in the order of their `left_s`."""
        self._over: deque[Hashable] = deque()
        """Runs that have ended since anybody looked."""
        self._paused: WeakSet[Session] = WeakSet()
        self._blocks: Counter[int] = Counter()
        """Of admitted runs, by how many hold them."""
        self._own = 0
        self._running: dict[T, Hashable] = {}
        """By call under way, whose it is."""
        self._again: dict[str, float] = {}
        """By program, which share of their contexts runs read again."""
        self._refused = False
        """A demand of a run that isn't admitted may not begin yet,"""
        self._let_pass = False
        """nor may one that has waited for long, and no other of these before it."""
        self._bounded = False
        """There are runs that read their contexts again."""
        self.pauses = 0
        """How often a run was paused."""

    @property
    def used(self) -> int:
        """Blocks, of all admitted runs."""
        return len(self._blocks) + self._own

    @property
    def admitted(self) -> int:
        return len(self._stays)

    @property
    def runs(self) -> Iterator[Session]:
        """Those that are admitted, the oldest first."""
        return (key for key in self._stays if isinstance(key, Session))

    # --- whose turn it is

    def line(self, ordered: Sequence[Ticket[T]], now_s: float) -> list[Ticket[T]]:
        """The same tickets, where not all have room: the places in line that demands of runs have which are not
        admitted go to those who have waited for long, then to paused ones, then to new ones, the smallest first. The
        runs of a batch keep theirs."""
        self.look_round(now_s)
        self._refused = self._let_pass = False
        outside = [ticket for ticket in ordered if self._is_outside(ticket)]
        readers = any(map(self._reads, self._stays)) or any(self._reads(each.priority.session) for each in ordered)
        self._bounded = readers
        if not readers or self._has_room(outside):
            return list(ordered)
        if any(_is_aged(ticket, now_s) for ticket in outside):
            self._end_turns(now_s)
        single = [ticket for ticket in outside if not ticket.priority.batch]
        again = iter(sorted(single, key=lambda ticket: self._place(ticket, now_s)))
        dealt = set(map(id, single))
        return [next(again) if id(ticket) in dealt else ticket for ticket in ordered]

    def look_round(self, now_s: float) -> None:
        """Runs that have ended are gone, and those that have stayed away are paused."""
        while self._over:
            if (key := self._over.popleft()) in self._stays:
                self._leave(key)
        while self._between and now_s - self._stays[key := next(iter(self._between))].left_s >= AWAY_S:
            self._pause(key)

    def _is_outside(self, ticket: Ticket[T]) -> bool:
        return ticket.priority.value <= 0 and _key(ticket.entries[0], ticket.priority) not in self._stays

    def _has_room(self, outside: Sequence[Ticket[T]]) -> bool:
        """For all of them."""
        used = self.used
        for ticket in outside:
            used += self._more(self._need(ticket.entries[0]))
            if used > AIM * self._capacity:
                return False
        return True

    def _place(self, ticket: Ticket[T], now_s: float) -> tuple[int, float, int]:
        if _is_aged(ticket, now_s):
            return 0, ticket.since_s, ticket.number
        session = ticket.priority.session
        if session is not None and session in self._paused:
            return 1, ticket.arrived_s, ticket.number
        return 2, self._more(self._need(ticket.entries[0])), ticket.number

    def admits(self, ticket: Ticket[T], now_s: float) -> bool:
        """Whether a call may begin, in the order of `line`. Runs may be paused for it."""
        entry, priority = ticket.entries[0], ticket.priority
        key, need = _key(entry, priority), self._need(entry)
        inside, early = key in self._stays, priority.value > 0
        if not self._bounded:
            return True
        if not self._running or (inside and not early):
            return self._makes_room(key, need)
        if inside:
            return self._fits(need, PAUSED_ABOVE)
        may = not self._let_pass and not (early and self._refused)
        if may and self._fits(need, AIM):
            return True
        if not early:
            self._refused = True
            self._let_pass = self._let_pass or _is_aged(ticket, now_s)
        return False

    def _makes_room(self, key: Hashable, need: Need) -> bool:
        """Pause others, if there have to be fewer; whether that was enough. Alone, a run always has room."""
        if self._fits(need, PAUSED_ABOVE):
            return True
        between = [other for other in self._stays if other in self._between and other != key]
        for other in sorted(between, key=lambda other: -self._stays[other].arrived_s):
            if self._fits(need, AIM):
                break
            self._pause(other)
        alone = all(other == key for other in self._stays)
        return alone or self._fits(need, PAUSED_ABOVE)

    def _end_turns(self, now_s: float) -> None:
        for key, stay in list(self._stays.items()):
            if not stay.running and now_s - stay.began_s >= TURN_S:
                self._pause(key)

    # --- what is under way

    def begin(self, entry: T, priority: Priority, now_s: float) -> None:
        key, need = _key(entry, priority), self._need(entry)
        stay = self._stays.get(key)
        if stay is None:
            stay = self._stays[key] = _Stay(now_s, priority.arrived_s)
            if priority.session is not None:
                self._paused.discard(priority.session)
                stay.forget = priority.session.on_end(lambda: self._over.append(key))
        elif not stay.running:
            self._note(key, stay.last, need.blocks)
        self._hold(need.blocks)
        self._release(stay.kept)
        stay.kept = ()
        self._own += need.own
        self._between.pop(key, None)
        stay.running[entry] = need
        self._running[entry] = key

    def end(self, entry: T, now_s: float) -> None:
        """It is over, or given up. Does nothing for what has not begun."""
        key = self._running.pop(entry, None)
        if key is None:
            return
        stay = self._stays[key]
        need = stay.running.pop(entry)
        self._own -= need.own
        stay.left_s, stay.last = now_s, need.blocks
        if not stay.running:
            self._between[key] = None
        if not stay.running and self._reads(key):
            stay.kept = need.blocks
        else:
            self._release(need.blocks)
        if not isinstance(key, Session) or key.ended:
            self._leave(key)

    # --- contexts

    def _reads(self, key: object) -> bool:
        """Whether a run reads again what its calls leave; a call of no run does not."""
        return isinstance(key, Session) and self._again.get(key.program, 1.0) >= READ_AGAIN

    def _note(self, key: Hashable, last: Sequence[int], blocks: Sequence[int]) -> None:
        if isinstance(key, Session) and last:
            same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(last, blocks, strict=False)))
            before = self._again.get(key.program, 1.0)
            self._again[key.program] = before + WEIGHT * (same / len(last) - before)

    def _fits(self, need: Need, share: float) -> bool:
        return self.used + self._more(need) <= share * self._capacity

    def _more(self, need: Need) -> int:
        """Blocks that a call would add."""
        known = next((n for n, block in enumerate(need.blocks) if block not in self._blocks), len(need.blocks))
        return len(need.blocks) - known + need.own

    def _hold(self, blocks: Sequence[int]) -> None:
        self._blocks.update(blocks)

    def _release(self, blocks: Sequence[int]) -> None:
        for block in blocks:
            self._blocks[block] -= 1
            if not self._blocks[block]:
                del self._blocks[block]

    def _pause(self, key: Hashable) -> None:
        if isinstance(key, Session):
            self._paused.add(key)
            self.pauses += 1
        self._leave(key)

    def _leave(self, key: Hashable) -> None:
        """Unless it has calls under way."""
        stay = self._stays[key]
        if not stay.running:
            del self._stays[key]
            self._between.pop(key, None)
            self._release(stay.kept)
            stay.forget()


def _key(entry: Hashable, priority: Priority) -> Hashable:
    return priority.session or entry


def _is_aged(ticket: Ticket[T], now_s: float) -> bool:
    return now_s - ticket.since_s >= AGING_S
