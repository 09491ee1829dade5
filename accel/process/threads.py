"""Accel's own threads: daemons, so that an early call that hangs delays no return, and interpreter exit by `LAST_S`."""

from __future__ import annotations

import gc
import logging
import queue
import threading
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from time import perf_counter, thread_time
from typing import TypeVar

from . import forks
from .spare import Over, Spare

log = logging.getLogger("accel")
Owner = TypeVar("Owner")

before_call: Callable[[], None] | None = None
"""Runs on the thread just before each early call: tests shuffle completions here."""

LAST_S = 0.1
"""So long the end of the interpreter waits for what our threads are at: one that stands still holds it for ever, and
what holds objects of the program keeps them from being finalised."""
_IDLE_S = 30.0
_EARLY = "accel-early"
_idle: list[queue.SimpleQueue[Callable[[], None]]] = []
_lock = forks.lock()
ended = False
"""The interpreter is about to end: nothing is posted any more, and no thread is started."""


def spawn(work: Callable[[], None]) -> bool:
    """Run `work` at once on a thread of ours; never waits for a free one. False if the process can have no more."""
    if ended:
        return True
    if issuer.inline:
        work()
        return True
    with _lock:
        inbox = _idle.pop() if _idle else None
    if inbox is not None:
        inbox.put(work)
        return True
    inbox = queue.SimpleQueue()
    inbox.put(work)
    return _started(threading.Thread(target=_serve, args=(inbox,), name=_EARLY, daemon=True))


def _started(thread: threading.Thread) -> bool:
    """Whether it runs: systems bound how many threads a process, a user or a container may have."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


def _serve(inbox: queue.SimpleQueue[Callable[[], None]]) -> None:
    while True:
        try:
            work = inbox.get(timeout=_IDLE_S)
        except queue.Empty:
            with _lock:
                if inbox not in _idle:
                    continue  # taken in this moment: its work is about to arrive
                _idle.remove(inbox)
            return
        work()
        del work
        with _lock:
            _idle.append(inbox)
        if ended:
            return


def idle() -> int:
    """Threads that wait for early calls; each ends when none came for `_IDLE_S`."""
    return len(_idle)


def _nothing() -> None:
    """Stands for what comes before all that waits, so that the thread looks."""


class _Inbox:
    """What a worker has to do, and its time. Made in the process that does it, when it is first needed: a server may
    put something else in the place of Python's threads and queues after a fork (gevent), and they must fit."""

    def __init__(self, spare: bool) -> None:
        self.posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.first: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.spare = Spare() if spare else None


