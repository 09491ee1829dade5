"""The order of waiting, checked on a model: random calls in random components, nested at random, early ones and the
program's own, on threads and event loops, given up and cancelled at random moments. No time passes in it, so that what
goes on does so without anybody's patience."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel.errors import CallCancelled
from accel.run.waits import gates, waiting
from accel.run.waits.gates import Gate, gate_of
from accel.run.waits.waiting import Party, Woken, begin, end, wake


class Component:
    """`capacity`: how many calls it agreed to."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity


class Loop:
    """An event loop, as far as gates look at it."""

    def __init__(self, running: bool = True, closed: bool = False) -> None:
        self.running, self.closed = running, closed

    def is_running(self) -> bool:
        return self.running

    def is_closed(self) -> bool:
        return self.closed


LOOPS = {"a": Loop(), "b": Loop()}


class ModelCall(Party):
    """One call: as much of `accel.run.calls.call.Call` as gates look at."""

    wanted = False

    def __init__(self, component: Component, outer: ModelCall | None, loop: Any, early: bool) -> None:
        super().__init__(component, outer)
        self.loop = loop
        self.early = early
        self.over = Woken()
        self.dropped = False

    def abandon(self) -> None:
        self.dropped = self.dropped or not self.over.done()
        self.over.wake()
        self.let_go()


Tree = tuple[int, tuple[Any, ...]]
"""A component's number, and the calls made inside a call of it."""


class Actor:
    """A thread or task of the model: makes one call with calls inside it, a step at a time.

    A step that has to wait yields what for; `answers`: an early actor whose result it wants first, like a demand that
    joins it: instead of its own call, or inside it. An early one wants to share it.
    """

    def __init__(self, world: World, tree: Tree, early: bool, loop: Any, sync: bool, answers: Actor | None) -> None:
        self.world, self.early, self.loop, self.sync, self.answers = world, early, loop, sync, answers
        self.root = self._call(tree, None)
        self.steps = self._run(tree, self.root)
        self.waits_for: Woken | None = None
        self.begun = self.done = False

    def _call(self, tree: Tree, outer: ModelCall | None) -> ModelCall:
        return ModelCall(self.world.components[tree[0]], outer, None if self.sync else self.loop, self.early)

    @property
    def blocks(self) -> Any:
        """The loop that stands still while this actor waits."""
        return self.loop if self.sync and not self.early else None

    def _run(self, tree: Tree, call: ModelCall) -> Iterator[Woken | None]:
        if self.early:
            yield from self._early(tree, call)
            wake((call.over,))
        else:
            if self.answers is not None and not tree[1]:
                joined = yield from self._join(self.answers.root, call.outer)
                if joined:
                    return
            yield from self._demand(tree, call)

    def _early(self, tree: Tree, call: ModelCall) -> Iterator[Woken | None]:
        gate = gate_of(call.component)
        if not gate.try_enter_early(cast(Any, call), call.component.capacity):
            call.abandon()
            return
        yield from self._inside(tree, call)

    def _nested(self, tree: Tree, call: ModelCall) -> Iterator[Woken | None]:
        gate = gate_of(call.component)
        while (busy := gate.enter_nested(cast(Any, call), call.component.capacity)) is not None:
            try:
                yield busy.woken
            finally:
                gate.stop_waiting(call, busy.woken)
        yield from self._inside(tree, call)

    def _demand(self, tree: Tree, call: ModelCall) -> Iterator[Woken | None]:
        gate = gate_of(call.component)
        here = None if self.sync else self.loop
        while (found := gate.enter(call, call.component.capacity, here, self.blocks)) is not None:
            for early in found.give_up:
                early.abandon()
            try:
                yield found.woken
            except GeneratorExit:
                gate.leave(call)
                raise
            finally:
                gate.stop_waiting(call, found.woken)
        yield from self._inside(tree, call)

    def _join(self, early: ModelCall, outer: ModelCall | None) -> Iterator[Woken | None]:
        woken = Woken()
        if not begin(outer, lambda: (early,), woken, self.blocks):
            if self.early:
                raise CallCancelled("what it needs waits for it")
            early.abandon()
            return False
        early.over.tell(lambda _: wake((woken,)))
        try:
            yield woken
        except GeneratorExit:
            if not self.early:
                early.abandon()
            raise
        finally:
            end(outer, woken)
        if self.early and early.dropped:
            raise CallCancelled("what it waited for was dropped")
        return not early.dropped

    def _inside(self, tree: Tree, call: ModelCall) -> Iterator[Woken | None]:
        try:
            self.world.check(call.component)
            yield None
            wanted, self.answers = self.answers if self.early or tree[1] else None, None
            if wanted is not None:
                yield from self._join(wanted.root, call)
            for inner in tree[1]:
                nested = self._call(inner, call)
                yield from self._nested(inner, nested) if self.early else self._demand(inner, nested)
        finally:
            gate_of(call.component).leave(call)

    @property
    def may_go_on(self) -> bool:
        if self.waits_for is not None and not self.waits_for.done():
            return False
        return (self.sync and self.early) or self.world.on_thread_of(self.loop) in (None, self)

    def step(self) -> None:
        self.begun = True
        try:
            self.waits_for = next(self.steps)
        except StopIteration:
            self.done = True
        except CallCancelled:
            self.done = True
            self.root.abandon()

    def cancel(self) -> None:
        """Its task is cancelled, or its early call given up."""
        if self.early:
            self.root.abandon()
        elif not self.sync:
            self.steps.close()  # type: ignore[attr-defined]
            self.done, self.waits_for = True, None


