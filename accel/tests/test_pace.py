"""Which runs are followed: all while that gains and there is time for it, few otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any, cast

import pytest

from accel.run.gains import pace
from accel.run.gains.pace import DOUBLED_AFTER, FEWEST, FIRST, LATE_S, MOST, SELDOM, Asked, Load, Pace
from accel.trace.record import CallRecord, Trace

PATIENCE = 16


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Whose thread is not there: the test tells how late it was woken."""
    made = Load()
    made._begin = lambda: None  # type: ignore[method-assign]
    monkeypatch.setattr(pace, "load", made)
    yield made


def trace(gain_s: float, took_s: float = 0.1) -> Trace:
    """Of a run with one early call, that was asked for so long after it began."""
    call: Any = CallRecord("site", "", "", "", "", None, None, None, None, 0, 10.0 + gain_s)
    call.retired, call.issued_s, call.answered_s = True, 10.0, 10.0 + took_s
    return Trace(calls=[call], started_s=10.0, ended_s=10.1)


def followed(of: Pace, runs: int, what: Trace) -> int:
    count = 0
    for _ in range(runs):
        if of.follows():
            count += 1
            of.ended(what)
    return count


def test_a_program_that_gains_is_always_followed(load: Load) -> None:
    assert followed(Pace(), 500, trace(0.05)) == 500


@pytest.mark.parametrize("what", [Trace(), trace(0.0), trace(0.0005)], ids=["nothing early", "no gain", "hardly any"])
def test_a_program_without_gain_rests(load: Load, what: Trace) -> None:
    program = Pace()
    assert followed(program, PATIENCE, what) == PATIENCE
    assert followed(program, 2 * DOUBLED_AFTER, what) == DOUBLED_AFTER
    followed(program, 10_000, what)
    assert followed(program, 10 * SELDOM, what) == 10


def test_a_program_that_foresees_all_and_has_nothing_early_rests_sooner(load: Load) -> None:
    program, runs = Pace(), 0
    while program.every == 1:
        program.idle()
        program.ended(Trace())
        runs += 1
    assert runs < PATIENCE / 4
    program.ended(trace(0.05))
    assert program.every == 1


def test_a_program_that_gains_less_than_it_takes_to_follow_it_rests(load: Load) -> None:
    slow, quick = Pace(), Pace()
    for _ in range(PATIENCE):
        slow.ended(trace(0.05), own_s=0.06)
        quick.ended(trace(0.05), own_s=0.04)
    assert slow.every > 1 and quick.every == 1


def test_a_program_at_the_border_rests_and_stays_at_rest(load: Load) -> None:
    """Runs that by turns gain a little more and a little less than what is worth following."""
    program, runs, turns = Pace(), (trace(0.0065), trace(0.0025)), 0  # of 0.1 s
    while program.every == 1 and turns < 4 * PATIENCE:
        program.ended(runs[turns % 2], own_s=0.001)
        turns += 1
    assert program.every > 1
    assert followed_by_turns(program, 20 * SELDOM, runs) < 60


def followed_by_turns(of: Pace, runs: int, what: tuple[Trace, ...]) -> int:
    count = 0
    for _ in range(runs):
        if of.follows():
            of.ended(what[count % len(what)], own_s=0.001)
            count += 1
    return count


def test_a_program_that_gains_seldom_but_much_is_followed(load: Load) -> None:
    assert followed_by_turns(Pace(), 500, (*(Trace(started_s=10.0, ended_s=10.1),) * 9, trace(0.08))) == 500


def test_in_a_crowd_another_run_waits_for_the_processor_as_well(load: Load) -> None:
    alone, among = Pace(), Pace()
    for _ in range(2 * PATIENCE):
        alone.ended(trace(0.05), own_s=0.03)
        among.ended(replace(trace(0.05, 0.09), crowded=True), own_s=0.03)
    assert alone.every == 1 and among.every > 1


def test_what_calls_gain_side_by_side_counts_once(load: Load) -> None:
    many = Trace(calls=[call for _ in range(8) for call in trace(0.05).calls])
    together, apart = Pace(), Pace()
    for _ in range(2 * PATIENCE):
        together.saved(many, 0.05)
        together.ended(many, own_s=0.1)
        apart.saved(many, 0.4)
        apart.ended(many, own_s=0.1)
    assert together.every > 1 and apart.every == 1


def test_to_be_before_ones_turn_is_no_gain(load: Load) -> None:
    program = Pace()
    late(load, 0.02)
    followed(program, 5_000, trace(0.019))
    assert followed(program, 10 * SELDOM, trace(0.019)) == 10
    assert followed(Pace(), 500, trace(0.06)) == 500


