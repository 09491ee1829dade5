"""Named traps of interrupts and checkpoints: where runs stop, and how they go on; plain, accelerated and forced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained, GraphRecursionError
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import RunControl
from langgraph.types import Command, interrupt

from compat_tests.fakes import Parts
from compat_tests.graphs import TOPICS, Topic
from compat_tests.named import acatch_up, asaid, asked, catch_up, said, was_early

ACCEL_DIFFERENTIAL = True

Compared = Callable[..., None]


def thread(name: object) -> RunnableConfig:
    return {"configurable": {"thread_id": str(name)}}


def three(parts: Parts, ran: list[str] | None = None) -> StateGraph[Any, Any, Any, Any]:
    """Three nodes in a row that ask of the topic alone: all of it may be early."""
    graph = StateGraph(Topic)

    def node(name: str) -> Callable[[Topic], Topic]:
        def run(state: Topic) -> Topic:
            catch_up()
            if ran is not None:
                ran.append(f"{name} {state['topic']}")
            return {"notes": [said(parts.local, f"{name} on {state['topic']}")]}

        return run

    graph.add_sequence([(name, node(name)) for name in ("first", "second", "third")])
    graph.add_edge(START, "first")
    return graph


def test_trap_07_two_interrupts_with_the_same_ids(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """A node that asks twice runs three times from its start; its interrupts are resumed by their ids."""

    def draft(state: Topic) -> Topic:
        catch_up()
        return {"queries": [said(parts.local, f"Draft {state['topic']}"), said(parts.local, f"Title {state['topic']}")]}

    def review(state: Topic) -> Topic:
        catch_up()
        asks = said(parts.local, f"Question on {state['queries'][0]}")
        one = interrupt({"question": asks})
        two = interrupt({"again": said(parts.local, f"More on {one}")})
        return {"notes": [one, two]}

    def publish(state: Topic) -> Topic:
        catch_up()
        return {"answer": said(parts.local, f"Publish {state['notes']} of {state['topic']}")}

    graph = StateGraph(Topic)
    graph.add_sequence([draft, review, publish])
    graph.add_edge(START, "draft")
    fast = graph.compile(checkpointer=InMemorySaver())
    for number, topic in enumerate(TOPICS):
        config = thread(number)
        first = fast.invoke({"topic": topic}, config)["__interrupt__"]
        assert list(first) == list(fast.get_state(config).interrupts)
        second = fast.invoke(Command(resume={first[0].id: f"one {number}"}), config)["__interrupt__"]
        assert list(second) == list(fast.get_state(config).interrupts)
        compared([task.interrupts for task in fast.get_state(config).tasks], first[0].id == second[0].id)
        found = fast.invoke(Command(resume={second[0].id: f"two {number}"}), config)
        assert found["notes"] == [f"one {number}", f"two {number}"]
    was_early(fast, accel_mode)


@pytest.mark.parametrize(
    "where",
    [{"interrupt_before": ["second"]}, {"interrupt_after": ["first"]}, {"interrupt_before": "*"},
     {"interrupt_after": "*"}],
)  # fmt: skip
def test_trap_08_interrupts_given_with_the_call(
    parts: Parts, accel_mode: str, compared: Compared, where: dict[str, Any]
) -> None:
    """Nothing behind a pause goes before it, although the runs before had none."""
    ran: list[str] = []
    fast = three(parts, ran).compile(checkpointer=InMemorySaver())
    for number, topic in enumerate(("quartz 11", "meadow 22", "harbor 33")):
        fast.invoke({"topic": topic}, thread(number))
    was_early(fast, accel_mode, 2)
    for topic in ("cedar 44", "river 55"):
        config = thread(topic)
        fast.invoke({"topic": topic}, config, **where)
        pauses = 1
        while fast.get_state(config).next:
            upcoming = fast.get_state(config).next
            compared(upcoming, pauses)
            assert asked(parts, f"{upcoming[0]} on {topic}") == []
            fast.invoke(None, config, **where)
            pauses += 1
        assert pauses == (4 if where == {"interrupt_before": "*"} else pauses)
        assert [text for text in ran if topic in text] == [f"{name} {topic}" for name in ("first", "second", "third")]


def test_trap_16_replay_from_a_checkpoint(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """A run from an earlier checkpoint repeats what comes after it, and makes calls of its own."""
    ran: list[str] = []
    fast = three(parts, ran).compile(checkpointer=InMemorySaver())
    for topic in TOPICS:
        fast.invoke({"topic": topic}, thread(topic))
        middle = next(s for s in fast.get_state_history(thread(topic)) if s.next == ("second",))
        ran.clear()
        parts.probe.calls.clear()
        found = fast.invoke(None, middle.config)
        assert ran == [f"second {topic}", f"third {topic}"]
        assert len(asked(parts)) == 2 and len(found["notes"]) >= 3
        forked = fast.update_state(middle.config, {"topic": f"forked {topic}"})
        fast.invoke(None, forked)
        assert ran[-1] == f"third forked {topic}"
        compared([(s.values, s.next, s.metadata) for s in fast.get_state_history(thread(topic))])
    was_early(fast, accel_mode, 2)


def test_trap_17_update_state_between_steps(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """`update_state(as_node=...)` skips nodes and changes what the rest reads."""
    ran: list[str] = []
    fast = three(parts, ran).compile(checkpointer=InMemorySaver())
    for topic in TOPICS:
        fast.invoke({"topic": topic}, thread(topic))
    for topic in ("cedar 44", "river 55"):
        config = thread(topic)
        fast.invoke({"topic": topic}, config, interrupt_after=["first"])
        ran.clear()
        fast.update_state(config, {"topic": f"new {topic}", "notes": ["mine"]}, as_node="second")
        compared(fast.get_state(config).next)
        found = fast.invoke(None, config)
        assert ran == [f"third new {topic}"] and found["notes"][1] == "mine"
        assert asked(parts, f"second on {topic}") == asked(parts, f"third on {topic}") == []
    was_early(fast, accel_mode, 2)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_trap_18_durability_after_a_crash(parts: Parts, accel_mode: str, compared: Compared, durability: Any) -> None:
    """What is saved when a node crashes, and what runs again, is as the mode says."""
    ran: list[str] = []
    crashing = {"on": True}

    def crash(state: Topic) -> Topic:
        catch_up()
        ran.append(f"crash {state['topic']}")
        if crashing["on"] and "33" in state["topic"]:
            raise RuntimeError("power cut")
        return {"answer": said(parts.local, f"Answer {state['topic']}")}

    graph = three(parts, ran)
    graph.add_node("crash", crash)
    graph.add_edge("third", "crash")
    fast = graph.compile(checkpointer=InMemorySaver())
    for topic in ("quartz 11", "meadow 22", "harbor 33"):
        crashing["on"] = True
        try:
            fast.invoke({"topic": topic}, thread(topic), durability=durability)
        except RuntimeError:
            compared([(s.values, s.next, s.metadata) for s in fast.get_state_history(thread(topic))])
            crashing["on"] = False
            found = fast.invoke(None, thread(topic), durability=durability)
            assert found["answer"] and len(found["notes"]) == 3
    compared(ran)
    was_early(fast, accel_mode, 2)


def test_trap_20_recursion_limit(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """A loop ends at the limit: nothing of the step that doesn't come goes early into effects."""
    ran: list[str] = []

    def again(state: Topic) -> Topic:
        catch_up()
        ran.append(state["topic"])
        return {"notes": [said(parts.local, f"Turn on {state['topic']}: {len(state['notes'])}")]}

    graph = StateGraph(Topic)
    graph.add_node(again)
    graph.add_edge(START, "again")
    graph.add_conditional_edges("again", lambda s: END if len(s["notes"]) == 4 else "again", ["again", END])
    fast = graph.compile()
    for topic in TOPICS:
        fast.invoke({"topic": topic, "notes": []}, {"recursion_limit": 6})
    for limit in (1, 2, 3):
        ran.clear()
        with pytest.raises(GraphRecursionError) as caught:
            fast.invoke({"topic": f"limited {limit}", "notes": []}, {"recursion_limit": limit})
        compared(caught.value)
        assert len(ran) == limit
    was_early(fast, accel_mode, 1)


