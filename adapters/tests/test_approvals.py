"""Programs that `interrupt()` pauses: what comes before a pause is early, what comes after it once it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

import accel
from accel import accelerate
from adapters.tests.approval_programs import SHAPES, TOPICS, Shape, SqliteSaver, saying
from adapters.tests.core_fakes import World


def streamed(graph: Any, value: Any, config: Any) -> list[Any]:
    return list(graph.stream(value, config, stream_mode=["updates", "values"]))


def awaited(graph: Any, value: Any, config: Any) -> Any:
    return asyncio.run(graph.ainvoke(value, config))


WAYS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "invoke": lambda graph, value, config: graph.invoke(value, config),
    "stream": streamed,
    "ainvoke": awaited,
}


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

    def turn(self, way: str, value: Any, thread: Any) -> Any:
        """What a turn gives, leaves behind and asks; for runs that go side by side, in any order."""
        self.world.forget()
        self.asked.clear()
        found = WAYS[way](self.graph, value, thread)
        assert not self.fast or accel.settle()
        states = [
            (state.values, state.next, sorted(str(each.value) for task in state.tasks for each in task.interrupts))
            for state in self.graph.get_state_history(thread)
        ]
        return None if self.shape.beside else without_ids(found), states, sorted(self.asked), sorted(self.world.texts())


def without_ids(found: Any) -> Any:
    """Interrupts by what they ask; their ids are made of those of their runs."""
    if isinstance(found, dict):
        return {key: without_ids(value) for key, value in found.items()}
    if isinstance(found, tuple | list):
        parts = [without_ids(each) for each in found]
        return sorted(parts, key=repr) if parts and all(isinstance(each, str) for each in parts) else parts
    return found.value if hasattr(found, "interrupts") or hasattr(found, "resumable") or hasattr(found, "id") else found


def expect(world: World, shape: Shape, turn: int) -> None:
    world.hooks = {
        node: (lambda texts=texts: [world.wait_early(text, over=False) for text in texts])  # type: ignore[misc]
        for (number, node), texts in shape.early.items()
        if number == turn
    }


@pytest.mark.parametrize("saver", ["memory", "sqlite"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", SHAPES)
def test_a_program_that_asks_a_person(kind: str, way: str, saver: str, tmp_path: Path) -> None:
    """Each turn gives what it gives unmodified, leaves behind the same, and no model is asked anything more, before
    somebody answers or later. From the third request on, what the shape names is early."""
    if saver == "sqlite" and way != "invoke":
        pytest.skip("a checkpointer on disk matters to how state is kept, which is the same for every way to call")
    shape = SHAPES[kind]
    savers = [SqliteSaver(tmp_path / f"{n}.db") if saver == "sqlite" else InMemorySaver() for n in range(2)]
    plain, fast = Side(shape, savers[0], False), Side(shape, savers[1], True)
    for number, topic in enumerate(TOPICS):
        thread: Any = {"configurable": {"thread_id": str(number)}}
        for turn in range(1 + len(shape.turns)):
            found = []
            for side in (plain, fast):
                given = shape.given(topic)
                if turn:
                    given = shape.turns[turn - 1](topic, side.graph.get_state(thread).interrupts)
                if side.fast and number >= 2:
                    expect(side.world, shape, turn)
                found.append(side.turn(way, given, thread))
            assert found[0] == found[1], (number, turn)
        assert not fast.graph.get_state(thread).next
    assert fast.graph.report().wasted == 0
