"""In which contexts a node may be issued, also while a lesson takes it out of the graph that a run still follows."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from accel.graph.ir import Evidence, Graph, Node
from accel.graph.ops import OPS
from accel.learn.contexts.contexts import Contexts
from accel.learn.contexts.seen_in import MAX_DIMENSIONS, SeenIn
from accel.text.templates import Ref, Template
from accel.trace.record import Trace

INPUT = Node("input", OPS["input"])
ANN, BEN, EVE, JOE = (Trace(ambient={"tenant": f"={name}"}) for name in ("ann", "ben", "eve", "joe"))


def asking(text: str, name: str = "a.decode") -> Node:
    tree = {"t": Template((text, Ref("input", ("q",))))}
    return Node(name, OPS["decode"], tree, "site", evidence=Evidence("verified"))


def learnt(*nodes: Node, foreign: bool = False, **more: Any) -> Contexts:
    contexts = Contexts()
    graph = Graph((INPUT, *nodes))
    contexts.learnt(graph)
    contexts.note(graph, [node.name for node in nodes], ANN, lambda node: foreign)
    return contexts


def also(contexts: Contexts, node: Node, context: Trace) -> None:
    contexts.note(Graph((INPUT, node)), [node.name], context)


def allowed(contexts: Contexts, node: Node, context: Trace) -> bool:
    return not contexts.refuses(node, context)


def test_what_one_context_has_shown_is_for_that_one_and_what_two_have_for_all() -> None:
    node = asking("Explain ")
    contexts = learnt(node)
    assert allowed(contexts, node, ANN) and not allowed(contexts, node, BEN)
    also(contexts, node, EVE)
    assert allowed(contexts, node, BEN)


def test_the_reason_names_the_dimension_and_the_remedy() -> None:
    node = asking("Explain ")
    reason = str(learnt(node).refuses(node, BEN))
    assert "tenant" in reason and "plan_scope" in reason


def seen_in(*contexts: dict[str, str]) -> SeenIn:
    found = SeenIn()
    for context in contexts:
        found.note(context)
    return found


@pytest.mark.parametrize(
    ("seen", "run", "exactly", "differs"),
    [
        ([{"t": "=a", "r": "=1"}, {"t": "=a", "r": "=2"}], {"t": "=a", "r": "=3"}, False, None),
        ([{"t": "=a", "r": "=1"}, {"t": "=a", "r": "=2"}], {"t": "=b", "r": "=3"}, False, "t"),
        ([{"t": "=a", "r": "=1"}, {"t": "=b", "r": "=2"}], {"t": "=c", "r": "=3"}, False, None),
        ([{"t": "=a", "r": "=1"}, {"t": "=b", "r": "=2"}], {"t": "=b", "r": "=3"}, True, "r"),
        ([{"t": "=a", "r": "=1"}, {"t": "=b", "r": "=2"}], {"t": "=b", "r": "=1"}, True, None),
        ([{"t": "=a"}], {"t": "=a", "new": "=1"}, False, "new"),
        ([{"t": "=a"}, {}], {"t": "=b"}, False, None),
        ([{}, {}], {"t": "=a"}, False, "t"),
        ([{"o": "~1"}, {"o": "~2"}], {"o": "~2"}, False, None),
        ([{"o": "~1"}, {"o": "~2"}], {"o": "~3"}, False, "o"),
        ([{}], {}, True, None),
        ([], {}, False, "whatever comes in beside the input"),
    ],
)
def test_every_dimension_is_judged_by_itself(
    seen: list[dict[str, str]], run: dict[str, str], exactly: bool, differs: str | None
) -> None:
    assert seen_in(*seen).differs_in(run, exactly) == differs


def test_a_value_that_the_run_lacks_is_a_value() -> None:
    assert seen_in({"t": "=a"}).differs_in({}, exactly=False) is not None


def test_a_lesson_of_more_dimensions_than_are_remembered_is_for_nobody() -> None:
    many = {f"tag {number}": "=1" for number in range(MAX_DIMENSIONS + 1)}
    assert seen_in(many).differs_in(many, exactly=False) is not None


def test_foreign_text_is_used_where_it_was_seen_whatever_the_counts_say() -> None:
    node = asking("The diagnosis is bad. Explain ")
    contexts = learnt(node, foreign=True)
    also(contexts, node, BEN)
    also(contexts, node, EVE)
    assert allowed(contexts, node, ANN) and allowed(contexts, node, BEN)
    assert "neither the program's nor a known value" in str(contexts.refuses(node, JOE))


def test_a_program_without_contexts_is_not_searched_for_its_texts() -> None:
    node, asked = asking("Explain "), []
    contexts = Contexts()
    graph = Graph((INPUT, node))
    contexts.learnt(graph)
    contexts.note(graph, [node.name], Trace("What is it?"), lambda node: asked.append(node) is None)
    assert not asked and allowed(contexts, node, Trace("How is it?"))


def test_what_no_finished_run_has_taught_is_the_context_s_own() -> None:
    assert allowed(learnt(), asking("Explain "), BEN)


def test_a_node_that_a_later_lesson_left_out_is_for_nobody() -> None:
    node = asking("Explain ")
    contexts = learnt(node)
    contexts.learnt(Graph((INPUT,)))
    assert not allowed(contexts, node, BEN)
    assert allowed(contexts, asking("Another loop of the run's own: "), BEN)


def test_a_node_that_a_later_lesson_replaced_is_for_nobody() -> None:
    contexts = learnt(asking("Explain "))
    after = Graph((INPUT, asking("Explain briefly ")))
    contexts.learnt(after)
    contexts.note(after, ["a.decode"], ANN)
    assert not allowed(contexts, asking("Explain "), ANN) and allowed(contexts, asking("Explain briefly "), ANN)


def test_the_component_of_a_site_is_used_where_it_was_seen() -> None:
    contexts = Contexts()
    contexts.bindings.note({"site"}, ANN.ambient)
    assert contexts.bindings.allow("site", ANN.ambient) and not contexts.bindings.allow("site", BEN.ambient)
    contexts.bindings.note({"site"}, BEN.ambient)
    assert contexts.bindings.allow("site", EVE.ambient)
    contexts.bindings.forget("site")
    assert not contexts.bindings.allow("site", ANN.ambient)


def test_the_program_is_looked_through_without_the_lock_that_runs_wait_for() -> None:
    node = asking("Explain ")
    contexts, graph, answers = Contexts(), Graph((INPUT, node)), list[object]()

    def foreign(asked: Node) -> bool:
        thread = threading.Thread(target=lambda: answers.append(contexts.refuses(asked, ANN)), daemon=True)
        thread.start()
        thread.join(60)
        return True

    contexts.note(graph, [node.name], ANN, foreign)
    assert answers == [None] and contexts.known(node.name).foreign


def test_objects_that_components_make_anew_are_no_difference_where_all_text_is_the_program_s() -> None:
    known = SeenIn()
    for made in ("~=text~1", "~=text~2"):
        known.note({"its field tally": made})
    assert known.differs_in({"its field tally": "~=text~3"}, exactly=False) is None
    assert known.differs_in({"its field tally": "~=text~3"}, exactly=True) == "its field tally"
    assert known.differs_in({"its field tally": "=text"}, exactly=False) == "its field tally"