async def test_trap_20_drain(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """A run that is asked to drain ends after the step it is in, and goes on later."""
    ran: list[str] = []
    controls: dict[str, RunControl] = {}

    async def one(state: Topic) -> Topic:
        await acatch_up()
        ran.append(f"one {state['topic']}")
        if state["topic"] in controls:
            controls[state["topic"]].request_drain("maintenance")
        return {"notes": [await asaid(parts.local, f"One on {state['topic']}")]}

    async def two(state: Topic) -> Topic:
        await acatch_up()
        ran.append(f"two {state['topic']}")
        return {"answer": await asaid(parts.local, f"Two on {state['topic']}")}

    graph = StateGraph(Topic)
    graph.add_sequence([one, two])
    graph.add_edge(START, "one")
    fast = graph.compile(checkpointer=InMemorySaver())
    for topic in TOPICS:
        await fast.ainvoke({"topic": topic}, thread(topic))
    was_early(fast, accel_mode)
    for topic in ("cedar 44", "river 55"):
        control = controls[topic] = RunControl()
        with pytest.raises(GraphDrained, match="maintenance"):
            await fast.ainvoke({"topic": topic}, thread(topic), control=control)
        assert ran[-1] == f"one {topic}"
        compared((await fast.aget_state(thread(topic))).next)
        assert (await fast.ainvoke(None, thread(topic)))["answer"]
        assert ran[-2:] == [f"one {topic}", f"two {topic}"]
