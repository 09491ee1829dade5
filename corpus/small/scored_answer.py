"""Answer with a grade: a model gives it a score between 0 and 1, and below a half another one is written."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

ASYNC = True
INPUTS = [
    {"question": question}
    for question in (
        "Why do leaves fall?", "How does a lock lift a boat?", "Who owns the moon?", "Why is the sea salty?",
        "How do geese know the way?", "What makes bread rise?", "Why do bridges sway?", "How old can a tree be?",
        "What is an echo?", "Why does ice float?", "How is paper made?", "What do moles eat?",
    )
]  # fmt: skip


class Grade(BaseModel):
    """How good an answer is."""

    score: float = Field(ge=0, le=1, description="0: wrong or off the topic, 1: complete")


class State(TypedDict, total=False):
    question: str
    answer: str
    score: float
    final: str
    summary: str


def build(parts: Any) -> Any:
    llm = parts.llm
    grader = llm.with_structured_output(Grade)

    async def write(state: State) -> State:
        return {"answer": (await llm.ainvoke(f"Answer in about 40 words: {state['question']}")).content}

    async def grade(state: State) -> State:
        prompt = f"Grade this answer to the question {state['question']}\n\n{state['answer']}"
        return {"score": (await grader.ainvoke(prompt)).score}

    def route(state: State) -> str:
        return "polish" if state["score"] > 0.5 else "rewrite"

    async def polish(state: State) -> State:
        return {"final": (await llm.ainvoke(f"Polish in about 50 words:\n\n{state['answer']}")).content}

    async def rewrite(state: State) -> State:
        prompt = f"A first answer was no good. Answer step by step in about 70 words: {state['question']}"
        return {"final": (await llm.ainvoke(prompt)).content}

    async def summarize(state: State) -> State:
        return {"summary": (await llm.ainvoke(f"Summarize in about 15 words:\n\n{state['final']}")).content}

    graph = StateGraph(State)
    graph.add_node("write", write)
    graph.add_node("grade", grade)
    graph.add_node("polish", polish)
    graph.add_node("rewrite", rewrite)
    graph.add_node("summarize", summarize)
    graph.add_edge(START, "write")
    graph.add_edge("write", "grade")
    graph.add_conditional_edges("grade", route, ["polish", "rewrite"])
    graph.add_edge("polish", "summarize")
    graph.add_edge("rewrite", "summarize")
    graph.add_edge("summarize", END)
    return graph.compile()
