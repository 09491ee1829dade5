"""Stage decomposition as text before and after, and what keeps a call in one piece."""

from __future__ import annotations

import json
from dataclasses import replace
from textwrap import dedent
from typing import Any

import pytest

from accel.engine.profile import Profile
from accel.errors import ConfigurationError
from accel.graph.first import First
from accel.graph.ir import Evidence, Graph, Level, Node
from accel.graph.ops import OPS
from accel.graph.passes import PASSES, only, rewrite, without
from accel.graph.passes.prune import program_order
from accel.graph.passes.stage import stage
from accel.graph.verify import GraphError, verify
from accel.run.plans.plan import Plan
from accel.run.plans.saved import load, save
from accel.text.steps import STAR, Extract
from accel.text.templates import Ref, Template

QUERY = First("embedding", "embed_query", ("args", 0))
TEXTS = First("embedding", "embed_documents", ("args", 0))
LINES = Ref("expand", ("content", Extract("lines"), STAR))
PROFILES = {"embedding": Profile("embedding", batches=((4, 256, 0.15), (16, 256, 0.45)), batch_tokens=2048, slots=2)}

INPUT = Node("input", OPS["input"])


def node(name: str, op: str, tree: Any = None, **fields: Any) -> Node:
    return Node(name, OPS[op], tree, **{"evidence": Evidence("verified", always=True), "site": name, **fields})


def call(*args: Any, **kwargs: Any) -> dict[str, Any]:
    return {"args": list(args), "kwargs": kwargs}


QUESTION = Template((Ref("input", ("q",)),))
INDEX = node(
    "index", "ingestion", evidence=Evidence(always=True, reason="ingestion is left to the program"), first=TEXTS
)
EXPAND = node("expand", "decode", {"t": Template(("List ", Ref("input", ("q",))))})
FIND = node("find", "searching", call(QUESTION, k=3), first=QUERY)
EACH = node("each", "searching", call(Template((LINES,)), k=2), level=Level(LINES, seen=3), many=True, first=QUERY)
PROGRAM = Graph((INPUT, INDEX, EXPAND, FIND, EACH))


def golden(graph: Graph, expected: str) -> None:
    assert str(graph) == dedent(expected).strip()


def test_the_p_graph_says_what_calls_begin_with() -> None:
    golden(
        PROGRAM,
        """
        input = input
        index = ingestion  # opaque; begins with embedding of args[0]
            ? ingestion is left to the program
        expand = decode  # verified
            t: List {input.q}
        find = searching  # verified; begins with embedding of args[0]
            args[0]: {input.q}
            kwargs.k: 3
        each[*] = searching  # verified; for {expand.content|lines[*]} up to 3; begins with embedding of args[0]
            args[0]: {expand.content|lines[*]}
            kwargs.k: 2
        """,
    )


def test_calls_are_taken_apart() -> None:
    after = stage(PROGRAM, PROFILES)
    verify(after)
    golden(
        after,
        """
        input = input
        index.embedding[*] = embedding  # opaque; stage of index; micro-batches of 2048 tokens, 4 under way
            ? the texts that index is given
        index = ingestion  # opaque; takes in index.embedding as it comes, aggregate at the end
            ? ingestion is left to the program
        expand = decode  # verified
            t: List {input.q}
        find.embedding = embedding  # verified; stage of find
            args[0]: {input.q}
        find = searching  # verified; begins with find.embedding
            args[0]: {input.q}
            kwargs.k: 3
        each.embedding[*] = embedding  # verified; for {expand.content|lines[*]} up to 3 distinct; stage of each
            args[0]: {expand.content|lines[*]}
        each[*] = searching  # verified; for {expand.content|lines[*]} up to 3; begins with each.embedding
            args[0]: {expand.content|lines[*]}
            kwargs.k: 2
        """,
    )
    assert stage(after, PROFILES) is after


def test_only_the_search_waits_for_the_write() -> None:
    after = rewrite(PROGRAM, profiles=PROFILES)
    found = {n.name: n.schedule for n in after.nodes}
    assert {name: one.after for name, one in found.items() if one.after} == {"find": ("index",), "each": ("index",)}
    assert found["find.embedding"].depth == found["find"].depth + 1
    assert found["index.embedding"].depth == found["index"].depth + 1


def test_without_a_profile_additions_stay_whole_and_searches_do_not() -> None:
    after = stage(PROGRAM, {})
    assert [n.name for n in after.nodes if n.schedule.stage_of] == ["find.embedding", "each.embedding"]
    assert after.by_name["index"] is INDEX
    small = Profile("embedding", batches=((1, 8, 0.1), (1, 16, 0.2)))
    assert stage(PROGRAM, {"embedding": small}).by_name["index.embedding"].schedule.batch_tokens == 8


