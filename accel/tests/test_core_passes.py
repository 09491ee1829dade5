"""The graph's text and rules, and every pass as text before and after."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent
from typing import Any

import pytest

from accel.engine.profile import Profile
from accel.graph.ir import Evidence, Graph, Level, Node, Schedule
from accel.graph.ops import OPS
from accel.graph.passes import PASSES, rewrite, without
from accel.graph.passes.decode import decode
from accel.graph.passes.depth import depth
from accel.graph.passes.pmap import pmap
from accel.graph.passes.prefill import prefill
from accel.graph.passes.prune import prune
from accel.graph.verify import GraphError, verify
from accel.text.functions import Computed
from accel.text.steps import STAR, STRIP, Clip, Extract
from accel.text.templates import Collect, Counter, Join, Ref, Template, Whole
from accel.text.values import Opaque

INPUT = Node("input", OPS["input"])
LINES = Ref("list", ("content", Extract("lines"), STAR))


def text(*parts: Any) -> Template:
    return Template(parts)


def node(name: str, op: str = "decode", tree: Any = None, **fields: Any) -> Node:
    fields = {"evidence": Evidence("verified", always=True), "site": name, **fields}
    return Node(name, OPS[op], tree, **fields)


def opaque(name: str, op: str, reason: str = "") -> Node:
    return node(name, op, evidence=Evidence(always=True, reason=reason))


LIST = node("list", tree={"t": text("List ", Ref("input", ("q",)))})
EACH = node("each", tree={"t": text("About ", LINES)}, level=Level(LINES), many=True)
SUM = node(
    "sum", tree={"t": text("Sum of ", Join(Ref("each", (STAR, "content")), ("\n",)), " on ", Ref("input", ("q",)))}
)
PROGRAM = Graph((INPUT, LIST, EACH, SUM))


def golden(graph: Graph, expected: str) -> None:
    assert str(graph) == dedent(expected).strip()


def test_the_text_of_a_graph() -> None:
    all_steps = Ref("input", ("q", "two words", 3, STAR, Extract("json"), Clip(500), STRIP))
    tree = {
        "messages": [{"content": text("a\n", all_steps, Counter(1), Join(LINES, ("\n[", Counter(1), "] "), limit=5))}],
        "whole": Whole(Ref("list")), "each": Collect(LINES, distinct=("text",), limit=2), "k": 4, "none": None,
        "empty": [],
        "opaque": Opaque(object()),
    }  # fmt: skip
    rich = node(
        "rich", tree=tree, level=Level(LINES, cap=3, exact=False, distinct=True), many=True,
        evidence=Evidence("seen"), schedule=Schedule(after=("list",), needs_partial=True, prefills=(1, 2), depth=4),
    )  # fmt: skip
    store = opaque("store", "ingestion", reason="ingestion is left to the program")
    shown = str(Graph((INPUT, LIST, rich, store)))
    for part in (
        "for {list.content|lines[*]} first 3 at most distinct; after list; partial decodes; 2 partial prefills ",
        "depth 4",
        r"""messages[0].content: a\n{input.q["two words"][3][*]|json[:500]|strip}{#+1}{join[:5] """,
        r"""{#+1}{join[:5] list.content|lines[*] by '\n[{#+1}] '}""",
        "each: [{list.content|lines[*]} distinct.text first 2]",
        "opaque: <object>",
        "? ingestion is left to the program",
    ):  # fmt: skip
        assert part in shown


def test_the_text_of_an_empty_graph() -> None:
    golden(Graph(), "(nothing learnt yet)")


@pytest.mark.parametrize(
    ("nodes", "error"),
    [
        ((INPUT, INPUT), "two nodes are named input"),
        ((LIST,), "list refers to input, which is not an earlier node"),
        ((INPUT, EACH, LIST), "each refers to list, which is not an earlier node"),
        ((INPUT, LIST, EACH, node("x", tree=text(Ref("each", ("content",))))), "must say which element of each"),
        ((INPUT, node("x", tree=1).scheduled(after=("y",))), "x comes after y, which is not an earlier node"),
        ((INPUT, node("x", "ingestion", tree=1)), "x is a ingestion and can't be predicted"),
        ((INPUT, LIST, replace(EACH, many=False)), "each has a level but only one output"),
        ((INPUT, LIST, node("x", tree=text(LINES))), "has more levels than the node"),
        ((INPUT, LIST, node("x", tree=Whole(LINES))), "has more levels than the node"),
    ],
)
def test_what_verify_refuses(nodes: tuple[Node, ...], error: str) -> None:
    with pytest.raises(GraphError, match=error):
        verify(Graph(nodes))


