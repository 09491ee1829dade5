"""Equal calls of the runs of one batch are made once, where somebody vouches that they repeat, and only there."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from accel.parts.components import register
from accel.parts.methods.epochs import bump, resource_of
from accel.parts.methods.patches import install
from accel.process.threads import learner
from accel.run.calls.batch import Batch, scope_of
from accel.run.settings import Settings
from accel.tests.fake_host import ASK, FIND, Embedder, Model, Store, opened, patched
from accel.trace.ambient import FRAMEWORK_VARS

TENANT: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")
INSIDE: list[str] = []
"""What components were asked, in this order."""


class Steps:
    """What components wait for, and do; of all of them, so that they stay equal."""

    entered = threading.Semaphore(0)
    go_on = threading.Event()
    failures = 0


class Oracle(Model):
    """Answers the same to everybody. Of a chain of names, it asks the next one first."""

    def fake_ask(self, text: str) -> str:
        INSIDE.append(text)
        Steps.entered.release()
        assert Steps.go_on.wait(30.0)
        if Steps.failures:
            Steps.failures -= 1
            raise RuntimeError("not now")
        asked, _, others = text.partition(" ")
        if others:
            Oracle(asked).fake_ask(others)
        return f"{self.name} knows of {text}"


class Sampler(Oracle):
    """Nobody says that it repeats what it said."""

    def fake_ask(self, text: str) -> str:
        INSIDE.append(text)
        return f"{len(INSIDE)}"


class Shelf(Store):
    def fake_find(self, text: str) -> list[str]:
        INSIDE.append(text)
        return [f"what is written on {text}"]


@pytest.fixture(autouse=True)
def components() -> Iterator[None]:
    INSIDE.clear()
    Steps.entered, Steps.go_on, Steps.failures = threading.Semaphore(0), threading.Event(), 0
    Steps.go_on.set()
    with patched():
        install(Oracle, ASK)
        install(Shelf, FIND)
        register(Oracle, deterministic=True, local=True, concurrency=8)
        register(Shelf, pure=True, local=True, concurrency=8)
        install(Sampler, ASK)
        register(Sampler, pure=True, local=True, concurrency=8)
        yield
        learner.settle(30.0)


@contextmanager
def batch() -> Iterator[Batch]:
    made = Batch()
    with scope_of(made):
        yield made
    made.close()


def run(work: Callable[[], Any], **options: Any) -> Any:
    """In a run of its own."""
    with opened(**options):
        return work()


@contextmanager
def beside(count: int = 4) -> Iterator[Callable[..., Future[Any]]]:
    """Runs side by side, each in a thread with a copy of the context."""
    with ThreadPoolExecutor(count) as pool:
        yield lambda work, **options: pool.submit(contextvars.copy_context().run, run, work, **options)
        Steps.go_on.set()


def ask(text: str = "tides", **of: Any) -> Callable[[], str]:
    return lambda: Oracle(**of).fake_ask(text)


def waits() -> bool:
    """Until a run waits for another one's call."""
    return bool(_WAITING.wait(30.0))


