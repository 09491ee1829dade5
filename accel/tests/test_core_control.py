"""Which nodes are certain to run, what stands in the way, and which values an endpoint has."""

from __future__ import annotations

import re

import pytest

from accel.graph.topology import ANEW, ANY, END, START, Control, Topology, leg, leg_in, leg_of, site_of
from accel.run.egress import Ledger, texts_sent
from accel.text.values import Opaque


def topology(edges: str, guards: str = "") -> Topology:
    """``"a>b b>c|d d>e&f e+f>g"``: a goes to b, b to c or d, d to e and f, which g waits for; the first goes after
    START, ``.`` is END."""
    successors: dict[str, frozenset[str]] = {START: frozenset({edges[0]})}
    always: dict[str, frozenset[str]] = {}
    joins = []
    for edge in edges.split():
        left, rights = edge.split(">")
        if "+" in left:
            joins.append((frozenset(left.split("+")), rights))
            successors |= {one: successors.get(one, frozenset()) | {rights, END} for one in left.split("+")}
            continue
        ends = frozenset(END if right == "." else right for right in re.split(r"[|&]", rights))
        successors[left] = successors.get(left, frozenset()) | ends
        if "&" in rights:
            always[left] = ends
    return Topology(successors, always, tuple(joins), guards=frozenset(guards.split()))


LINE = "a>b b>c c>."
BRANCH = "a>b|c b>d c>d d>."
LOOP = "a>b b>a|c c>."


@pytest.mark.parametrize(
    ("edges", "start", "nodes"),
    [
        (LINE, START, "abc"),
        (LINE, "b", "c"),
        (BRANCH, START, "ad"),
        (BRANCH, "b", "d"),
        (LOOP, START, "abc"),
        (LOOP, "b", "c"),
        ("a>b|. b>.", START, "a"),
        ("a>b&c b>. c>.", START, "abc"),
        ("a>b&c b>d|. c>. d>.", START, "abc"),
        ("a>b&c b+c>d d>.", START, "abcd"),
        ("a>b|c b+c>d d>.", START, "a"),
        ("a>b&c b+c>d d>a|e e>.", START, "abcde"),
        ("a>b&c b+c>d d>.", "b", ""),
        ("a>b|c b>d&e c>d d>. e>.", START, "ad"),
        ("a>b b>b", START, ""),
    ],
)
def test_what_every_way_to_the_end_passes(edges: str, start: str, nodes: str) -> None:
    found = topology(edges).inevitable(start)
    if END in topology(edges).reachable(start):
        assert found == frozenset(nodes)


def control(edges: str, barriers: str = "", before: str = "", after: str = "", guards: str = "") -> Control:
    return Control(topology(edges, guards), dict.fromkeys(barriers, {ANY: {}}), set(before), set(after))


def test_a_node_on_one_branch_is_not_certain_until_the_branch_is_taken() -> None:
    state = control(BRANCH)
    assert not state.refuses("d", True) and "may not run" in str(state.refuses("b", True))
    assert not state.refuses("b", False)
    state.enter("b")
    assert not state.refuses("b", True)


def test_after_a_branch_what_follows_it_is_certain() -> None:
    state = control("a>b|c b>d d>. c>.")
    assert "may not run" in str(state.refuses("d", True))
    state.enter("b")
    assert not state.refuses("d", True)


def test_what_a_known_value_decides_is_certain_with_what_follows_it() -> None:
    state = control("a>b|c b>d d>. c>.")
    state.decide("b.decode", "b", True)
    assert not state.refuses("b", True) and not state.refuses("d", True) and state.refuses("c", True)
    state.decide("b.decode", "b", False)
    assert state.refuses("b", True) and state.refuses("d", True)


@pytest.mark.parametrize("kind", ["barriers", "guards"])
def test_a_barrier_holds_what_comes_after_it(kind: str) -> None:
    state = control(LINE, **{kind: "b"})
    assert not state.refuses("a", True)
    assert "'b' has raised or paused a run there, or is a guard" in str(state.refuses("b", True))
    assert "'b' comes before and may stop the run" in str(state.refuses("c", True))
    state.enter("b")
    assert state.refuses("c", True)
    state.leave("b")
    assert not state.refuses("c", True)


