"""Essay writer: a numbered outline, a section per point by `Send`, and a conclusion over the joined sections."""

from __future__ import annotations

import operator
import re
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

ASYNC = True
INPUTS = [
    {"subject": subject}
    for subject in (
        "public libraries", "night trains", "city bees", "paper maps", "tidal power", "school gardens", "old bridges",
        "slow food", "village shops", "river ferries", "stone walls", "weekly markets",
    )
]  # fmt: skip


class State(TypedDict, total=False):
    subject: str
    points: list[str]
    sections: Annotated[list[str], operator.add]
    conclusion: str


class Section(TypedDict):
    subject: str
    point: str


def build(parts: Any) -> Any:
    llm = parts.llm

    async def outline(state: State) -> State:
        prompt = f"Write an outline of 4 numbered points for an essay on {state['subject']}. Nothing else."
        text = (await llm.ainvoke(prompt)).text
        return {"points": [re.sub(r"^\d+[.)]\s*", "", line) for line in text.splitlines() if line.strip()]}

    def fan_out(state: State) -> list[Send]:
        return [Send("section", {"subject": state["subject"], "point": point}) for point in state["points"]]

    async def section(state: Section) -> State:
        prompt = f"Essay on {state['subject']}. Write this section in about 80 words.\n\nPoint: {state['point']}"
        return {"sections": [(await llm.ainvoke(prompt)).text]}

    async def conclude(state: State) -> State:
        sections = "\n\n".join(state["sections"])
        prompt = f"Write a conclusion of about 50 words for the essay on {state['subject']}.\n\n{sections}"
        return {"conclusion": (await llm.ainvoke(prompt)).text}

    graph = StateGraph(State)
    graph.add_node("outline", outline)
    graph.add_node("section", section)
    graph.add_node("conclude", conclude)
    graph.add_edge(START, "outline")
    graph.add_conditional_edges("outline", fan_out, ["section"])
    graph.add_edge("section", "conclude")
    graph.add_edge("conclude", END)
    return graph.compile()
