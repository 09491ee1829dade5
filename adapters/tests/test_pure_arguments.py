"""What a declared pure function is given matters as a whole: an early or shared result is of these very arguments."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages

import accel
from accel import accelerate
from adapters.tests.core_fakes import Chat, World

TOPICS = ("bees and their hives", "iron smelting in Sweden", "the far side of the moon", "bread of long ago")


class State(TypedDict, total=False):
    topic: str
    out: list[Any]


def same_as_plain(work: Any) -> None:
    """A node does `work` with its topic; all its results are those of the unmodified program."""
    graph = StateGraph(State).add_node("work", lambda state: {"out": work(state["topic"])})
    compiled = graph.add_edge(START, "work").compile()
    fast = accelerate(compiled)
    for topic in TOPICS:
        assert fast.invoke({"topic": topic})["out"] == compiled.invoke({"topic": topic})["out"]
        assert accel.settle(10)


# --- ids of messages


class Messages(TypedDict, total=False):
    messages: Annotated[list[BaseMessage], add_messages]
    summary: str


def redacted(messages: list[BaseMessage]) -> list[BaseMessage]:
    return [message.model_copy(update={"content": f"[{len(str(message.content))}]"}) for message in messages]


def trimmed(messages: list[BaseMessage]) -> list[BaseMessage]:
    return [RemoveMessage(id=str(message.id)) for message in messages[:-2]]


@pytest.mark.parametrize("function", [redacted, trimmed])
@pytest.mark.parametrize("whole", [True, False], ids=["node", "function"])
def test_messages_are_overwritten_and_removed_by_the_ids_they_have(function: Any, whole: bool) -> None:
    model, tidied = Chat(World()), function if whole else accel.pure(function)

    def ask(state: Messages) -> Messages:
        return {"messages": [model.invoke([state["messages"][-1]])]}

    def again(state: Messages) -> Messages:
        return {"messages": [HumanMessage(f"more on {state['messages'][0].content}")]}

    def tidy(state: Messages) -> Messages:
        return {"messages": tidied(state["messages"])}

    def last(state: Messages) -> Messages:
        return {"summary": str(model.invoke(state["messages"]).content)}

    graph = StateGraph(Messages).add_sequence([ask, again, tidy, last]).add_edge(START, "ask").compile()
    fast = accelerate(graph, pure_nodes=("tidy",) if whole else (), speculate="likely")

    def told(program: Any, topic: str) -> Any:
        state = program.invoke({"messages": [HumanMessage(topic)]})
        return [(message.type, message.content) for message in state["messages"]], state["summary"]

    for topic in TOPICS:
        assert told(fast, topic) == told(graph, topic)
        assert accel.settle(10)


def test_messages_that_differ_in_their_made_up_ids_are_not_the_same_argument() -> None:
    identified = accel.pure(lambda message: str(message.id))
    ids = [f"0000000{number}-0000-0000-0000-000000000000" for number in range(3)]
    same_as_plain(lambda topic: [identified(AIMessage(topic, id=each)) for each in ids])
