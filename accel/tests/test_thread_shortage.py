"""Where a process may have no more threads, programs run as without Accel."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from accel.process import threads


@contextmanager
def no_more(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The system starts no thread."""

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patches:
        patches.setattr(threading.Thread, "start", start)
        yield


def test_what_was_posted_meanwhile_is_done_once_there_is_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = threads.Worker("accel-test")
    done: list[str] = []
    over = threading.Event()
    with no_more(monkeypatch):
        worker.post(lambda: done.append("first"))
    worker.post(lambda: done.append("second"))
    worker.post(over.set)
    assert over.wait(30.0)
    assert done == ["first", "second"]


def test_who_wants_a_thread_learns_that_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()
    monkeypatch.setattr(threads, "_idle", [])
    with no_more(monkeypatch):
        assert not threads.spawn(done.set)
    assert threads.spawn(done.set)
    assert done.wait(30.0)
