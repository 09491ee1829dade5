"""What waits for what, in the user's words, as a flowchart and as a picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import Any

import pytest

from accel.engine.profile import Profile
from accel.errors import ConfigurationError
from accel.graph.ir import Evidence, Graph, Level, Node
from accel.graph.ops import OPS
from accel.graph.rules import UNVOUCHED
from accel.parts.components import register
from accel.reports.explain import explain
from accel.reports.steps.steps import steps_of
from accel.reports.text import WIDTH
from accel.run.plans.plan import Plan
from accel.tests.reported import check_mermaid
from accel.text.steps import STAR, Extract
from accel.text.templates import Join, Ref, Template


class Streams:
    """A component whose answers come piece by piece."""

    def accel_profiles(self) -> list[Profile]:
        return []


register(Streams, pure=True, streams_equal=True)


def node(name: str, op: str, line: int, tree: Any = None, within: str = "", cls: str = "Chat", **more: Any) -> Node:
    site = f"{within or name}|chat|{cls}|app.py:build.<locals>.{name}:{line}"
    evidence = more.pop("evidence", Evidence("verified", always=True))
    return Node(name, OPS[op], tree, site=site, within=within or name, evidence=evidence, **more)


ITEMS = Ref("expand", ("content", Extract("lines"), STAR))
FOUND = Ref("search", (STAR, 0, "text"))
PROGRAM = Graph(
    (
        Node("input", OPS["input"]),
        node("expand", "decode", 12, {"t": Template(("Secret words of the prompt: ", Ref("input", ("question",))))}),
        node("search", "searching", 24, {"t": Template((ITEMS,))}, cls="Store", level=Level(ITEMS, seen=3), many=True),
        node("summarise", "decode", 31, {"t": Template(("Summarise ", FOUND))}, level=Level(FOUND, seen=3), many=True),
        node("judge", "decode", 40, {"t": Template(("Judge ", Ref("input", ("question",))))}),
        node("answer", "decode", 44, {"t": Template(
            ("From ", Join(Ref("summarise", (STAR, "content")), ("\n",)), " and ", Ref("judge", ("content",))))}),
    ),
    runs=2,
)  # fmt: skip


def planned(graph: Graph = PROGRAM, streams: bool = False) -> Plan:
    plan = Plan()
    plan.follow(graph)
    if streams:
        plan.used.at[graph.by_name["expand"].site] = (Streams(), None)  # type: ignore[assignment]
    return plan


def sentences(plan: Plan) -> list[str]:
    text = explain(plan)
    assert max(map(len, text.splitlines())) <= WIDTH
    joined = re.sub(r"\s+", " ", text)
    return [said.strip() for said in re.split(r"\d+\. (?=`)", joined)[1:]]


def test_every_step_says_what_it_waits_for_and_what_not_any_more() -> None:
    assert sentences(planned()) == [
        "`expand` (app.py:12) starts with the request.",
        "`search` (app.py:24) starts as soon as `expand` (app.py:12) has answered, once per line; it no longer waits "
        "for its other calls.",
        "`summarise` (app.py:31) starts as soon as the call of `search` (app.py:24) that it belongs to has answered, "
        "once per call; it no longer waits for its other calls.",
        "`judge` (app.py:40) starts with the request; it no longer waits for `expand` (app.py:12), `search` "
        "(app.py:24) and `summarise` (app.py:31).",
        "`answer` (app.py:44) starts as soon as `summarise` (app.py:31) and `judge` (app.py:40) have answered.",
    ]


def test_an_answer_that_streams_is_used_item_by_item() -> None:
    assert sentences(planned(streams=True))[1].startswith(
        "`search` (app.py:24) starts while `expand` (app.py:12) still writes, as soon as its own line is there"
    )


def test_what_is_held_says_why() -> None:
    plan = planned()
    plan.reasons["judge"] = UNVOUCHED(component="Chat", why="nobody vouches for it")
    assert sentences(plan)[3] == (
        "`judge` (app.py:40) asks Chat when the program does, as before: Chat is not called early: nobody vouches for "
        "it."
    )


def test_lines_that_no_run_has_to_reach_say_so() -> None:
    sometimes = node("more", "decode", 50, {"t": Template(("More on ", Ref("judge", ("content",))))},
                     evidence=Evidence("verified"))  # fmt: skip
    assert "if the program gets there" in sentences(planned(Graph((*PROGRAM.nodes, sometimes))))[-1]


def test_what_the_framework_calls_is_named_by_its_node() -> None:
    model = Node("model", OPS["decode"], {"t": Template((Ref("input", ("q",)),))}, site="agent|chat|Chat|",
                 within="agent", evidence=Evidence("verified", always=True))  # fmt: skip
    assert sentences(planned(Graph((PROGRAM.nodes[0], model)))) == ["`agent` (Chat) starts with the request."]


def test_nothing_is_known_yet() -> None:
    assert "Nothing is known yet" in explain(Plan())
    assert check_mermaid(explain(Plan(), format="mermaid")) == ({"request"}, set())
    assert xml.fromstring(explain(Plan(), format="svg")).tag.endswith("svg")


def test_the_flowchart_has_a_box_for_every_line_and_an_arrow_for_every_need() -> None:
    plan = planned(streams=True)
    text = explain(plan, format="mermaid")
    boxes, arrows = check_mermaid(text)
    assert boxes == {"request", *(f"step{number}" for number in range(1, 6))}
    assert arrows == {
        ("request", "step1"), ("step1", "step2"), ("step2", "step3"), ("request", "step4"), ("step3", "step5"),
        ("step4", "step5"),
    }  # fmt: skip
    assert 'step1 ==>|"per line, while it writes"| step2' in text


def test_names_can_not_break_the_flowchart() -> None:
    odd = node('a"]; <b>`', "decode", 12, {"t": Template((Ref("input", ("q",)),))}, within="x", cls='C|hat"')
    boxes, _ = check_mermaid(explain(planned(Graph((PROGRAM.nodes[0], odd))), format="mermaid"))
    assert len(boxes) == 2


def test_the_picture_has_them_too_and_no_box_stands_on_another() -> None:
    drawn = xml.fromstring(explain(planned(), format="svg"))
    boxes = [each for each in drawn.iter() if each.get("class") == "box"]
    edges = [each for each in drawn.iter() if (each.get("class") or "").startswith("edge")]
    assert (len(boxes), len(edges)) == (6, 6)
    spans = [tuple(float(box.get(name, "")) for name in ("x", "y", "width", "height")) for box in boxes]
    for number, (x, y, wide, high) in enumerate(spans):
        for left, top, width, height in spans[:number]:
            assert x + wide <= left or left + width <= x or y + high <= top or top + height <= y
    texts = "".join(drawn.itertext())
    assert all(step.name in texts and step.place in texts for step in steps_of(planned()))
    assert "prefers-color-scheme: dark" in texts


def test_prompts_are_shown_by_the_compilers_view_alone() -> None:
    plan = planned()
    assert "Secret words" in explain(plan, graph=True)
    for form in ("text", "mermaid", "svg"):
        assert "Secret words" not in explain(plan, format=form)  # type: ignore[arg-type]


def test_it_is_written_where_one_says(tmp_path: Path) -> None:
    said = explain(planned(), format="svg", path=str(tmp_path / "graph.svg"))
    assert (tmp_path / "graph.svg").read_text(encoding="utf-8") == said


def test_what_can_not_be_drawn_says_what_can() -> None:
    with pytest.raises(ConfigurationError, match="mermaid"):
        explain(planned(), format="png")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="text"):
        explain(planned(), graph=True, format="svg")
