"""What `explain` prints: the graph as learnt, what every pass made of it, the graph that runs follow."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent
from typing import Any

from accel.engine.profile import Profile
from accel.graph.first import First
from accel.graph.ir import Evidence, Graph, Level, Node
from accel.graph.ops import OPS
from accel.graph.passes import only, without
from accel.reports.compiled import compiled
from accel.run.plans.plan import Plan
from accel.text.steps import STAR, Extract
from accel.text.templates import Join, Ref, Template
from accel.trace.sites import where

LINES = Ref("expand", ("content", Extract("lines"), STAR))
INPUT = Node("input", OPS["input"])


class Measured:
    """A component that knows its engines."""

    def accel_profiles(self) -> list[Profile]:
        return [
            Profile("embedding", batches=((4, 256, 0.15), (16, 256, 0.45))),
            Profile("llm", prefill=((100, 0.15), (200, 0.25)), decode=((1, 0.01),), block_tokens=16),
        ]


def node(name: str, op: str, tree: Any = None, **fields: Any) -> Node:
    return Node(name, OPS[op], tree, **{"evidence": Evidence("verified", always=True), "site": name, **fields})


PROGRAM = Graph(
    (
        INPUT,
        node("add", "ingestion", evidence=Evidence(always=True, reason="ingestion is left to the program"),
             first=First("embedding", "embed_documents", ("args", 0))),
        node("expand", "decode", {"t": Template(("List queries about ", Ref("input", ("q",))))}),
        node("find", "searching", {"args": [Template((LINES,))], "kwargs": {}}, level=Level(LINES, seen=3), many=True,
             first=First("embedding", "embed_query", ("args", 0))),
        node("answer", "decode", {"t": Template((
            "Answer ", Ref("input", ("q",)), " from ", Join(Ref("find", (STAR, STAR, "text")), ("\n",))))}),
    ),
    runs=2,
)  # fmt: skip


def planned(graph: Graph, plan: Plan, profiles: bool = True) -> Plan:
    if profiles:
        plan.used.at["add"] = (Measured(), None)  # type: ignore[assignment]
    plan.follow(graph)
    return plan


def test_every_pass_says_what_it_changed() -> None:
    assert (
        compiled(planned(PROGRAM, Plan()))
        == dedent(
            """
        p-graph, learnt from 2 runs:
        input = input
        add = ingestion  # opaque; begins with embedding of args[0]
            ? ingestion is left to the program
        expand = decode  # verified
            t: List queries about {input.q}
        find[*] = searching  # verified; for {expand.content|lines[*]} up to 3; begins with embedding of args[0]
            args[0]: {expand.content|lines[*]}
        answer = decode  # verified
            t: Answer {input.q} from {join find[*][*].text by '\\n'}

        pmap: 1 level, whose elements run side by side

        stage:
          + add.embedding[*] = embedding  # opaque; stage of add; micro-batches of 4096 tokens, 3 under way
          add: -begins with embedding of args[0]; +takes in add.embedding as it comes, aggregate at the end
          + find.embedding[*] = embedding  # verified; for {expand.content|lines[*]} up to 3 distinct; stage of find
          find: -begins with embedding of args[0]; +begins with find.embedding

        prune: 1 of 3 program-order edges fall; kept: 2 by data
          find: +after add

        prefill:
          answer: +2 partial prefills of 64 tokens at least

        decode:
          expand: +partial decodes

        depth: the deepest is the most urgent
          add.embedding: +depth 3
          add: +depth 2
          expand: +depth 3
          find.embedding: +depth 2
          find: +depth 1

        next_use: no change (no prompt begins as an earlier one does)

        e-graph:
        input = input
        add.embedding[*] = embedding  # opaque; stage of add; micro-batches of 4096 tokens, 3 under way; depth 3
            ? the texts that add is given
        add = ingestion  # opaque; takes in add.embedding as it comes, aggregate at the end; depth 2
            ? ingestion is left to the program
        expand = decode  # verified; partial decodes; depth 3
            t: List queries about {input.q}
        find.embedding[*] = embedding  # verified; for {expand.content|lines[*]} up to 3 distinct; stage of find; depth 2
            args[0]: {expand.content|lines[*]}
        find[*] = searching  # verified; for {expand.content|lines[*]} up to 3; after add; begins with find.embedding; depth 1
            args[0]: {expand.content|lines[*]}
        answer = decode  # verified; 2 partial prefills of 64 tokens at least
            t: Answer {input.q} from {join find[*][*].text by '\\n'}

        call sites:
          add: ingestion is left to the program  (add)
          expand: predicted since the plan was loaded  (expand)
          find.embedding: predicted since the plan was loaded  (find)
          find: predicted since the plan was loaded  (find)
          answer: predicted since the plan was loaded  (answer)
        """  # noqa: E501 - a golden text
        ).strip()
    )


def test_every_pass_says_why_it_changed_nothing() -> None:
    alone = Graph((INPUT, node("answer", "decode", {"t": "Answer"})), runs=2)
    assert (
        compiled(planned(alone, Plan()))
        == dedent(
            """
        p-graph, learnt from 2 runs:
        input = input
        answer = decode  # verified
            t: "Answer"

        pmap: no change (no call is made for every element of something)

        stage: no change (no call is known to begin with a primitive that could be done on its own)

        prune: no change (two calls are needed to have an order)

        prefill: no change (no prompt has a beginning that may be known before its end)

        decode: no change (no call can begin with a part of an answer)

        depth: no change (no primitive depends on another)

        next_use: no change (no prompt begins as an earlier one does)

        e-graph:
        input = input
        answer = decode  # verified
            t: "Answer"

        call sites:
          answer: predicted since the plan was loaded  (answer)
        """
        ).strip()
    )


def test_what_is_missing_is_said() -> None:
    text = compiled(planned(PROGRAM, Plan(), profiles=False))
    assert "\nstage: no micro-batches: the embedding engine has no profile (engine.profile())\n" in text
    assert "\nprefill: without a profile, 50 tokens are taken to pay\n" in text
    unseen = Graph((*PROGRAM.nodes[:3], PROGRAM.nodes[3].proven(confidence="opaque")))
    assert "a search that isn't predicted embeds its query itself" in compiled(planned(unseen, Plan()))


def test_passes_that_are_off_are_named_with_what_holds_without_them() -> None:
    text = compiled(planned(PROGRAM, Plan(without("stage", "prune"))))
    assert "\n\noff: stage, prune\n\n" in text
    assert "\nprogram_order: Without pruning: a node waits for all that the program demands before it.\n" in text
    assert "  find: +after add, expand\n" in text
    alone = compiled(planned(PROGRAM, Plan(only("decode"))))
    assert "  find: -after add, expand; +after add\n" in alone
    assert "  expand: +partial decodes\n" in alone


def test_a_removed_node_and_another_input_are_said() -> None:
    def shorten(graph: Graph, profiles: Any) -> Graph:
        return Graph((*graph.nodes[:2], replace(graph.nodes[2], input={"t": "List"}, many=True)))

    text = compiled(planned(PROGRAM, Plan((shorten,)), profiles=False))
    assert "\nshorten:\n  expand: now expand[*] = decode\n  expand: another input\n  - find[*] = searching\n" in text


def test_nothing_is_learnt_yet() -> None:
    assert "p-graph, learnt from 0 runs:\n(nothing learnt yet)" in compiled(Plan())


def test_an_e_graph_of_less_knowledge_is_called_so() -> None:
    plan = planned(PROGRAM, Plan(), profiles=False)
    plan.used.at["add"] = (Measured(), None)  # type: ignore[assignment]
    assert "\n\ne-graph (of when less was known of the engines; the next one is as the passes say):\n" in compiled(plan)


def test_a_site_is_shown_by_its_innermost_user_frame_with_its_line() -> None:
    frames = "app.py:build.<locals>.write.<locals>.<lambda>:12<app.py:build.<locals>.write2:30<main.py:main:7"
    assert where(f"node|chat|Model|{frames}") == "app.py:build.<locals>.write.<locals>.<lambda>:12"
    assert where("node|chat|Model|") == "no user frame"
