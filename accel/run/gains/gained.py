"""What early calls gained, each by itself, as far as a run can tell."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from ...trace.record import Trace

LEAST_PART, ENOUGH_PART, TIMES_OWN = 0.02, 0.05, 10.0
"""Of the time that a run takes, what following it must gain at least, and what is enough; between the two, it must be
so many times the processor time that following takes."""
AWAKENING = 1.5
"""So many times what is worth following a program at rest must gain to wake: at the border it would do both."""
PAUSE_S = 0.1
"""A program that goes on sooner after a call has only its framework's steps between the two: no time to be gained."""


def gains(trace: Trace) -> list[tuple[float, float]]:
    """Of each early call that was retired, the seconds for which it ran before it was demanded, and those it took. In a
    crowd, those in which the run waited for a call, or paused for long: for as long as it had something to compute, it
    may as well have waited for its turn, and others for theirs."""
    early = [
        (call.issued_s, call.started_s, call.answered_s)
        for call in trace.calls
        if call.retired and call.issued_s is not None and call.answered_s is not None
    ]
    waited = Waited(trace) if early and trace.crowded else None
    return [
        (waited.between(issued_s, asked_s) if waited is not None else max(0.0, asked_s - issued_s), over_s - issued_s)
        for issued_s, asked_s, over_s in early
    ]


def pays(gain_s: float, seconds: float, own_s: float) -> bool:
    """Whether following a run pays that took so long. `own_s`: the processor time that it took, which the run itself
    waits for as well."""
    return gain_s - own_s > max(LEAST_PART * seconds, min(ENOUGH_PART * seconds, TIMES_OWN * own_s))


def cost_s(trace: Trace, own_s: float) -> float:
    """What following a run cost that took `own_s` of the processor: in a crowd, another run waits for that as well."""
    return own_s * (1 + trace.crowded)


@dataclass(slots=True)
class Mean:
    """What recent runs of a program gained, how long they took and what following them took of the processor."""

    gain_s: float = 0.0
    seconds: float = 0.0
    own_s: float = 0.0
    _runs: int = 0

    def add(self, gain_s: float, seconds: float, own_s: float, weight: float) -> None:
        """A run more, of so much weight among those before it."""
        self._runs += 1
        weight = max(weight, 1 / self._runs)
        self.gain_s += weight * (gain_s - self.gain_s)
        self.seconds += weight * (seconds - self.seconds)
        self.own_s += weight * (own_s - self.own_s)

    def pays(self, times: float) -> bool:
        """Whether following them pays so many times over."""
        return pays(self.gain_s / times, self.seconds, self.own_s)


class Waited:
    """When a run waited for calls, or paused for long."""

    def __init__(self, trace: Trace) -> None:
        self._spans = [*_spans(trace)]
        self._starts = [start for start, _ in self._spans]
        self._before = [0.0, *accumulate(end - start for start, end in self._spans)]
        """In all, until each of these began."""

    def between(self, start_s: float, end_s: float) -> float:
        """For how long of this time; 0.0 if it ends before it starts."""
        return max(0.0, self._until(end_s) - self._until(start_s))

    def _until(self, at_s: float) -> float:
        place = bisect_right(self._starts, at_s)
        if not place:
            return 0.0
        start, end = self._spans[place - 1]
        return self._before[place - 1] + min(at_s, end) - start


def _spans(trace: Trace) -> Iterator[tuple[float, float]]:
    """Disjoint, in order."""
    begin_s = end_s = trace.started_s
    for asked_s, over_s in sorted((call.started_s, call.ended_s) for call in trace.calls if call.ended_s is not None):
        if 0.0 < asked_s - end_s < PAUSE_S:
            yield begin_s, end_s
            begin_s = asked_s
        end_s = max(end_s, over_s)
    yield begin_s, end_s