def test_a_function_takes_a_whole_list_at_any_level() -> None:
    nested = replace(EACH, ancestry=(True, True))
    whole = text(Ref("each", (STAR, Computed("first"))))
    verify(Graph((INPUT, LIST, nested, node("x", tree=whole, level=Level(Ref("each", (STAR,))), many=True))))
    with pytest.raises(GraphError, match="must say which element of each"):
        short = text(Ref("each", (STAR,)))
        verify(Graph((INPUT, LIST, nested, node("x", tree=short, level=Level(LINES), many=True))))


def test_edges_are_derived() -> None:
    assert PROGRAM.consumers == {"input": ("list", "sum"), "list": ("each",), "each": ("sum",), "sum": ()}
    assert PROGRAM.by_site == {"list": (LIST,), "each": (EACH,), "sum": (SUM,)}


def test_a_schedule_is_set_field_by_field() -> None:
    waits = EACH.scheduled(after=("list",), depth=2)
    assert waits.scheduled(depth=3).schedule == Schedule(after=("list",), depth=3)
    assert waits.scheduled(depth=2) is waits and waits.evidence is EACH.evidence
    with pytest.raises(TypeError, match="urgency"):
        waits.scheduled(urgency=1)


def test_evidence_is_set_field_by_field() -> None:
    doubted = EACH.scheduled(depth=2).proven(confidence="seen", reason="kept missing")
    assert doubted.evidence == Evidence("seen", always=True, reason="kept missing")
    assert doubted.schedule == Schedule(depth=2) and doubted.predictable
    assert not doubted.proven(confidence="opaque").predictable


def test_a_stage_was_learnt_as_a_part_of_what_begins_with_it() -> None:
    assert (EACH.learnt_as, EACH.scheduled(stage_of="find").learnt_as) == ("each", "find")


def test_map_gives_the_same_object_where_nothing_changed() -> None:
    assert PROGRAM.map(lambda n: n) is PROGRAM
    assert PROGRAM.map(lambda n: n.scheduled(depth=1)) is not PROGRAM


# --- passes -----------------------------------------------------------------------------------------------------------


def test_pmap_drops_a_level_over_one() -> None:
    once = node("once", tree={"k": 1}, level=Level(None, repeat=1), many=True)
    twice = node("twice", tree={"k": 1}, level=Level(None, repeat=2), many=True)
    used = node("used", tree={"k": 1}, level=Level(None, repeat=1), many=True)
    reader = node("reader", tree=text(Ref("used", (0, "content"))))
    before = Graph((INPUT, once, twice, used, reader))
    assert [str(n).split("\n")[0] for n in before.nodes[1:3]] == [
        "once[*] = decode  # verified; for 1 times",
        "twice[*] = decode  # verified; for 2 times",
    ]
    after = pmap(before, {})
    assert str(after.by_name["once"]).startswith("once = decode  # verified\n")
    assert after.by_name["twice"] is twice and after.by_name["used"] is used
    verify(after)
    assert pmap(after, {}) is after


def test_prune_puts_reads_after_earlier_writes_only() -> None:
    early, late = (node(name, "searching", tree=1) for name in ("early", "late"))
    writes = opaque("write", "ingestion"), opaque("write2", "ingestion")
    after = prune(Graph((INPUT, early, writes[0], LIST, late, writes[1], opaque("unseen", "searching"))), {})
    waiting = {n.name: n.schedule.after for n in after.nodes if n.schedule.after}
    assert waiting == {"late": ("write",), "unseen": ("write", "write2")}
    assert str(after.by_name["late"]).split("\n")[0] == "late = searching  # verified; after write"
    assert prune(after, {}) is after


def test_prefill_marks_where_a_beginning_is_known() -> None:
    two = node("two", tree=[text("System"), text("A ", Ref("input", ("a",)), " B ", Ref("input", ("b",)), " C")])
    search = node("search", "searching", tree=text(Ref("input", ("a",)), Ref("input", ("b",))))
    after = prefill(Graph((INPUT, LIST, EACH, SUM, two, search)), {})
    assert {n.name: n.schedule.prefills for n in after.nodes if n.schedule.prefills} == {"sum": (1, 3), "two": (3,)}
    assert "1 partial prefills" in str(after.by_name["two"])
    assert prefill(after, {}) is after


