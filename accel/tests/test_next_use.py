"""Steps to next use: how many calls later a prompt of the run begins as this one does."""

from __future__ import annotations

from typing import Any

import pytest

from accel.graph.ir import Evidence, Graph, Level, Node
from accel.graph.ops import OPS
from accel.graph.passes.next_use import next_use
from accel.text.steps import STAR, Extract
from accel.text.templates import Part, Ref, Template

INPUT = Node("input", OPS["input"])
DOCUMENT, QUESTION = Ref("input", ("document",)), Ref("input", ("question",))


def asks(name: str, *parts: Part, **fields: Any) -> Node:
    tree = {"messages": [{"role": "user", "content": Template(parts)}], "kwargs": {"max_tokens": 9}}
    return Node(name, OPS["decode"], tree, evidence=Evidence("verified", always=True), site=name, **fields)


def said(name: str) -> Ref:
    return Ref(name, ("content",))


def steps(*nodes: Node) -> dict[str, int]:
    return {node.name: node.schedule.next_use for node in next_use(Graph((INPUT, *nodes)), {}).nodes[1:]}


def test_a_chain_about_one_document_uses_it_in_each_next_call() -> None:
    case = ("Document: ", DOCUMENT, "\n")
    found = steps(
        asks("draft", *case, "Answer."),
        asks("check", *case, "Check ", said("draft")),
        asks("answer", *case, "Answer after ", said("check")),
    )
    assert found == {"draft": 1, "check": 1, "answer": 0}


def test_what_waits_for_several_calls_is_as_far_as_the_longest_path_to_it() -> None:
    """An AND-join: the last call needs both the first one's answer and what two others make of another one's."""
    found = steps(
        asks("read", DOCUMENT, " What does it say?"),
        asks("look", QUESTION, " What is asked?"),
        asks("search", "Search for ", said("look")),
        asks("sum", DOCUMENT, " Sum up ", said("read"), said("search")),
    )
    assert found == {"read": 2, "look": 0, "search": 0, "sum": 0}


def test_of_several_that_share_a_beginning_the_nearest_counts() -> None:
    """OR-branches: either of two calls may come next."""
    found = steps(
        asks("first", DOCUMENT, " Which?"),
        asks("other", "Think of ", said("first")),
        asks("far", DOCUMENT, " After ", said("other")),
        asks("near", DOCUMENT, " After ", said("first")),
    )
    assert found == {"first": 1, "other": 0, "far": 0, "near": 1}


@pytest.mark.parametrize(
    "parts", [("Answer ", QUESTION), ("Another document: ", DOCUMENT), (Ref("first", ("content",)), DOCUMENT)]
)
def test_instructions_alone_and_other_values_are_no_beginning_in_common(parts: tuple[Part, ...]) -> None:
    assert steps(asks("first", "Answer ", DOCUMENT), asks("second", *parts, said("first")))["first"] == 0


def test_elements_have_beginnings_of_their_own() -> None:
    line = Ref("list", ("content", Extract("lines"), STAR))
    level = {"level": Level(line), "many": True}
    graph = (
        asks("list", "List what ", DOCUMENT, " is about"),
        asks("each", line, " Tell.", **level),
        asks("again", line, " Again ", Ref("each", (STAR, "content")), **level),
    )
    assert steps(*graph) == {"list": 0, "each": 0, "again": 0}


def test_nothing_to_know_is_the_same_graph() -> None:
    graph = Graph((INPUT, asks("only", DOCUMENT)))
    assert next_use(graph, {}) is graph
