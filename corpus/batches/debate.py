"""Three agents answer a question about a document and revise twice, knowing the others' answers; one sums up: 10 calls.

Four questions share a document. How many agents and rounds is ours.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from corpus.batches.contexts import asked
from corpus.papers.data import DataSets
from corpus.papers.parts import Parts
from corpus.papers.text import about_words

PAPER = "Helium, multi-agent debate"
AGENTS = {
    "sceptic": "a sceptic who doubts what is not said outright",
    "historian": "a historian who looks for what came before",
    "teacher": "a teacher who explains in simple words",
}
ROUNDS = 2
CALLS = len(AGENTS) * (1 + ROUNDS) + 1


class State(TypedDict, total=False):
    document: str
    question: str
    answers: list[str]
    round: int
    verdict: str


def build(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    words = about_words(parts.sizes.note_tokens)
    llm = parts.llm.bind(max_tokens=parts.sizes.note_tokens)

    def case(state: State) -> str:
        return f"Document:\n{state['document']}\n\nQuestion: {state['question']}"

    async def answer(state: State) -> dict[str, Any]:
        async def speak(role: str) -> str:
            written = await llm.ainvoke(f"{case(state)}\n\nYou are {role}. Answer in about {words} words.")
            return written.text

        return {"answers": await asyncio.gather(*map(speak, AGENTS.values())), "round": 0}

    async def revise(state: State) -> dict[str, Any]:
        async def speak(place: int, role: str) -> str:
            others = [text for other, text in enumerate(state["answers"]) if other != place]
            written = await llm.ainvoke(
                f"{case(state)}\n\nYou are {role}. You said:\n{state['answers'][place]}\n\nOthers said:\n"
                + "\n\n".join(others)
                + f"\n\nAnswer again in about {words} words."
            )
            return written.text

        spoken = await asyncio.gather(*(speak(place, role) for place, role in enumerate(AGENTS.values())))
        return {"answers": spoken, "round": state["round"] + 1}

    def more(state: State) -> Literal["revise", "conclude"]:
        return "revise" if state["round"] < ROUNDS else "conclude"

    async def conclude(state: State) -> dict[str, Any]:
        said = "\n\n".join(state["answers"])
        written = await llm.ainvoke(
            f"{case(state)}\n\nAnswers:\n{said}\n\nSay in about {words} words what they come to."
        )
        return {"verdict": written.text}

    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_node("revise", revise)
    builder.add_node("conclude", conclude)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "revise")
    builder.add_conditional_edges("revise", more, ["revise", "conclude"])
    builder.add_edge("conclude", END)
    return builder.compile()


async def prepare(parts: Parts, data_sets: DataSets) -> None:
    """Nothing."""


def inputs(data_sets: DataSets, count: int, seed: int) -> list[dict[str, Any]]:
    return [dict(one) for one in asked(data_sets, count, seed)]
