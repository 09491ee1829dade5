"""Three judges read a text from their points of view, a clerk sums up and a chair decides: 3 calls at once, then 2.

Halo reads BBC news; here it is stretches of SQuAD's articles.
"""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from corpus.batches.contexts import documents
from corpus.papers.data import DataSets
from corpus.papers.parts import Parts, Sizes
from corpus.papers.text import about_words

PAPER = "Halo, table 2, W4; perspectives as in section 4.1"
CALLS = 5
PERSPECTIVES = ("political", "economic", "social")


class State(TypedDict, total=False):
    document: str
    opinions: Annotated[list[str], operator.add]
    summary: str
    decision: str


def build(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    return voting([parts.llm] * len(PERSPECTIVES), parts.llm, parts.llm, parts.sizes)


def voting(
    judges: list[BaseChatModel], clerk: BaseChatModel, chair: BaseChatModel, sizes: Sizes
) -> CompiledStateGraph[State, None, State, State]:
    words = about_words(sizes.note_tokens)

    def judge(perspective: str, llm: BaseChatModel) -> Any:
        async def read(state: State) -> dict[str, Any]:
            asked = f"Judge the text from a {perspective} point of view in about {words} words.\n\n{state['document']}"
            messages = [SystemMessage(f"You are a {perspective} analyst of a newspaper."), HumanMessage(asked)]
            written = await llm.ainvoke(messages, max_tokens=sizes.note_tokens)
            return {"opinions": [f"{perspective}: {written.text}"]}

        return read

    async def aggregate(state: State) -> dict[str, Any]:
        shown = "\n\n".join(state["opinions"])
        written = await clerk.ainvoke(
            f"Sum up in about {words} words where the three opinions agree and where they differ.\n\n{shown}",
            max_tokens=sizes.note_tokens,
        )
        return {"summary": written.text}

    async def decide(state: State) -> dict[str, Any]:
        written = await chair.ainvoke(
            f"Decide by consensus what the newspaper should say, in about {words} words.\n\nSummary:\n"
            f"{state['summary']}",
            max_tokens=sizes.note_tokens,
        )
        return {"decision": written.text}

    builder = StateGraph(State)
    builder.add_node("aggregate", aggregate)
    builder.add_node("decide", decide)
    for perspective, llm in zip(PERSPECTIVES, judges, strict=True):
        builder.add_node(perspective, judge(perspective, llm))
        builder.add_edge(START, perspective)
    builder.add_edge(list(PERSPECTIVES), "aggregate")
    builder.add_edge("aggregate", "decide")
    builder.add_edge("decide", END)
    return builder.compile()


async def prepare(parts: Parts, data_sets: DataSets) -> None:
    """Nothing."""


def inputs(data_sets: DataSets, count: int, seed: int) -> list[dict[str, Any]]:
    return [{"document": document} for document in documents(data_sets, count, seed)]
