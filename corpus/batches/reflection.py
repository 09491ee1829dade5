"""An analyst answers in JSON, two critics check its data and its conclusion, and it answers again: a chain of 4 calls.

Four questions share a document, as Helium's financial reports have several each.
"""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from corpus.batches.contexts import asked
from corpus.papers.data import DataSets
from corpus.papers.parts import Parts
from corpus.papers.text import about_words

PAPER = "Helium, reflection"
CALLS = 4


class State(TypedDict, total=False):
    document: str
    question: str
    draft: str
    data_critique: str
    critique: str
    answer: str


def build(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    words = about_words(parts.sizes.note_tokens)
    llm = parts.llm.bind(max_tokens=parts.sizes.note_tokens)

    def case(state: State) -> str:
        return f"Document:\n{state['document']}\n\nQuestion: {state['question']}"

    async def analyse(state: State) -> dict[str, Any]:
        written = await llm.ainvoke(f'{case(state)}\n\nAnswer in JSON with the fields "facts", "steps" and "answer".')
        return {"draft": written.text}

    async def check_data(state: State) -> dict[str, Any]:
        written = await llm.ainvoke(
            f"{case(state)}\n\nAn analyst answered:\n{state['draft']}\n\n"
            f"Say in about {words} words which facts are not as the document has them."
        )
        return {"data_critique": written.text}

    async def check_steps(state: State) -> dict[str, Any]:
        written = await llm.ainvoke(
            f"{case(state)}\n\nAn analyst answered:\n{state['draft']}\n\nIts data were checked:\n"
            f"{state['data_critique']}\n\nSay in about {words} words which steps don't follow."
        )
        return {"critique": written.text}

    async def answer(state: State) -> dict[str, Any]:
        written = await llm.ainvoke(
            f"{case(state)}\n\nYou answered:\n{state['draft']}\n\nCritics say:\n{state['data_critique']}\n"
            f"{state['critique']}\n\nAnswer the question in about {words} words."
        )
        return {"answer": written.text}

    builder = StateGraph(State)
    builder.add_sequence([analyse, check_data, check_steps, answer])
    builder.add_edge(START, "analyse")
    builder.add_edge("answer", END)
    return builder.compile()


async def prepare(parts: Parts, data_sets: DataSets) -> None:
    """Nothing."""


def inputs(data_sets: DataSets, count: int, seed: int) -> list[dict[str, Any]]:
    return [dict(one) for one in asked(data_sets, count, seed)]
