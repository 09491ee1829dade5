"""The calls of batches that wait for an engine, by what its cache has of their prompts.

Of the calls of one batch those come first of whose prompt most is in the cache, so that what shares it comes while it
is there. Of those that need the same block next one opens the way; the others come when it is computed. So groups that
share a beginning are served one after the other (Helium, section 5).

Calls are kept sorted by that. The cache tells which blocks came and went, and only calls whose beginning has changed
are placed anew: to choose one is the same work however many wait. Calls that share a document change places together,
once for all of them, when it comes.

Synchronous, is told the time. Only to raise a priority is for other threads.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from .tickets import Ticket

T = TypeVar("T")

LEAST_SHARE = 0.5
"""Of a prompt, what has to be in the cache to be a reason to serve it now."""
BATCH_AGING_S = 600.0
"""A call of a batch that has waited this long goes before all others of its batch."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """What an engine has of an entry."""

    found: int = 0
    """Blocks of its beginning that are in the cache."""
    next: Hashable = None
    """The first block that is not; None: there is none."""
    coming: bool = False
    """Another entry's turn is computing that one."""
    blocks: int = 0
    """Of the entry."""

    @property
    def worth(self) -> int:
        """Blocks for whose sake it comes first. Instructions that all calls of an operator begin with are no reason:
        what they save is little, and would have operator after operator served of all runs, while the engines that come
        next have nothing to do."""
        return worth(self.found, self.blocks)


def worth(found: int, blocks: int) -> int:
    """Of what is found of a prompt, see `Reuse.worth`."""
    return found if found >= LEAST_SHARE * blocks else 0


class Cache(Protocol):
    """Of an engine. A block is named by what it holds and all that precedes it."""

    def reuse(self, blocks: Any, /) -> Reuse:
        """What of a prompt's blocks is in it."""

    def watch(self, changed: Callable[[Hashable], None]) -> None:
        """From now on call this with each block that came, went, or began or ceased to be computed. Several may
        watch."""


Key = tuple[int, int, int]
"""By its worth, its depth and its number. Lower is served first."""
Queue = tuple[str, bool]
"""A batch, and whether its calls are early."""
_Line = list[tuple[Key, Ticket[T]]]
"""Sorted."""


@dataclass(slots=True)
class _Group(Generic[T]):
    """Those that need the same block next."""

    line: _Line[T] = field(default_factory=list)
    coming: bool = False
    """It is being computed, and nobody has to open the way."""
    opener: tuple[Key, Ticket[T]] | None = None


@dataclass(slots=True)
class _Batch(Generic[T]):
    """Each call is in one of these three."""

    overdue: _Line[T] = field(default_factory=list)
    first: _Line[T] = field(default_factory=list)
    """Those that open the way, or need nothing any more."""
    behind: _Line[T] = field(default_factory=list)
    groups: dict[Hashable, _Group[T]] = field(default_factory=dict)
    """Of those that are not overdue, by the block."""

    def settle(self, group: _Group[T]) -> None:
        """Find out who opens the way."""
        opener = None if group.coming or not group.line else group.line[0]
        if opener == group.opener:
            return
        if group.opener is not None:
            _remove(self.first, group.opener[0])
            insort(self.behind, group.opener)
        if opener is not None:
            _remove(self.behind, opener[0])
            insort(self.first, opener)
        group.opener = opener


@dataclass(slots=True)
class _Standing(Generic[T]):
    queue: Queue
    key: Key
    blocks: Sequence[Hashable]
    reuse: Reuse
    since_s: float
    forget: Callable[[], None]
    """Of its being raised."""
    is_overdue: bool

    @property
    def ahead(self) -> int:
        """How many of its blocks decide its place."""
        return min(self.reuse.found + 1, len(self.blocks))


