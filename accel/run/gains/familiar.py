"""Runs like others that were foreseen: a look at them teaches nothing, and of many, a few stand for all."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from ...graph.rules import CONTEXT, FOREIGN, FORMER, Reason
from ...process import forks
from ...trace.record import Trace
from ..settings import Counts

LOOKS = 8
"""So many runs of a kind are looked at, then so many of two, of four and so on,"""
SELDOM = 16
"""until it is one in so many."""
KINDS = 64
"""That are told apart; of more, the last ones."""
NEW_HERE = frozenset({CONTEXT, FOREIGN, FORMER})
"""What holds calls until runs like this one were looked at."""


def kind_of(trace: Trace, counts: Counts, reasons: Iterable[Reason | None]) -> Hashable | None:
    """What two runs have in common that went the same way, through the same components, and had the same calls early.
    None of a run that may teach something whatever others did: one that failed or paused, for which something early was
    in vain, or in which something was held for where it ran. `reasons`: what held its calls."""
    in_vain = counts.wasted or counts.missed or counts.turned_away or counts.fed
    if in_vain or not counts.retired or not trace.completed or trace.resumed:
        return None
    if any(reason is not None and reason.rule in NEW_HERE for reason in reasons):
        return None
    if any(visit.failed or visit.interrupted for visit in trace.visits):
        return None
    calls = frozenset((call.site, call.identity, call.retired, call.failed) for call in trace.calls)
    return calls, frozenset(trace.ambient.items())


@dataclass(slots=True)
class _Kind:
    looks: int = 0
    due: int = 1
    """The next look is at so many runs from now."""
    passed: int = 0
    """Since the last one."""


class Familiar:
    """Of one program. Thread-safe."""

    def __init__(self) -> None:
        self._kinds: dict[Hashable, _Kind] = {}
        self._lock = forks.lock()

    def passes(self, kind: Hashable | None) -> bool:
        """A run is over. Whether it needs no look."""
        with self._lock:
            known = self._kinds.get(kind)
            if known is None or known.due <= 1:
                return False
            known.due -= 1
            known.passed += 1
            return True

    def stands_for(self, kind: Hashable | None) -> int:
        """A run is looked at: for so many of its kind, itself and those that needed no look."""
        with self._lock:
            known = self._kinds.get(kind)
            if known is None:
                return 1
            passed, known.passed = known.passed, 0
            return 1 + passed

    def looked(self, kind: Hashable | None, foreseen: bool) -> None:
        """A run was looked at. What one of them was not foreseen by, all others may have, too."""
        with self._lock:
            if not foreseen:
                self._kinds.clear()
            elif kind is not None:
                known = self._kinds.pop(kind, None) or _Kind()
                known.looks += 1
                known.due = min(SELDOM, 2 ** (known.looks // LOOKS))
                self._kinds[kind] = known
                if len(self._kinds) > KINDS:
                    del self._kinds[next(iter(self._kinds))]
