"""Whether following pays where many runs of a program are under way at once: it is tried, as no run can tell.

What following one run takes of the processor, all others wait for. So few are followed until one of them has gained by
it. From then on some are while the process has plenty of time. Whether to follow all is tried: all are for some runs,
no more than those for as many, and the way in which runs take less time is kept, twice as long each time that a further
trial confirms it. No run is timed: their mean time is how many were under way, over time, by how many ended (Little's
law).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter

from ...process import forks

FEW = 4
"""A run is in the way of nobody who counts while fewer others are under way."""
FIRST = 2
"""Runs that are followed at a time before any has gained."""
AT_ONCE = 16
"""Runs that plenty of time is enough for: when many begin at once, nobody knows yet how long they will keep it busy."""
LEAST = 12
"""Runs that end in a trial; as many as are under way, if these are more."""
SHORTER = 0.95
"""So much of the time of others followed runs may take at most: less is what their processor time is worth."""
RECENT = 0.4
"""The weight of the last trial of a way, among those before it."""
LONGEST = 64
"""Trials for which a way is kept."""


class Member:
    """A run that is under way, as long as whoever called waits for it."""

    def __init__(self, crowd: Crowd, followed: bool, over: int) -> None:
        self._crowd: Crowd | None = crowd
        self._followed = followed
        self._over = over
        """How many had returned when it began."""
        self._process = os.getpid()
        self._crowded = False

    def returned(self) -> bool:
        """Whoever called has what he waited for. Whether more than a few other runs were under way meanwhile."""
        crowd, self._crowd = self._crowd, None
        if crowd is not None and self._process == os.getpid():
            self._crowded = crowd.left(self._followed) - self._over > FEW
        return self._crowded


class Crowd:
    """The runs of one program that are under way. Thread-safe."""

    def __init__(self, now_s: Callable[[], float] = perf_counter) -> None:
        self._now_s = now_s
        self._lock = forks.lock()
        self._process = os.getpid()
        self._under_way = self._followed = self._joined = 0
        self.gained = False
        """Some run, by being followed, as far as a run can tell."""
        self.news()

    def news(self) -> None:
        """Following may gain more than it did: all is tried anew."""
        with self._lock:
            self._following = True
            self._best: bool | None = None
            """Whether to follow, by the last trials of both ways."""
            self._mean_s: dict[bool, float] = {}
            """By way, of its trials."""
            self._kept, self._further = 1, 0
            """Trials for which the best way is kept, and those that are left of them."""
            self._begin(mixed=self._under_way)

    def follows(self, plenty: bool = False) -> bool:
        """Whether a run that begins is to be followed. `plenty`: the process has so much time that nobody waits."""
        with self._lock:
            if self._under_way < FEW:
                self._begin(mixed=self._under_way)  # there is no crowd to be measured
                return True
            if not self.gained:
                self._begin(mixed=self._under_way)
                return self._followed < FIRST
            return self._following or (plenty and self._followed < AT_ONCE)

    def join(self, followed: bool) -> Member:
        """A run begins."""
        with self._lock:
            if self._process != os.getpid():  # a forked child has none of its parent's
                self._process, self._under_way, self._followed = os.getpid(), 0, 0
                self._begin(mixed=0)
            self._tick()
            over = self._joined - self._under_way
            self._joined += 1
            self._under_way += 1
            self._followed += followed
            return Member(self, followed, over)

    def left(self, followed: bool) -> int:
        """One has left. How many have ever joined."""
        with self._lock:
            self._tick()
            self._under_way -= 1
            self._followed -= followed
            if self._mixed > 0:
                self._begin(self._mixed - 1)
                return self._joined
            self._ended += 1
            if self._ended >= max(LEAST, self._under_way):
                mean_s = self._area_s / self._ended
                before_s = self._mean_s.get(self._following, mean_s)
                self._mean_s[self._following] = before_s + RECENT * (mean_s - before_s)
                self._decide()
            return self._joined

    def _begin(self, mixed: int) -> None:
        """A trial. `mixed`: runs that began in the other way, and end first."""
        self._mixed, self._ended, self._area_s, self._at_s = mixed, 0, 0.0, self._now_s()

    def _tick(self) -> None:
        now_s = self._now_s()
        self._area_s += self._under_way * (now_s - self._at_s)
        self._at_s = now_s

    def _decide(self) -> None:
        """A trial is over."""
        before = self._following
        if self._further:
            self._further -= 1
        elif before == self._best or len(self._mean_s) == 1:
            self._following = not before
        else:
            best = self._mean_s[True] <= SHORTER * self._mean_s[False]
            self._kept = min(LONGEST, self._kept * 2) if best == self._best else 1
            self._following = self._best = best
            self._further = self._kept - 1
        self._begin(mixed=0 if self._following == before else self._under_way)
