"""Which runs keep their context in a KV cache at a time: who waits, who is paused, that nothing starves."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel.engine import Priority, Session, batching
from accel.engine.admission import AIM, AWAY_S, PAUSED_ABOVE, TURN_S, Admission, Need
from accel.engine.batching import LOOKED_AT, Waiting
from accel.engine.tickets import AGING_S

CAPACITY = 100


@dataclass(eq=False)
class Call:
    need: Need
    whose: Session | None = None


@dataclass
class Engine:
    """Serves whatever is admitted; room is all that it lacks."""

    now_s: float = 1000.0
    capacity: int = CAPACITY
    running: list[Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.admission: Admission[Call] = Admission(self.capacity, lambda call: call.need)
        self.waiting: Waiting[Call] = Waiting(now_s=lambda: self.now_s)
        self.waiting.admit(self.admission)

    def ask(
        self, whose: Session | None, blocks: Sequence[int], own: int = 0, early: bool = False, arrived_s: float = 0
    ) -> Call:
        call = Call(Need(list(blocks), own), whose)
        name = whose.name if whose is not None else ""
        self.waiting.add([call], Priority(int(early), name, arrived_s, session=whose))
        return call

    def take(self) -> list[Call]:
        begun = self.waiting.take(lambda _: True)
        self.running += begun
        return begun

    def end(self, call: Call) -> None:
        self.running.remove(call)
        self.waiting.ended(call)


def blocks(run: int, count: int) -> range:
    """A run's own, the first ones first."""
    return range(1000 * run, 1000 * run + count)


def test_no_further_run_is_admitted_above_the_aim_and_an_end_lets_the_next_one_in() -> None:
    engine, runs = Engine(), [Session(f"{n}") for n in range(3)]
    calls = [engine.ask(run, blocks(n, 40)) for n, run in enumerate(runs)]
    assert engine.take() == calls[:2]
    engine.end(calls[0])
    assert engine.take() == [], "its context stays"
    runs[0].end()
    assert engine.take() == [calls[2]]


def test_a_run_that_is_alone_is_never_paused() -> None:
    engine, run = Engine(), Session("large")
    calls = [engine.ask(run, blocks(n, 70)) for n in range(3)]
    assert engine.take() == calls, "even if its calls are more than there is room for"


def test_early_calls_of_several_runs_are_no_exception() -> None:
    engine, runs = Engine(), [Session(f"{n}") for n in range(2)]
    calls = [engine.ask(run, blocks(n, 51), early=True) for n, run in enumerate(runs)]
    assert engine.take() == calls[:1]
    engine.end(calls[0])
    runs[0].end()
    assert engine.take() == calls[1:]


def test_an_admitted_run_goes_on_however_many_wait_before_it() -> None:
    engine, runs = Engine(), [Session(f"{n}") for n in range(LOOKED_AT + 20)]
    stays, between = (engine.ask(run, blocks(n, 30)) for n, run in enumerate(runs[:2]))
    assert engine.take() == [stays, between]
    engine.end(between)
    for number, run in enumerate(runs[2:], 2):
        engine.ask(run, blocks(number, 50))
    further = engine.ask(runs[1], blocks(1, 35), arrived_s=1.0)
    assert engine.take() == [further], "the last one in line"


def test_contexts_that_grow_pause_the_youngest_run_between_two_calls_and_it_comes_back_first() -> None:
    engine = Engine()
    old, young, new = Session("old"), Session("young"), Session("new")
    for number, run in enumerate((old, young)):
        call = engine.ask(run, blocks(number, 40), arrived_s=number)
        assert engine.take() == [call]
        engine.end(call)
    longer = engine.ask(old, blocks(0, 60))
    waits = engine.ask(young, blocks(1, 45), arrived_s=1.0)
    smaller = engine.ask(new, blocks(2, 40), arrived_s=2.0)
    assert engine.take() == [longer]
    assert engine.admission.pauses == 1 and engine.admission.used == 60
    engine.end(longer)
    old.end()
    assert engine.take() == [waits], "before a new one, though that is smaller"
    engine.end(waits)
    young.end()
    assert engine.take() == [smaller]


def test_of_new_runs_the_smallest_come_first_and_what_is_shared_counts_once() -> None:
    engine, runs = Engine(), [Session(f"{n}") for n in range(4)]
    held = engine.ask(runs[0], blocks(0, 50))
    assert engine.take() == [held]
    large = engine.ask(runs[1], blocks(1, 28))
    small = engine.ask(runs[2], blocks(2, 20))
    alike = engine.ask(runs[3], blocks(0, 52))
    assert engine.take() == [alike, small]
    engine.end(held)
    assert engine.admission.used == 72, "another run holds it, too"
    runs[0].end()
    runs[2].end()
    engine.end(small)
    assert engine.take() == [large]


def test_early_calls_wait_for_demands_and_go_with_their_run() -> None:
    engine, held, other, third = Engine(), Session("held"), Session("other"), Session("third")
    first = engine.ask(held, blocks(0, 50))
    assert engine.take() == [first]
    early = engine.ask(third, blocks(2, 10), early=True)
    demand = engine.ask(other, blocks(1, 40))
    beside = engine.ask(held, blocks(3, 10), early=True)
    assert engine.take() == [beside], "a demand waits: no other run is admitted early"
    engine.end(first)
    held.end()
    engine.end(beside)
    assert engine.take() == [demand, early]


def test_a_demand_never_waits_for_a_place_that_its_own_early_call_has() -> None:
    engine, run, other = Engine(), Session("run"), Session("other")
    engine.ask(other, blocks(1, 5))
    early = engine.ask(run, blocks(0, 70), early=True)
    assert early in engine.take()
    demand = engine.ask(run, blocks(0, 75))
    assert engine.take() == [demand]


