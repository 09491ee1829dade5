"""What nobody waits for has a small part of the time, and what somebody waits for all of it."""

from __future__ import annotations

import queue
import threading
from typing import Any

import pytest

from accel.process import spare
from accel.process.spare import AT_FIRST_S, AT_MOST_S, BEARS_S, MOST_NEW, NEW_S, SHARE, Spare
from accel.process.threads import Worker


class Clock:
    """Time and processor time, which pass as told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = self.worked_s = 100.0
        self.slept: list[float] = []
        monkeypatch.setattr(spare, "perf_counter", lambda: self.now_s)
        monkeypatch.setattr(spare, "thread_time", lambda: self.worked_s)
        monkeypatch.setattr(spare, "sleep", self.slept.append)

    def work(self, of: Spare, seconds: float) -> None:
        before = self.worked_s
        self.worked_s += seconds
        self.now_s += seconds
        of.spent(before)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


class Waiting(Exception):
    pass


def due_in_s(of: Spare, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> float:
    """How long the thread would wait now."""

    def wait(seconds: float) -> None:
        raise Waiting(seconds)

    monkeypatch.setattr(of._hurry, "wait", wait)
    try:
        of.wait()
    except Waiting as waits:
        return float(waits.args[0])
    return 0.0


def test_first_lessons_are_taken_at_once(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    of = Spare()
    for _ in range(10):
        assert due_in_s(of, clock, monkeypatch) == 0.0
        clock.work(of, 0.9 * AT_FIRST_S / 10)


def test_what_was_used_up_comes_back_slowly(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    of = Spare()
    clock.work(of, AT_FIRST_S + 1.0)
    wait_s = due_in_s(of, clock, monkeypatch)
    assert 0.9 / SHARE < wait_s < 1.1 / SHARE
    clock.now_s += wait_s
    assert due_in_s(of, clock, monkeypatch) == 0.0
    clock.now_s += 1e6
    assert due_in_s(of, clock, monkeypatch) == 0.0
    clock.work(of, AT_MOST_S + 0.1)
    assert due_in_s(of, clock, monkeypatch) > 0.0, "no more than so much is saved up"


def test_a_new_program_does_not_wait_for_what_another_has_used_up(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = Spare()
    for _ in range(MOST_NEW):
        clock.work(of, AT_FIRST_S + 1.0)
        assert due_in_s(of, clock, monkeypatch) > 0.0
        of.welcome()
        assert due_in_s(of, clock, monkeypatch) == 0.0
        clock.work(of, 0.9 * NEW_S)
        assert due_in_s(of, clock, monkeypatch) == 0.0
    clock.work(of, AT_FIRST_S)
    of.welcome()
    assert due_in_s(of, clock, monkeypatch) > 0.0, "of a program for each tenant, each would be new"


def test_lessons_bear_with_a_busy_process_for_a_while(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    of, looks = Spare(), list[float]()
    monkeypatch.setattr(spare, "busy", lambda: True)

    def wait(seconds: float) -> None:
        looks.append(seconds)
        clock.now_s += seconds

    monkeypatch.setattr(of._hurry, "wait", wait)
    of.wait()
    assert BEARS_S <= sum(looks) < BEARS_S + 0.1
    looks.clear()
    monkeypatch.setattr(spare, "busy", lambda: len(looks) < 3)
    of.wait()
    assert len(looks) == 3
    monkeypatch.setattr(spare, "busy", lambda: True)
    of.hurry()
    of.wait()
    assert len(looks) == 3


def test_nobody_in_a_hurry_waits(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    of = Spare()
    clock.work(of, AT_FIRST_S + 1e6)
    of.hurry()
    assert due_in_s(of, clock, monkeypatch) == 0.0
    of.no_hurry()
    assert due_in_s(of, clock, monkeypatch) > 0.0


def test_long_work_breathes_unless_somebody_waits_for_it(clock: Clock) -> None:
    of = Spare()
    spare.breathe()
    assert not clock.slept, "a thread that others wait for does not"

    def thread() -> None:
        of.begin()
        for _ in range(10):
            clock.now_s += spare.SLICE_S / 2
            spare.breathe()

    for _ in range(2):
        worker = threading.Thread(target=thread)
        worker.start()
        worker.join()
        of.hurry()
    assert 3 <= len(clock.slept) <= 5


def test_settling_hurries_a_worker_that_has_used_up_its_time() -> None:
    worker, done = Worker("spare", spare=True), []
    held: Any = worker.inbox.spare
    held._left_s = -1e6
    for number in range(3):
        worker.post(lambda number=number: done.append(number))  # type: ignore[misc]
    assert not done
    assert worker.settle(30.0)
    assert done == [0, 1, 2]


def test_first_lessons_go_before_what_waits() -> None:
    worker, done, begun, go = Worker("test", spare=True), list[str](), threading.Event(), threading.Event()

    def under_way() -> None:
        begun.set()
        assert go.wait(30)

    worker.post(under_way)
    assert begun.wait(30)
    for name in ("a", "b"):
        worker.post(lambda name=name: done.append(name))  # type: ignore[misc]
    worker.post(lambda: done.append("first"), first=True)
    go.set()
    assert worker.settle(30)
    assert done == ["first", "a", "b"]


def test_what_a_worker_needs_is_made_when_it_is_first_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a fork a server may put other threads and queues in the place of Python's, which must fit each other:
    gunicorn's workers of gevent do so, with `--preload` after the program has been accelerated."""

    class Queue(queue.Queue[Any]):
        """Of another library."""

    worker = Worker("early bird")
    worker.renew()
    monkeypatch.setattr(queue, "SimpleQueue", Queue)
    done: list[int] = []
    worker.post(lambda: done.append(1))
    assert worker.settle(30.0) and done == [1]
    assert isinstance(worker.inbox.posted, Queue)
