"""A control: answer, critique, revised answer (Halo, table 2, workflow W2), on questions of GSM8K.

Calls per request: 3 of the model, a chain.
What waits for what: each call for the whole text of those before it. By hand there is nothing to do.
"""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from corpus.papers.data import DataSets
from corpus.papers.parts import Parts
from corpus.papers.text import about_words, draw

PAPER = "control, no gain expected (Halo's gains on W2 come from many requests at once)"


class State(TypedDict, total=False):
    question: str
    draft: str
    critique: str
    answer: str


def build(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    words = about_words(parts.sizes.answer_tokens)
    llm = parts.llm.bind(max_tokens=parts.sizes.answer_tokens)

    async def write_draft(state: State) -> dict[str, Any]:
        written = await llm.ainvoke(
            f"Solve the problem step by step in about {words} words, and end with the result.\n\n"
            f"Question: {state['question']}"
        )
        return {"draft": written.text}

    async def criticise(state: State) -> dict[str, Any]:
        written = await llm.ainvoke(
            f"Check the solution to the problem. Say in about {words} words which steps are wrong or unclear, and why."
            f"\n\nQuestion: {state['question']}\n\nSolution:\n{state['draft']}"
        )
        return {"critique": written.text}

    async def revise(state: State) -> dict[str, Any]:
        written = await llm.ainvoke(
            f"Solve the problem again in about {words} words, taking the critique of your first solution into account, "
            f"and end with the result.\n\nQuestion: {state['question']}\n\nFirst solution:\n{state['draft']}\n\n"
            f"Critique:\n{state['critique']}"
        )
        return {"answer": written.text}

    builder = StateGraph(State)
    builder.add_node("write_draft", write_draft)
    builder.add_node("criticise", criticise)
    builder.add_node("revise", revise)
    builder.add_edge(START, "write_draft")
    builder.add_edge("write_draft", "criticise")
    builder.add_edge("criticise", "revise")
    builder.add_edge("revise", END)
    return builder.compile()


def build_by_hand(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    return build(parts)


async def prepare(parts: Parts, data_sets: DataSets) -> None:
    """Nothing."""


def inputs(data_sets: DataSets, count: int, seed: int) -> list[dict[str, Any]]:
    return [{"question": question} for question in draw(data_sets.maths, count, seed)]
