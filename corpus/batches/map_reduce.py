"""Six experts answer a question about a document, each by `Send`, and one summarises: 7 calls.

Four questions share a document. How many experts is ours.
"""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Send

from corpus.batches.contexts import asked
from corpus.papers.data import DataSets
from corpus.papers.parts import Parts
from corpus.papers.text import about_words

PAPER = "Helium, map-reduce"
EXPERTS = ("a lawyer", "an economist", "an engineer", "a historian", "a journalist", "a physician")
CALLS = len(EXPERTS) + 1


class State(TypedDict, total=False):
    document: str
    question: str
    answers: Annotated[list[str], operator.add]
    summary: str


class Asked(TypedDict):
    document: str
    question: str
    expert: str


def build(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    words = about_words(parts.sizes.note_tokens)
    llm = parts.llm.bind(max_tokens=parts.sizes.note_tokens)

    def experts(state: State) -> list[Send]:
        case = {"document": state["document"], "question": state["question"]}
        return [Send("answer", {**case, "expert": expert}) for expert in EXPERTS]

    async def answer(state: Asked) -> dict[str, Any]:
        written = await llm.ainvoke(
            f"Document:\n{state['document']}\n\nQuestion: {state['question']}\n\n"
            f"You are {state['expert']}. Answer in about {words} words."
        )
        return {"answers": [f"{state['expert']}: {written.text}"]}

    async def summarise(state: State) -> dict[str, Any]:
        said = "\n\n".join(state["answers"])
        written = await llm.ainvoke(
            f"Summarise in about {words} words how the experts answer the question.\n\n"
            f"Question: {state['question']}\n\n{said}"
        )
        return {"summary": written.text}

    builder = StateGraph(State)
    builder.add_node("answer", answer, input_schema=Asked)
    builder.add_node("summarise", summarise)
    builder.add_conditional_edges(START, experts, ["answer"])
    builder.add_edge("answer", "summarise")
    builder.add_edge("summarise", END)
    return builder.compile()


async def prepare(parts: Parts, data_sets: DataSets) -> None:
    """Nothing."""


def inputs(data_sets: DataSets, count: int, seed: int) -> list[dict[str, Any]]:
    return [dict(one) for one in asked(data_sets, count, seed)]