def paused(edges: str, *stops: tuple[str, dict[str, int]], resumed: bool = True) -> Control:
    """Of a run of a program in which `b` has paused runs, in these legs, having made so many calls."""
    whole = topology(edges)
    return Control(whole.from_within if resumed else whole, {"b": dict(stops)}, (), ())


def test_a_node_that_paused_a_run_holds_what_it_had_not_made_by_then_as_long_as_nobody_has_answered() -> None:
    state = paused(LINE, (ANEW, {"b|one": 2, "b|two": 1}), resumed=False)
    assert (state.reached("b", "b|one"), state.reached("b", "b|three"), state.reached("a", "a|one")) == (2, 0, None)
    assert "'b' comes before and may stop the run" in str(state.refuses("c", True))
    state.enter("b")
    assert state.reached("b", "b|two") == 1 and state.refuses("b", True) and state.refuses("c", True)


@pytest.mark.parametrize(("answers", "reached"), [(0, 2), (1, 3), (2, None)])
def test_a_node_that_was_answered_goes_on_to_where_it_paused_with_so_many_answers(
    answers: int, reached: int | None
) -> None:
    state = paused(LINE, (ANEW, {"b|one": 2}), (leg("b", 1), {"b|one": 3}))
    assert state.refuses("b", True), "nobody knows yet where the run goes on"
    state.enter("b", lambda: leg("b", answers))
    assert state.reached("b", "b|one") == reached
    assert bool(state.refuses("c", True)) == bool(state.refuses("b", True)) == (reached is not None)
    state.leave("b")
    assert not state.refuses("c", True)


def test_of_visits_beside_each_other_the_one_that_nobody_answered_counts() -> None:
    state = paused(LINE, (ANEW, {"b|one": 2}))
    state.enter("b", lambda: leg("b", 1))
    assert state.reached("b", "b|one") is None
    state.enter("b", lambda: leg("b", 0))
    assert state.reached("b", "b|one") == 2


def test_the_next_visit_of_a_node_that_pauses_is_reached_in_a_loop_as_well() -> None:
    state = Control(topology("a>b b>a|c c>."), {"b": {ANEW: {"b|one": 1}}}, (), ())
    assert not state.refuses("b", True, within_reach=True) and state.refuses("c", True)
    state.enter("b")
    state.leave("b")
    state.enter("a")
    assert not state.refuses("b", False, within_reach=True) and state.refuses("c", False)


def test_a_run_that_goes_on_issues_nothing_of_nodes_that_it_can_not_come_to() -> None:
    state = Control(topology("a>b|c b>d c>d d>.").from_within, {}, (), ())
    assert "may not run" in str(state.refuses("a", False))
    state.enter("b", lambda: leg("b", 1))
    assert not state.refuses("b", True) and not state.refuses("d", True)
    assert state.refuses("a", False) and state.refuses("c", False)


def test_a_node_that_pauses_lets_those_beside_it_go_on_and_nothing_else() -> None:
    state = control("a>b&c b>d c>d d>.")
    state.enter("b")
    state.enter("c")
    state.stop("b", pauses=True)
    assert not state.refuses("c", True) and "'b' comes before and may stop the run" in str(state.refuses("d", True))


@pytest.mark.parametrize(("known", "node", "found"), [
    (leg("b", 1), "b", leg("b", 1)),
    (leg("b", 0), "b", ANEW),
    (leg("b", 0), "b:inner", leg("b", 0)),
    (leg("b:inner", 0), "b:inner", ANEW),
    (leg("b:inner", 0), "b:other", leg("b:inner", 0)),
    (ANEW, "b", ANEW),
])  # fmt: skip
def test_a_node_without_an_answer_does_from_its_own_start_what_it_does_anew(known: str, node: str, found: str) -> None:
    assert leg_in(node, known) == found
    assert leg_of(site_of(node, known, "chat", "Model", "app.py:b:7<app.py:main:9")) == found


