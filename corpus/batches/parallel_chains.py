"""Three experts extract from and summarise each of three parts of a text and report; a writer merges: 22 calls.

Helium reads product reviews; here it is stretches of SQuAD's articles. How many experts and parts is ours.
"""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Send

from corpus.batches.contexts import documents, pieces
from corpus.papers.data import DataSets
from corpus.papers.parts import Parts
from corpus.papers.text import about_words

PAPER = "Helium, parallel chains"
EXPERTS = {"facts": "names and dates", "causes": "causes and effects", "people": "people and what they wanted"}
PARTS = 3
CALLS = len(EXPERTS) * (2 * PARTS + 1) + 1


class State(TypedDict, total=False):
    document: str
    reports: Annotated[list[str], operator.add]
    article: str


class Chain(TypedDict):
    document: str
    subject: str


def build(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    words = about_words(parts.sizes.note_tokens)
    llm = parts.llm.bind(max_tokens=parts.sizes.note_tokens)

    def experts(state: State) -> list[Send]:
        return [Send("report", {"document": state["document"], "subject": subject}) for subject in EXPERTS.values()]

    async def report(state: Chain) -> dict[str, Any]:
        subject = state["subject"]

        async def summary(piece: str) -> str:
            found = await llm.ainvoke(f"Text:\n{piece}\n\nQuote what it says of {subject}, in about {words} words.")
            written = await llm.ainvoke(f"Summarise in about {words} words what this says of {subject}:\n{found.text}")
            return written.text

        summaries = await asyncio.gather(*map(summary, pieces(state["document"], PARTS)))
        joined = "\n\n".join(summaries)
        written = await llm.ainvoke(f"Report on {subject} in about {words} words, from these summaries:\n\n{joined}")
        return {"reports": [written.text]}

    async def merge(state: State) -> dict[str, Any]:
        joined = "\n\n".join(state["reports"])
        written = await llm.ainvoke(f"Merge the reports into one article of about {words} words.\n\n{joined}")
        return {"article": written.text}

    builder = StateGraph(State)
    builder.add_node("report", report, input_schema=Chain)
    builder.add_node("merge", merge)
    builder.add_conditional_edges(START, experts, ["report"])
    builder.add_edge("report", "merge")
    builder.add_edge("merge", END)
    return builder.compile()


async def prepare(parts: Parts, data_sets: DataSets) -> None:
    """Nothing."""


def inputs(data_sets: DataSets, count: int, seed: int) -> list[dict[str, Any]]:
    return [{"document": document} for document in documents(data_sets, count, seed)]