def test_prefill_asks_the_profile_how_much_pays() -> None:
    profile = Profile("llm", prefill=((100, 0.15), (200, 0.25)), decode=((1, 0.01),), block_tokens=16)
    assert profile.pass_s == pytest.approx(0.05) and profile.split_tokens == 64  # 48 tokens take less than the pass
    after = prefill(PROGRAM, {"llm": profile})
    assert after.by_name["sum"].schedule.prefill_tokens == 64 and after.by_name["list"].schedule.prefill_tokens == 0
    assert prefill(after, {"llm": profile}) is after and prefill(after, {}) is not after


def test_each_pass_can_be_left_out() -> None:
    write = opaque("write", "ingestion")
    graph = Graph((INPUT, LIST, write, EACH, SUM))
    on = rewrite(graph)
    off = {step.__name__: rewrite(graph, without(step.__name__)) for step in PASSES}

    def both(name: str, step: str) -> tuple[Schedule, Schedule]:
        return off[step].by_name[name].schedule, on.by_name[name].schedule

    without_it, with_it = both("list", "decode")
    assert not without_it.needs_partial and with_it.needs_partial
    without_it, with_it = both("sum", "prefill")
    assert without_it.prefills == () and with_it.prefills
    without_it, with_it = both("sum", "prune")
    assert without_it.after == ("list", "write", "each") and with_it.after == ()
    without_it, with_it = both("each", "pmap")
    assert without_it.in_order and not with_it.in_order
    assert {n.schedule.depth for n in off["depth"].nodes} == {0}
    with pytest.raises(KeyError):
        without("no pass")


@pytest.mark.parametrize(
    ("path", "streams"),
    [
        (("content", Extract("lines"), STAR), True),
        (("content", Extract("json"), "rows", 0), True),
        (("content", Clip(10)), True),
        (("content",), False),
        (("content", STRIP), False),
        (("content", Extract("json")), False),
    ],
)
def test_decode_streams_where_a_part_is_enough(path: Any, streams: bool) -> None:
    ref = Ref("list", path)
    reader = node("reader", tree=text(ref), level=Level(ref) if ref.stars else None, many=bool(ref.stars))
    graph = Graph((INPUT, LIST, reader))
    after = decode(graph, {})
    assert after.by_name["list"].schedule.needs_partial is streams
    assert ("partial decodes" in str(after)) is streams
    assert decode(after, {}) is after and (streams or after is graph)


def test_only_what_streams_decodes_in_parts() -> None:
    search = node("search", "searching", tree=text(Ref("input", ("q",))))
    reader = node("reader", tree=text(Ref("search", (0, "text", Clip(10)))))
    graph = Graph((INPUT, search, reader))
    assert decode(graph, {}) is graph


def test_depth_is_the_longest_way_to_the_end() -> None:
    after = depth(PROGRAM, {})
    assert {n.name: n.schedule.depth for n in after.nodes} == {"input": 3, "list": 2, "each": 1, "sum": 0}
    assert depth(after, {}) is after


def test_depth_counts_hazards() -> None:
    graph = Graph((INPUT, opaque("write", "ingestion"), node("read", "searching", tree=1).scheduled(after=("write",))))
    assert depth(graph, {}).by_name["write"].schedule.depth == 1


def test_all_passes_together() -> None:
    after = rewrite(PROGRAM)
    assert [str(n).split("\n")[0] for n in after.nodes[1:]] == [
        "list = decode  # verified; partial decodes; depth 2",
        "each[*] = decode  # verified; for {list.content|lines[*]}; depth 1",
        "sum = decode  # verified; 2 partial prefills of 50 tokens at least",
    ]
    assert rewrite(after) is after
    assert [str(n).split("\n", 1)[1:] for n in after.nodes] == [str(n).split("\n", 1)[1:] for n in PROGRAM.nodes]


@pytest.mark.parametrize("step", PASSES, ids=lambda step: step.__name__)
def test_a_pass_with_nothing_to_do_gives_the_same_object(step: Any) -> None:
    graph = Graph((INPUT,))
    assert step(graph, {}) is graph


def test_a_pass_that_breaks_the_graph_is_named_with_the_graph_before_it() -> None:
    def forget(graph: Graph, profiles: Any) -> Graph:
        return replace(graph, nodes=graph.nodes[1:])

    with pytest.raises(GraphError) as caught:
        rewrite(PROGRAM, (depth, forget))
    message = str(caught.value)
    assert message.startswith("pass forget: list refers to input")
    assert message.endswith(f"The graph before it:\n{depth(PROGRAM, {})}")


def test_a_broken_graph_is_refused_before_any_pass() -> None:
    with pytest.raises(GraphError, match="^list refers to input"):
        rewrite(Graph((LIST,)), (lambda graph, profiles: pytest.fail("ran"),))