_WAITING = threading.Event()


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a demand begins to wait for another call."""
    from accel.run.demands import demands

    _WAITING.clear()
    begin = demands.begin

    def noted(*args: Any, **kwargs: Any) -> bool:
        begun = begin(*args, **kwargs)
        if begun:
            _WAITING.set()
        return begun

    monkeypatch.setattr(demands, "begin", noted)
    return _WAITING


# --- what is shared -------------------------------------------------------------------------------------------------


def test_equal_calls_of_a_batch_are_made_once_and_counted() -> None:
    with batch() as made:
        answers = [run(ask()) for _ in range(5)]
    assert INSIDE == ["tides"] and set(answers) == {"model knows of tides"}
    assert (made.runs, made.calls) == (5, 4) and made.seconds >= 0.0


def test_outside_of_a_batch_and_after_it_nothing_is_shared() -> None:
    with batch() as made:
        run(ask())
    with scope_of(made):
        run(ask())
    run(ask())
    assert INSIDE == ["tides"] * 3


def test_batches_share_nothing_with_each_other() -> None:
    for _ in range(2):
        with batch():
            run(ask())
    assert INSIDE == ["tides"] * 2


def test_each_gets_a_copy() -> None:
    store = register(Shelf(Embedder()), readonly=True)
    with batch():
        first = run(lambda: store.fake_find("tides"))
        first.append("mine")
        second = run(lambda: store.fake_find("tides"))
        second.append("mine, too")
        third = run(lambda: store.fake_find("tides"))
    assert INSIDE == ["tides"] and third == ["what is written on tides"]


def test_vectors_are_shared_as_inside_a_run() -> None:
    embedder = Embedder()
    with batch() as made:
        one, other = run(lambda: embedder.fake_embed("tides")), run(lambda: embedder.fake_embed("tides"))
    assert one == other and one is not other and made.calls == 1


# --- what is not ----------------------------------------------------------------------------------------------------


def test_samples_are_nobody_elses() -> None:
    with batch() as made:
        for _ in range(3):
            run(lambda: Sampler().fake_ask("tides"))
    assert INSIDE == ["tides"] * 3 and made.calls == 0


@pytest.mark.parametrize("other", [ask("glaciers"), ask(name="another"), ask(key="another")])
def test_other_calls_are_made(other: Callable[[], str]) -> None:
    with batch() as made:
        run(ask())
        run(other)
    assert len(INSIDE) == 2 and made.calls == 0


def test_other_contexts_share_nothing() -> None:
    with batch() as made:
        for tenant in ("ann", "ben", "ann"):
            token = TENANT.set(tenant)
            run(ask())
            TENANT.reset(token)
        for user in ("ann", "ben", "ben"):
            run(ask("glaciers"), beside={"configurable": {"user": user}})
    assert INSIDE == ["tides", "tides", "glaciers", "glaciers"] and made.calls == 2


def test_nor_does_a_context_that_changed_within_the_run() -> None:
    def as_ben() -> str:
        TENANT.set("ben")
        return ask()()

    with batch():
        run(ask())
        contextvars.copy_context().run(run, as_ben)
    assert INSIDE == ["tides"] * 2


def test_the_scope_of_a_batch_is_no_context_of_the_users() -> None:
    assert "accel_batch" in FRAMEWORK_VARS


def test_a_run_that_only_watches_shares_nothing() -> None:
    with batch():
        for _ in range(2):
            run(ask(), settings=Settings(speculate="off"))
    assert INSIDE == ["tides"] * 2


def test_what_was_written_meanwhile_is_read_again() -> None:
    store = register(Shelf(Embedder()), readonly=True)
    with batch() as made:
        run(lambda: store.fake_find("tides"))
        bump(resource_of(store))
        run(lambda: store.fake_find("tides"))
        run(lambda: store.fake_find("tides"))
    assert INSIDE == ["tides"] * 2 and made.calls == 1


def test_a_store_that_others_may_write_to_is_asked_each_time() -> None:
    store = Shelf(Embedder())
    with batch():
        for _ in range(2):
            run(lambda: store.fake_find("tides"))
    assert INSIDE == ["tides"] * 2


# --- side by side ---------------------------------------------------------------------------------------------------


def test_a_run_waits_for_the_call_that_another_one_is_making(waiting: threading.Event) -> None:
    Steps.go_on.clear()
    with batch() as made, beside() as start:
        first = start(ask())
        assert Steps.entered.acquire(timeout=30.0)
        second = start(ask())
        assert waits()
        Steps.go_on.set()
        assert first.result(30.0) == second.result(30.0)
    assert INSIDE == ["tides"] and made.calls == 1


def test_a_failure_is_not_shared(waiting: threading.Event) -> None:
    Steps.go_on.clear()
    Steps.failures = 1
    with batch() as made, beside() as start:
        first = start(ask())
        assert Steps.entered.acquire(timeout=30.0)
        second = start(ask())
        assert waits()
        Steps.go_on.set()
        with pytest.raises(RuntimeError, match="not now"):
            first.result(30.0)
        assert second.result(30.0) == "model knows of tides"
        assert run(ask()) == "model knows of tides"
    assert len(INSIDE) in (2, 3) and made.calls <= 1


def test_a_retry_makes_its_own_call() -> None:
    def twice() -> str:
        with pytest.raises(RuntimeError):
            ask("glaciers")()
        return ask()()

    with batch():
        run(ask())
        Steps.failures = 1
        run(twice)
    assert INSIDE == ["tides", "glaciers", "tides"]


def test_runs_that_want_what_the_other_one_makes_do_not_wait_for_each_other() -> None:
    """Each is inside a call that the other one needs next."""
    Steps.go_on.clear()
    with batch(), beside() as start:
        one = start(lambda: Oracle("p").fake_ask("q p q end"))
        other = start(lambda: Oracle("q").fake_ask("p q end"))
        assert Steps.entered.acquire(timeout=30.0) and Steps.entered.acquire(timeout=30.0)
        Steps.go_on.set()
        assert one.result(30.0) == "p knows of q p q end"
        assert other.result(30.0) == "q knows of p q end"


def test_only_so_many_results_are_kept() -> None:
    made = Batch(most=3)
    with scope_of(made):
        for number in range(20):
            run(ask(str(number)))
        assert len(made._known) == 3
        assert all(call.record is None for call in made._known.values()), "no more of a run than that"
        run(ask("19"))
        run(ask("0"))
    assert INSIDE == [*map(str, range(20)), "0"]


def test_runs_without_anything_to_share_are_not_followed_for_it_for_long() -> None:
    with batch() as made:
        for number in range(16):
            assert made.hopeful
            run(ask(str(number)))
        assert not made.hopeful


def test_in_a_forked_child_nothing_of_the_parents_is_waited_for() -> None:
    with batch() as made:
        run(ask())
        child = os.fork()
        if not child:
            os._exit(len(made._known))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(made._known) == 1
