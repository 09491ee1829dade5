"""What was in vain within a while, over all runs of a program, and of each tenant (`Cap`).

Early calls under way count as if they were in vain, so that no cap is passed by those that are started side by side. Of
a tenant only the digest is kept by which its dimension is compared.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakSet

from ...process import forks
from ...process.clock import now_s
from ...trace.record import Trace
from ..settings import Cap, Counts, Settings

SLICES = 60
"""A window slides by its sixtieth part."""
MAX_VALUES = 10_000
"""Of a dimension that are counted for themselves; others are counted together."""
TOGETHER = ""
"""Stands for all runs, and for those of which nobody can tell the value."""
PER_MILLION = 1e-6


class Running(Protocol):
    """A run, as far as it is counted."""

    trace: Trace
    settings: Settings
    counts: Counts


@dataclass(frozen=True, slots=True)
class Vain:
    """What early calls in vain took."""

    calls: int = 0
    tokens: float = 0
    given: float = 0
    """Of the tokens, those that language models were given,"""
    wrote: float = 0
    """and those that they wrote."""

    def __add__(self, other: Vain) -> Vain:
        return Vain(
            self.calls + other.calls, self.tokens + other.tokens, self.given + other.given, self.wrote + other.wrote
        )

    def money(self, cap: Cap) -> float:
        return (self.given * cap.input_per_million + self.wrote * cap.output_per_million) * PER_MILLION

    def passes(self, cap: Cap) -> bool:
        """Whether it is more than the cap allows."""
        found = ((self.calls, cap.calls), (self.tokens, cap.tokens), (self.money(cap), cap.money))
        return any(bound is not None and amount > bound for amount, bound in found)


@dataclass(frozen=True, slots=True)
class CapNow:
    """How much of a cap is used, for reports: by the runs together, or by the tenant that uses most of it."""

    cap: Cap
    calls: int
    tokens: int
    money: float
    values: int
    """How many tenants have wasted anything within the window;"""
    used_up: int
    """and for how many nothing more may be early."""
    held_runs: int
    """Runs that were held back so far."""


class _Window:
    """Of one cap and one value of its dimension."""

    def __init__(self, cap: Cap) -> None:
        self.cap = cap
        self.live: WeakSet[Running] = WeakSet()
        self._slices: deque[tuple[int, Vain]] = deque()

    def add(self, vain: Vain) -> None:
        at = self._now()
        if self._slices and self._slices[-1][0] == at:
            vain += self._slices.pop()[1]
        self._slices.append((at, vain))

    def spent(self) -> Vain:
        """By runs that have ended."""
        oldest = self._now() - SLICES
        while self._slices and self._slices[0][0] < oldest:
            self._slices.popleft()
        return sum((vain for _, vain in self._slices), Vain())

    def _now(self) -> int:
        return int(now_s() * SLICES / self.cap.window_s)


class Caps:
    """Of one program. Thread-safe."""

    def __init__(self) -> None:
        self._windows: dict[Cap, dict[str, _Window]] = {}
        self._held: dict[Cap, WeakSet[Running]] = {}
        self._held_runs: dict[Cap, int] = {}
        self._process = os.getpid()
        self._lock = forks.lock()

    def used_up(self, run: Running, usual: Vain) -> Cap | None:
        """The cap that one early call more of this run might pass, if there is one. `usual`: what a call takes."""
        with self._lock:
            for cap in run.settings.budget.caps:
                window = self._window(cap, run)
                window.live.add(run)
                if _with(window, usual).passes(cap):
                    held = self._held.setdefault(cap, WeakSet())
                    self._held_runs[cap] = self._held_runs.get(cap, 0) + (run not in held)
                    held.add(run)
                    return cap
        return None

    def ended(self, run: Running) -> None:
        """What it has wasted counts for as long as the window."""
        if not run.settings.budget.caps:
            return
        counts = run.counts
        vain = Vain(counts.wasted, counts.wasted_tokens, counts.wasted_input_tokens, counts.wasted_output_tokens)
        with self._lock:
            for cap in run.settings.budget.caps:
                window = self._window(cap, run)
                window.live.discard(run)
                if vain.calls:
                    window.add(vain)

    def now(self, caps: Sequence[Cap], usual: Vain) -> list[CapNow]:
        """How much of these is used."""
        with self._lock:
            return [self._told(cap, usual) for cap in caps]

    def _told(self, cap: Cap, usual: Vain) -> CapNow:
        windows = self._windows.get(cap, {})
        spent = [window.spent() for window in windows.values()]
        most = max(spent, key=lambda vain: (_share(vain, cap), vain.calls), default=Vain())
        return CapNow(
            cap,
            most.calls,
            int(most.tokens),
            most.money(cap),
            values=sum(vain.calls > 0 for vain in spent),
            used_up=sum(_with(window, usual).passes(cap) for window in windows.values()),
            held_runs=self._held_runs.get(cap, 0),
        )

    def _window(self, cap: Cap, run: Running) -> _Window:
        if self._process != os.getpid():  # what is under way in a process that was forked is its parent's
            self._process = os.getpid()
            for windows in self._windows.values():
                for window in windows.values():
                    window.live = WeakSet()
        windows = self._windows.setdefault(cap, {})
        value = _value(cap, run)
        if value not in windows and len(windows) >= MAX_VALUES:
            for name in [name for name, each in windows.items() if not each.live and not each.spent().calls]:
                del windows[name]
            value = value if len(windows) < MAX_VALUES else TOGETHER
        return windows.setdefault(value, _Window(cap))


def _value(cap: Cap, run: Running) -> str:
    value = run.trace.ambient.get(cap.per, TOGETHER) if cap.per else TOGETHER
    return value if value.startswith("=") else TOGETHER


def _with(window: _Window, usual: Vain) -> Vain:
    """With what runs have wasted so far, what is under way, and one call more."""
    spent, under_way = window.spent(), 1
    for run in window.live:
        counts = run.counts
        spent += Vain(counts.wasted, counts.wasted_tokens, counts.wasted_input_tokens, counts.wasted_output_tokens)
        under_way += max(0, counts.issued - counts.retired - counts.wasted - counts.fed - counts.turned_away)
    return spent + Vain(under_way, usual.tokens * under_way, usual.given * under_way, usual.wrote * under_way)


def _share(vain: Vain, cap: Cap) -> float:
    found: list[tuple[float, Any]] = [(vain.calls, cap.calls), (vain.tokens, cap.tokens), (vain.money(cap), cap.money)]
    return max(float(amount / bound) for amount, bound in found if bound is not None)