class Worker:
    """One daemon thread that does posted work in order: off the program's path, never concurrent with itself. With
    `spare` time alone, unless somebody waits for it."""

    def __init__(self, name: str, spare: bool = False) -> None:
        self._name = name
        self._spares = spare
        self._inbox: _Inbox | None = None
        self._start = forks.lock()
        self._thread: threading.Thread | None = None
        self.number = 0
        """How many forks it has come through."""
        self.faults = 0
        """Defects of Accel's own: counted, logged, and never the program's problem (invariant 9)."""
        self.inline = False
        self._posted: deque[Callable[[], None]] = deque()
        self._draining = False

    def renew(self) -> None:
        """In a forked child: no thread yet, and nothing of the parent's to do."""
        self.number += 1
        self._inbox = self._thread = None

    @property
    def inbox(self) -> _Inbox:
        if self._inbox is None:
            with self._start:
                self._inbox = self._inbox or _Inbox(self._spares)
        return self._inbox

    def welcome(self) -> None:
        """What comes is of a program that nothing was done for yet (`Spare.welcome`)."""
        spare = self.inbox.spare
        if spare is not None:
            spare.welcome()

    def post(self, work: Callable[[], None], first: bool = False) -> None:
        """`first`: before all that waits."""
        if ended:
            return
        if self.inline:
            self._posted.append(work)
            self._drain()
            return
        inbox = self.inbox
        if self._thread is None or not self._thread.is_alive():
            with self._start:
                if self._thread is None or not self._thread.is_alive():
                    thread = threading.Thread(target=self._serve, args=(inbox,), name=self._name, daemon=True)
                    self._thread = thread if _started(thread) else None  # what comes next tries again
        if first:
            inbox.first.put(work)
            work = _nothing
        inbox.posted.put(work)

    def _serve(self, inbox: _Inbox) -> None:
        spare = inbox.spare
        if spare is not None:
            spare.begin()
        while True:
            work = inbox.posted.get()
            done = False
            while not done:
                if spare is not None:
                    spare.wait()
                began_s = thread_time()
                now = self._before(inbox, work)
                with suppress(Over):
                    self.do(now)
                if ended:
                    return
                if spare is not None:
                    spare.spent(began_s)
                done = now is work
            del work, now

    def _before(self, inbox: _Inbox, work: Callable[[], None]) -> Callable[[], None]:
        """What comes before it; itself if nothing does."""
        with suppress(queue.Empty):
            return inbox.first.get_nowait()
        return work

    def _drain(self) -> None:
        """In order and one at a time, as on the thread: what work posts comes after it."""
        if self._draining:
            return
        self._draining = True
        try:
            while self._posted:
                self.do(self._posted.popleft())
        finally:
            self._draining = False

    def do(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - see `faults`
            self.faults += 1
            where = "".join(traceback.format_tb(error.__traceback__))  # without the message, which may hold data
            with suppress(Exception):  # of a handler that raises
                log.error(
                    "%s: a defect in Accel, %s; the program is not affected. Remedy: report it with these lines, and "
                    "ACCEL=off until then\n%s",
                    self._name, type(error).__name__, where,
                )  # fmt: skip

    def stop(self) -> threading.Thread | None:
        """Nothing that waits is done any more, and what is going on ends soon: the thread that it is on, if any."""
        inbox = self.inbox
        for waiting in (inbox.first, inbox.posted):
            with suppress(queue.Empty):
                while True:
                    waiting.get_nowait()
        if inbox.spare is not None:
            inbox.spare.stop()
        inbox.posted.put(_nothing)
        return self._thread

    def settle(self, timeout_s: float) -> bool:
        """Wait until everything posted so far is done; False if that takes longer than `timeout_s`."""
        if ended:
            return False
        done, spare = threading.Event(), self.inbox.spare
        if spare is not None:
            spare.hurry()
        try:
            self.post(done.set)
            return done.wait(timeout_s)
        finally:
            if spare is not None:
                spare.no_hurry()


_here = threading.local()


def _note_collection(phase: str, info: dict[str, int], here: threading.local = _here) -> None:
    here.collecting = phase == "start"


gc.callbacks.append(_note_collection)


def collecting() -> bool:
    """Whether the garbage collector called us, in the middle of anything, locks of ours held included."""
    return getattr(_here, "collecting", False)


issuer = Worker("accel-issuer")
"""Follows what runs publish and issues what has become ready."""
learner = Worker("accel-learner", spare=True)
"""Learns from traces, off the hot path."""


@forks.in_child
def _renew() -> None:
    _idle.clear()
    issuer.renew()
    learner.renew()


def end() -> None:
    """The interpreter is about to end. Threads end that can; others stand still soon, with whatever locks they hold."""
    global ended
    ended = True
    with suppress(ValueError):
        gc.callbacks.remove(_note_collection)
    for inbox in list(_idle):
        inbox.put(_nothing)
    until_s, here = perf_counter() + LAST_S, threading.current_thread()
    early = [thread for thread in threading.enumerate() if thread.name == _EARLY]
    for thread in (issuer.stop(), learner.stop(), *early):
        if thread is not None and thread is not here and thread.is_alive():
            thread.join(max(0.0, until_s - perf_counter()))


@contextmanager
def inline() -> Generator[None, None, None]:
    """Do all of it at once on whatever thread asks for it: a simulation on one thread repeats exactly."""
    issuer.inline = learner.inline = True
    try:
        yield
    finally:
        issuer.inline = learner.inline = False


def while_kept(owner: Owner, work: Callable[..., None], *given: object) -> Callable[[], None]:
    """What waits for the learner keeps no plan: a program that nobody can run any more has nothing to learn."""
    kept = weakref.ref(owner)

    def do() -> None:
        now = kept()
        if now is not None:
            work(now, *given)

    return do
