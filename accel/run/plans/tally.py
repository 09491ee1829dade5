"""What became of a program's runs, and of the calls of every line of the user's: for reports, over all runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from ...trace.alone import Beside, alone
from ...trace.record import CallRecord, Trace
from ...trace.sites import line_of
from ..gains.worth import paid

THREAD = "configurable.thread_id"
"""The dimension that tells conversations apart."""
WINDOW = 100
"""Runs that means are taken over."""
MAX_LINES = 1_000
MAX_PARTS = 8
"""Of a request that pauses; of more, the last ones."""
MAX_CALLS = 400
"""Of a run: to work it out anew takes time with the square of their number."""


@dataclass(frozen=True, slots=True)
class Request:
    """One run that ended well."""

    took_s: float
    alone_s: float
    """What it would have taken had nothing been early."""
    calls: int
    early: int
    input_tokens: int
    """That language models were given,"""
    output_tokens: int
    """and that they wrote."""

    @property
    def saved_s(self) -> float:
        return self.alone_s - self.took_s


@dataclass(slots=True)
class Line:
    """The calls of one line. All counts of runs are of those that were looked at."""

    runs: int = 0
    """That made its calls;"""
    early_runs: int = 0
    """at least one of them was early in so many,"""
    since: int = 0
    """for the first time in this one, counted from 1; 0: never yet."""


class Tally:
    """Of one program. Changed on the learner thread alone."""

    def __init__(self) -> None:
        self.runs = 0
        """That were looked at."""
        self.requests: deque[Request] = deque(maxlen=WINDOW)
        """The last ones."""
        self.parts: list[Trace] = []
        """Of the last one, that may have paused: each part is a run."""
        self.lines: dict[str, Line] = {}
        self.beside = Beside()
        """Which of its calls it makes side by side."""

    def note(self, trace: Trace) -> float | None:
        """A run is over. The seconds that it took less by early calls; None where that is not worked out."""
        self.runs += 1
        goes_on = trace.resumed and bool(self.parts) and _thread(self.parts[-1]) == _thread(trace) != ""
        self.parts = [*(self.parts if goes_on else [])[1 - MAX_PARTS :], trace]
        self.beside.note(trace)
        made: dict[str, list[CallRecord]] = {}
        for call in trace.calls:
            made.setdefault(line_of(call), []).append(call)
        for name, calls in made.items():
            line = self.lines.get(name)
            if line is None:
                if len(self.lines) >= MAX_LINES:
                    continue
                line = self.lines[name] = Line()
            early = any(call.retired for call in calls)
            line.runs += 1
            line.early_runs += early
            line.since = line.since or (self.runs if early else 0)
        if trace.completed and trace.ended_s is not None and len(trace.calls) <= MAX_CALLS:
            self.requests.append(request_of(trace, trace.ended_s - trace.started_s, self.beside))
            return self.requests[-1].saved_s
        return None


def _thread(trace: Trace) -> str:
    """Whose conversation it is part of, as far as that can be compared; empty without one."""
    return trace.ambient.get(THREAD, "")


def request_of(trace: Trace, took_s: float, beside: Beside) -> Request:
    early = sum(call.retired for call in trace.calls)
    given, wrote = spent(trace.calls)
    other = early or any(call.delayed_s for call in trace.calls)
    return Request(took_s, alone(trace, beside).seconds if other else took_s, len(trace.calls), early, given, wrote)


def spent(calls: Iterable[CallRecord]) -> tuple[int, int]:
    """The tokens that language models were given and wrote."""
    each = [paid(call.op, call.tokens, call.input, call.output) for call in calls if call.ok and not call.composite]
    return sum(given for given, _ in each), sum(wrote for _, wrote in each)