class Beginnings(Generic[T]):
    """`cache`: the engine's. `blocks`: of an entry."""

    def __init__(self, cache: Cache, blocks: Callable[[T], Sequence[Hashable]]) -> None:
        self._blocks = blocks
        self._standings: dict[Ticket[T], _Standing[T]] = {}
        self._batches: dict[Queue, _Batch[T]] = {}
        self._deciding: dict[Hashable, dict[Ticket[T], None]] = {}
        """By block, the calls whose place it decides: those that have found it, or need it next."""
        self._young: OrderedDict[Ticket[T], None] = OrderedDict()
        """Those that are not overdue, in the order of their `since_s`."""
        self._raised: deque[Ticket[T]] = deque()
        self._changed: dict[Hashable, None] = {}
        self._cache = cache
        cache.watch(self._note)

    def _note(self, block: Hashable) -> None:
        if block in self._deciding:
            self._changed[block] = None

    def add(self, ticket: Ticket[T]) -> None:
        """One of no batch is not kept. Tickets come in the order of their `since_s`."""
        if ticket.priority.batch:
            # Registered first: it may be raised by another thread meanwhile.
            forget = ticket.priority.on_raise(lambda: self._raised.append(ticket))
            self._young[ticket] = None
            self._put(ticket, forget, False)

    def remove(self, ticket: Ticket[T]) -> None:
        """It need not be there."""
        if ticket in self._standings:
            self._young.pop(ticket, None)
            self._take_out(ticket).forget()

    def place_anew(self, ticket: Ticket[T]) -> None:
        """What it asks for next is something else. It need not be there."""
        if ticket in self._standings:
            old = self._take_out(ticket)
            self._put(ticket, old.forget, old.is_overdue)

    def look(self, now_s: float) -> None:
        """Before calls are read: who stands elsewhere by now."""
        while self._raised:
            ticket = self._raised.popleft()
            if ticket in self._standings:
                self._raise(ticket)
        changed, self._changed = self._changed, {}
        for block in changed:
            self._look_at(block)
        while self._young and now_s - (ticket := next(iter(self._young))).since_s >= BATCH_AGING_S:
            del self._young[ticket]
            self._put(ticket, self._take_out(ticket).forget, True)

    def _raise(self, ticket: Ticket[T]) -> None:
        old = self._take_out(ticket)
        waits_anew = ticket.since_s != old.since_s
        if waits_anew:
            self._young[ticket] = None
            self._young.move_to_end(ticket)
        self._put(ticket, old.forget, old.is_overdue and not waits_anew)

    def queue_of(self, ticket: Ticket[T]) -> Queue:
        """As it was when calls were looked at last."""
        return self._standings[ticket].queue

    def best_first(self, queue: Queue) -> Iterator[Ticket[T]]:
        """Nothing is to be added or removed meanwhile."""
        batch = self._batches[queue]
        for line in (batch.overdue, batch.first, batch.behind):
            for _, ticket in line:
                yield ticket

    # --- places

    def _look_at(self, block: Hashable) -> None:
        """Calls that have a block in common begin alike up to it: what one of them finds there all find."""
        calls = list(self._deciding.get(block, ()))
        if not calls:
            return
        now = self._cache.reuse(self._standings[calls[0]].blocks)
        is_missing = now.next == block
        for ticket in calls:
            if is_missing != (self._standings[ticket].reuse.next == block):
                self.place_anew(ticket)
        if is_missing:
            for batch in self._batches.values():
                if (group := batch.groups.get(block)) is not None:
                    group.coming = now.coming
                    batch.settle(group)

    def _put(self, ticket: Ticket[T], forget: Callable[[], None], is_overdue: bool) -> None:
        blocks = self._blocks(ticket.entries[0])
        reuse = self._cache.reuse(blocks)
        queue = (ticket.priority.run, ticket.priority.value > 0)
        key = (-reuse.worth, -ticket.priority.depth, ticket.number)
        standing: _Standing[T] = _Standing(queue, key, blocks, reuse, ticket.since_s, forget, is_overdue)
        self._standings[ticket] = standing
        for block in blocks[: standing.ahead]:
            self._deciding.setdefault(block, {})[ticket] = None
        batch = self._batches.setdefault(queue, _Batch())
        if is_overdue:
            insort(batch.overdue, (key, ticket))
        elif reuse.next is None:
            insort(batch.first, (key, ticket))
        else:
            group = batch.groups.setdefault(reuse.next, _Group())
            group.coming = reuse.coming
            insort(group.line, (key, ticket))
            insort(batch.behind, (key, ticket))
            batch.settle(group)

    def _take_out(self, ticket: Ticket[T]) -> _Standing[T]:
        standing = self._standings.pop(ticket)
        for block in standing.blocks[: standing.ahead]:
            calls = self._deciding[block]
            del calls[ticket]
            if not calls:
                del self._deciding[block]
        batch, key, following = self._batches[standing.queue], standing.key, standing.reuse.next
        if standing.is_overdue:
            _remove(batch.overdue, key)
        elif following is None:
            _remove(batch.first, key)
        else:
            group = batch.groups[following]
            _remove(group.line, key)
            batch.settle(group)  # if it opened the way it is behind now
            _remove(batch.behind, key)
            if not group.line:
                del batch.groups[following]
        if not (batch.overdue or batch.first or batch.behind):
            del self._batches[standing.queue]
        return standing


def _remove(line: _Line[T], key: Key) -> None:
    del line[bisect_left(line, (key,))]
