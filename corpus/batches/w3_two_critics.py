"""Solves a problem of GSM8K, has another model criticise the solution, and revises it: a chain of 3 calls."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from corpus.papers.parts import Parts
from corpus.papers.reflect import inputs, prepare
from corpus.papers.text import about_words

PAPER = "Halo, table 2, W3"
CALLS = 3

__all__ = ["CALLS", "PAPER", "build", "inputs", "prepare"]


class State(TypedDict, total=False):
    question: str
    draft: str
    critique: str
    answer: str


def build(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    words = about_words(parts.sizes.answer_tokens)
    solver = parts.llm.bind(max_tokens=parts.sizes.answer_tokens)
    critic = parts.light_llm.bind(max_tokens=parts.sizes.answer_tokens)

    async def solve(state: State) -> dict[str, Any]:
        written = await solver.ainvoke(
            f"Solve the problem step by step in about {words} words.\n\nProblem: {state['question']}"
        )
        return {"draft": written.text}

    async def criticise(state: State) -> dict[str, Any]:
        written = await critic.ainvoke(
            f"Find what is wrong or unclear in the solution, in about {words} words.\n\nProblem: {state['question']}"
            f"\n\nSolution:\n{state['draft']}"
        )
        return {"critique": written.text}

    async def revise(state: State) -> dict[str, Any]:
        written = await solver.ainvoke(
            f"Solve the problem again in about {words} words, with the critique in mind.\n\nProblem: "
            f"{state['question']}\n\nFirst solution:\n{state['draft']}\n\nCritique:\n{state['critique']}"
        )
        return {"answer": written.text}

    builder = StateGraph(State)
    builder.add_sequence([solve, criticise, revise])
    builder.add_edge(START, "solve")
    builder.add_edge("revise", END)
    return builder.compile()
