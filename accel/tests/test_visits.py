"""Visits of framework nodes inside others: where they stand, and who knows of whom."""

from __future__ import annotations

from typing import Any

import pytest

from accel.graph.ir import Node
from accel.graph.ops import OPS
from accel.graph.predict import is_kin, laid_out, told
from accel.learn.index import reaches
from accel.learn.view import View, ancestries
from accel.run.outlook import Outlook
from accel.text.evaluate import UNKNOWN
from accel.text.extract import Open
from accel.text.templates import STAR, Ref
from accel.trace.record import Trace, Visit


def visited(trace: Trace, name: str, around: Visit | None = None, graph: str = "", **more: Any) -> Visit:
    """One that is over at once."""
    visit = trace.enter(name, {"in": name}, around, graph, **more)
    trace.leave(visit, {"out": name})
    return visit


def test_a_place_counts_nodes_in_a_graph_and_graphs_in_a_node() -> None:
    trace = Trace()
    first, second = trace.enter("desk", None), trace.enter("desk", None)
    inner = [visited(trace, "ask", second, graph) for graph in ("a", "b", "b")]
    deep = visited(trace, "find", inner[2], "c")
    assert [visit.place for visit in (first, second, *inner, deep)] == [
        (0,), (1,), (1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 1, 1, 0, 0),
    ]  # fmt: skip
    assert (deep.node, deep.outermost, second.graphs) == ("desk:ask:find", second, 2)
    assert second.holds(deep) and inner[2].holds(deep) and not first.holds(deep) and not inner[1].holds(deep)
    assert trace.outermost == [first, second]
    assert ancestries([View(0, trace, True)]) == {
        "desk": (True,), "desk:ask": (True, True, True), "desk:ask:find": (True, True, True, False, False),
    }  # fmt: skip


def test_visits_side_by_side_stand_where_their_framework_counts_them() -> None:
    """Whichever starts first: what runs inside moves with them."""
    trace = Trace()
    third = trace.enter("work", None, order=(1, 2))
    inside = visited(trace, "look", third, "g")
    assert trace.is_last(third) and inside.place == (0, 0, 0)
    first = trace.enter("work", None, order=(1, 0))
    assert not trace.is_last(first) and (first.place, third.place, inside.place) == ((0,), (1,), (1, 0, 0))
    later = trace.enter("work", None, order=(2, 0))
    assert later.place == (2,) and trace.is_last(later)


def test_what_a_place_tells() -> None:
    ancestry = (True, False, True)
    assert told(ancestry, (2, 0, 1)) == (2, 1) and told(ancestry, (2,)) == (2,)
    assert told(ancestry, (2, 1, 1)) is None and told(ancestry, (2, 0, 1, 0, 0)) is None
    assert told((), (0,)) is None


def test_values_stand_where_their_indices_say() -> None:
    values = {(2, 0): "c", (0, 1): "b", (0, 0): "a"}
    closed = laid_out(values, 2, lambda before: before == (0,))
    assert closed == [["a", "b"], [], ["c"]]
    assert [isinstance(each, Open) for each in (closed, *closed)] == [True, False, True, True]
    assert laid_out({(1,): "b"}, 1, lambda before: True) == [UNKNOWN, "b"]


def test_a_source_is_open_where_more_may_come() -> None:
    node = Node("work:look.out", OPS["exit"], many=True, ancestry=(True, False, True))
    state = Outlook(node, 0, listed=False)
    for place, value in (((1, 0, 0), "c"), ((0, 0, 1), "b"), ((0, 0, 0), "a")):
        element = state.element_at(place)
        assert element is not None
        state.tell(element, value)
    assert state.element_at((0, 1, 0)) is None, "no run had a second graph"
    assert state.output() == [["a", "b"], ["c"]] and all(isinstance(each, Open) for each in state.output())
    assert state.close((1,)) and not state.close((1,))
    assert [isinstance(each, Open) for each in (state.output(), *state.output())] == [True, True, False]


def test_a_source_with_one_list_is_complete_when_the_node_around_it_is_over() -> None:
    state = Outlook(Node("work:look.in", OPS["enter"], many=True, ancestry=(False, False, True)), 0, listed=True)
    element = state.element_at((0, 0, 0))
    assert element is not None
    state.tell(element, "a")
    assert isinstance(state.output(), Open)
    assert state.close((0,)) and state.output() == ["a"] and not isinstance(state.output(), Open)


@pytest.mark.parametrize(
    ("source", "path", "binding", "kin"),
    [
        ("work:look.out", (STAR, STAR), (1, 3), True),  # another node of the same graph, any time
        ("work:look.out", (STAR, STAR), (0, 3), False),
        ("work:look.out", (0, STAR), (3,), False),
        ("work:ask.in", (STAR, STAR), (1, 2), True),  # its own node: this time
        ("work:ask.in", (STAR, STAR), (1, 1), False),
        ("plan:ask.in", (STAR, STAR), (0, 0), True),  # nothing in common
        ("plan.out", ("items", STAR), (5,), True),
    ],
)
def test_elements_of_the_same_visits(source: str, path: Any, binding: tuple[int, ...], kin: bool) -> None:
    ancestry = (True, False, True) if ":" in source else (False,)
    assert is_kin(Ref(source, (*path, "text")), ancestry, binding, "work:ask", (1, 0, 2)) == kin


def test_nothing_is_known_of_what_runs_side_by_side() -> None:
    trace = Trace()
    one, other = trace.enter("work", None), trace.enter("work", None)
    found = visited(trace, "look", one, "a")
    beside = trace.enter("ask", None, other, "b")
    same = visited(trace, "ask", one, "a")
    assert reaches(found, same) and reaches(found, one) and reaches(found, None)
    assert not reaches(found, beside) and not reaches(found, other)
    trace.leave(beside, None), trace.leave(one, None), trace.leave(other, None)
    assert reaches(found, visited(trace, "ask", trace.enter("work", None), "c")), "the first is over by now"


def test_of_graphs_side_by_side_in_one_node_nothing_is_known_either() -> None:
    trace = Trace()
    around = trace.enter("work", None)
    first, beside = visited(trace, "look", around, "a"), visited(trace, "look", around, "b")
    asks = trace.enter("ask", None, around, "a")
    trace.leave(asks, None)
    assert reaches(first, asks) and not reaches(beside, asks) and not reaches(first, beside)
    trace.leave(around, None)
    after = trace.enter("write", None)
    for known in (first, beside, asks):
        assert not reaches(known, around) and not reaches(known, after), "which of the graphs it was is luck"


def test_of_graphs_one_after_the_other_in_one_node_everything_is_known() -> None:
    trace = Trace()
    around = trace.enter("work", None)
    first, second = visited(trace, "look", around, "a"), visited(trace, "look", around, "b")
    assert reaches(first, second) and reaches(first, around) and reaches(second, around)
