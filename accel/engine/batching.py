"""What waits for an engine, and which of it goes next: topology-aware batching (Ayo, section 5.2 and algorithm 2).

Calls that wait are put into buckets by the run they belong to. The bucket of the run that began first comes first; of
each bucket the calls of the greatest depth are taken, as many of their entries as there is room for; if room is left,
the next depth of each bucket follows, and so on. So an engine first does what most of a run still depends on, fills up
with what brings other runs forward, and ends old runs before it begins new ones.

Around the algorithm: what a program waits for comes before early work, and early work leaves some places free and is
prefilled by itself; whatever has waited long comes forward (`AGING_S`); a batch holds no more tokens than the engine
computes efficiently.

The calls of a batch of runs change places among themselves, by what the engine has in its cache (`beginnings`).

All of it is synchronous and asks the clock it is given; queues that await are the engines'.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..errors import ConfigurationError
from ..process import clock
from .admission import Admission
from .beginnings import Beginnings, Cache, Queue
from .deadlines import Deadlines, Hurried
from .line import Line, Order, Place
from .profile import Profile
from .protocols import Priority, Session
from .tickets import AGING_S, Ticket

T = TypeVar("T")

RESERVED = 0.25
"""The share of an engine's places that early work leaves to demands."""


LOOKED_AT = 128
"""Of the calls that may have to wait for room in the KV cache, so many are looked at to choose the next one, those that
come first, with those of admitted runs; and as many may be passed over. What comes behind them waits for them, and so
the choice takes no longer the more calls wait."""
_OVERDUE = -1


def topology_aware(ticket: Ticket[Any], now_s: float) -> Place:
    """Algorithm 2 for what is demanded, then for early work; before them what has waited too long."""
    rank = max(0, ticket.priority.value)
    if rank == 0 and now_s - ticket.since_s >= AGING_S:
        return Place(_OVERDUE, ticket.number, 0, (ticket.number,))
    # Runs that began in the same moment are told apart by their names, which ascend.
    key = (ticket.arrived_s, ticket.priority.run, ticket.number)
    return Place(rank, ticket.bucket, ticket.priority.depth, key)


def run_by_run(ticket: Ticket[Any], now_s: float) -> Place:
    """The run that began first comes first, also among those of a batch: invocation by invocation. Their names ascend
    as they begin."""
    priority = ticket.priority
    arrived_s = 0.0 if priority.batch else ticket.arrived_s
    return Place(max(0, priority.value), None, 0, (arrived_s, priority.query, ticket.number))


def demands_first(ticket: Ticket[Any], now_s: float) -> Place:
    """By priority, then arrival at the engine: what can be done without knowing runs."""
    return Place(ticket.priority.value, None, 0, (ticket.number,))


def blind(ticket: Ticket[Any], now_s: float) -> Place:
    """First come, first served: what engines do that know nothing."""
    return Place(0, None, 0, (ticket.number,))


def by_reuse(ordered: Iterable[Ticket[T]], beginnings: Beginnings[T]) -> Iterator[Ticket[T]]:
    """The places in line of each batch, given to its calls anew, by what the cache has of them."""
    again: dict[Queue, Iterator[Ticket[T]]] = {}
    for ticket in ordered:
        if not ticket.priority.batch:
            yield ticket
            continue
        queue = beginnings.queue_of(ticket)
        if queue not in again:
            again[queue] = beginnings.best_first(queue)
        yield next(again[queue])


@dataclass(frozen=True, slots=True)
class Policy:
    """How an engine chooses. `reserved`: the share of its places that early work leaves to demands. `apart`: early
    prompts are prefilled one at a time, and not beside a demand's, which would wait longer for its first token.
    `reuses`: batches are served by what is in the cache. `admits`: runs are admitted to the KV cache. `heeds`: calls
    are served by their runs' deadlines."""

    order: Order
    reserved: float = RESERVED
    apart: bool = True
    reuses: bool = True
    admits: bool = True
    heeds: bool = True

    def places(self, places: int, priority: Priority) -> int:
        """How many of an engine's places may be taken when a call of this priority takes one of them."""
        return places if priority.value <= 0 else max(1, int(places * (1 - self.reserved)))

    def may_begin(self, priority: Priority, beginning: int) -> bool:
        """Whether a prompt may be prefilled beside so many that are."""
        return priority.value <= 0 or not self.apart or not beginning


