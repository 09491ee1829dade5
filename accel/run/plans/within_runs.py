"""Lessons inside runs: in which run each call site is to be learnt next, and of which sites nothing is to be learnt."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from ...learn.lessons import extend
from ...process import forks
from ...trace.record import Trace
from ..gains.hopes import hopeful_at
from .lived import Lived

HOPELESS_AFTER = 2
"""Attempts in a row to learn a site inside runs that taught nothing, or nothing that answered a call, or could not:
until a lesson explains more."""


class WithinRuns:
    """Of one program. Thread-safe."""

    def __init__(self) -> None:
        self._coming: dict[str, weakref.ref[Lived]] = {}
        """By call site, a run that it is to be learnt in,"""
        self._idle: dict[str, weakref.ref[Lived]] = {}
        """and the last one in which nothing of it could be sooner."""
        self._in_vain: Counter[str] = Counter()
        self._lock = forks.lock()

    def asks(self, run: Lived, site: str) -> bool:
        """Whether the site is to be learnt in this run: not yet in another one, and not in vain."""
        with self._lock:
            coming = self._coming.get(site)
            if self._in_vain[site] >= HOPELESS_AFTER or (coming is not None and coming() is not None):
                return False
            self._coming[site] = weakref.ref(run)
            return True

    def take(self, site: str) -> Lived | None:
        """The run that it is to be learnt in, if that is still there."""
        with self._lock:
            coming = self._coming.pop(site, None)
        return coming() if coming is not None else None

    def learns(self, run: Lived, site: str, before: Sequence[Trace]) -> bool:
        """Whether a run that is going on shows more of a site than it knew; now it does. `before`: other runs, the last
        one first."""
        running = run.trace.so_far()
        if not hopeful_at(run.learnt, running, site):
            idle = self._idle.get(site)
            self._in_vain[site] += idle is None or idle() is not run  # each counts once
            self._idle[site] = weakref.ref(run)
            return False
        learnt = extend(run.learnt, running, site, before=before)
        if learnt is run.learnt:
            self._in_vain[site] += 1
            return False
        run.learnt = learnt
        run.learnt_at.add(site)
        return True

    def answered(self, learnt_at: Iterable[str], answered: Collection[str]) -> None:
        """A run is over in which these sites were learnt, and calls of those answered by early ones."""
        for site in learnt_at:
            self._in_vain[site] = 0 if site in answered else self._in_vain[site] + 1

    def forget_coming(self) -> None:
        """In a forked child nobody will come for them."""
        self._coming.clear()

    def hope(self) -> None:
        """More is known now than before."""
        self._in_vain.clear()
