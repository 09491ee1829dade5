"""Calls of runs with a deadline, by their slack (JITServe): the time that is left, less what the run should take yet.

Demands of runs that can meet their deadline come first, the one with the least slack before all. A run that can't any
more is served as one without, behind those that can; so are the others, in their order among themselves. Where many
deadlines are near that would be never: after `SHARE` calls one comes first that has waited for `AGING_S`. A slack gets
less for all alike, so that calls stay sorted by it: to choose the next one takes no longer the more wait.

Synchronous, is told the time. Not thread-safe; lives on an engine's loop.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import chain, islice
from typing import Generic, TypeVar

from .protocols import Priority
from .tickets import AGING_S, Ticket

T = TypeVar("T")

SHARE = 8
LOOKED_AT = 64
"""So many calls that came first, when one is looked for that has waited for long."""


def latest_s(priority: Priority) -> float:
    """When a call has to begin for its run to meet its deadline; infinite for a run without one."""
    return math.inf if priority.session is None else priority.session.due_s - priority.left_s


def slack_s(priority: Priority, now_s: float) -> float:
    """Negative for a run that will be late; infinite for one without a deadline."""
    return latest_s(priority) - now_s


class Hurried(Generic[T]):
    """Calls of runs with a deadline that wait in one line, the one with the least slack first."""

    def __init__(self) -> None:
        self._sorted: list[tuple[float, int, Ticket[T]]] = []

    def add(self, ticket: Ticket[T]) -> None:
        """Of a run without a deadline, it is none of them."""
        if latest_s(ticket.priority) < math.inf:
            insort(self._sorted, _place(ticket))

    def discard(self, ticket: Ticket[T]) -> None:
        """It need not be there."""
        at = bisect_left(self._sorted, _place(ticket))
        if at < len(self._sorted) and self._sorted[at][2] is ticket:
            del self._sorted[at]

    def in_time(self, now_s: float) -> Iterator[tuple[float, int, Ticket[T]]]:
        """Those that the program waits for, of runs that can meet their deadline."""
        places = self._sorted
        return (places[at] for at in range(bisect_left(places, (now_s,)), len(places)) if _is_demand(places[at][2]))

    def __bool__(self) -> bool:
        return bool(self._sorted)


def _place(ticket: Ticket[T]) -> tuple[float, int, Ticket[T]]:
    return latest_s(ticket.priority), ticket.number, ticket


class Deadlines:
    def __init__(self) -> None:
        self._passed = 0
        """Calls that went before one that has waited for long, since the last of these."""

    def line(
        self, ordered: Iterable[Ticket[T]], hurried: Iterable[Hurried[T]], came: Iterable[Iterable[Ticket[T]]],
        now_s: float,
    ) -> Iterator[Ticket[T]]:  # fmt: skip
        """The same tickets. `hurried`, `came`: of each line, its calls with a deadline, and all as they came."""
        in_time = merge(*(one.in_time(now_s) for one in hurried))
        soonest = next(in_time, None)
        if soonest is None:
            yield from ordered
            return
        first = _longest(came, now_s) if self._passed >= SHARE else None
        gone = {first} if first is not None else set()
        yield from gone
        for _, _, ticket in chain((soonest,), in_time):
            gone.add(ticket)
            yield ticket
        yield from (ticket for ticket in ordered if ticket not in gone)

    def taken(self, ticket: Ticket[T], now_s: float) -> None:
        """It is served now."""
        self._passed = self._passed + 1 if _can_meet(ticket, now_s) else 0


def _longest(came: Iterable[Iterable[Ticket[T]]], now_s: float) -> Ticket[T] | None:
    """The one that has waited longest, of those that are not hurried."""
    first = (ticket for line in came for ticket in islice(line, LOOKED_AT))
    others = (ticket for ticket in first if _is_demand(ticket) and not _can_meet(ticket, now_s))
    aged = (ticket for ticket in others if now_s - ticket.since_s >= AGING_S)
    return min(aged, key=lambda ticket: ticket.since_s, default=None)


def _is_demand(ticket: Ticket[T]) -> bool:
    return ticket.priority.value <= 0


def _can_meet(ticket: Ticket[T], now_s: float) -> bool:
    return _is_demand(ticket) and 0.0 <= slack_s(ticket.priority, now_s) < math.inf