TOPOLOGY_AWARE = Policy(topology_aware)
POLICIES = {
    "topology-aware": TOPOLOGY_AWARE,
    "topology-aware, without reuse": Policy(topology_aware, reuses=False),
    "topology-aware, without admission": Policy(topology_aware, admits=False),
    "topology-aware, without deadlines": Policy(topology_aware, heeds=False),
    "run by run": Policy(run_by_run, reuses=False, admits=False, heeds=False),
    "demands first": Policy(demands_first, reuses=False, admits=False, heeds=False),
    "blind": Policy(blind, reserved=0.0, apart=False, reuses=False, admits=False, heeds=False),
}
"""Engines use the first one. The others are there to be compared with it, on simulated engines."""


def policy_named(name: str) -> Policy:
    """Raises ConfigurationError."""
    if name not in POLICIES:
        raise ConfigurationError(f"There is no batching policy {name!r}.", f"one of {', '.join(POLICIES)}")
    return POLICIES[name]


class Waiting(Generic[T]):
    """The calls that wait for one engine. A priority may be raised while its call waits, so order is found out when
    entries are taken, and for as many as are (`line`). Not thread-safe; lives on an engine's loop."""

    def __init__(
        self,
        policy: Policy = TOPOLOGY_AWARE,
        now_s: Callable[[], float] = clock.now_s,
        shared: Waiting[T] | None = None,
        serves: Callable[[T], bool] = lambda _: True,
    ) -> None:
        """`shared`: what waits for this engine and for others like it. `serves`: which entries this one can serve."""
        self.policy = policy
        self._admission: Admission[T] | None = None
        self._deadlines = Deadlines() if policy.heeds else None
        self._now_s = now_s
        self._shared = shared
        self._serves = serves
        self._all: Sequence[Waiting[T]] = (self,) if shared is None else (self, shared)
        """What this engine is served from."""
        self._beginnings: list[Beginnings[T]] = []
        """Of those that wait here, one for each engine that tells of its cache,"""
        self._own: Beginnings[T] | None = None
        """and this engine's, with those of the shared line."""
        self._line: Line[T] = Line(policy.order)
        self._left = 0
        """Entries of all."""
        self._singles = 0
        """Calls of no batch."""
        self._hurried: Hurried[T] = Hurried()
        """Those of runs with a deadline."""
        self._of: dict[Session, dict[Ticket[T], None]] = {}
        """By run, the calls of no batch."""
        self._numbers: Iterator[int] = shared._numbers if shared is not None else itertools.count()
        self.begun = 0
        """Calls of which something was taken."""
        self.waited_s = 0.0
        """How long they had waited for that, together."""
        self.refused = False
        """Whether a run wasn't admitted when entries were taken last."""

    def add(self, entries: Iterable[T], priority: Priority) -> Ticket[T]:
        """A call, with all it asks for."""
        now_s = self._now_s()
        ticket = Ticket(deque(entries), priority, next(self._numbers), now_s)
        if ticket.entries:
            self._line.add(ticket, now_s)
            for beginnings in self._beginnings:
                beginnings.add(ticket)
            self._singles += not priority.batch
            if priority.session is not None and not priority.batch:
                self._of.setdefault(priority.session, {})[ticket] = None
            self._hurried.add(ticket)
            self._left += len(ticket.entries)
        return ticket

    def caches(self, cache: Cache, blocks: Callable[[T], Sequence[Hashable]]) -> None:
        """The engine has this cache, from now on, and these are the blocks of an entry: batches are served by what is
        in it, if the policy says so."""
        if not self.policy.reuses:
            return
        before, self._own = self._own, Beginnings(cache, blocks)
        for waiting in self._all:
            waiting._beginnings = [*(one for one in waiting._beginnings if one is not before), self._own]
            for ticket in waiting._line:
                self._own.add(ticket)
                if before is not None:
                    before.remove(ticket)

    def admit(self, admission: Admission[T]) -> None:
        """From now on runs are admitted, if the policy says so; whatever is taken has to be `ended`."""
        self._admission = admission if self.policy.admits else None

    def ended(self, entry: T) -> None:
        """What was taken is over, or given up. Idempotent."""
        if self._admission is not None:
            self._admission.end(entry, self._now_s())

    def take(self, accept: Callable[[T], bool | None]) -> list[T]:
        """The next batch. `accept` is asked entry by entry, the best first, and says whether this one is taken; the
        first that isn't ends the batch, unless it has to wait for something else than room (None). Those of paused runs
        are passed over."""
        taken: list[T] = []
        served: list[tuple[Ticket[T], Waiting[T]]] = []
        self.refused, refused = False, 0
        by_itself = not any(len(waiting._line) > waiting._singles for waiting in self._all)
        now_s = self._now_s()
        ordered = self._in_line(now_s)
        try:
            for ticket in ordered:
                if not self._by_reuse(ticket) and (refused >= LOOKED_AT or not self._admits(ticket, now_s)):
                    self.refused, refused = True, refused + 1
                    if refused >= LOOKED_AT and by_itself:
                        break
                    continue
                accepted: bool | None = True
                holder = self if self._shared is None or ticket in self._line else self._shared
                while ticket.entries and (accepted := accept(ticket.entries[0])):
                    if self._admission is not None:
                        self._admission.begin(ticket.entries[0], ticket.priority, now_s)
                    taken.append(ticket.entries.popleft())
                    served.append((ticket, holder))
                    if not ticket.begun:
                        ticket.begun = True
                        if self._deadlines is not None:
                            self._deadlines.taken(ticket, now_s)
                        self.begun += 1
                        self.waited_s += now_s - ticket.since_s
                if accepted is False:
                    break
        finally:
            for ticket, holder in served:
                holder._left -= 1
                holder._fewer(ticket)
        return taken

    def _by_reuse(self, ticket: Ticket[T]) -> bool:
        """The calls of a batch come by what is in the cache: who is admitted would only break up what they share."""
        return self._own is not None and ticket.priority.batch

    def _is_for_this(self, ticket: Ticket[T]) -> bool:
        """Whether this engine can serve it. Of a batch all keep their places; who is asked for them says it then."""
        return ticket.priority.batch or not ticket.entries or self._serves(ticket.entries[0])

    def _admits(self, ticket: Ticket[T], now_s: float) -> bool:
        return self._admission is None or self._admission.admits(ticket, now_s)

    def _in_line(self, now_s: float) -> Iterable[Ticket[T]]:
        """All that wait, the best first. What knows single tickets only looks at those that are taken."""
        lines = heapq.merge(*[waiting._line.best_first(now_s) for waiting in self._all])
        ordered: Iterable[Ticket[T]] = (ticket for _, ticket in lines if self._is_for_this(ticket))
        if self._own is not None:
            self._own.look(now_s)  # now: while calls are taken nothing may change its place
            ordered = by_reuse(ordered, self._own)
        if self._admission is not None:
            if self._own is None or any(waiting._singles for waiting in self._all):
                ordered = self._admitted_first(iter(ordered), self._admission, now_s)
            else:
                self._admission.look_round(now_s)
        if self._deadlines is not None and any(waiting._hurried for waiting in self._all):
            hurried, came = zip(*((waiting._hurried, waiting._line) for waiting in self._all), strict=True)
            ordered = self._deadlines.line(ordered, hurried, came, now_s)
        return ordered

    def _admitted_first(
        self, ordered: Iterator[Ticket[T]], admission: Admission[T], now_s: float
    ) -> Iterable[Ticket[T]]:
        """In the order in which runs are admitted, as far as that is looked for."""
        first: list[Ticket[T]] = []
        left = LOOKED_AT
        for ticket in ordered:
            first.append(ticket)
            left -= not self._by_reuse(ticket)
            if not left:
                break
        seen, further = set(first), () if left else admission.runs
        calls = (ticket for session in further for waiting in self._all for ticket in waiting._of.get(session, ()))
        first = [*(one for one in calls if one not in seen and self._is_for_this(one)), *first]
        seen.update(first)
        return itertools.chain(admission.line(first, now_s), (ticket for ticket in ordered if ticket not in seen))

    def leave(self, ticket: Ticket[T]) -> None:
        """Nothing of this call is wanted any more."""
        self._left -= len(ticket.entries)
        ticket.entries.clear()
        self._remove(ticket)

    def _fewer(self, ticket: Ticket[T]) -> None:
        """Some of its entries are gone."""
        if not ticket.entries:
            self._remove(ticket)
        for beginnings in self._beginnings if ticket.entries else ():
            beginnings.place_anew(ticket)

    def _remove(self, ticket: Ticket[T]) -> None:
        self._singles -= ticket in self._line and not ticket.priority.batch
        session = ticket.priority.session
        if session is not None and ticket in (calls := self._of.get(session, {})):
            del calls[ticket]
            if not calls:
                del self._of[session]
        self._line.remove(ticket)
        for beginnings in self._beginnings:
            beginnings.remove(ticket)
        self._hurried.discard(ticket)

    def drop(self, unwanted: Callable[[T], bool]) -> None:
        """Looks at all entries; to know whose call is not wanted any more is to `leave`."""
        for ticket in list(self._line):
            if any(map(unwanted, ticket.entries)):
                before = len(ticket.entries)
                ticket.entries = deque(entry for entry in ticket.entries if not unwanted(entry))
                self._left -= before - len(ticket.entries)
                self._fewer(ticket)

    def clear(self) -> None:
        for ticket in list(self._line):
            self.leave(ticket)

    def __iter__(self) -> Iterator[T]:
        return (entry for ticket in self._line for entry in ticket.entries)

    def __len__(self) -> int:
        return self._left


