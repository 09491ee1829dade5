"""Which runs are worth following, and whether the process has time for it.

A program that gains nothing *rests*: one run in ever more is followed, and all others pass as without Accel. Where many
are under way, they are followed if that is seen to pay (`crowd`). While the process has no time to spare, fewer runs of
every program are followed, so that following doesn't delay the rest.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from time import clock_gettime, perf_counter

from ...process import forks, spare, threads
from ...trace.record import Trace
from .crowd import Crowd
from .gained import AWAKENING, Mean, cost_s, gains

try:
    from time import pthread_getcpuclockid
except ImportError:  # not everywhere
    pthread_getcpuclockid = None  # type: ignore[assignment]

FIRST_GAIN, RECENT, AT_REST, LEAST_OFTEN = 0.5, 0.1, 0.5, 0.1
"""By how many of its runs a program is thought to gain before it has run, the weight of the last one, and by how many
it has to: sixteen without gain, and it rests; one with gain wakes it."""
HOPE = 0.15
"""What it is thought to gain by if its values alone say that it may: four runs without gain, and it rests again."""
DOUBLED_AFTER = 4
"""So many more, followed ones, and it rests twice as long;"""
AT_FIRST = 4
"""One in so many is followed of a program that has nothing to gain;"""
SELDOM = 100
"""but at least one run in so many is followed."""
OF_MEAN = 0.2
"""The weight of the last run in what runs gain on average: who gains by turns a little more and a little less than what
is worth following gains too little; who gains seldom, but much, gains."""
LEAST_GAIN_S = 1e-4
"""What a run must gain for each call that was early."""

TICK_S = 0.02
EASILY = 4
"""So many times as long it waits for the next tick while there is plenty of time: each wakes a thread and a loop."""
LATE_S = 0.001
"""A thread that is woken later than this found the interpreter, or all processors, taken; a loop that comes later than
this to what it was told has other things to do."""
WEIGHT = 0.15
"""Of one tick, among those before it."""
BUSY, SPARE = 0.7, 0.5
"""Of all ticks, how many are late in a process without time to spare, and in one with some: nine in ten where it works
all the time, six where it works four fifths of it, one where it waits."""
FULL, ROOM = 0.9, 0.75
"""Of its loop's thread, how much of the time it works in a process without time to spare, and in one with some."""
ADJUSTED_AFTER = 5
"""Ticks."""
PLENTY = 0.35
"""Less than this of both, and a run that is followed is in nobody's way."""
FEWER, MORE = 0.5, 1.2
FIRST, FEWEST, MOST = 8, 1, 1024
"""Runs that may be followed at once: before anything is known, at least, and at most."""


log = logging.getLogger("accel.process")
log.addHandler(logging.NullHandler())  # see `accel.run.plans.says`


class Asked:
    """How long an event loop takes to come to what it was told. A loop that works all the time is late although the
    interpreter often is free: tokenizers, hashes and random numbers let go of it for a moment."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._since_s: float | None = None
        """When it was told; None if it has come to that."""
        self._late_s = 0.0
        self._clock = pthread_getcpuclockid(threading.get_ident()) if pthread_getcpuclockid is not None else None
        """Of the thread it runs on, which makes this; None where threads have no clocks."""
        self._at = self._times()

    def tell(self) -> bool:
        """Tell it, unless it has something left to come to; False if it doesn't run any more."""
        if not self.loop.is_running():
            return False
        if self._since_s is None:
            self._late_s, self._since_s = 0.0, perf_counter()
            with suppress(RuntimeError):  # closed in this moment
                self.loop.call_soon_threadsafe(self._come)
        return True

    def _come(self) -> None:
        since_s = self._since_s
        if since_s is not None:
            self._late_s, self._since_s = perf_counter() - since_s, None

    def _times(self) -> tuple[float, float]:
        with suppress(OSError):  # the thread is no more
            return perf_counter(), clock_gettime(self._clock) if self._clock is not None else 0.0
        return perf_counter(), 0.0

    def works(self) -> float:
        """Of the time since it was asked last, how much its thread has worked."""
        (before_s, worked_s), self._at = self._at, self._times()
        return max(0.0, self._at[1] - worked_s) / max(TICK_S, self._at[0] - before_s)

    def late_s(self) -> float:
        """How long it took, or takes so far."""
        since_s = self._since_s
        return self._late_s if since_s is None else perf_counter() - since_s


