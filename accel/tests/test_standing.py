"""How often a call was made is counted in runs: no more of them than there were, whoever else asks the same."""

from __future__ import annotations

from accel.graph.ir import Evidence, Graph, Node
from accel.graph.ops import OPS
from accel.learn.learner import Lesson
from accel.run.chances import Chances
from accel.text.templates import Ref, Template


def node(name: str) -> Node:
    tree = {"t": Template((Ref("input", ("q",)),))}
    return Node(name, OPS["decode"], tree, site="here", evidence=Evidence("verified", always=True))


def test_nodes_that_ask_the_same_are_counted_once_a_run() -> None:
    graph = Graph((Node("input", OPS["input"]), node("first"), node("second")), runs=2)
    chances = Chances()
    shapes = [frozenset(("first", "second")), frozenset(("second",))]
    chances.learnt(Lesson(graph, shapes, 1.0, {}), 2)
    for made in ({"first": 1, "second": 1}, {"first": 1, "second": 0}, {"first": 0, "second": 0}):
        chances.note(graph, made)
    assert str(chances.standing(graph.by_name["first"])) == "since run 2, made in 4 of 5 runs"
