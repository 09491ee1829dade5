"""Sky watcher: a model decides on tool calls, a prebuilt `ToolNode` runs them, and a second model call answers."""

from __future__ import annotations

import math
from typing import Any

from langchain_core.messages import SystemMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

ASYNC = True
INPUTS = [
    {"messages": [("user", question)]}
    for question in (
        "How bright does a star of magnitude 2 look beside one of magnitude 6?",
        "What magnification do I get from a 900 mm telescope with a 10 mm eyepiece?",
        "How long does the light of a star 4 parsecs away travel?",
        "Which star is brighter, Vega or the pole star, and by how much?",
        "Is a 1200 mm telescope with a 25 mm eyepiece enough for Saturn's rings?",
        "How far away is a galaxy at 50 parsecs in light years?",
        "How much fainter than Sirius is a star of magnitude 4?",
        "Which eyepiece do I take to see the moon whole in a 700 mm telescope?",
        "How much brighter is a star of magnitude 1 than one of magnitude 3?",
        "What does a 20 mm eyepiece give me in a 650 mm telescope?",
        "How old is the light of a star at 12 parsecs, in years?",
        "Can I see a star of magnitude 9 in a 500 mm telescope with a 15 mm eyepiece?",
    )
]  # fmt: skip
DECIDE = SystemMessage("You know the night sky. Call the tools that you need, all of them at once.")
ANSWER = SystemMessage("You know the night sky. Explain in about 60 words to a beginner, from the tools' results.")


@tool
def brightness_ratio(magnitude_a: float, magnitude_b: float) -> str:
    """How many times brighter a star of one magnitude is than one of another."""
    difference = max(-20.0, min(20.0, magnitude_b - magnitude_a))
    return f"{math.pow(100, difference / 5):.3g} times as bright"


@tool
def magnification(telescope_mm: float, eyepiece_mm: float) -> str:
    """The magnification of a telescope with an eyepiece, by their focal lengths."""
    return f"{telescope_mm / max(eyepiece_mm, 1):.0f}x"


@tool
def light_years(parsecs: float) -> float:
    """Parsecs in light years."""
    return round(parsecs * 3.26156, 2)


TOOLS = [brightness_ratio, magnification, light_years]


def build(parts: Any) -> Any:
    deciding = parts.llm.bind_tools(TOOLS)

    async def decide(state: MessagesState) -> MessagesState:
        return {"messages": [await deciding.ainvoke([DECIDE, *state["messages"]])]}

    async def answer(state: MessagesState) -> MessagesState:
        reply = await parts.llm.ainvoke([ANSWER, *state["messages"]])
        return {"messages": [reply]}

    graph = StateGraph(MessagesState)
    graph.add_node("decide", decide)
    graph.add_node("tools", ToolNode(TOOLS))
    graph.add_node("answer", answer)
    graph.add_edge(START, "decide")
    graph.add_conditional_edges("decide", tools_condition, {"tools": "tools", END: END})
    graph.add_edge("tools", "answer")
    graph.add_edge("answer", END)
    return graph.compile()
