"""Accelerated graphs inside other graphs, and the agents that frameworks build; plain, accelerated and forced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, interrupt

from accel_langgraph.testing.log import unlogged
from compat_tests.fakes import Parts
from compat_tests.graphs import TOPICS, Topic
from compat_tests.named import asked, catch_up, in_a_row, said, was_early

ACCEL_DIFFERENTIAL = True

Compared = Callable[..., None]


def plain_of(fast: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The graph that an accelerated one was made from; a plain one itself."""
    return fast._accel.graph if hasattr(fast, "_accel") else fast  # type: ignore[no-any-return]


@pytest.mark.parametrize("outer", ["plain", "accelerated"])
@pytest.mark.parametrize("how", ["node", "call"])
def test_an_accelerated_graph_as_a_node(
    parts: Parts, accel_mode: str, compared: Compared, outer: str, how: str
) -> None:
    """Inside an accelerated graph it joins the outer run, inside a plain one it makes runs of its own."""
    inner = in_a_row(parts, "first second").compile(name="inner")

    def call(state: Topic) -> Topic:
        catch_up()
        return inner.invoke({"topic": state["topic"]})  # type: ignore[return-value]

    graph = StateGraph(Topic)
    graph.add_node("inner", inner if how == "node" else call)
    graph.add_node("after", lambda state: {"queries": [said(parts.local, f"After {state['answer']}")]})
    graph.add_edge(START, "inner")
    graph.add_edge("inner", "after")
    fast: Any = graph.compile()
    tried = fast if outer == "accelerated" else plain_of(fast)
    for topic in TOPICS:
        if outer == "plain":
            with unlogged():
                compared(list(tried.stream({"topic": topic}, subgraphs=True, stream_mode=["updates", "messages"])))
            if accel_mode != "plain":
                import accel

                accel.settle()
        else:
            compared(list(tried.stream({"topic": topic}, subgraphs=True, stream_mode=["updates", "messages"])))
    compared([name for name, _ in tried.get_subgraphs()], tried.get_graph(xray=True).draw_mermaid())
    was_early(fast if outer == "accelerated" else inner, accel_mode, 2)


def test_a_guard_inside_a_subgraph(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """Nothing of what comes after a declared guard goes before it, also if it stands in a subgraph."""

    def begin(state: Topic) -> Topic:
        catch_up()
        said(parts.local, f"Begin {state['topic']}")
        catch_up()
        said(parts.local, f"So begin {state['topic']}")
        return {}

    def guard(state: Topic) -> Topic:
        catch_up()
        if "bad" in state["topic"]:
            raise ValueError("blocked")
        return {}

    def last(state: Topic) -> Topic:
        catch_up()
        return {"answer": said(parts.local, f"Last {state['topic']}")}

    inner = StateGraph(Topic)
    inner.add_node("guard", guard, metadata={"guard": True})
    inner.add_node("within", lambda state: {"notes": [said(parts.local, f"Within {state['topic']}")]})
    inner.add_edge(START, "guard")
    inner.add_edge("guard", "within")
    graph = StateGraph(Topic)
    graph.add_node(begin)
    graph.add_node("checked", inner.compile())
    graph.add_node(last)
    graph.add_edge(START, "begin")
    graph.add_edge("begin", "checked")
    graph.add_edge("checked", "last")
    fast = graph.compile()
    for topic in (*TOPICS, "cedar 44", "bad one"):
        if "bad" in topic:
            with pytest.raises(ValueError, match="blocked"):
                fast.invoke({"topic": topic})
        else:
            fast.invoke({"topic": topic})
    assert asked(parts, "Within bad") == asked(parts, "Last bad") == []
    was_early(fast, accel_mode, 2)


def test_nodes_of_one_name_inside_and_outside(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """That a node of the inner graph has run says nothing about the outer one of the same name."""

    def begin(state: Topic) -> Topic:
        catch_up()
        said(parts.local, f"Begin {state['topic']}")
        return {"notes": [said(parts.local, f"So begin {state['topic']}")]}

    def check(state: Topic) -> Topic:
        catch_up()
        if "bad" in state["topic"]:
            raise ValueError("blocked")
        return {}

    def last(state: Topic) -> Topic:
        catch_up()
        return {"answer": said(parts.local, f"Last {state['topic']}")}

    inner = StateGraph(Topic)
    inner.add_node("check", begin)
    inner.add_edge(START, "check")
    within = inner.compile()
    graph = StateGraph(Topic)

    def call(state: Topic) -> Topic:
        catch_up()
        return within.invoke(state)  # type: ignore[return-value]

    graph.add_node(call)
    graph.add_node("check", check, metadata={"guard": True})
    graph.add_node(last)
    graph.add_edge(START, "call")
    graph.add_edge("call", "check")
    graph.add_edge("check", "last")
    fast = graph.compile()
    for topic in (*TOPICS, "cedar 44", "bad one"):
        if "bad" in topic:
            with pytest.raises(ValueError, match="blocked"):
                fast.invoke({"topic": topic})
        else:
            fast.invoke({"topic": topic})
    assert asked(parts, "Last bad") == []
    was_early(fast, accel_mode, 2)


def test_resuming_an_accelerated_graph_inside_a_plain_one(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """What the inner graph has done before the interrupt isn't asked again with the resume."""
    ran: list[str] = []

    def review(state: Topic) -> Topic:
        return {"answer": interrupt("fine?") if "33" in state["topic"] or "bad" in state["topic"] else "unasked"}

    builder = in_a_row(parts, "first second", lambda name, topic: ran.append(f"{name} {topic}"))
    builder.add_node(review)
    builder.add_edge("second", "review")
    inner = builder.compile()
    graph = StateGraph(Topic)
    graph.add_node("inner", inner)
    graph.add_edge(START, "inner")
    tried = plain_of(graph.compile(checkpointer=InMemorySaver()))
    for topic in ("quartz 11", "meadow 22", "cedar 44", "harbor 33", "bad 1"):
        config: Any = {"configurable": {"thread_id": topic}}
        with unlogged():
            found = tried.invoke({"topic": topic}, config)
            if accel_mode != "plain":
                import accel

                accel.settle()
            if "__interrupt__" in found:
                parts.probe.calls.clear()
                found = tried.invoke(Command(resume="yes"), config)
                assert asked(parts) == []
        compared(found)
    compared(ran)
    was_early(inner, accel_mode, 2)
