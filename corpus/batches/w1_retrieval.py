"""Retrieves passages, extracts and summarises what matters in them, and draws conclusions: 2 calls and a search.

Halo reads Amazon reviews; here it is SQuAD's paragraphs and their questions.
"""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from corpus.papers import crag
from corpus.papers.data import DataSets
from corpus.papers.parts import Parts
from corpus.papers.text import about_words, draw

PAPER = "Halo, table 2, W1"
CALLS = 2
PASSAGES = 6  # ours: the paper doesn't say


class State(TypedDict, total=False):
    question: str
    passages: list[str]
    summary: str
    conclusions: str


def build(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    words = about_words(parts.sizes.answer_tokens)
    llm = parts.llm.bind(max_tokens=parts.sizes.answer_tokens)

    async def retrieve(state: State) -> dict[str, Any]:
        found = await parts.store.asimilarity_search(state["question"], k=PASSAGES, filter={"doc": crag.CORPUS})
        return {"passages": [document.page_content for document in found]}

    async def extract(state: State) -> dict[str, Any]:
        shown = "\n\n".join(state["passages"])
        written = await llm.ainvoke(
            f"Extract from the passages what bears on the question, and summarise it in about {words} words.\n\n"
            f"Question: {state['question']}\n\nPassages:\n{shown}"
        )
        return {"summary": written.text}

    async def conclude(state: State) -> dict[str, Any]:
        written = await llm.ainvoke(
            f"Which conclusions follow from the summary that it does not say itself? Answer in about {words} words.\n\n"
            f"Question: {state['question']}\n\nSummary:\n{state['summary']}"
        )
        return {"conclusions": written.text}

    builder = StateGraph(State)
    builder.add_sequence([retrieve, extract, conclude])
    builder.add_edge(START, "retrieve")
    builder.add_edge("conclude", END)
    return builder.compile()


async def prepare(parts: Parts, data_sets: DataSets) -> None:
    await crag.prepare(parts, data_sets)


def inputs(data_sets: DataSets, count: int, seed: int) -> list[dict[str, Any]]:
    return [{"question": question} for question in draw(data_sets.questions, count, seed)]
