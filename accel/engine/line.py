"""The line in which calls wait for an engine: found out for the calls that are taken, not for all that wait.

An order says where a call stands, looking at this call alone. The line keeps the calls sorted by that, and places one
anew when its place has changed: when the program came to wait for it, or it has waited long. To add a call, to remove
one and to read the best one is the same work however many wait.

Synchronous, is told the time. Only to raise a priority is for other threads.
"""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_left, insort
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from .tickets import AGING_S, Ticket

T = TypeVar("T")


class Place(NamedTuple):
    """Calls of a lower rank come first. Of one rank first comes the deepest level of each bucket, then the next one of
    each, and so on; and in a level the lower key, which no other call has."""

    rank: int
    bucket: Hashable
    depth: int
    key: tuple[Any, ...]


Standing = tuple[int, int, tuple[Any, ...]]
"""Rank, level (0: the deepest of its bucket) and key: those of a lower one come first."""
Order = Callable[[Ticket[Any], float], Place]
"""Where a ticket stands at a time in seconds; changes only when it is raised or has waited for `AGING_S`."""


class Line(Generic[T]):
    def __init__(self, order: Order) -> None:
        self._order = order
        self._places: dict[Ticket[T], tuple[Place, Callable[[], None]]] = {}
        """Where each stands, and what to call when it leaves; as they came."""
        self._aging: OrderedDict[Ticket[T], None] = OrderedDict()
        """Those that may wait for so long yet that their place changes; as they came, or were raised for that."""
        self._raised: deque[Ticket[T]] = deque()
        """Since the line was read."""
        self._ranks: dict[int, _Rank[T]] = {}

    def add(self, ticket: Ticket[T], now_s: float) -> None:
        """Tickets come in the order of their `since_s`."""
        # Registered first: it may be raised by another thread meanwhile.
        forget = ticket.priority.on_raise(lambda: self._raised.append(ticket))
        self._put(ticket, self._order(ticket, now_s), forget)
        self._aging[ticket] = None

    def remove(self, ticket: Ticket[T]) -> None:
        """It need not be there."""
        if ticket in self._places:
            place, forget = self._places.pop(ticket)
            self._aging.pop(ticket, None)
            self._leave(place)
            forget()

    def best_first(self, now_s: float) -> Iterator[tuple[Standing, Ticket[T]]]:
        """Nothing is to be added or removed meanwhile. Lines whose buckets are others' can be merged by how their
        tickets stand."""
        while self._raised:
            self._place_anew(self._raised.popleft(), now_s)
        while self._aging and now_s - (ticket := next(iter(self._aging))).since_s >= AGING_S:
            if ticket.priority.value > 0:
                ticket.priority.raise_to_demand()
                ticket.since_s = now_s
                self._aging.move_to_end(ticket)
            else:
                del self._aging[ticket]
            self._place_anew(ticket, now_s)
        return self._in_order()

    def _in_order(self) -> Iterator[tuple[Standing, Ticket[T]]]:
        for rank in sorted(self._ranks):
            for level, key, ticket in self._ranks[rank].best_first():
                yield (rank, level, key), ticket

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, ticket: Ticket[T]) -> bool:
        return ticket in self._places

    def __iter__(self) -> Iterator[Ticket[T]]:
        """As they came."""
        return iter(self._places)

    def _place_anew(self, ticket: Ticket[T], now_s: float) -> None:
        if ticket in self._places:
            place, forget = self._places[ticket]
            self._leave(place)
            self._put(ticket, self._order(ticket, now_s), forget)

    def _put(self, ticket: Ticket[T], place: Place, forget: Callable[[], None]) -> None:
        self._places[ticket] = place, forget
        if place.rank not in self._ranks:
            self._ranks[place.rank] = _Rank()
        self._ranks[place.rank].add(place, ticket)

    def _leave(self, place: Place) -> None:
        rank = self._ranks[place.rank]
        rank.remove(place)
        if not rank.buckets:
            del self._ranks[place.rank]


_Standing = tuple[tuple[Any, ...], Ticket[T]]
"""By its key."""


class _Bucket(Generic[T]):
    def __init__(self) -> None:
        self.depths: list[int] = []
        """Negative, the deepest first."""
        self.levels: dict[int, list[_Standing[T]]] = {}
        """Sorted."""

    @property
    def head(self) -> tuple[Any, ...] | None:
        """The key of the best one."""
        return self.levels[self.depths[0]][0][0] if self.depths else None


class _Rank(Generic[T]):
    def __init__(self) -> None:
        self.buckets: dict[Hashable, _Bucket[T]] = {}
        self._heads: list[tuple[tuple[Any, ...], _Bucket[T]]] = []
        """Of all buckets, sorted."""

    def add(self, place: Place, ticket: Ticket[T]) -> None:
        if place.bucket not in self.buckets:
            self.buckets[place.bucket] = _Bucket()
        bucket = self.buckets[place.bucket]
        head, depth = bucket.head, -place.depth
        if depth not in bucket.levels:
            bucket.levels[depth] = []
            insort(bucket.depths, depth)
        insort(bucket.levels[depth], (place.key, ticket))
        self._head_changed(bucket, head)

    def remove(self, place: Place) -> None:
        bucket = self.buckets[place.bucket]
        head, depth = bucket.head, -place.depth
        level = bucket.levels[depth]
        del level[bisect_left(level, (place.key,))]
        if not level:
            del bucket.levels[depth]
            bucket.depths.remove(depth)
        if not bucket.depths:
            del self.buckets[place.bucket]
        self._head_changed(bucket, head)

    def _head_changed(self, bucket: _Bucket[T], before: tuple[Any, ...] | None) -> None:
        head = bucket.head
        if head == before:
            return
        if before is not None:
            del self._heads[bisect_left(self._heads, (before,))]
        if head is not None:
            insort(self._heads, (head, bucket))

    def best_first(self) -> Iterator[tuple[int, tuple[Any, ...], Ticket[T]]]:
        """With their levels, from 0, and keys."""
        for key, ticket in self._first_levels():
            yield 0, key, ticket
        # To have come here is to have read a ticket of each bucket: there are fewer of them than tickets read.
        for n in itertools.count(1):
            levels = [bucket.levels[bucket.depths[n]] for bucket in self.buckets.values() if len(bucket.depths) > n]
            if not levels:
                return
            for key, ticket in heapq.merge(*levels):
                yield n, key, ticket

    def _first_levels(self) -> Iterator[_Standing[T]]:
        """A bucket is looked into when its head has its turn."""
        reading: list[tuple[tuple[Any, ...], Ticket[T], Iterator[_Standing[T]]]] = []
        for head, bucket in self._heads:
            while reading and reading[0][0] < head:
                yield _read(reading)
            level = iter(bucket.levels[bucket.depths[0]])
            heapq.heappush(reading, (*next(level), level))
        while reading:
            yield _read(reading)


def _read(reading: list[tuple[tuple[Any, ...], Ticket[T], Iterator[_Standing[T]]]]) -> _Standing[T]:
    key, ticket, level = reading[0]
    following = next(level, None)
    if following is None:
        heapq.heappop(reading)
    else:
        heapq.heapreplace(reading, (*following, level))
    return key, ticket
