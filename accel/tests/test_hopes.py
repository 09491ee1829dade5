"""A program of which no call can be sooner rests at once, and is followed again when one can."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from accel.graph.ir import Graph
from accel.graph.rules import AT_ONCE, EGRESS
from accel.learn import memory
from accel.learn.lessons import lesson
from accel.parts.methods.methods import METHODS
from accel.parts.methods.patches import install
from accel.process import clock
from accel.process.threads import learner
from accel.run.gains import hopes
from accel.run.gains.hopes import IN_A_ROW, Hopes, held_sites, hopeful, hopeful_at
from accel.run.gains.pace import AT_FIRST, Pace, load
from accel.run.plans.plan import Plan
from accel.tests.fake_host import ASK, Model, node, opened, patched
from accel.tests.test_alone import Written
from accel.trace.record import Trace, Visit

BUSY_S = 0.003
"""Processor time that following a run takes."""


@pytest.fixture(autouse=True)
def time_counts(nobody_loses_hope: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hopes, "LEAST_S", 0.01)


def chain(second: str = "Go on from: a first answer") -> Written:
    run = Written()
    run.call(0.0, 1.0, got="a first answer", given="Begin")
    run.call(1.02, 2.0, got="a second answer", given=second)
    return run


def has_hope(trace: Trace, own_s: float = BUSY_S) -> bool:
    return hopeful(Graph(), trace, own_s)


def test_a_call_that_waits_for_the_one_before_gives_no_hope() -> None:
    assert not has_hope(chain().ended())


def test_a_call_whose_input_was_there_gives_hope() -> None:
    assert has_hope(chain(second="Begin with something else").ended())


def test_so_does_one_behind_a_pause_of_the_programs() -> None:
    run = chain()
    run.call(2.5, 3.0, given="Sum up: a second answer")
    assert has_hope(run.ended())
    run = chain()
    run.call(2.03, 3.0, given="Sum up: a second answer")
    assert not has_hope(run.ended())


def test_calls_side_by_side_that_begin_together_give_none() -> None:
    run = Written()
    run.side_by_side("a", "b", asked_s=0.0, ended_s=1.0)
    assert not has_hope(run.ended())


def test_what_is_shared_within_a_run_gives_hope() -> None:
    run = chain()
    for call in run.trace.calls:
        call.family, call.method, call.key = "embed", "embed_query", "the same"
    assert not has_hope(run.ended())
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(METHODS, ("embed", "embed_query"), replace(ASK, copy=list))
        assert has_hope(run.ended())
        assert not has_hope(run.ended(), own_s=2.0), "not more than it costs"


def test_a_gain_that_following_costs_is_none() -> None:
    run = Written()
    run.call(0.0, 0.03, given="Begin")
    run.call(0.03, 1.0, given="Begin with something else")
    assert has_hope(run.ended(), own_s=0.002)
    assert not has_hope(run.ended(), own_s=0.003), "3 % for a tenth of that in processor time"


def test_a_run_that_takes_no_time_says_nothing_against_hope() -> None:
    run = Written()
    run.call(0.0, 0.001, given="Begin", got="a first answer")
    assert has_hope(run.ended())


@pytest.mark.parametrize(("ahead_s", "hope"), [(0.01, False), (0.5, True)])
def test_early_calls_give_hope_by_what_they_gain(ahead_s: float, hope: bool) -> None:
    run = chain()
    run.call(2.02, 3.0, issued_s=2.02 - ahead_s, answered_s=3.0, given="a second answer")
    assert has_hope(run.ended()) is hope


def test_what_calls_gain_side_by_side_counts_once() -> None:
    run = chain()
    run.call(2.02, 3.0, issued_s=1.5, answered_s=2.6, given="a second answer")
    run.call(2.03, 3.0, issued_s=1.5, answered_s=2.6, given="a second answer")
    trace = run.ended()
    assert hopeful(Graph(), trace, 0.4) and not hopeful(Graph(), trace, 0.4, saved_s=0.5)


def test_two_runs_in_a_row_without_hope_and_one_with() -> None:
    program, none, some = Hopes(), chain().ended(), chain(second="Begin anew").ended()
    told = [(program.note(Graph(), trace, BUSY_S), program.lost) for trace in (none, some, none, none, none, some)]
    assert [lost for _, lost in told] == [False, False, False, True, True, False]
    assert [again for again, _ in told] == [False] * 5 + [True]
    assert IN_A_ROW == 2


def test_a_run_that_a_node_paused_takes_no_hope_as_more_is_to_follow() -> None:
    program, none, some = Hopes(), chain().ended(), chain(second="Begin anew").ended()
    asks = Visit("ask", 0, None, 0.0, failed=True, interrupted=True)
    paused, gains = (replace(trace, visits=[asks]) for trace in (none, some))
    assert not any(program.note(Graph(), paused, BUSY_S) or program.lost for _ in range(2 * IN_A_ROW))
    told = [(program.note(Graph(), trace, BUSY_S), program.lost) for trace in (none, paused, none, gains)]
    assert told == [(False, False), (False, False), (False, True), (True, False)]


def test_lost_hope_comes_back_for_more_than_would_have_kept_it() -> None:
    def gains(seconds: float) -> Trace:
        run = Written()
        run.call(0.0, seconds, given="Begin", got="a first answer")
        run.call(seconds + 0.02, 2.0, given="Begin anew")
        return run.ended()

    (border, more), lost = map(gains, (0.05, 0.12)), chain().ended()
    kept, other = Hopes(), Hopes()
    assert not any(kept.note(Graph(), border, BUSY_S) or kept.lost for _ in range(IN_A_ROW))
    for _ in range(IN_A_ROW):
        other.note(Graph(), lost, BUSY_S)
    assert not other.note(Graph(), border, BUSY_S) and other.lost
    assert other.note(Graph(), more, BUSY_S) and not other.lost


def test_a_program_with_hope_is_looked_at_ever_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    program, some, looked = Hopes(), chain(second="Begin anew").ended(), list[Trace]()

    def with_hope(graph: Graph, trace: Trace, *args: Any, **options: Any) -> bool:
        looked.append(trace)
        return True

    monkeypatch.setattr(hopes, "hopeful", with_hope)
    for _ in range(200):
        program.note(Graph(), some, BUSY_S)
    assert 200 / hopes.MOST_TRUST <= len(looked) < 40


def test_a_loop_that_goes_on_is_learnt_from_where_its_calls_could_be_sooner() -> None:
    def running(given: str) -> Trace:
        run = Written()
        run.call(0.0, 1.0, given="Begin", got="a first answer")
        last = run.call(1.02, 1.5, given=given)
        last.end, last.ended_s = None, None
        return replace(run.trace)

    assert hopeful_at(Graph(), running("Begin with something else"), "here")
    assert not hopeful_at(Graph(), running("Go on from: a first answer"), "here")
    assert not hopeful_at(Graph(), running("Begin with something else"), "elsewhere")


def test_without_hope_a_program_rests_at_once_until_there_is_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "enabled", False)
    program = Pace()
    assert [program.follows() for _ in range(3)] == [True] * 3
    assert program.rest() and not program.rest()
    followed = [program.follows() for _ in range(2 * AT_FIRST)]
    assert followed.count(True) == 2
    program.news()
    assert all(program.follows() for _ in range(8))


def test_a_program_rests_of_which_only_a_declaration_would_let_calls_go() -> None:
    program, trace = Hopes(), chain(second="Begin anew").ended()
    for _ in range(IN_A_ROW):
        assert not program.note(Graph(), trace, BUSY_S, frozenset({"here"}))
    assert program.unsaid and not program.lost, "lessons go on: the report says what a declaration would gain"
    assert program.note(Graph(), trace, BUSY_S) and not program.unsaid, "a call of it may go now"


def test_a_site_is_held_as_long_as_none_of_its_calls_goes() -> None:
    graph = Graph((node(), replace(node(), name="other"), replace(node(), name="free", site="there")))
    held, kept = EGRESS(), AT_ONCE()
    assert held_sites(graph, {"node": held, "other": held, "free": None}) == {"here"}
    assert not held_sites(graph, {"node": held, "other": kept}) | held_sites(graph, {"node": None, "gone": held})


class Slow(Model):
    """Takes a second by its own clock."""

    now_s = 0.0

    def fake_ask(self, text: str) -> str:
        Slow.now_s += 1.0
        return f"An answer of many words to <{text}>"


def test_a_program_without_hope_is_taught_nothing_more_and_one_with_hope_is(monkeypatch: pytest.MonkeyPatch) -> None:
    lessons: list[int] = []

    def counted(traces: Any, program: Any, **options: Any) -> Any:
        lessons.append(len(traces))
        return lesson(traces, program, **options)

    plan, model = Plan(), Slow()
    monkeypatch.setattr(memory, "lesson", counted)

    def ask(town: str, waits: bool) -> None:
        with opened(plan, {"town": town}):
            answer = model.fake_ask(f"What is {town} known for?")
            model.fake_ask(f"Is this true? {answer}" if waits else f"Where is {town}?")
        assert learner.settle(60.0)

    with patched(), clock.replaced(lambda: Slow.now_s):
        install(Slow, ASK)
        for number, town in enumerate(("Aberdeen", "Bordeaux", "Cartagena", "Dubrovnik", "Eindhoven")):
            before = len(lessons)
            ask(town, waits=number < 3)
            if number == 1:
                assert plan.hopes.lost and plan.pace.every == AT_FIRST and lessons
            if number == 2:
                assert plan.pace.every >= AT_FIRST and len(lessons) == before
            if number == 3:
                assert not plan.hopes.lost and plan.pace.every == 1
        assert len(lessons) > before
