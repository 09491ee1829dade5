"""Work that nobody waits for gives way: it has a small part of the time, and others come in between."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter, sleep, thread_time

SLICE_S, PAUSE_S = 0.001, 0.0005
"""So long it holds the interpreter at a time, and so long at least it lets others have it. Python itself would take
turns of 5 ms, which an event loop feels."""
YIELDS, LONGEST_S = 8.0, 0.02
"""Who finds the interpreter taken for so long when it comes back, stays away so many times as long the next time."""
SHARE = 0.01
"""Of a processor's time, over long."""
AT_FIRST_S, AT_MOST_S = 2.0, 0.6
"""What it may take before there is any to share out: everything is new then; and what it may save up, a minute's."""
NEW_S, MOST_NEW = 0.5, 8
"""What each of the first programs may take besides, when it is new: a costly one before it is not its debt."""

BEARS_S, LOOKS_S = 5.0, 0.05
"""So long work bears with a process that has no time to spare, and looks again so often."""


def _nobody_knows() -> bool:
    return False


busy: Callable[[], bool] = _nobody_knows
"""Whether the process has no time to spare at the moment; set by who measures it (`accel.run.gains.pace`)."""

_here = threading.local()


def breathe() -> None:
    """Called every now and then by work that takes long. Does nothing where somebody waits for it."""
    pause = getattr(_here, "pause", None)
    if pause is not None:
        pause()


class Over(BaseException):
    """The interpreter is about to end: work that breathes ends here."""


class Spare:
    """The time of one thread, and how many wait for what it does."""

    def __init__(self) -> None:
        self._left_s = AT_FIRST_S
        self._at = perf_counter()
        self._slice_until = 0.0
        self._pause_s = PAUSE_S
        self._hurries = self._new = 0
        self._hurry = threading.Condition(threading.Lock())
        self._over = False

    def begin(self) -> None:
        """On the thread itself: from now on it breathes."""
        _here.pause = self._pause

    def welcome(self) -> None:
        """There is a program that nothing was learnt of yet."""
        with self._hurry:
            self._new += 1
            if self._new <= MOST_NEW:
                self._left_s = max(self._left_s, 0.0) + NEW_S
                self._hurry.notify_all()

    def hurry(self) -> None:
        with self._hurry:
            self._hurries += 1
            self._hurry.notify_all()

    def no_hurry(self) -> None:
        with self._hurry:
            self._hurries -= 1

    def stop(self) -> None:
        """Whatever the thread is at ends as soon as it breathes."""
        self._over = True
        self.hurry()

    def wait(self) -> None:
        """Until there is time again, or somebody is in a hurry. What keeps the process busy goes first, for a while."""
        began_s = perf_counter()
        with self._hurry:
            while not self._hurries:
                now = perf_counter()
                if self._left_s < AT_MOST_S:
                    self._left_s = min(AT_MOST_S, self._left_s + SHARE * (now - self._at))
                self._at = now
                if self._left_s <= 0.0:
                    self._hurry.wait(-self._left_s / SHARE + 0.01)
                elif busy() and now - began_s < BEARS_S:
                    self._hurry.wait(LOOKS_S)
                else:
                    return

    def spent(self, since_s: float) -> None:
        """`since_s`: the thread's time when the work began."""
        if not self._hurries:  # what somebody waits for is his
            self._left_s -= thread_time() - since_s

    def _pause(self) -> None:
        if self._over:
            raise Over
        began_s = perf_counter()
        if not self._hurries and began_s > self._slice_until:
            sleep(self._pause_s)
            back_s = perf_counter()
            late_s = back_s - began_s - self._pause_s
            self._pause_s = min(LONGEST_S, max(PAUSE_S, YIELDS * late_s))
            self._slice_until = back_s + SLICE_S
