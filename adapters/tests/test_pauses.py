"""Runs that go on after a pause are learnt like any other: by the state they find, and what they are resumed with."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

import accel
from accel import accelerate
from accel.graph.rules import AT_ONCE, JUST_LEARNT
from adapters.tests.core_fakes import Chat, State, World

TOPICS = ("volcanoes of Iceland", "glaciers of Norway", "deserts of Chile", "rivers of Peru")


def program(world: World, asks: bool) -> Any:
    """A plan that a human looks at: the graph pauses before the next node, or a node of its own asks."""
    model = Chat(world)

    def plan(state: State) -> State:
        return {"a": model.invoke(f"Plan {state['q']}").content}

    def approve(state: State) -> State:
        return {"b": interrupt(state["a"])} if asks else {"b": "yes"}

    def write(state: State) -> State:
        world.node("write")
        return {"c": model.invoke(f"Write {state['a']}, as {state['b']}").content}

    def judge(state: State) -> State:
        world.node("judge")
        return {"d": model.invoke(f"Judge {state['a']} of {state['q']}").content}

    builder = StateGraph(State)
    builder.add_sequence([plan, approve, write, judge])
    builder.add_edge(START, "plan")
    builder.add_edge("judge", END)
    return builder.compile(InMemorySaver(), interrupt_before=[] if asks else ["approve"])


@pytest.mark.parametrize("asks", [False, True], ids=["the graph pauses", "a node asks"])
def test_what_follows_an_answered_pause_is_called_early(asks: bool) -> None:
    world = World()
    graph = program(world, asks)
    fast = accelerate(program(world, asks))
    for number, topic in enumerate(TOPICS):
        thread: Any = {"configurable": {"thread_id": str(number)}}
        answer = Command(resume=f"reader {topic[:4]} says") if asks else None
        if topic == TOPICS[-1]:
            world.hooks["write"] = lambda: world.wait_early("Judge", over=False)
        world.forget()
        fast.invoke({"q": topic}, thread)
        assert accel.settle()
        assert world.texts("Judge") == world.texts("Write") == [], "nobody has answered yet"
        done = fast.invoke(answer, thread)
        assert accel.settle()
        graph.invoke({"q": topic}, thread)
        assert done == graph.invoke(answer, thread)
    assert fast.report().retired > 0


def test_the_report_has_every_part_of_a_request_that_paused() -> None:
    """Of the last conversation, and of no other one."""
    world = World()
    fast = accelerate(program(world, asks=True))
    for number, topic in enumerate(TOPICS[:2]):
        thread: Any = {"configurable": {"thread_id": str(number)}}
        fast.invoke({"q": topic}, thread)
        assert accel.settle()  # or a node waits for the lesson, and that is work of its own
        fast.invoke(Command(resume="yes"), thread)
        assert accel.settle()
    report = fast.report()
    assert [[row.nodes for row in part] for part in report.parts] == [[("plan",)], [("write",), ("judge",)]]
    assert "last request since its last pause: " in str(report)
    assert str(report).index("in plan ") < str(report).index("After a pause:") < str(report).index("in write ")
    assert [line["nodes"] for line in report.to_dict()["lines"]] == [["plan"], ["write"], ["judge"]]
    fast.invoke({"q": TOPICS[2]}, {"configurable": {"thread_id": "another"}})
    fast.invoke(Command(resume="yes"), {"configurable": {"thread_id": "1"}})
    assert accel.settle() and len(fast.report().parts) == 1


def reasons(graph: Any) -> list[tuple[str, str]]:
    """Of the calls of runs that were stopped and never resumed."""
    fast = accelerate(graph)
    for number, topic in enumerate(TOPICS[:2]):
        fast.invoke({"q": topic}, {"configurable": {"thread_id": str(number)}})
        assert accel.settle()
    return [(late.rule, late.why) for row in fast.report().rows for late in row.late]


@pytest.mark.parametrize("asks", [False, True], ids=["the graph pauses", "a node asks"])
@pytest.mark.parametrize("inside", [False, True], ids=["outermost", "inside a node"])
def test_a_run_that_pauses_has_ended_well(asks: bool, inside: bool) -> None:
    graph = program(World(), asks)
    if inside:
        builder = StateGraph(State)
        builder.add_node("inner", graph)
        builder.add_edge(START, "inner")
        graph = builder.compile(InMemorySaver())
    ((rule, _),) = reasons(graph)
    assert rule in (AT_ONCE.name, JUST_LEARNT.name)
