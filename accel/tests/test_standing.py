"""How often a call was made is counted in runs: no more of them than there were, whoever else asks the same."""

from __future__ import annotations

from accel.graph.ir import Evidence, Graph, Node
from accel.graph.ops import OPS
from accel.learn.lessons import Lesson
from accel.run.gains.chances import Chances
from accel.text.templates import Ref, Template


def node(name: str) -> Node:
    tree = {"t": Template((Ref("input", ("q",)),))}
    return Node(name, OPS["decode"], tree, site="here", evidence=Evidence("verified", always=True))


def test_nodes_that_ask_the_same_are_counted_once_a_run() -> None:
    graph = Graph((Node("input", OPS["input"]), node("first"), node("second")), runs=2)
    chances = Chances()
    shapes = [frozenset(("first", "second")), frozenset(("second",))]
    chances.learnt(Lesson(graph, shapes, 1.0, {}), 2, [{"here": 2}, {"here": 1}])
    for made in ({"first": 1, "second": 1}, {"first": 1, "second": 0}, {"first": 0, "second": 0}):
        chances.note(graph, made, {"here": 2})
    assert str(chances.standing(graph.by_name["first"])) == "since run 2, made in 4 of 5 runs"


def test_of_the_calls_at_a_site_a_node_makes_its_share() -> None:
    """What the second turn of a conversation asks is another node's, although it asks in the same place."""
    graph = Graph((Node("input", OPS["input"]), node("first")), runs=2)
    chances, first = Chances(), graph.by_name["first"]
    chances.learnt(Lesson(graph, [frozenset(("first",))] * 2, 1.0, {}), 2, [{"here": 2}, {"here": 3}])
    assert chances.share(first) == 1.0
    for sites in ({"there": 2}, {"here": 1}):
        chances.note(graph, {"first": 0}, sites)
        assert chances.share(first) == 1.0, "it did not come to the site, or not that far"
    for _ in range(2):
        chances.note(graph, {"first": 0}, {"here": 2})
    assert chances.share(first) == 3 / 6