def test_a_pause_before_a_node_holds_it_and_what_follows() -> None:
    state = control(LINE, before="b")
    assert not state.refuses("a", True)
    assert "pauses before node 'b'" in str(state.refuses("b", True))
    assert "pauses before node 'b'" in str(state.refuses("c", True))
    state.enter("b")
    assert not state.refuses("b", True) and not state.refuses("c", True)


def test_a_pause_after_a_node_holds_what_follows() -> None:
    state = control(LINE, after="b")
    assert not state.refuses("b", True) and state.refuses("c", True)
    state.enter("b")
    assert state.refuses("c", True)


def test_a_pause_after_a_node_holds_what_follows_also_when_it_is_over() -> None:
    state = control(LINE, after="b")
    state.enter("b")
    state.leave("b")
    assert state.refuses("c", True)


def test_a_pause_before_a_node_of_a_loop_comes_again() -> None:
    state = control(LOOP, before="a")
    state.enter("a")
    state.leave("a")
    state.enter("b")
    assert state.refuses("a", False)


def test_a_running_node_is_free_and_an_unknown_one_is_not() -> None:
    state = control(LINE)
    assert "not part of the graph" in str(state.refuses("elsewhere", False))
    assert not state.refuses("", True)


# --- egress -----------------------------------------------------------------------------------------------------------


def test_an_endpoint_knows_what_it_received_and_produced() -> None:
    ledger = Ledger()
    ledger.add("here", {"messages": [{"content": "Tell me about whales"}], "k": 4, "none": None})
    assert ledger.knows("here", ["whales"]) and ledger.knows("here", ["whales", "Tell me", "4"])
    assert not ledger.knows("here", ["whales", "sharks"])
    assert not ledger.knows("elsewhere", ["whales"])


def test_nothing_is_known_to_an_endpoint_that_got_nothing() -> None:
    assert not Ledger().knows("here", ["x"])
    assert Ledger().knows("here", []) and Ledger().knows("here", ["", " \n"])


def test_a_value_pieced_together_from_several_texts_is_not_known() -> None:
    ledger = Ledger()
    ledger.add("here", ["pass", "word"])
    assert not ledger.knows("here", ["password"])


def test_what_cannot_be_looked_into_is_not_known() -> None:
    ledger = Ledger()
    ledger.add("here", [Opaque("whales"), True])
    assert not ledger.knows("here", ["whales"]) and not ledger.knows("here", ["True"])


def test_an_endpoint_knows_an_input_that_it_has_had() -> None:
    asked, ledger = {"query": "whales", "rerank": True, "filter": None, "most": 4}, Ledger()
    ledger.add("here", asked)
    assert ledger.knows("here", texts_sent(asked)) and not ledger.knows("here", texts_sent({"query": "sharks"}))


def test_a_node_that_raised_is_reached_up_to_there() -> None:
    """Its calls of before; and nothing past it until it has let the run pass."""
    edges = topology("a>b b>c c>e")
    control = Control(edges, {"b": {ANY: {"here": 2}}}, (), ())
    assert control.reached("b", "here") == 2 and control.reached("b", "there") == 0 and control.reached("a", "") is None
    assert control.refuses("b", True) and control.refuses("b", True, within_reach=True) is None
    assert control.refuses("c", True, within_reach=True), "that is past it"
    guard = Control(topology("a>b b>c c>e", "b"), {"b": {ANY: {"here": 2}}}, (), ())
    assert guard.reached("b", "here") == 0, "it was declared to be one"


def test_what_a_run_does_not_come_back_to_is_behind_it() -> None:
    state = control("a>b b>a|c c>d d>.")
    looped = {"a", "b"}
    for node in ("a", "b"):
        state.enter(node)
        assert not state.behind(looped), "the loop may go on"
        state.leave(node)
    assert not state.behind(looped), "nothing runs that says where the run is"
    state.enter("c")
    assert state.behind(looped) == looped and state.behind({"a", "d"}) == {"a"}
    state.enter("b")
    assert not state.behind({"b"}), "it runs, whatever the edges say"
