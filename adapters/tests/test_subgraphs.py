"""What nodes of graphs inside graphs computed is known to the calls after them, at every depth."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import accel
from accel import accelerate
from accel.run.scope import scope
from adapters.tests import subgraph_programs as programs
from adapters.tests.core_fakes import WAIT_S, Chat, World


class Patient(Chat):
    """Inside a call of the program's it waits until all that may be issued is, and done."""

    def _result(self, messages: Any, kwargs: dict[str, Any]) -> Any:
        here, world = scope.get(), self._world
        if here is not None and not here.early:
            assert accel.settle()
            with world.cond:
                issued = here.run.counts.issued
                assert world.cond.wait_for(lambda: sum(c.early and c.over for c in world.calls) >= issued, WAIT_S)
        return super()._result(messages, kwargs)


accel.register(Patient, pure=True, local=True, concurrency=8)


def said(prompt: str) -> str:
    """Nothing of the prompt's, and something else for every prompt."""
    words = "amber birch copper delta ember fjord grove haven inlet jetty knoll ledge marsh north ochre pearl".split()
    digest = hashlib.sha256(prompt.encode()).digest()
    return " ".join(words[byte % 16] + words[byte // 16] for byte in digest[:6]).capitalize() + "."


def early(fast: Any) -> list[str]:
    """What early calls of the last run answered."""
    return [as_key(call.input) for call in fast.plan.last.calls if call.retired]


def as_key(tree: Any) -> str:
    return " ".join(str(message["content"]) for message in tree["messages"])


def compared(build: Callable[[Any], Any], inputs: Sequence[Any], ask: Callable[[Any, Any], Any]) -> list[int]:
    """How many calls of each request were answered early; all results are the plain program's."""
    plain, world = build(Chat(World(answer=said))), World(answer=said)
    fast = accelerate(build(Patient(world)))
    counts = []
    for value in inputs:
        world.forget()
        assert ask(fast, value) == ask(plain, value)
        assert accel.settle()
        counts.append(len(early(fast)))
    return counts


def invoke(graph: Any, value: Any) -> Any:
    return plain_of(graph.invoke(value))


def ainvoke(graph: Any, value: Any) -> Any:
    return plain_of(asyncio.run(graph.ainvoke(value)))


def plain_of(state: Any) -> Any:
    return {key: value for key, value in state.items() if key != "messages"}


@pytest.mark.parametrize(
    ("build", "inputs", "least"),
    [
        (programs.shared, programs.QUESTIONS, 2),
        (programs.called, programs.TOPICS, 4),
        (programs.deep, programs.QUESTIONS, 2),
    ],
)
def test_calls_after_a_node_inside(build: Any, inputs: Any, least: int) -> None:
    counts = compared(build, inputs, invoke)
    assert min(counts[3:]) == least


def test_a_graph_per_send() -> None:
    counts = compared(programs.sent, programs.PANELS, invoke)
    assert min(counts[3:]) >= 2


def test_coroutines_per_send() -> None:
    counts = compared(lambda llm: programs.sent(llm, awaited=True), programs.PANELS, ainvoke)
    assert min(counts[3:]) >= 2
