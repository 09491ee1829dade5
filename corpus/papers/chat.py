"""A control: one prompt, one answer, on the first turns of MT-Bench (Halo's W6 without its further turns).

Calls per request: 1 of the model.
"""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from corpus.papers.data import DataSets
from corpus.papers.parts import Parts
from corpus.papers.text import draw

PAPER = "control, no gain expected (one call)"


class State(TypedDict, total=False):
    prompt: str
    answer: str


def build(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    llm = parts.llm.bind(max_tokens=parts.sizes.chat_tokens)

    async def respond(state: State) -> dict[str, Any]:
        written = await llm.ainvoke(state["prompt"])
        return {"answer": written.text}

    builder = StateGraph(State)
    builder.add_node("respond", respond)
    builder.add_edge(START, "respond")
    builder.add_edge("respond", END)
    return builder.compile()


def build_by_hand(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    return build(parts)


async def prepare(parts: Parts, data_sets: DataSets) -> None:
    """Nothing."""


def inputs(data_sets: DataSets, count: int, seed: int) -> list[dict[str, Any]]:
    return [{"prompt": turns[0]} for turns in draw(data_sets.chats, count, seed)]
