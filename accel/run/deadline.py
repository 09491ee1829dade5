"""When a run is to be over, as a request says, and how many were: of LangGraph its metadata
(`{"accel_deadline_s": 2.0}`), else `with accel.deadline(2.0)` around it. Accel's engines serve its calls by that."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

from ..errors import ConfigurationError
from ..trace.ambient import FRAMEWORK_VARS
from ..trace.record import Trace

KEY = "accel_deadline_s"
"""Of a request's metadata."""
WINDOW = 32
"""Runs that are looked at, for each call."""
MAX_CALLS = 64
"""Of one site that are told apart; further ones count as the last."""
QUICK = 0.25
"""Of these runs, those that were quicker: the slow ones have waited for others."""
_around: ContextVar[float | None] = ContextVar("accel_deadline", default=None)
FRAMEWORK_VARS.add(_around)


def deadline(seconds: float) -> AbstractContextManager[None]:
    """Within how many seconds the runs are to be over that begin inside, each from its own beginning:
    ``with accel.deadline(2.0): fast.invoke(...)``. It goes with the context, into tasks and threads that copy it;
    metadata of the request go before it. Raises ConfigurationError for what is no number above 0."""
    return _meanwhile(_checked(seconds, f"deadline({seconds!r})"))


@contextmanager
def _meanwhile(seconds: float) -> Generator[None, None, None]:
    token = _around.set(seconds)
    try:
        yield
    finally:
        _around.reset(token)


def asked_by(metadata: Mapping[str, Any] | None) -> float | None:
    """What a request's metadata say; nothing, mostly. Raises ConfigurationError."""
    if not metadata or KEY not in metadata:
        return None
    return _checked(metadata[KEY], f"The metadata {KEY}={metadata[KEY]!r}")


def here() -> float | None:
    """What is said around runs that begin here."""
    return _around.get()


def _checked(given: Any, what: str) -> float:
    if not isinstance(given, int | float) or isinstance(given, bool) or not 0 < given < math.inf:
        raise ConfigurationError(f"{what} is no time to be over in.", "Give a number of seconds, above 0.")
    return float(given)


class Deadlines:
    """Of one program."""

    def __init__(self) -> None:
        self.runs = 0
        """That had one,"""
        self.met = 0
        """and that met it."""
        self._took: dict[tuple[str, int], deque[float]] = {}
        """By call site, and how many calls a run had made there before: how long it took from one to the run's end."""

    def left_s(self, site: str, before: int) -> float:
        """How long a run takes yet that is about to make a call there, after so many; 0 where nothing is known."""
        for number in range(min(before, MAX_CALLS - 1), -1, -1):
            took = self._took.get((site, number))
            if took:
                return sorted(took)[int(len(took) * QUICK)]
        return 0.0

    def learn(self, trace: Trace) -> None:
        """A run has ended well."""
        made: Counter[str] = Counter()
        for call in trace.calls:
            number = min(made[call.site], MAX_CALLS - 1)
            made[call.site] += 1
            if trace.ended_s is not None:
                took = self._took.setdefault((call.site, number), deque(maxlen=WINDOW))
                took.append(trace.ended_s - call.started_s)

    def note(self, trace: Trace, within_s: float | None) -> None:
        """A run is over."""
        if within_s is not None and trace.ended_s is not None:
            self.runs += 1
            self.met += trace.completed and trace.ended_s - trace.started_s <= within_s
