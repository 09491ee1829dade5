"""In which contexts a node may be issued, also while a lesson takes it out of the graph that a run still follows."""

from __future__ import annotations

from accel.ir import Graph, Node
from accel.learn.contexts import Contexts
from accel.ops import OPS
from accel.templates import Ref, Template

INPUT = Node("input", OPS["input"])


def asking(text: str, name: str = "a.decode") -> Node:
    tree = {"t": Template((text, Ref("input", ("q",))))}
    return Node(name, OPS["decode"], tree, "site", confidence="verified")


def learnt(*nodes: Node) -> Contexts:
    contexts = Contexts()
    graph = Graph((INPUT, *nodes))
    contexts.learnt(graph)
    contexts.note(graph, [node.name for node in nodes], "ann")
    return contexts


def test_what_one_context_has_shown_is_for_that_one_and_what_two_have_for_all() -> None:
    node = asking("Explain ")
    contexts = learnt(node)
    assert contexts.allow(node, "ann") and not contexts.allow(node, "ben")
    contexts.note(Graph((INPUT, node)), [node.name], "eve")
    assert contexts.allow(node, "ben")


def test_what_no_finished_run_has_taught_is_the_context_s_own() -> None:
    assert learnt().allow(asking("Explain "), "ben")


def test_a_node_that_a_later_lesson_left_out_is_for_nobody() -> None:
    node = asking("Explain ")
    contexts = learnt(node)
    contexts.learnt(Graph((INPUT,)))
    assert not contexts.allow(node, "ben")
    assert contexts.allow(asking("Another loop of the run's own: "), "ben")


def test_a_node_that_a_later_lesson_replaced_is_for_nobody() -> None:
    contexts = learnt(asking("Explain "))
    after = Graph((INPUT, asking("Explain briefly ")))
    contexts.learnt(after)
    contexts.note(after, ["a.decode"], "ann")
    assert not contexts.allow(asking("Explain "), "ann") and contexts.allow(asking("Explain briefly "), "ann")
