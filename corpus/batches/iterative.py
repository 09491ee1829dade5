"""Reads a document part by part and rewrites a running summary after each: a chain of 6 calls.

How many parts is ours.
"""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from corpus.batches.contexts import documents, pieces
from corpus.papers.data import DataSets
from corpus.papers.parts import Parts
from corpus.papers.text import about_words

PAPER = "Helium, iterative refinement"
PARTS = 6
CALLS = PARTS


class State(TypedDict, total=False):
    document: str
    summary: str


def build(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    words = about_words(parts.sizes.answer_tokens)
    llm = parts.llm.bind(max_tokens=parts.sizes.answer_tokens)

    async def summarise(state: State) -> dict[str, Any]:
        summary = "Nothing yet."
        for piece in pieces(state["document"], PARTS):
            written = await llm.ainvoke(
                f"Rewrite the summary in about {words} words so that it covers the new part, too.\n\n"
                f"New part:\n{piece}\n\nSummary:\n{summary}"
            )
            summary = written.text
        return {"summary": summary}

    builder = StateGraph(State)
    builder.add_node("summarise", summarise)
    builder.add_edge(START, "summarise")
    builder.add_edge("summarise", END)
    return builder.compile()


async def prepare(parts: Parts, data_sets: DataSets) -> None:
    """Nothing."""


def inputs(data_sets: DataSets, count: int, seed: int) -> list[dict[str, Any]]:
    return [{"document": document} for document in documents(data_sets, count, seed)]
