"""The work for a call does not depend on how many calls the run makes: lines of Accel's own, counted and not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph

import accel
from accel.graph.ir import Node
from accel.process import threads
from adapters.tests.core_fakes import Chat, State, World, chain

ACCEL = str(Path(accel.__file__).parent)
LEARNT_FROM = 12
SMALL, FACTOR = 60, 4
SLACK = 1.15
"""What is done once per run weighs more in the small one, so that growth is below the factor; sorting adds a little."""


class Lines:
    """How many lines of Accel's were executed, each pass of a loop counted."""

    count = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(before)

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(ACCEL) else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        self.count += event == "line"
        return self._line


def loop(model: Chat) -> Any:
    return chain(("a", lambda state: {"a": len([model.invoke(f"Write a note on {item}.") for item in state["q"]])}))


def unpredictable(model: Chat) -> Any:
    draw = Random(1)

    def a(state: State) -> State:
        return {"a": len([model.invoke(f"Write note {draw.random()} on {item}.") for item in state["q"]])}

    return chain(("a", a))


def steps_and_summary(model: Chat) -> Any:
    def a(state: State) -> State:
        notes = [model.invoke(f"Write a note on {item}.").text for item in state["q"]]
        marks = [model.invoke(f"Is this note any good? {note}").text for note in notes]
        return {"a": model.invoke("Count the good ones:\n" + "\n".join(marks)).text}

    return chain(("a", a))


def interleaved(model: Chat) -> Any:
    def a(state: State) -> State:
        for item in state["q"]:
            model.invoke(f"Is this note any good? {model.invoke(f'Write a note on {item}.').text}")
        return {"a": ""}

    return chain(("a", a))


def visits(model: Chat) -> Any:
    def a(state: State) -> State:
        return {"a": model.invoke(f"Write a note on number {state['b']}.").text, "b": state["b"] + 1}

    builder = StateGraph(State)
    builder.add_node("a", a)
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", lambda state: "a" if state["b"] < state["c"] else END)
    return builder.compile()


def unbounded(node: Node) -> Node:
    """Longer runs than were seen are still predicted, however soon a call follows on what it needs."""
    level = replace(node.level, seen=None) if node.level is not None else None
    return replace(node, level=level).proven(at_once=False)


def value(program: Callable[[Chat], Any], size: int, number: int) -> State:
    if program is visits:  # a list would be recorded as a whole with every visit
        return {"b": number * 1000, "c": number * 1000 + size}
    return {"q": [f"item {at:04} of run {number}" for at in range(size)]}


def lines(program: Callable[[Chat], Any], size: int, budget: accel.Budget) -> tuple[int, int]:
    """How many lines a run of this size takes, and how many calls were early."""
    fast = accel.accelerate(program(Chat(World())), budget=budget)
    for number in range(2):
        fast.invoke(value(program, LEARNT_FROM, number), {"recursion_limit": 1000})
    plan = fast.plan
    plan.follow(plan.learnt.map(unbounded))
    found: list[Any] = []
    counter = Lines()
    with pytest.MonkeyPatch.context() as patch, counter.counted():
        patch.setattr("accel.run.run.learn_from", lambda _, run: found.append(run))
        patch.setattr("accel.run.demands.opening.learn_within", lambda *_: None)
        fast.invoke(value(program, size, 7), {"recursion_limit": 1000})
    return counter.count, found[0].counts.retired


@pytest.mark.parametrize("most", [10_000, 10], ids=["early", "held back"])
@pytest.mark.parametrize("program", [loop, unpredictable, steps_and_summary, interleaved, visits])
def test_work_grows_with_the_run_and_no_faster(program: Callable[[Chat], Any], most: int) -> None:
    budget = accel.Budget(max_issued=most)
    with threads.inline():
        small, early = lines(program, SMALL, budget)
        large, more = lines(program, SMALL * FACTOR, budget)
    if program is not unpredictable:
        assert early and more >= early, "nothing was predicted: this would show nothing"
    assert large < small * FACTOR * SLACK, f"{small} lines for {SMALL} calls, {large} for {SMALL * FACTOR}"