class World:
    def __init__(self, capacities: list[int]) -> None:
        self.components = [Component(capacity) for capacity in capacities]
        self.actors: list[Actor] = []

    def on_thread_of(self, loop: Any) -> Actor | None:
        """The plain code that a loop's thread is busy with."""
        return next((a for a in self.actors if a.blocks is loop and a.begun and not a.done), None)

    def check(self, component: Component) -> None:
        """Early calls never add to what a component agreed to."""
        gate = gate_of(component)
        early = [call for call in gate._early if call.loop is None or not call.gone]
        assert not early or len(early) + len(gate._inside) <= component.capacity


TREES = st.recursive(
    st.tuples(st.integers(0, 3), st.just(())),
    lambda inner: st.tuples(st.integers(0, 3), st.lists(inner, max_size=2).map(tuple)),
    max_leaves=5,
)
ACTORS = st.lists(
    st.tuples(TREES, st.booleans(), st.sampled_from(("a", "b")), st.booleans(), st.none() | st.integers(0, 7)),
    min_size=2,
    max_size=8,
)


@pytest.fixture(autouse=True)
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "now_s", lambda: 0.0)


def play(capacities: list[int], actors: Any, seed: int) -> World:
    """Until all are done; AssertionError where nobody can go on."""
    world, chance = World(capacities), random.Random(seed)
    for tree, early, loop, sync, answers in actors:
        asked = world.actors[answers] if answers is not None and answers < len(world.actors) else None
        may_join = asked is not None and asked.early and (asked.sync or (asked.loop is LOOPS[loop] and not sync))
        world.actors.append(Actor(world, tree, early, LOOPS[loop], sync, asked if may_join else None))
    while left := [actor for actor in world.actors if not actor.done]:
        ready = [actor for actor in left if actor.may_go_on]
        assert ready, "everybody waits: " + "; ".join(f"{a.root.component.capacity} early={a.early}" for a in left)
        if chance.random() < 0.1:
            chance.choice(left).cancel()
            continue
        chance.choice(ready).step()
    return world


LEAF = (0, ())


def test_an_early_call_waits_for_a_demand_that_goes_first_and_whose_loop_stands_still_for_it() -> None:
    """Found at random: the demand's turn had come, and its loop waited for the early call."""
    actors = [
        ((0, ((3, ()), (3, ()))), True, "a", True, None), (LEAF, False, "a", False, None),
        ((0, ((3, ()),)), False, "b", False, None), (LEAF, False, "a", False, None), ((3, ()), False, "a", False, None),
        (LEAF, False, "a", True, 0),
    ]  # fmt: skip
    play([3, 1, 1, 2], actors, 47113864)


@settings(max_examples=1500)
@given(st.lists(st.integers(1, 8), min_size=4, max_size=4), ACTORS, st.integers(0, 2**32))
def test_somebody_can_always_go_on(capacities: list[int], actors: Any, seed: int) -> None:
    world = play(capacities, actors, seed)
    for component in world.components:
        gate: Gate = gate_of(component)
        assert not gate._inside and not gate._early and not gate._demands and not gate._others
    assert not waiting._blocked


def test_early_calls_begin_while_there_is_a_place_and_the_programs_own_never_wait_for_each_other() -> None:
    gate, own = gate_of(Component(2)), [Party(Component(2)) for _ in range(4)]
    assert all(gate.enter(party, 2) is None for party in own) and gate.inside == 4
    assert not gate.try_enter_early(Party(Component(2)), 2)
    for party in own[1:]:
        gate.leave(party)
    assert gate.try_enter_early(early := Party(Component(2)), 2)
    assert gate.enter(own[1], 2) is not None, "it waits for the early one"
    gate.leave(early)
    assert gate.enter(own[1], 2) is None and gate.enter(own[2], 2) is None