def test_a_call_that_is_given_up_and_a_run_that_ends_leave_nothing() -> None:
    engine, run = Engine(), Session("run")
    call = engine.ask(run, blocks(0, 60), own=7)
    engine.take()
    assert engine.admission.used == 67
    engine.end(call)
    engine.waiting.ended(call)
    assert engine.admission.used == 60
    run.end()
    engine.take()
    assert engine.admission.used == engine.admission.admitted == 0


def test_a_run_that_stays_away_counts_as_paused() -> None:
    engine, away, held, new = Engine(), Session("away"), Session("held"), Session("new")
    for number, run in enumerate((away, held)):
        call = engine.ask(run, blocks(number, 30))
        engine.take()
    engine.end(engine.running[0])
    waits = engine.ask(new, blocks(2, 40))
    assert engine.take() == []
    engine.now_s += AWAY_S
    assert engine.take() == [waits]
    del away, run, call
    gc.collect()
    assert len(engine.admission._paused) == 0, "runs that nobody knows any more are forgotten"


def test_runs_that_read_nothing_again_are_not_held_back() -> None:
    engine = Engine()
    for number in range(6):
        run = Session(f"{number}", program="chain")
        for step in range(2):
            call = engine.ask(run, blocks(10 * number + step, 10))
            engine.take()
            engine.end(call)
        run.end()
    calls = [engine.ask(Session(f"new {n}", program="chain"), blocks(100 + n, 40)) for n in range(4)]
    assert engine.take() == calls
    for call in calls:
        engine.end(call)
    assert engine.admission.used == 0, "they hold nothing between their calls"


def test_calls_of_no_run_hold_nothing_after_their_end_and_are_held_back_beside_runs() -> None:
    engine, run = Engine(), Session("run")
    held = engine.ask(run, blocks(0, 60))
    assert engine.take() == [held]
    lone = engine.ask(None, blocks(1, 40))
    assert engine.take() == []
    engine.end(held)
    assert engine.take() == [lone]
    engine.end(lone)
    assert engine.admission.admitted == 0, "the run was paused: nothing else was served"


def test_who_has_waited_for_long_is_passed_by_no_other_and_gets_the_turn_of_who_has_been_there_for_long() -> None:
    engine, large = Engine(), Session("large")
    residents = [Session("a"), Session("b")]
    for number, resident in enumerate(residents):
        engine.ask(resident, blocks(number, 35))
        engine.take()
    waits = engine.ask(large, blocks(2, 60))
    passing = engine.ask(Session("small"), blocks(3, 5))
    assert engine.take() == [passing]
    engine.end(passing)
    engine.now_s += AGING_S
    late = engine.ask(Session("late"), blocks(4, 5))
    while engine.now_s < 1000.0 + TURN_S:
        before = engine.running[0]
        engine.end(before)
        again = engine.ask(before.whose, before.need.blocks)  # type: ignore[arg-type]
        assert engine.take() == [again], "nobody is admitted before the one that waits"
        engine.now_s += AWAY_S / 2
    for _ in residents:
        before = engine.running[0]
        engine.end(before)
        engine.ask(before.whose, before.need.blocks)  # type: ignore[arg-type]
        begun = engine.take()
    assert begun[0] is waits and late in [*begun, *engine.waiting]


# --- properties

steps = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 60), st.integers(0, 10), st.booleans(), st.integers(0, 20)),
    max_size=60,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(steps, st.booleans(), st.sampled_from((1, 3, LOOKED_AT)))
def test_never_above_the_capacity_but_alone_and_nothing_starves(
    asked: list[tuple[int, int, int, bool, int]], cancels: bool, looked_at: int
) -> None:
    """Runs make calls that grow, share and end as they like; in the end each call has been served, also where few are
    looked at."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(batching, "LOOKED_AT", looked_at)
        _serve(asked, cancels)


def _serve(asked: list[tuple[int, int, int, bool, int]], cancels: bool) -> None:
    engine, runs = Engine(), {n: Session(f"{n}") for n in range(6)}
    begun: list[Call] = []
    longest = dict.fromkeys(runs, 0)
    count = 0
    for number, size, own, ends, later in asked:
        longest[number] = max(longest[number], size)
        engine.ask(runs[number], blocks(number % 4, longest[number]), own, early=ends and later % 2 == 1)
        count += 1
        begun += engine.take()
        _check(engine)
        engine.now_s += later
        if engine.running and ends:
            engine.end(engine.running[0])
        if cancels and later == 7:
            runs[number].end()
            runs[number] = Session(f"{number} again {count}")
    for _ in range(2 * count + 2):
        begun += engine.take()
        _check(engine)
        if engine.running:
            engine.end(engine.running[0])
    assert len(begun) == count and not len(engine.waiting)
    for run in runs.values():
        run.end()
    engine.now_s += AWAY_S
    engine.take()
    assert engine.admission.used == engine.admission.admitted == 0


def _check(engine: Engine) -> None:
    held: Counter[int] = Counter()
    for call in engine.running:
        held.update(call.need.blocks)
    running = len(held) + sum(call.need.own for call in engine.running)
    assert engine.admission.used >= running
    alone = engine.admission.admitted <= 1
    assert alone or engine.admission.used <= PAUSED_ABOVE * engine.capacity
    assert AIM < PAUSED_ABOVE <= 1.0
    assert engine.running or not len(engine.waiting), "it never stands still while something waits"
