"""Answers the two turns of an MT-Bench conversation, one after the other: 2 calls."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from corpus.papers.data import DataSets
from corpus.papers.parts import Parts
from corpus.papers.text import draw

PAPER = "Halo, table 2, W6"
CALLS = 2


class State(TypedDict, total=False):
    turns: list[str]
    messages: list[BaseMessage]


def build(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    llm = parts.llm.bind(max_tokens=parts.sizes.chat_tokens)

    async def respond(state: State) -> dict[str, Any]:
        said = state.get("messages", [])
        said = [*said, HumanMessage(state["turns"][len(said) // 2])]
        written = await llm.ainvoke(said)
        return {"messages": [*said, AIMessage(written.text)]}

    def more(state: State) -> Literal["respond", "__end__"]:
        return "respond" if len(state["messages"]) < 2 * len(state["turns"]) else "__end__"

    builder = StateGraph(State)
    builder.add_node("respond", respond)
    builder.add_edge(START, "respond")
    builder.add_conditional_edges("respond", more, ["respond", END])
    return builder.compile()


async def prepare(parts: Parts, data_sets: DataSets) -> None:
    """Nothing."""


def inputs(data_sets: DataSets, count: int, seed: int) -> list[dict[str, Any]]:
    return [{"turns": list(turns)} for turns in draw(data_sets.chats, count, seed)]
