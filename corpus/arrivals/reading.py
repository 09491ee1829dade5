"""An agent that reads on and on: it says what it wants to know, a tool brings a passage, and so forth: 8 calls.

The conversation grows with every passage, and the tool takes a while. Numbers and prompts are ours.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal, TypedDict

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from corpus.papers.data import DataSets
from corpus.papers.parts import Parts
from corpus.papers.text import about_words, draw

PAPER = "ThunderAgent, its workloads: agents whose calls are separated by tools"
LOOKS = 7
CALLS = LOOKS + 1
TOOL_S = 1.5
"""What the tool takes for a passage of `TOOL_CHARS` characters: longer ones take longer."""
TOOL_CHARS = 600


class State(TypedDict, total=False):
    question: str
    passages: list[str]
    messages: list[BaseMessage]


def build(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    words = about_words(parts.sizes.verdict_tokens)
    system = SystemMessage("You answer questions about one article. You are shown a passage at a time.")
    llm = parts.llm.bind(max_tokens=parts.sizes.verdict_tokens)

    async def think(state: State) -> dict[str, Any]:
        said = state.get("messages") or [
            system, HumanMessage(f"{state['question']}\n\nSay in about {words} words what you want to read."),
        ]  # fmt: skip
        written = await llm.ainvoke(said)
        return {"messages": [*said, AIMessage(written.text)]}

    async def look_up(state: State) -> dict[str, Any]:
        said = state["messages"]
        passage = state["passages"][len(said) // 2 - 1]
        await asyncio.sleep(TOOL_S * len(passage) / TOOL_CHARS)
        asks = f"Passage:\n{passage}\n\nSay in about {words} words what you know now."
        return {"messages": [*said, HumanMessage(asks)]}

    def more(state: State) -> Literal["look_up", "__end__"]:
        return "look_up" if len(state["messages"]) < 2 * CALLS else "__end__"

    builder = StateGraph(State)
    builder.add_node("think", think)
    builder.add_node("look_up", look_up)
    builder.add_edge(START, "think")
    builder.add_conditional_edges("think", more, ["look_up", END])
    builder.add_edge("look_up", "think")
    return builder.compile()


async def prepare(parts: Parts, data_sets: DataSets) -> None:
    """Nothing."""


def inputs(data_sets: DataSets, count: int, seed: int) -> list[dict[str, Any]]:
    """Stretches of articles, which go on at their beginnings, each with a question about its first passage."""
    starts = [
        (article.paragraphs, start)
        for article in data_sets.articles
        for start in range(len(article.paragraphs))
        if article.paragraphs[start].questions
    ]
    return [
        {
            "question": paragraphs[start].questions[0],
            "passages": [paragraphs[(start + look) % len(paragraphs)].text for look in range(LOOKS)],
        }
        for paragraphs, start in draw(starts, count, seed)
    ]