class Load:
    """How many runs at once the process has time to follow: fewer when a thread that does nothing is woken late, or the
    event loop that runs programs comes late to what it is told or works all the time; more when none of this is so.
    Whether the process itself takes all the time or others on its machine, is the same."""

    def __init__(self) -> None:
        self.enabled = True
        self.runs = 0
        """How many are going on in this process."""
        self.window: float = FIRST
        self.lag_s = 0.0
        """How late threads are woken, and the loop comes, of late: so long anybody waits for his turn."""
        self._late = self._works = 0.0
        self._full = False
        self._short = False
        """The process was said to have no time to spare."""
        self._asked: Asked | None = None
        """The loop on which a program began last."""
        self._needed = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = forks.lock()

    def count(self, change: int) -> None:
        """A run has begun (+1) or ended (-1)."""
        with self._lock:
            self.runs += change

    def forget_runs(self) -> None:
        """None is going on any more, whatever their ends were or will be."""
        self.runs = 0

    def admits(self, loop: asyncio.AbstractEventLoop | None = None) -> bool:
        """Whether the process has time to follow a further run. `loop`: the one that it goes on in; a plain call holds
        up the loop that it may be on, and does not count."""
        if not self.enabled or threads.issuer.inline:
            return True
        self.watch(loop)
        if self.runs < self.window:
            return True
        self._full = True
        return False

    def watch(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Know from now on how much time there is. `loop`: as above."""
        asked = self._asked
        if loop is not None and (asked is None or asked.loop is not loop):
            self._asked = Asked(loop)
        if not self._needed.is_set():
            self._begin()

    def _begin(self) -> None:
        with self._lock:
            if (self._thread is None or not self._thread.is_alive()) and not threads.ended:
                self._thread = threading.Thread(target=self._watch, name="accel-load", daemon=True)
                with suppress(RuntimeError):  # no more threads: nobody measures, and the window stays
                    self._thread.start()
            self._needed.set()

    def renew(self) -> None:
        """In a forked child."""
        self.window, self._late, self._thread, self._needed = FIRST, 0.0, None, threading.Event()
        self._asked, self.lag_s, self._works = None, 0.0, 0.0

    def _watch(self) -> None:
        never = threading.Event()
        while True:
            self._needed.wait()
            for _ in range(ADJUSTED_AFTER):
                asked, ticks = self.ask(), EASILY if self.plenty and not self._full else 1
                before = perf_counter()
                never.wait(ticks * TICK_S)
                late_s = perf_counter() - before - ticks * TICK_S
                if asked is None:
                    self.tick(late_s, ticks=ticks)
                else:
                    self.tick(max(late_s, asked.late_s()), asked.works(), ticks)
            self.adjust()
            if not self.runs and not self._full and not self.busy:
                self._asked = None
                self._needed.clear()

    def ask(self) -> Asked | None:
        """Tell the loop something, and have its answer later; None if there is no loop."""
        asked = self._asked
        if asked is not None and not asked.tell():
            asked = self._asked = None
        return asked

    def tick(self, late_s: float, works: float = 0.0, ticks: int = 1) -> None:
        """A thread was woken so late, or the loop came so late, whose thread has worked for so much of the time. It
        counts as so many of these."""
        weight = 1 - (1 - WEIGHT) ** ticks
        self._works += weight * (works - self._works)
        self._late += weight * ((late_s > LATE_S) - self._late)
        self.lag_s += weight * (late_s - self.lag_s)

    @property
    def busy(self) -> bool:
        """Whether a program more would be one too many."""
        return self._late > SPARE or self._works > ROOM

    @property
    def plenty(self) -> bool:
        """Whether nobody waits for a run that is followed."""
        return self._late < PLENTY and self._works < PLENTY

    def adjust(self) -> None:
        """A run that is alone delays itself only, and its early calls pay for that."""
        if (self._late > BUSY or self._works > FULL) and self.runs > 1:
            self.window = max(FEWEST, min(self.window, self.runs) * FEWER)
            log.log(
                logging.DEBUG if self._short else logging.WARNING,
                "the process has no time to spare: runs are followed %d at a time, others go on as without Accel. "
                "Remedy: more processes, or fewer requests at a time in each",
                self.window,
            )
            self._short = True
        elif self._full and not self.busy:
            self.window = min(MOST, self.window * MORE + 1)
        self._full = False


load = Load()
spare.busy = lambda: load.busy
forks.in_child(load.renew)


GAINLESS, UNREAD, NO_TIME = "nothing gained", "unread", "busy"
"""Why a run is not followed: the program rests, as early calls gained nothing; enough runs wait to be learnt from; the
process is busy."""


MANY, FEW_RUNS = 100, 2
"""So many objects of a program that run fewer times than this on average: none of them learns enough to gain."""


@dataclass
class Alike:
    """Objects of one program that have run, and of which each learns by itself."""

    objects: int = 0
    runs: int = 0
    told: bool = False
    """It was said that they learn nothing."""

    def ran(self, first: bool) -> None:
        """One of them runs, for the first time or again."""
        if self.objects >= 2 * MANY:  # the last ones count
            self.objects, self.runs = self.objects // 2, self.runs // 2
        self.objects += first
        self.runs += 1

    @property
    def learn_nothing(self) -> bool:
        """They are made for each request, say."""
        return self.objects >= MANY and self.runs < FEW_RUNS * self.objects


class Pace:
    """How many runs of one program are followed."""

    def __init__(self) -> None:
        self.passed_for: Counter[str] = Counter()
        """Runs that were not, by why."""
        self._counted = 0
        """Of these, those that somebody has asked for."""
        self.every: float = 1
        """Of so many runs one is followed."""
        self._in_vain = 0
        self._gain = FIRST_GAIN
        """How many of recent runs gained enough."""
        self._mean = Mean()
        self._turn = 0.0
        self._true = 1.0
        """Of what early calls of a run gain, taken together, how much the run does: what the program makes side by side
        it waits for once."""
        self._alike = Alike()
        self._ran = self._over = False
        self.crowd = Crowd()
        self._lock = forks.lock()

    def join(self, alike: Alike) -> None:
        """This is one more of these. None of its runs is followed if they learn too little to gain."""
        if load.enabled:
            self._alike = alike
            self.every = inf if alike.learn_nothing else self.every

    def stop(self) -> None:
        """None of its runs is followed from now on."""
        self._over = load.enabled

    @property
    def never(self) -> bool:
        """Whether no run is followed, but for what is told to (`news`)."""
        return self._over or self.every == inf

    def follows(self, loop: asyncio.AbstractEventLoop | None = None, enough: bool = False) -> bool:
        """Whether the run that begins is one to be followed. `loop`: see `Load.admits`; `enough`: there is enough to be
        learnt from already."""
        with self._lock:
            self._alike.ran(first=not self._ran)
            self._ran = True
            self._turn += 1 / self.every
            resting = self._over or self._turn < 1.0
            if resting or enough or not self._has_room(loop):
                self._turn = min(self._turn, 1.0)
                self.passed_for[GAINLESS if resting else UNREAD if enough else NO_TIME] += 1
                return False
            self._turn -= 1.0
            return True

    @property
    def passed(self) -> int:
        """Runs that were not followed."""
        return self.passed_for.total()

    def _has_room(self, loop: asyncio.AbstractEventLoop | None) -> bool:
        if threads.issuer.inline:
            return True
        load.watch(loop)
        return self.crowd.follows(load.plenty) and load.admits(loop)

    def let_pass(self) -> int:
        """How many runs were not followed since this was asked last."""
        with self._lock:
            passed, self._counted = self.passed - self._counted, self.passed
            return passed

    def ended(self, trace: Trace, own_s: float = 0.0) -> bool:
        """A run that was followed is over. `own_s`: the processor time that following it took. That a call began before
        the program's turn had come is no gain: everybody waits for his turn as long. True if the program begins to
        rest, or rests longer from now on."""
        lag_s = load.lag_s
        early = [(took_s, max(0.0, ahead_s - lag_s)) for ahead_s, took_s in gains(trace)]
        lost_s = sum(call.delayed_s for call in trace.calls)
        gain_s = (sum(map(min, early)) - lost_s) * self._true
        seconds = trace.ended_s - trace.started_s if trace.ended_s is not None else 0.0
        if gain_s < LEAST_GAIN_S * max(1, len(early)):
            gain_s = min(0.0, gain_s)
        with self._lock:
            at_rest = self.every > 1
            self._mean.add(gain_s, seconds, cost_s(trace, own_s), weight=AT_REST if at_rest else OF_MEAN)
            gained = self._mean.pays(AWAKENING if at_rest else 1.0)
            self.crowd.gained |= gained
            self._gain += (RECENT if self.every == 1 else AT_REST) * (gained - self._gain)
            if self._gain >= LEAST_OFTEN:
                self.every, self._in_vain = 1, 0
                return False
            before = self.every
            if self._in_vain % DOUBLED_AFTER == 0:
                self.every = min(SELDOM, self.every * 2)
            self._in_vain += 1
            return self.every != before

    def saved(self, trace: Trace, seconds: float | None) -> None:
        """By how much early calls have made a run shorter, if somebody knows."""
        told_s = sum(map(min, gains(trace)))
        if seconds is not None and told_s > 0.0:
            with self._lock:
                self._true += AT_REST * (min(1.0, max(0.0, seconds / told_s)) - self._true)

    def rest(self) -> bool:
        """There is nothing to gain. True if the program begins to rest by that."""
        with self._lock:
            before, self.every = self.every, max(self.every, AT_FIRST)
            self._gain = 0.0
            return self.every != before

    def idle(self) -> None:
        """All of the last run was foreseen, and nothing could be early, as in those before."""
        with self._lock:
            self._gain *= 1 - AT_REST

    def news(self, gain: float = FIRST_GAIN) -> None:
        """Something was learnt that may gain: so many of its runs, until they say otherwise."""
        with self._lock:
            self.every, self._in_vain, self._gain = 1, 0, max(self._gain, gain)
            self._mean = Mean()
        self.crowd.news()
