"""The clock that records are stamped with: real time, or the virtual time of a simulation."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

_now_s: Callable[[], float] = time.perf_counter


def now_s() -> float:
    """Seconds since some fixed moment."""
    return _now_s()


@contextmanager
def replaced(now_s: Callable[[], float]) -> Generator[None, None, None]:
    """Stamp with another clock meanwhile, in the whole process."""
    global _now_s
    before, _now_s = _now_s, now_s
    try:
        yield
    finally:
        _now_s = before