def test_early_calls_leave_free_what_the_program_takes_at_a_time_once_it_had_to_wait() -> None:
    """Requests beside each other would else wait for each other's early calls. With one at a time it is over."""
    component = Component(4)
    gate, ahead = gate_of(component), [entered_early(component) for _ in range(3)]
    own = [Party(component) for _ in range(2)]
    assert gate.enter(own[0], 4) is None
    found = gate.enter(own[1], 4)
    assert found is not None and found.timeout_s
    for party in ahead:
        gate.leave(party)
    gate.stop_waiting(own[1], found.woken)
    assert gate.enter(own[1], 4) is None
    for party in own:
        gate.leave(party)
    ahead = [entered_early(component) for _ in range(2)]
    assert gate.inside == 2 and not gate.has_room(4)
    assert gate.enter(own[0], 4) is None and gate.enter(own[1], 4) is None, "there is room for the program"
    for party in (*own, *ahead):
        gate.leave(party)
    for _ in range(2 * gates.WINDOW):
        assert gate.enter(own[0], 4) is None
        gate.leave(own[0])
    assert [entered_early(component) for _ in range(4)] and gate.inside == 4


def test_a_program_that_makes_one_call_at_a_time_has_all_places_for_early_ones() -> None:
    """It has waited for an early call of its own, and that was worth it or not: nobody else is there."""
    component = Component(1)
    gate, own, early = gate_of(component), Party(component), entered_early(component)
    found = gate.enter(own, 1)
    assert found is not None and found.timeout_s
    gate.leave(early)
    gate.stop_waiting(own, found.woken)
    assert gate.enter(own, 1) is None
    gate.leave(own)
    assert gate.has_room(1)


def test_a_call_inside_another_takes_its_place() -> None:
    """Three early calls fill a component for three, and each calls it again."""
    trees = [((0, ((0, ()),)), True, "a", False, None)] * 3
    for seed in range(50):
        world = play([3, 1, 1, 1], trees, seed)
        assert all(actor.done for actor in world.actors)


def test_two_early_calls_that_want_each_others_places_do_not_wait_for_each_other() -> None:
    """And the program's own call, which wants both, does not wait for either of them for ever."""
    circle = [((0, ((1, ()),)), True, "a", True, None), ((1, ((0, ()),)), True, "a", True, None)]
    for seed in range(200):
        play([1, 1, 1, 1], [*circle, ((0, ((1, ()),)), False, "a", True, None)], seed)


# --- one by one


def entered_early(component: Component, loop: Any = None) -> ModelCall:
    call = ModelCall(component, None, loop, early=True)
    assert gate_of(component).try_enter_early(cast(Any, call), component.capacity)
    return call


def test_an_early_call_that_the_program_waits_for_is_borne_with_and_never_given_up() -> None:
    component = Component(1)
    joined = entered_early(component)
    joined.wanted = True
    found = gate_of(component).enter(Party(component), 1)
    assert found is not None and not found.give_up and found.timeout_s
    gate_of(component).leave(joined)
    assert found.woken.done()


def test_nobody_waits_for_an_early_call_that_waits_although_the_program_waits_for_it() -> None:
    component, other = Component(1), Component(1)
    joined = entered_early(component)
    joined.wanted = True
    assert begin(joined, lambda: (Party(other),), Woken())
    found = gate_of(component).enter(Party(component), 1)
    assert found is not None and not found.give_up and found.timeout_s == 0.0


@pytest.mark.parametrize("loop", [Loop(running=False, closed=True), Loop(running=False)], ids=["closed", "stopped"])
def test_nobody_waits_for_a_coroutine_whose_loop_does_not_run(loop: Loop) -> None:
    component = Component(1)
    entered_early(component, loop)
    party = Party(component)
    found = gate_of(component).enter(party, 1)
    assert found is None or found.timeout_s == 0.0
    gate_of(component).leave(party)
    after = ModelCall(component, None, None, early=True)
    assert gate_of(component).try_enter_early(cast(Any, after), 1) is loop.closed, "a closed loop gives its places back"


def test_patience_is_bounded_and_grows_with_what_calls_take() -> None:
    class Kind:
        pass

    assert waiting.patience_s(Kind) == waiting.UNSEEN_S
    waiting.took(Kind, 0.001)
    assert waiting.patience_s(Kind) == waiting.LEAST_S
    waiting.took(Kind, 10.0)
    assert waiting.patience_s(Kind) == 80.0
    waiting.took(Kind, 1e6)
    assert waiting.patience_s(Kind) == waiting.MOST_S
