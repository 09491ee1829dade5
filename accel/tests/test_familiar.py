"""Of runs that go one way and are foreseen, ever fewer are looked at, and those stand for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.graph.rules import BUSY, CONTEXT, FOREIGN, FORMER, Reason
from accel.run.gains.familiar import KINDS, LOOKS, SELDOM, Familiar, kind_of
from accel.run.gains.worth import Worth
from accel.run.settings import Counts
from accel.tests.test_worth import call, doubt, trace, went
from accel.trace.record import CallRecord, Trace, Visit

GAINED = Counts(demanded=2, issued=1, retired=1)


def looks(familiar: Familiar, kinds: Iterable[object]) -> list[tuple[int, int]]:
    """The numbers of runs that were looked at, and for how many each stood."""
    found = []
    for number, kind in enumerate(kinds):
        if not familiar.passes(kind):
            found.append((number, familiar.stands_for(kind)))
            familiar.looked(kind, foreseen=True)
    return found


def test_ever_fewer_are_looked_at() -> None:
    found = [number for number, _ in looks(Familiar(), ["a"] * 1000)]
    assert found[:LOOKS] == [*range(LOOKS)], "at first, all"
    between = [later - earlier for earlier, later in zip(found, found[1:], strict=False)]
    assert between == sorted(between) and between[-1] == SELDOM
    assert set(between) == {1, 2, 4, 8, 16}


@given(st.lists(st.sampled_from("abbcccc"), max_size=400))
def test_looks_stand_for_all_runs_of_their_kind_but_the_last_few(kinds: list[str]) -> None:
    stood: Counter[str] = Counter()
    for number, times in looks(Familiar(), kinds):
        stood[kinds[number]] += times
    for kind, count in Counter(kinds).items():
        assert count - SELDOM < stood[kind] <= count


def test_what_one_was_not_foreseen_by_all_may_have() -> None:
    familiar = Familiar()
    looks(familiar, ["a", "b"] * 100)
    assert familiar.passes("a")
    familiar.looked("b", foreseen=False)
    assert len(looks(familiar, ["a"] * LOOKS)) == LOOKS


def test_runs_without_a_kind_are_all_looked_at() -> None:
    assert looks(Familiar(), [None] * 100) == [(number, 1) for number in range(100)]


def test_so_are_those_of_ever_new_kinds_and_nothing_is_kept_of_them() -> None:
    familiar = Familiar()
    assert len(looks(familiar, range(10 * KINDS))) == 10 * KINDS
    assert len(familiar._kinds) == KINDS


def ran(*calls: CallRecord, **more: object) -> Trace:
    return replace(trace(Visit("node", 0, None, 0.0), *calls), completed=True, **more)


def early(site: str, start: int, identity: str = "model") -> CallRecord:
    made = call(site, start, 1.0)
    made.retired, made.identity = True, identity
    return made


RUN = ran(call("a", 1, 0.0), early("b", 3))
"""Its second call was early."""


def test_runs_are_alike_that_made_more_calls_in_the_same_way() -> None:
    assert kind_of(RUN, GAINED, []) is not None
    more = ran(call("a", 1, 0.0), *(early("b", 3 + 2 * number) for number in range(9)))
    assert kind_of(RUN, GAINED, []) == kind_of(more, Counts(demanded=10, issued=9, retired=9), [BUSY(), None])


@pytest.mark.parametrize(
    "other",
    [
        ran(call("a", 1, 0.0), early("c", 3)),
        ran(call("a", 1, 0.0), early("b", 3, "another model")),
        ran(call("a", 1, 0.0), early("b", 3), call("b", 5, 2.0)),
        ran(early("a", 1), early("b", 3)),
        ran(call("a", 1, 0.0), early("b", 3), ambient={"configurable.user": "ann"}),
    ],
    ids=["elsewhere", "another component", "one not early", "one more early", "another context"],
)
def test_those_that_went_another_way_are_not(other: Trace) -> None:
    assert kind_of(RUN, GAINED, []) != kind_of(other, GAINED, []) is not None


@pytest.mark.parametrize("reason", [CONTEXT(dimension="user"), FOREIGN(dimension="user"), FORMER()], ids=str)
def test_a_run_in_which_something_was_held_for_where_it_ran_teaches_that(reason: Reason) -> None:
    assert kind_of(RUN, GAINED, [None, reason]) is None


@pytest.mark.parametrize("name", ["wasted", "missed", "turned_away", "fed"])
def test_so_does_one_with_something_in_vain(name: str) -> None:
    assert kind_of(RUN, replace(GAINED, **{name: 1}), []) is None


def test_and_one_that_failed_or_paused_or_gained_nothing() -> None:
    paused = Visit("node", 0, None, 0.0, interrupted=True, failed=True)
    assert kind_of(replace(RUN, completed=False), GAINED, []) is None
    assert kind_of(replace(RUN, resumed=True), GAINED, []) is None
    assert kind_of(replace(RUN, visits=[paused]), GAINED, []) is None
    assert kind_of(RUN, Counts(demanded=2), []) is None


def test_chances_are_those_of_all_runs() -> None:
    """A branch that is seldom taken is looked at more often than it would have to be."""
    worth, familiar = Worth(), Familiar()
    for branch in ["hot"] * 9 * 64 + ["cold"] * 64:
        if not familiar.passes(branch):
            worth.note(went(branch), familiar.stands_for(branch))
            familiar.looked(branch, foreseen=True)
    assert 0.88 < worth.chance(doubt("hot")) < 0.92
    assert 0.08 < worth.chance(doubt("cold")) < 0.12
