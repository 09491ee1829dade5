"""Lists of a program's texts: which are used as a whole, and which it chooses from."""

from __future__ import annotations

import pytest

from accel.learn.tables import ENOUGH, Tables
from accel.tests.random_programs import Host
from accel.trace.record import Trace

ROLES = ("a thrifty economist", "a loud activist", "an old historian")


def ran(*texts: str, once_more: str = "") -> Trace:
    """`once_more`: used at another site."""
    host = Host({"q": "the question"})
    for text in texts:
        host.ask("site", f"You are {text}, and answer: the question", "fine")
    if once_more:
        host.ask("another site", f"You are {once_more}", "fine")
    return host.done()


def shown(*runs: Trace, before: int = 1) -> Tables:
    """`before`: how many had ended when somebody looked first."""
    tables = Tables()
    tables.look([ROLES], runs[:before])
    for run in runs[before:]:
        tables.note(run)
    return tables


@pytest.mark.parametrize("before", range(1, ENOUGH + 1))
def test_what_runs_use_as_a_whole_is_the_program_s(before: int) -> None:
    assert not shown(*[ran(*ROLES)] * (ENOUGH - 1)).are_whole(ROLES)
    assert shown(*[ran(*ROLES)] * ENOUGH, before=before).are_whole(ROLES)


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("before", [1, 4])
def test_what_one_run_chooses_from_is_not(at: int, before: int) -> None:
    runs = [ran(*ROLES)] * 3
    tables = shown(*runs[:at], ran(ROLES[1]), *runs[at:], before=before)
    assert not tables.are_whole(ROLES)
    tables.look([ROLES], runs)
    assert not tables.are_whole(ROLES), "for good"


def test_what_one_site_chooses_from_is_not_though_another_uses_all() -> None:
    assert not shown(*[ran(*ROLES, once_more=ROLES[0])] * 3).are_whole(ROLES)
    assert shown(*[ran(*ROLES, once_more="; ".join(ROLES))] * 3).are_whole(ROLES)


def test_whoever_asks_is_told_of_each_change() -> None:
    tables = shown(ran(*ROLES))
    runs = (*[ran(*ROLES)] * 2, ran(), ran(ROLES[0]), ran(*ROLES))
    assert [tables.note(run) for run in runs] == [True, False, False, True, False]


def test_no_text_is_kept_of_what_no_run_has_used_as_a_whole() -> None:
    tables = Tables()
    for runs in ([ran("somebody")], [ran(ROLES[0])]):
        tables.look([ROLES], runs)
        tables.note(runs[0])
        assert not any(text in str(vars(tables)) for text in ROLES)


def test_runs_that_were_cut_off_or_have_used_nothing_say_nothing() -> None:
    cut = ran(ROLES[0])
    cut.completed = False
    assert shown(ran(*ROLES), cut, ran("somebody"), ran(*ROLES)).are_whole(ROLES)


def test_where_one_is_a_part_of_another_nothing_tells_which_was_used() -> None:
    table = ("an economist", "an economist of the old school")
    tables = Tables()
    tables.look([table], [ran(*table)] * ENOUGH)
    assert not tables.are_whole(table)


def test_what_stands_there_no_longer_is_forgotten() -> None:
    tables = shown(*[ran(*ROLES)] * ENOUGH)
    tables.look([ROLES[:2]], [])
    assert not tables.are_whole(ROLES) and not tables.are_whole(ROLES[:2])
