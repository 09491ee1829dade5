"""Garden planner: a ReAct loop by hand, where a model calls tools until it answers, three turns at most."""

from __future__ import annotations

import math
from typing import Any, Literal

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph

INPUTS = [
    {"messages": [HumanMessage(question)]}
    for question in (
        "How many bags of compost do I need for a raised bed of 2 by 4 metres?",
        "How many tulip bulbs fit into a strip of 6 square metres?",
        "What fence do I need around a vegetable plot of 5 by 7 metres?",
        "How much seed does a lawn of 80 square metres take?",
        "How many strawberry plants go into three rows of 4 metres?",
        "How much bark covers a path of 10 by 1 metres?",
        "How many hedge plants do I need for 25 metres of hornbeam?",
        "What rope is needed to mark a round bed of 3 metres across?",
        "How many bags of bark cover a play area of 4 by 6 metres?",
        "How many lavender plants fill a bed of 9 square metres?",
        "What edging goes around a square herb bed of 2 metres?",
        "How much compost and how many beans does a bed of 3 by 1 metres need?",
    )
]  # fmt: skip
SYSTEM = "You help people to plan a garden. Compute with the tools, then answer with a few words of advice."
MAX_TURNS = 3


@tool
def plants_needed(area_m2: float, spacing_cm: int) -> int:
    """How many plants cover an area when they stand a spacing apart."""
    spacing = max(spacing_cm, 5) / 100
    return math.ceil(area_m2 / spacing**2)


@tool
def bags_needed(area_m2: float, depth_cm: float) -> str:
    """Bags of 40 litres that cover an area to a depth."""
    litres = area_m2 * depth_cm * 10
    return f"{litres:.0f} litres, {math.ceil(litres / 40)} bags"


@tool
def border_length(shape: Literal["square", "circle"], width_m: float) -> str:
    """The length around a bed of this width."""
    length = 4 * width_m if shape == "square" else math.pi * width_m
    return f"{length:.1f} metres"


TOOLS = {t.name: t for t in (plants_needed, bags_needed, border_length)}


def build(parts: Any) -> Any:
    model = parts.llm.bind_tools(list(TOOLS.values()))

    def agent(state: MessagesState) -> dict[str, Any]:
        response = model.invoke([SystemMessage(SYSTEM)] + state["messages"])
        return {"messages": [response]}

    def act(state: MessagesState) -> dict[str, Any]:
        results = []
        for call in state["messages"][-1].tool_calls:
            observation = TOOLS[call["name"]].invoke(call["args"])
            results.append(ToolMessage(content=str(observation), name=call["name"], tool_call_id=call["id"]))
        return {"messages": results}

    def should_continue(state: MessagesState) -> str:
        turns = sum(isinstance(message, AIMessage) for message in state["messages"])
        if state["messages"][-1].tool_calls and turns < MAX_TURNS:
            return "act"
        return END

    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_node("act", act)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", should_continue, ["act", END])
    graph.add_edge("act", "agent")
    return graph.compile()
