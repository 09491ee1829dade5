"""A program that does something new is followed again, and judged by what it does now."""

from __future__ import annotations

import pytest

from accel.parts.methods.patches import install
from accel.process import clock
from accel.process.threads import learner
from accel.run.gains import hopes, pace
from accel.run.gains.changes import AFTER, MANY, Changes
from accel.run.gains.pace import AT_FIRST, Pace
from accel.run.gains.reliance import WINDOW
from accel.run.gains.worth import LITTLE, Cost
from accel.run.plans import learning
from accel.run.plans.plan import Plan
from accel.run.scope import Scope, scope
from accel.run.settings import Counts
from accel.tests.fake_host import ASK, Model, opened, patched
from accel.tests.test_hopes import Slow
from accel.tests.test_worth import doubt, seen, went


def test_a_new_call_site_is_news() -> None:
    changes = Changes()
    assert not changes.note({"a", "b"}, foreseen=False), "at first, all are new"
    assert not changes.note({"a"}, foreseen=False)
    assert changes.note({"a", "c"}, foreseen=False)
    assert not changes.note({"a", "c"}, foreseen=False)


def test_so_is_a_surprise_after_many_runs_that_were_foreseen_ever_more_of_them() -> None:
    changes = Changes()

    def surprises(after: int) -> bool:
        for _ in range(after):
            assert not changes.note({"a"}, foreseen=True)
        return changes.note({"a"}, foreseen=False)

    assert not surprises(AFTER - 1)
    assert surprises(AFTER)
    assert not surprises(AFTER)
    assert surprises(2 * AFTER)


def test_the_way_that_runs_went_before_counts_little() -> None:
    worth = seen(*["hot"] * 96)
    assert worth.chance(doubt("hot")) > 0.98
    worth.forget()
    assert worth.chance(doubt("hot")) == (LITTLE + 1) / (LITTLE + 2)
    for _ in range(2 * LITTLE):
        worth.note(went("cold"))
    assert worth.chance(doubt("cold")) > 0.6 > 0.4 > worth.chance(doubt("hot"))
    worth.forget()
    assert worth.chance(doubt("cold")) > 0.5, "the same, by less"


def test_runs_that_nobody_followed_are_the_programs_too() -> None:
    worth = seen("hot", "hot")
    assert worth.refuses(doubt("hot"), 0.02) is not None, "a second of the 6 that were seen"
    worth.settle(went("hot"), Counts(), Cost(), runs=30)
    assert worth.refuses(doubt("hot"), 0.02) is None


def test_no_more_of_them_than_the_window_has_runs() -> None:
    """Else a program that is followed again after a rest could waste as much as hundreds of runs allow, in a few."""
    worth = seen()
    for _ in range(WINDOW):
        worth.note(went("hot"))
        worth.settle(went("hot"), Counts(), Cost(), runs=WINDOW)
    of_runs = WINDOW * 3.0 * 0.02  # each takes 3 s
    worth.settle(went("hot"), Counts(wasted_s=of_runs - 0.5), Cost(), runs=1)
    assert worth.refuses(doubt("hot"), 0.02) is not None, "a second more"


def test_a_program_whose_lines_are_new_each_time_may_rest() -> None:
    changes = Changes()
    news = [changes.note({f"line {number}"}, foreseen=False) for number in range(2 * MANY)]
    assert any(news[:MANY]) and not any(news[-MANY // 2 :])


def test_they_are_counted_once() -> None:
    pace = Pace()
    pace.rest()
    followed = [pace.follows() for _ in range(2 * AT_FIRST)]
    assert pace.let_pass() == followed.count(False) > 0
    assert pace.let_pass() == 0


def test_a_program_at_rest_that_makes_another_call_is_followed_again(
    nobody_loses_hope: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, model = Plan(), Slow()

    def ask(town: str, more: bool = False) -> None:
        with opened(plan, {"town": town}):
            answer = model.fake_ask(f"What is {town} known for?")
            if more:
                model.fake_ask(f"Who says so: {answer}?")
            else:
                model.fake_ask(f"Is this true? {answer}")
        assert learner.settle(60.0)

    monkeypatch.setattr(hopes, "LEAST_S", 0.01)
    with patched(), clock.replaced(lambda: Slow.now_s):
        install(Slow, ASK)
        for town in ("Aberdeen", "Bordeaux", "Cartagena", "Dubrovnik"):
            rested = plan.hopes.lost and plan.pace.every >= AT_FIRST
            ask(town, more=town == "Dubrovnik")
        assert rested and not plan.hopes.lost and plan.pace.every == 1


def test_a_program_whose_call_sites_are_new_in_each_run_is_not_followed_for_ever(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The last component of each is kept."""
    monkeypatch.setattr(pace.load, "enabled", True)
    monkeypatch.setattr(learning, "MAX_SITES", 8)
    plan = Plan()
    with patched():
        for number in range(20):
            if plan.follows():
                with opened(plan, {"q": number}) as run:
                    visit = run.enter(f"node of request {number}", {"q": number})
                    scope.set(Scope(run, visit))
                    Model().fake_ask(f"What of {number}?")
                    run.leave(visit, {})
                assert learner.settle(60.0)
    assert len(plan.used.at) == plan.runs == 9 and plan.pace.never
    assert len([record for record in caplog.records if "more than 8 call sites" in record.message]) == 1