def test_gain_or_news_wakes_a_program(load: Load) -> None:
    program = Pace()
    followed(program, 5_000, Trace())
    while not program.follows():
        pass
    program.ended(trace(0.05))
    assert followed(program, 50, trace(0.05)) == 50
    followed(program, 5_000, Trace())
    program.news()
    assert followed(program, PATIENCE, Trace()) == PATIENCE


def test_runs_that_pass_are_counted(load: Load) -> None:
    program = Pace()
    count = followed(program, 1_000, Trace())
    assert program.passed == 1_000 - count > 0
    assert program.passed_for == {pace.GAINLESS: program.passed}


def test_runs_that_pass_are_told_apart(load: Load) -> None:
    program = Pace()
    followed(program, 1_000, Trace())
    assert set(program.passed_for) == {pace.GAINLESS}
    program.news()
    assert not program.follows(enough=True)
    assert program.passed_for[pace.UNREAD] == 1
    load.count(int(load.window))
    assert not program.follows()
    assert program.passed_for[pace.NO_TIME] == 1


def late(load: Load, seconds: float, ticks: int = 60) -> None:
    for _ in range(ticks):
        load.tick(seconds)
    load.adjust()


def begun(load: Load, runs: int) -> int:
    """How many of so many runs that begin at once are followed."""
    program, count = Pace(), 0
    for _ in range(runs):
        if program.follows():
            count += 1
            load.count(+1)
    return count


def test_a_burst_is_not_followed_as_a_whole(load: Load) -> None:
    assert begun(load, 256) == FIRST


def test_fewer_are_followed_while_there_is_no_time_and_more_again_later(load: Load) -> None:
    begun(load, 256)
    for _ in range(40):
        late(load, 0.005)
    assert load.window == FEWEST
    for _ in range(60):
        load.forget_runs()
        begun(load, 2_000)
        late(load, 0.0)
    assert load.window == MOST


def test_fewer_are_followed_on_a_loop_that_works_all_the_time_although_it_is_in_time(load: Load) -> None:
    begun(load, 256)
    for _ in range(60):
        load.tick(0.0, works=0.97)
        load.adjust()
    assert load.window == FEWEST
    for _ in range(60):
        load.forget_runs()
        begun(load, 64)
        load.tick(0.0, works=0.85)
        load.adjust()
    assert load.window == FEWEST
    for _ in range(60):
        load.forget_runs()
        begun(load, 64)
        load.tick(0.0, works=0.3)
        load.adjust()
    assert load.window > 16


async def test_how_much_the_thread_of_a_loop_works() -> None:
    asked = Asked(asyncio.get_running_loop())
    end_s = perf_counter() + 0.2
    while perf_counter() < end_s:
        sum(range(1000))
    working = asked.works()
    await asyncio.sleep(0.2)
    assert working > asked.works()


def test_a_run_that_is_alone_is_followed_however_busy_it_is(load: Load) -> None:
    load.count(+1)
    for _ in range(40):
        late(load, 0.005)
    assert load.window == FIRST


def test_the_window_stands_where_nobody_asked_for_more(load: Load) -> None:
    late(load, 0.0)
    assert load.window == FIRST


def test_the_thread_that_watches_ends_its_watch_when_there_is_nothing_to_see() -> None:
    load = Load()
    assert load.admits()
    thread = cast(Any, load)._thread
    assert thread.daemon and thread.is_alive()
    seen = False
    for _ in range(200):
        seen = seen or not load._needed.is_set()
        if seen:
            break
        thread.join(0.05)
    assert seen


async def test_a_loop_that_does_something_else_is_late_until_it_comes(load: Load) -> None:
    assert load.admits(asyncio.get_running_loop())
    asked = load.ask()
    assert asked is not None
    busy_until = perf_counter() + 2 * LATE_S
    while perf_counter() < busy_until:
        pass
    assert asked.late_s() > LATE_S
    await asyncio.sleep(0)
    late_s = asked.late_s()
    assert late_s > LATE_S
    assert asked.late_s() == late_s  # it has come: that is how long it took


async def test_a_loop_is_not_told_again_before_it_has_come(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, told = asyncio.get_running_loop(), []
    tell = loop.call_soon_threadsafe
    monkeypatch.setattr(loop, "call_soon_threadsafe", lambda work: told.append(work) or tell(work))
    load.admits(loop)
    for _ in range(5):
        load.ask()
    assert len(told) == 1
    await asyncio.sleep(0)
    load.ask()
    assert len(told) == 2


def test_a_loop_that_has_ended_is_not_waited_for(load: Load) -> None:
    async def begin() -> None:
        load.admits(asyncio.get_running_loop())
        assert load.ask() is not None

    asyncio.run(begin())
    assert load.ask() is None


def test_a_plain_call_asks_no_loop(load: Load) -> None:
    assert load.admits()
    assert load.ask() is None
