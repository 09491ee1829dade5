"""Reports, explanations and pictures of real programs of both frameworks: every call has one row and a reason, and what
users ask about stays with them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, TypedDict

import openai
import pytest
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from llama_index.core.tools import FunctionTool

import accel
from accel import accelerate
from accel.reports.pictures.timeline import unmodified
from accel.reports.report import Report
from accel.run.plans.plan import Plan
from accel.tests.reported import check_chrome_trace, check_mermaid, check_page, check_report
from adapters.tests import three_calls
from adapters.tests.core_fakes import Chat, ReadonlyStore, Store, UnknownChat, World, chain, three, train
from adapters.tests.llamaindex_programs import QUESTIONS, Program
from adapters.tests.three_calls import environment, url

__all__ = ["environment", "url"]
"""Fixtures."""

SECRET = "rosebud4711"
TOPICS = tuple(f"{word} and {SECRET}" for word in ("bees", "iron in ships", "the far side of the moon", "bread"))


def check(fast: Any, tmp_path: Path, secret: str = SECRET) -> Report:
    """Everything that it can tell is as it should be, and tells nothing of what it was asked."""
    report = fast.report()
    assert isinstance(report, Report)
    check_report(report, fast.plan)
    assert report.demanded == fast.plan.total.demanded
    said = [str(report), report.to_json(), fast.explain(), fast.explain(format="svg"), fast.explain(format="mermaid")]
    check_mermaid(said[-1])
    for name in ("run.html", "run.json"):
        fast.timeline(str(tmp_path / name))
        said.append((tmp_path / name).read_text(encoding="utf-8"))
    page = check_page(said[-2])
    check_chrome_trace(said[-1])
    primitives = [c for c in fast.plan.last.calls if not c.composite and (c.parent is None or c.parent.composite)]
    assert len(page.panels[-1]) >= len(primitives)
    for text in [*said, fast.explain(graph=True)]:
        assert secret not in text and "answer to <" not in text
    return report


def line_of(report: Report, what: str) -> Any:
    (row,) = (row for row in report.rows if what in row.what)
    return row


def test_a_graph(tmp_path: Path) -> None:
    world = World()
    fast = accelerate(three(world, Chat(world)))
    train(fast, TOPICS)
    report = check(fast, tmp_path)
    assert [row.function for row in report.rows] == ["a", "b", "c"] and report.rows[1].early == 1


def test_classes_that_nobody_vouches_for(tmp_path: Path) -> None:
    world = World()
    fast = accelerate(three(world, UnknownChat(world)))
    train(fast, TOPICS)
    report = check(fast, tmp_path)
    assert "nobody vouches for it" in " ".join(late.why for row in report.rows for late in row.late)


def test_searches_that_only_feed_predictions_say_so(tmp_path: Path) -> None:
    rows = {"1": "one row", "2": "another row"}
    for cls, early in ((Store, False), (ReadonlyStore, True)):
        world = World()
        model, store = Chat(world), cls(world, rows)

        def a(state: Any, model: Any = model) -> Any:
            return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

        def b(state: Any, store: Any = store, world: World = world, early: bool = early) -> Any:
            world.wait_early(state["q"]) if early and len(world.visits) > 5 else None
            return {"b": [found.page_content for found in store.similarity_search(state["q"])]}

        fast = accelerate(chain(("a", a), ("b", b)))
        train(fast, TOPICS)
        report = check(fast, tmp_path)
        row = line_of(report, cls.__name__)
        assert row.early == 1 or row.late[0].rule in ("fed", "only feeds", "nothing behind", "at once", "otherwise")


class State(TypedDict, total=False):
    q: str
    found: str
    said: str
    long: str


class Question(TypedDict):
    q: str


def test_tools_that_nobody_declared_and_nodes_that_work_by_themselves_have_rows(tmp_path: Path) -> None:
    @tool
    def look_up(q: str) -> str:
        """Look it up."""
        time.sleep(0.03)
        return f"found {len(q)}"

    world = World()
    model = Chat(world)

    def look(state: State) -> State:
        time.sleep(0.03)  # the tool could have begun before
        return {"found": look_up.invoke({"q": state["q"]}) + str(model.invoke(f"Judge {state['q']}").content)}

    def measure(state: Question) -> State:
        time.sleep(0.03)
        return {"long": str(len(state["q"]))}

    def ponder(state: State) -> State:
        time.sleep(0.03)
        return {"said": state["found"]}

    builder = StateGraph(State)
    builder.add_node("look", look)
    builder.add_node("measure", measure, input_schema=Question)
    builder.add_node("ponder", ponder)
    builder.add_edge(START, "look")
    builder.add_edge("look", "measure")
    builder.add_edge("measure", "ponder")
    builder.add_edge("ponder", END)
    fast = accelerate(builder.compile())
    train(fast, TOPICS)
    report = check(fast, tmp_path)
    both = line_of(report, "tool look_up")
    assert (both.calls, both.uses, both.what) == (1, 1, "Chat + tool look_up"), "one line is one row"
    assert {late.rule for late in both.late} >= {"undeclared tool"}
    (ponders,) = (row for row in report.rows if row.where == "node ponder")
    assert ponders.what == "own work" and ponders.took_s > 0.0
    lines = {each.line: each for each in report.declarations}
    assert lines["accel.register(look_up, readonly=True)"].gain_s >= 0.03
    here, by, made = lines["accel.register(look_up, readonly=True)"].where.partition(", made of ")
    assert here.startswith("test_report_programs.py:") and ".<locals>.look:" in here
    assert by and ".<locals>.look_up:" in made, "where there is such a name"
    named = [line for line, each in lines.items() if each.kind == "pure_nodes"]
    assert named == ['accel.accelerate(graph, pure_nodes=["measure"])'], "the other waits for what was just found"
    accel.register(look_up, readonly=True)
    fast.invoke({"q": TOPICS[0]})
    report = check(fast, tmp_path)
    assert line_of(report, "tool look_up").uses == 0, "now it is a component"


def test_tools_used_outside_of_runs_are_as_without_accel() -> None:
    @tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    accelerate(three(World(), Chat(World())))
    assert add.invoke({"a": 1, "b": 2}) == 3
    assert FunctionTool.from_defaults(fn=lambda a, b: a + b, name="add")(a=1, b=2).raw_output == 3


@pytest.mark.usefixtures("environment")
def test_calls_of_clients_of_sdks_have_rows(tmp_path: Path) -> None:
    with openai.OpenAI() as client:

        def ask(state: Any, prompt: str) -> str:
            answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": prompt}])
            return str(answer.choices[0].message.content)

        fast = accelerate(three_calls.program(ask))
        for topic in TOPICS:
            fast.invoke({"topic": topic})
            assert accel.settle(10)
        report = check(fast, tmp_path)
    assert sum(row.calls for row in report.rows if row.what == "Completions") == 3


@pytest.mark.parametrize(
    ("mode", "fusion"), [("compact", 0), ("accumulate", 0), ("tree_summarize", 0), ("refine", 0), ("compact", 2)]
)
def test_query_engines(mode: str, fusion: int, tmp_path: Path) -> None:
    program = Program(mode, fusion=fusion)
    fast = accelerate(program.engine)
    for question in QUESTIONS[:4]:
        program.ask(fast, f"{question} {SECRET}")
        assert accel.settle()
    report = check(fast, tmp_path)
    assert all(row.nodes or row.has_line for row in report.rows) and len(report.rows) >= 2
    assert all("pure_nodes" != each.kind for each in report.declarations), "there are no nodes to declare"


def test_a_report_waits_for_what_is_being_learnt() -> None:
    world = World()
    fast = accelerate(three(world, Chat(world)))
    for topic in TOPICS:
        fast.invoke({"q": topic})
    report = fast.report()
    assert report.runs == len(report.requests) == 4 and report.rows


def test_plans_that_are_shared_count_all_of_their_requests(tmp_path: Path) -> None:
    world, plan = World(), Plan()
    first, second = (accelerate(three(world, Chat(world)), plan=plan) for _ in range(2))
    train(first, TOPICS)
    train(second, TOPICS)
    report = check(second, tmp_path)
    assert all(row.made_runs == row.runs == 8 for row in report.rows)
    assert json.loads(report.to_json())["runs"]["followed"] == 8


def test_a_recorded_request_with_the_same_input_stands_for_before(tmp_path: Path) -> None:
    world = World()
    fast = accelerate(three(world, Chat(world)))
    train(fast, (*TOPICS, TOPICS[0]))
    first = unmodified(fast.plan.last, fast.plan.traces)
    assert first is not None and first.input == {"q": TOPICS[0]} and not any(call.retired for call in first.calls)
    fast.timeline(str(tmp_path / "run.html"))
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "Before: a recorded request with the same input" in text and len(check_page(text).panels) == 2
    fast.invoke({"q": "a topic of its own"})
    fast.timeline(str(tmp_path / "run.html"))
    assert "worked out" in (tmp_path / "run.html").read_text(encoding="utf-8")
