"""Which runs are remembered: few, of every shape, and none of a program that has changed since."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from accel.graph.ir import Node
from accel.graph.ops import OPS
from accel.learn.lessons import lesson
from accel.learn.memory import MAX_CALLS, MAX_TRACES, Memory, asked_for
from accel.tests.random_programs import Host, words
from accel.trace.record import Trace


def ran(number: int, *kinds: str, calls: int = 1) -> Trace:
    """A run about its own thing that asks a question of each kind at one site, and one at another."""
    host = Host({"q": words(number, 4)})
    host.ask("same", f"What of {host.trace.input['q']}", "fine")
    for kind in kinds:
        for _ in range(calls):
            host.ask("site", f"{kind} on {host.trace.input['q']}", "fine")
    return host.done()


def remembered(runs: Sequence[Trace]) -> tuple[Memory, list[bool]]:
    """After a lesson from each run, and whether the program was found to have changed."""
    memory, changed = Memory(), []
    for run in runs:
        memory.add(run)
        changed.append(memory.changed(lesson(memory.traces)))
    return memory, changed


def kinds(memory: Memory) -> list[str]:
    return [trace.calls[-1].input.split(" on ")[0] for trace in memory.traces]


@settings(max_examples=25)
@given(st.lists(st.sampled_from("AAAAB"), min_size=1, max_size=20))
def test_of_the_most_frequent_shape_the_oldest_makes_room(asked: list[str]) -> None:
    memory = Memory()
    rare = ran(99, "B")
    for number, kind in enumerate(["A", *asked]):
        memory.add(rare if number == 1 else ran(number, kind))
        memory.changed(lesson(memory.traces))
        assert len(memory.traces) <= MAX_TRACES
    assert rare in memory.traces or "B" in kinds(memory)


def test_a_run_about_the_same_takes_the_place_of_the_one_before() -> None:
    first, again, other = ran(0, "A"), ran(0, "A"), ran(1, "A")
    memory = Memory()
    for run in (first, other, again):
        memory.add(run)
    assert memory.traces == [other, again]


def test_long_runs_are_few() -> None:
    memory = Memory()
    for number in range(4):
        memory.add(ran(number, "A", calls=MAX_CALLS // 3))
    assert len(memory.traces) == 2 and memory.calls <= MAX_CALLS


def test_what_older_runs_did_is_forgotten_after_two_that_do_otherwise() -> None:
    memory, changed = remembered([*(ran(n, "Old") for n in range(3)), *(ran(n, "New") for n in range(3, 6))])
    assert changed == [False, False, False, False, True, False]
    assert kinds(memory) == ["New"] * 3


def test_a_program_that_goes_back_and_forth_has_not_changed() -> None:
    """The first time it looks like that; once the old way is back, both are kept."""
    old, new = [ran(n, "Old") for n in range(9)], [ran(n, "New") for n in range(10, 19)]
    memory, changed = remembered([*old[:2], *new[:2], *old[2:4], *new[2:4], *old[4:6], *new[4:6]])
    assert sum(changed) == 1
    assert {"Old", "New"} <= set(kinds(memory))


def test_what_is_done_beside_the_old_is_no_change() -> None:
    _, changed = remembered([*(ran(n, "Old") for n in range(3)), *(ran(n, "New", "Old") for n in range(3, 7))])
    assert not any(changed)


def test_a_run_in_between_that_was_explained_speaks_against_a_change() -> None:
    memory = Memory()
    for number in range(2):
        memory.add(ran(number, "Old"))
    memory.changed(lesson(memory.traces))
    memory.add(ran(2, "New"))
    memory.changed(lesson(memory.traces))
    memory.explained()
    memory.add(ran(3, "New"))
    assert not memory.changed(lesson(memory.traces))
    assert kinds(memory) == ["Old", "Old", "New", "New"]


def test_nodes_of_older_lessons_are_let_go() -> None:
    node = Node("ask", OPS["decode"], "a question", "site")
    assert asked_for(node) == asked_for(replace(node, name="ask again"))
    gone = weakref.ref(node)
    del node
    gc.collect()
    assert gone() is None
