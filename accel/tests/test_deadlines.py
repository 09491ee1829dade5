"""Calls by the slack of their runs, and what is known of how long runs take yet."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.engine import Priority, Session
from accel.engine.batching import Waiting, policy_named
from accel.engine.deadlines import SHARE, slack_s
from accel.engine.tickets import AGING_S
from accel.errors import ConfigurationError
from accel.run import deadline
from accel.run.deadline import MAX_CALLS, Deadlines
from accel.trace.record import CallRecord, Trace

NOW_S = 1000.0


class Line:
    def __init__(self, policy: str = "topology-aware") -> None:
        self.now_s = NOW_S
        self.waiting: Waiting[str] = Waiting(policy_named(policy), now_s=lambda: self.now_s)

    def ask(
        self, name: str, due_s: float = math.inf, left_s: float = 0.0, value: int = 0, arrived_s: float = 0
    ) -> None:
        session = Session(name, due_s)
        self.waiting.add([name], Priority(value, name, arrived_s, session=session, left_s=left_s))

    def take(self, count: int = 100) -> list[str]:
        left = iter(range(count))
        return self.waiting.take(lambda _: next(left, None) is not None)


def test_the_least_slack_first_then_those_without_then_early_work() -> None:
    line = Line()
    line.ask("early", NOW_S + 1, value=1)
    line.ask("old", arrived_s=1.0)
    line.ask("late", NOW_S + 5, left_s=6.0, arrived_s=2.0)
    line.ask("loose", NOW_S + 9)
    line.ask("long", NOW_S + 10, left_s=8.0)
    assert line.take() == ["long", "loose", "old", "late", "early"]


def test_without_deadlines_the_order_is_as_it_was_and_so_it_is_for_engines_that_heed_none() -> None:
    line = Line()
    for name, arrived_s in (("b", 2.0), ("a", 1.0), ("c", 3.0)):
        line.ask(name, arrived_s=arrived_s)
    assert line.take() == ["a", "b", "c"]
    line = Line("topology-aware, without deadlines")
    line.ask("hurried", NOW_S + 1, arrived_s=2.0)
    line.ask("old", arrived_s=1.0)
    assert line.take() == ["old", "hurried"]


def test_who_has_waited_for_long_gets_one_call_in_so_many() -> None:
    line = Line()
    line.ask("lost", NOW_S - 1)
    line.now_s += AGING_S
    for number in range(3 * SHARE):
        line.ask(f"{number}", line.now_s + 100 + number)
    taken = [line.take(1)[0] for _ in range(SHARE + 1)]
    assert taken == [*map(str, range(SHARE)), "lost"]


calls = st.lists(st.tuples(st.booleans(), st.floats(-50, 200), st.floats(0, 50)), max_size=30)


@given(calls)
def test_nothing_is_lost_and_whoever_can_meet_a_deadline_passes_those_who_cannot(
    asked: list[tuple[bool, float, float]],
) -> None:
    line = Line()
    slacks = {}
    for number, (has, within_s, left_s) in enumerate(asked):
        due_s = NOW_S + within_s if has else math.inf
        line.ask(f"{number}", due_s, left_s, arrived_s=number)
        slacks[f"{number}"] = slack_s(Priority(session=Session("", due_s), left_s=left_s), NOW_S)
    taken = line.take()
    assert sorted(taken, key=int) == sorted(slacks, key=int)
    can = [name for name in taken if 0 <= slacks[name] < math.inf]
    assert taken[: len(can)] == can == sorted(can, key=lambda name: (slacks[name], int(name)))
    assert taken[len(can) :] == sorted(taken[len(can) :], key=int), "the others as they began"


# --- what is said and known of a run


@pytest.mark.parametrize("wrong", [0, -1, True, "2", None, math.inf, math.nan])
def test_what_is_no_time_is_said(wrong: object) -> None:
    with pytest.raises(ConfigurationError, match="is no time to be over in") as caught:
        deadline.asked_by({"accel_deadline_s": wrong})
    assert caught.value.remedy
    with pytest.raises(ConfigurationError):
        accel.deadline(wrong)  # type: ignore[arg-type]


def test_the_nearest_deadline_around_counts() -> None:
    assert deadline.here() is None
    with accel.deadline(3):
        with accel.deadline(1.5):
            assert deadline.here() == 1.5
        assert deadline.here() == 3.0
    assert deadline.here() is None and deadline.asked_by({"other": 1}) is None


def _trace(*started_s: float, ended_s: float = 10.0, completed: bool = True) -> Trace:
    calls = [
        CallRecord("site", "", "m", "f", "decoding", None, None, None, None, n, at_s)
        for n, at_s in enumerate(started_s)
    ]
    trace = Trace(None, calls, [], 0.0)
    trace.ended_s, trace.completed = ended_s, completed
    return trace


def test_how_long_a_run_takes_yet_is_learnt_by_call() -> None:
    known = Deadlines()
    assert known.left_s("site", 0) == 0.0
    known.learn(_trace(0.0, 4.0, 7.0))
    assert [known.left_s("site", before) for before in (0, 1, 2, 3, MAX_CALLS)] == [10.0, 6.0, 3.0, 3.0, 3.0]
    for _ in range(3):
        known.learn(_trace(0.0, ended_s=30.0))
    assert known.left_s("site", 0) == 30.0 and known.left_s("other", 0) == 0.0
    known.learn(_trace(0.0, ended_s=8.0))
    assert known.left_s("site", 0) == 10.0, "a quick one: others have waited"


def test_runs_that_met_their_deadline_are_counted() -> None:
    known = Deadlines()
    for trace, within_s in (
        (_trace(), 10.0), (_trace(), 9.0), (_trace(completed=False), 20.0), (_trace(), None),
    ):  # fmt: skip
        known.note(trace, within_s)
    assert (known.met, known.runs) == (1, 3)
