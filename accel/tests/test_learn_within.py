"""Lessons inside runs: where the rest of a loop can still be foreseen, and only as long as it helps."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from accel.learn.lessons import extend
from accel.parts.methods.patches import install
from accel.process.threads import learner
from accel.run.plans import within_runs
from accel.run.plans.plan import ENOUGH, Plan
from accel.run.plans.within_runs import HOPELESS_AFTER
from accel.run.scope import Scope, scope
from accel.tests.fake_host import ASK, Model, OtherModel, opened, patched, think

TOWNS = {"towns": ["Aberdeen", "Bordeaux", "Cartagena", "Dubrovnik", "Eindhoven", "Fribourg"]}


@pytest.fixture(autouse=True)
def components() -> Iterator[None]:
    with patched():
        yield


@pytest.fixture
def lessons(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The call sites that were learnt inside runs."""
    sites: list[str] = []

    def counted(known: Any, running: Any, site: str, **given: Any) -> Any:
        sites.append(site)
        return extend(known, running, site, **given)

    monkeypatch.setattr(within_runs, "extend", counted)
    return sites


def asked_one_by_one(plan: Plan, model: Model) -> int:
    """A program that asks about town by town; how many answers were there before it asked."""
    with opened(plan, TOWNS) as run:
        for town in TOWNS["towns"]:
            model.fake_ask(f"What is {town} known for?")
            assert learner.settle(60.0)
            think(run)
    assert learner.settle(60.0)
    return run.counts.retired


def test_a_loop_that_is_foreseen_is_learnt_inside_every_run(lessons: list[str]) -> None:
    plan = Plan()
    for _ in range(HOPELESS_AFTER + 2):
        before = len(lessons)
        assert asked_one_by_one(plan, Model()) > 2
        assert len(lessons) > before


def test_a_loop_whose_calls_nobody_may_make_early_is_learnt_in_vain_a_few_times_only(lessons: list[str]) -> None:
    plan, by_run = Plan(), []
    for _ in range(HOPELESS_AFTER + 2):
        before = len(lessons)
        assert asked_one_by_one(plan, OtherModel()) == 0
        by_run.append(len(lessons) - before)
    assert all(by_run[:HOPELESS_AFTER]) and not any(by_run[HOPELESS_AFTER:])


def test_a_loop_of_which_nothing_could_be_sooner_is_looked_at_in_a_few_runs_only(
    lessons: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, looked = Plan(), list[str]()

    def hopeless(known: Any, running: Any, site: str) -> bool:
        looked.append(site)
        return False

    monkeypatch.setattr(within_runs, "hopeful_at", hopeless)
    by_run = []
    for _ in range(HOPELESS_AFTER + 2):
        before = len(looked)
        asked_one_by_one(plan, OtherModel())
        by_run.append(len(looked) - before)
    assert all(by_run[:HOPELESS_AFTER]) and not any(by_run[HOPELESS_AFTER:]) and not lessons


def test_calls_that_are_all_made_at_once_are_not_learnt_inside_the_run(lessons: list[str]) -> None:
    together = threading.Barrier(len(TOWNS["towns"]))

    class Slow(OtherModel):
        def fake_ask(self, text: str) -> str:
            together.wait(30.0)
            return text

    install(Slow, ASK)
    model = Slow()
    with opened(value=TOWNS) as run:

        def ask(town: str) -> None:
            scope.set(Scope(run))
            model.fake_ask(f"What is {town} known for?")

        threads = [threading.Thread(target=ask, args=(town,)) for town in TOWNS["towns"]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60.0)
        assert learner.settle(60.0)
    assert learner.settle(60.0)
    assert run.counts.demanded == len(TOWNS["towns"])
    assert not lessons


def test_before_the_first_lesson_only_so_many_runs_are_followed() -> None:
    """A server may have hundreds before there is time for it."""
    plan, model, may_go_on, count = Plan(), Model(), threading.Event(), 0
    learner.post(lambda: may_go_on.wait(60.0) and None, first=True)
    try:
        for number in range(3 * ENOUGH):
            if plan.follows():
                count += 1
                with opened(plan, {"town": f"Aberdeen {number}"}):
                    model.fake_ask(f"What is Aberdeen {number} known for?")
    finally:
        may_go_on.set()
    assert (count, plan.pace.passed) == (ENOUGH, 2 * ENOUGH)
    assert learner.settle(60.0)
    assert plan.learnt.nodes and plan.follows()
