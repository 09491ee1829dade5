"""Programs that `interrupt()` pauses: what comes before a pause is early, what comes after it once it is answered."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

import accel
from accel import accelerate
from accel.graph.rules import AT_ONCE
from accel.learn import view
from accel_langgraph.testing.normal import plain
from adapters.tests.approval_programs import (
    OTHER,
    SHAPES,
    TOPICS,
    Shape,
    SqliteSaver,
    awaited,
    expect,
    saying,
    told_of,
)  # fmt: skip
from adapters.tests.core_fakes import World


def streamed(graph: Any, value: Any, config: Any) -> list[Any]:
    return list(graph.stream(value, config, stream_mode=["updates", "values"]))


def in_a_loop(graph: Any, value: Any, config: Any) -> Any:
    return asyncio.run(graph.ainvoke(value, config))


WAYS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "invoke": lambda graph, value, config: graph.invoke(value, config),
    "stream": streamed,
    "ainvoke": in_a_loop,
}


def thread(topic: str) -> Any:
    return {"configurable": {"thread_id": topic}}


@dataclass
class Side:
    """A program, unmodified or accelerated, and what its conversations come to."""

    shape: Shape
    saver: Any
    fast: bool
    world: World = field(default_factory=World)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        graph = self.shape.build(self.world, saying(self.world, self.asked), self.saver)
        self.graph = accelerate(graph) if self.fast else graph

    def turn(self, way: str, value: Any, config: Any) -> Any:
        """What a turn gives, leaves behind, asks, and what reaches the model; but for ids that are made anew."""
        self.world.forget()
        self.asked.clear()
        found = WAYS[way](self.graph, value, config)
        assert not self.fast or accel.settle()
        states = [
            (
                plain(state.values),
                state.next,
                sorted(str(each.value) for task in state.tasks for each in task.interrupts),
            )
            for state in self.graph.get_state_history(config)
        ]
        asked = sorted(self.asked) if self.shape.beside else list(self.asked)
        return None if self.shape.beside else plain(found), states, asked, sorted(self.world.texts())


@pytest.mark.parametrize(("way", "saver"), [*((way, "memory") for way in WAYS), ("invoke", "sqlite")])
@pytest.mark.parametrize("kind", SHAPES)
def test_a_program_that_asks_a_person(kind: str, way: str, saver: str, tmp_path: Path) -> None:
    """Each turn gives what it gives unmodified, leaves behind the same, and no model is asked anything more, before
    somebody answers or later. From the third request on, what the shape names is early."""
    shape = SHAPES[kind]
    savers = [SqliteSaver(tmp_path / f"{n}.db") if saver == "sqlite" else InMemorySaver() for n in range(2)]
    slow, fast = Side(shape, savers[0], False), Side(shape, savers[1], True)
    for number, topic in enumerate(TOPICS):
        for turn in range(1 + len(shape.turns)):
            if turn and not slow.graph.get_state(thread(topic)).next:
                break  # nobody was asked
            found = []
            for side in (slow, fast):
                given = shape.given(topic)
                if turn:
                    given = shape.turns[turn - 1](topic, side.graph.get_state(thread(topic)).interrupts)
                if side.fast and number >= 2:
                    expect(side.world, shape, turn)
                found.append(side.turn(way, given, thread(topic)))
            assert found[0] == found[1], (number, turn)
        assert not fast.graph.get_state(thread(topic)).next
    assert fast.graph.report().wasted == 0


@pytest.mark.parametrize("kind", ["between calls", "in a subgraph", "in an entrypoint"])
def test_another_process_goes_on_where_one_has_paused(kind: str, tmp_path: Path) -> None:
    """It is as early as the one that learnt, and issues as little past a pause, although it has never seen one."""
    kept, plan, shape = tmp_path / "kept.db", tmp_path / "plan.json", SHAPES[kind]
    saver = SqliteSaver(kept)
    slow, fast = Side(shape, InMemorySaver(), False), Side(shape, saver, True)
    for topic in TOPICS:
        for turn in range(1 if topic == TOPICS[-1] else 2):
            fast.turn("invoke", shape.turns[0](topic, []) if turn else shape.given(topic), thread(topic))
    fast.graph.save_plan(str(plan))
    saver.close()
    called = [sys.executable, "-m", "adapters.tests.approval_programs", str(kept), str(plan), kind]
    done = subprocess.run(called, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    slow.turn("invoke", shape.given(TOPICS[-1]), thread(TOPICS[-1]))
    expected = []
    for topic, given in ((TOPICS[-1], shape.turns[0](TOPICS[-1], [])), (OTHER, shape.given(OTHER))):
        slow.world.forget()
        expected.append([told_of(slow.graph.invoke(given, thread(topic))), sorted(slow.world.texts())])
    assert json.loads(done.stdout) == expected


async def test_coroutines_that_ask_a_person() -> None:
    slow, fast = World(), World()
    early: dict[str, tuple[str, ...]] = {}
    graph, quick = awaited(slow, InMemorySaver(), {}), accelerate(awaited(fast, InMemorySaver(), early))
    for number, topic in enumerate(TOPICS):
        for turn, given in enumerate(({"q": topic}, Command(resume=f"reader {topic[:4]}"))):
            slow.forget()
            fast.forget()
            early |= {"plan": ("Sum up", "Name"), "approve": ("Write", "Sign") if turn else ()} if number >= 2 else {}
            expected = await graph.ainvoke(given, thread(topic))
            assert plain(await quick.ainvoke(given, thread(topic))) == plain(expected)
            assert await asyncio.to_thread(accel.settle)
            assert sorted(fast.texts()) == sorted(slow.texts())


@pytest.mark.parametrize("anew", [False, True], ids=["and goes on", "and begins anew"])
def test_a_state_that_is_edited_while_the_program_waits(anew: bool) -> None:
    """What follows goes by what is there then; so it does where the answer is to an earlier question."""
    shape = SHAPES["between calls"]
    slow, fast = Side(shape, InMemorySaver(), False), Side(shape, InMemorySaver(), True)
    for number, topic in enumerate(TOPICS):
        found = []
        for side in (slow, fast):
            side.world.hooks = {}
            side.turn("invoke", shape.given(topic), thread(topic))
            edited = side.graph.update_state(thread(topic), {"q": f"edited {topic}"}, as_node="plan")
            config = thread(topic) if not anew else {"configurable": {**edited["configurable"]}}
            asked = side.turn("invoke", None, config)
            if side.fast and number >= 2:
                expect(side.world, shape, 1)
            found.append([asked, side.turn("invoke", shape.turns[0](topic, []), thread(topic))])
        assert found[0] == found[1]
    assert fast.graph.report().wasted == 0


def test_the_report_says_of_calls_after_a_pause_what_of_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of both parts of the last conversation."""
    monkeypatch.setattr(view, "AT_ONCE_S", 60.0)  # on a busy machine, too
    shape = SHAPES["between calls"]
    fast = Side(shape, InMemorySaver(), True)
    for number, topic in enumerate(TOPICS):
        for turn, given in enumerate((shape.given(topic), shape.turns[0](topic, []))):
            if number >= 2:
                expect(fast.world, shape, turn)
            fast.turn("invoke", given, thread(topic))
    report = fast.graph.report()
    (asked,), (answered,) = report.parts
    assert (asked.nodes, asked.made, asked.early) == (("plan", "approve"), 3, 3)
    assert (answered.nodes, answered.made, answered.early) == (("approve", "judge"), 5, 3)
    assert {late.rule for late in answered.late} == {AT_ONCE.name} and asked.took_s > 0.0
