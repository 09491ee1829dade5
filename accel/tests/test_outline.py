"""What a batch is going to ask of language models, from what was learnt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from accel.engine.placement import Operator
from accel.graph.ir import Evidence, Graph, Node
from accel.graph.ops import OPS
from accel.run.batches.outline import outline
from accel.text.templates import Ref, Template
from accel.trace.record import CallRecord, Trace


@dataclass
class Config:
    label: str


@dataclass
class Model:
    engine_config: Config = field(default_factory=lambda: Config("large"))


def node(name: str, op: str, *before: str) -> Node:
    parts = [part for other in before for part in (f"after {other}: ", Ref(other, ("content",)))]
    return Node(name, OPS[op], {"t": Template(tuple(parts))}, site=name, evidence=Evidence("verified", always=True))


GRAPH = Graph((
    Node("input", OPS["input"]), node("solve", "decode"), node("look", "searching", "solve"),
    node("revise", "decode", "look"),
))  # fmt: skip


def trace(component: Any, *tokens: tuple[str, int, int]) -> Trace:
    calls = [
        CallRecord(site, "", "invoke", "chat", "decode", component, site, {}, site, number, 0.0, tokens=(read, wrote))
        for number, (site, read, wrote) in enumerate(tokens)
    ]
    return Trace(calls=calls)


def test_every_call_of_the_graph_for_every_input_with_the_tokens_that_it_took() -> None:
    model = Model()
    traces = [
        trace(model, ("solve", 100, 20), ("revise", 200, 40)),
        trace(model, ("solve", 120, 30), ("revise", 200, 60), ("revise", 230, 50)),
    ]
    assert outline(GRAPH, traces, 10) == (
        Operator("solve", "large", 10, 110, 25),
        Operator("revise", "large", 15, 210, 50, ("solve",)),
    )


@pytest.mark.parametrize("inputs", [0, 10])
def test_nothing_where_something_is_unknown(inputs: int) -> None:
    known = trace(Model(), ("solve", 1, 1), ("revise", 1, 1))
    assert outline(GRAPH, [known], 0) == ()
    assert outline(GRAPH, [trace(Model(), ("solve", 1, 1))], inputs) == ()
    assert outline(GRAPH, [], inputs) == ()
    assert outline(GRAPH, [trace(object(), ("solve", 1, 1), ("revise", 1, 1))], inputs) == ()
