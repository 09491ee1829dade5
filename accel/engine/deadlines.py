"""Calls of runs with a deadline, by their slack (JITServe): the time that is left, less what the run should take yet.

Demands of runs that can meet their deadline come first, the one with the least slack before all. A run that can't any
more is served as one without, behind those that can; so are the others, in their order among themselves. Where many
deadlines are near that would be never: after `SHARE` calls one comes first that has waited for `AGING_S`.

Synchronous, is told the time. Not thread-safe; lives on an engine's loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from .protocols import Priority
from .tickets import AGING_S, Ticket

T = TypeVar("T")

SHARE = 8


def slack_s(priority: Priority, now_s: float) -> float:
    """Negative for a run that will be late; infinite for one without a deadline."""
    return math.inf if priority.session is None else priority.session.due_s - now_s - priority.left_s


class Deadlines:
    def __init__(self) -> None:
        self._passed = 0
        """Calls that went before one that has waited for long, since the last of these."""

    def line(self, ordered: Sequence[Ticket[T]], now_s: float) -> list[Ticket[T]]:
        hurried = [ticket for ticket in ordered if _can_meet(ticket, now_s)]
        if not hurried:
            return list(ordered)
        hurried.sort(key=lambda ticket: slack_s(ticket.priority, now_s))
        others = [ticket for ticket in ordered if not _can_meet(ticket, now_s)]
        aged = [ticket for ticket in others if _has_waited(ticket, now_s)]
        first = [min(aged, key=lambda ticket: ticket.since_s)] if aged and self._passed >= SHARE else []
        return [*first, *hurried, *(ticket for ticket in others if ticket not in first)]

    def taken(self, ticket: Ticket[T], now_s: float) -> None:
        """It is served now."""
        self._passed = self._passed + 1 if _can_meet(ticket, now_s) else 0


def _can_meet(ticket: Ticket[T], now_s: float) -> bool:
    return ticket.priority.value <= 0 and 0.0 <= slack_s(ticket.priority, now_s) < math.inf


def _has_waited(ticket: Ticket[T], now_s: float) -> bool:
    return ticket.priority.value <= 0 and now_s - ticket.since_s >= AGING_S