def token_capped(most: int, tokens: Callable[[T], int]) -> Callable[[T], bool]:
    """For `Waiting.take`: entries as long as the batch, padded to the longest of them, has no more than so many tokens.
    The first is taken whatever its length."""
    count = longest = 0

    def accept(entry: T) -> bool:
        nonlocal count, longest
        padded = max(longest, tokens(entry))
        if count and padded * (count + 1) > most:
            return False
        count, longest = count + 1, padded
        return True

    return accept


def tokens_of(text: str) -> int:
    """Never an underestimate by much: English has about four characters per token."""
    return len(text) // 3 + 2


def batch_tokens(profile: Profile) -> int:
    """Most tokens of a batch worth forming: those with which the engine is efficient, if it takes as many. 0: any."""
    return min(profile.batch_tokens, profile.efficient_batch_tokens) if profile.batch_tokens else 0


# For engines that order their own queue by one number: a demand before early work, then the run that began first, then
# the deepest call. Depths and milliseconds get their own bits, and the number stays below 2**63.
_DEPTHS = 1 << 12
_EARLY_BIT = 1 << 60


def request_priority(priority: Priority, now_s: float) -> int:
    """As vLLM takes it: lower is served first, and a run's younger or shallower request makes room first. It can't be
    changed once it is given, so what may be raised should wait in a queue of ours."""
    milliseconds = int((priority.arrived_s if priority.run else now_s) * 1000)
    early = _EARLY_BIT if priority.value > 0 else 0
    return early + milliseconds * _DEPTHS + _DEPTHS - 1 - min(priority.depth, _DEPTHS - 1)