def test_what_stays_in_one_piece() -> None:
    opaque = FIND.proven(confidence="opaque")
    plain = replace(FIND, first=None)
    for kept in (opaque, plain):
        graph = Graph((INPUT, kept))
        assert stage(graph, PROFILES) is graph


def test_a_repeated_search_embeds_once() -> None:
    repeated = replace(FIND, level=Level(None, repeat=3), many=True)
    first = stage(Graph((INPUT, repeated)), {}).by_name["find.embedding"]
    assert (first.level, first.many) == (None, False)


def test_a_name_that_is_taken_is_not_taken_twice() -> None:
    taken = node("find.embedding", "embedding", call(QUESTION))
    after = stage(Graph((INPUT, taken, FIND)), {})
    verify(after)
    assert after.by_name["find"].schedule.begins_with == "find.embedding'"


def test_without_pruning_nothing_waits_for_a_stage_and_a_stage_waits_like_any_call() -> None:
    after = rewrite(PROGRAM, without("prune"), PROFILES)
    assert after.by_name["find.embedding"].schedule.after == ("index", "expand")
    assert after.by_name["find"].schedule.after == ("index", "expand")
    assert program_order(Graph((INPUT,)), {}) == Graph((INPUT,))


def test_one_pass_alone_and_none_at_all() -> None:
    names = [step.__name__ for step in PASSES]
    assert [step.__name__ for step in only("stage")] == ["in_order", "stage", "program_order"]
    assert [step.__name__ for step in only()] == ["in_order", "program_order"]
    assert only(*names) == PASSES
    assert [step.__name__ for step in without("decode", "depth")] == ["pmap", "stage", "prune", "prefill", "next_use"]
    with pytest.raises(KeyError):
        only("no pass")


def test_decode_lifts_the_order_towards_what_it_streams() -> None:
    """Of the program's order, only what other passes have not lifted is left."""
    reader = node("reader", "decode", call(Template((LINES,))), level=Level(LINES), many=True)
    graph = Graph((INPUT, INDEX, EXPAND, reader))
    assert rewrite(graph, only()).by_name["reader"].schedule.after == ("index", "expand")
    assert rewrite(graph, only("decode")).by_name["reader"].schedule.after == ("index",)
    whole = node("whole", "decode", call(Template((Ref("expand", ("content",)),))))
    assert rewrite(Graph((INPUT, EXPAND, whole)), only("decode")).by_name["whole"].schedule.after == ("expand",)


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (replace(FIND, first=First("guess", "x", ("args", 0))), "find has no guess of args\\[0\\] to begin with"),
        (replace(FIND, first=First("embedding", "x", ("args", 7))), "find has no embedding of args\\[7\\]"),
        (replace(FIND, first=First("embedding", "x", ("kwargs", "q"))), "find has no embedding of kwargs.q"),
        (FIND.scheduled(begins_with="find.embedding"), "find begins with find.embedding, which is not an earlier"),
        (FIND.scheduled(begins_with="expand"), "find begins with expand, which is not an earlier stage"),
    ],
)
def test_what_verify_refuses(bad: Node, error: str) -> None:
    with pytest.raises(GraphError, match=error):
        verify(Graph((INPUT, EXPAND, bad)))


def test_saved_plans_keep_what_calls_begin_with(tmp_path: Any) -> None:
    plan = Plan()
    plan.follow(PROGRAM)
    path = str(tmp_path / "plan.json")
    save(plan, path)
    again = load(path)
    assert [n.first for n in again.learnt.nodes] == [None, TEXTS, None, QUERY, QUERY]
    assert again.graph.by_name["find"].schedule.begins_with == "find.embedding"


@pytest.mark.parametrize(
    "first", [["guess", "x", "args", 0], ["embedding"], ["embedding", "x", "args", 9], [[], {}], 7]
)
def test_a_plan_that_begins_with_nonsense_is_refused(tmp_path: Any, first: Any) -> None:
    plan = Plan()
    plan.follow(Graph((INPUT, FIND)))
    path = tmp_path / "plan.json"
    save(plan, str(path))
    data = json.loads(path.read_text())
    data["nodes"][1]["first"] = first
    path.write_text(json.dumps(data))
    with pytest.raises(ConfigurationError, match="is damaged"):
        load(str(path))
