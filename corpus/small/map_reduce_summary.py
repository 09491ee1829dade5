"""Map-reduce summary: a summary per meeting by `Send`, joined by a reducer, and a summary of the summaries."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

ASYNC = True


def _minutes(place: str, subjects: list[str]) -> list[str]:
    return [
        f"Minutes of the {place} council, meeting {number}. The council spoke about {subject}. Two members asked for "
        f"more time to study {subject}, one member asked what it would cost, and a resident of {place} said that the "
        f"neighbours had not been told. The council will vote on {subject} in the next meeting."
        for number, subject in enumerate(subjects, 1)
    ]


INPUTS = [
    {"place": "Alder", "documents": _minutes("Alder", ["parking near the school", "a new bus stop", "street lamps"])},
    {"place": "Birch", "documents": _minutes("Birch", ["the swimming pool", "dog parks", "noise at night", "bins"])},
    {"place": "Cedar", "documents": _minutes("Cedar", ["the library roof", "playground swings", "flood walls"])},
    {"place": "Elm", "documents": _minutes("Elm", ["cycle lanes", "market stalls", "tree planting"])},
    {"place": "Fir", "documents": _minutes("Fir", ["the old mill", "school meals", "bridge repairs", "snow ploughs"])},
    {"place": "Hazel", "documents": _minutes("Hazel", ["rents for shops", "a skate park", "public benches"])},
    {"place": "Larch", "documents": _minutes("Larch", ["the town clock", "water meters", "a summer fair"])},
    {"place": "Maple", "documents": _minutes("Maple", ["bus fares", "the youth club", "speed limits", "allotments"])},
    {"place": "Oak", "documents": _minutes("Oak", ["the fire station", "hedge cutting", "a footbridge"])},
    {"place": "Poplar", "documents": _minutes("Poplar", ["taxi stands", "the weekly market", "drains", "a war grave"])},
    {"place": "Rowan", "documents": _minutes("Rowan", ["the village hall", "broadband", "lorries at night"])},
    {"place": "Willow", "documents": _minutes("Willow", ["the boat ramp", "school buses", "solar roofs", "geese"])},
]

REDUCE_SYSTEM = (
    "You are the editor of a local newspaper. You write plainly and leave out nothing that will be voted on."
)


class OverallState(TypedDict, total=False):
    place: str
    documents: list[str]
    summaries: Annotated[list[str], operator.add]
    final_summary: str


class SummaryState(TypedDict):
    content: str


def build(parts: Any) -> Any:
    llm = parts.llm

    async def generate_summary(state: SummaryState) -> OverallState:
        prompt = f"Write a concise summary of the following in about 40 words:\n\n{state['content']}"
        response = await llm.ainvoke(prompt)
        return {"summaries": [response.content]}

    def map_summaries(state: OverallState) -> list[Send]:
        return [Send("generate_summary", {"content": content}) for content in state["documents"]]

    async def generate_final_summary(state: OverallState) -> OverallState:
        joined = "\n\n".join(f"[{number}] {summary}" for number, summary in enumerate(state["summaries"], 1))
        response = await llm.ainvoke(
            [
                SystemMessage(content=REDUCE_SYSTEM),
                HumanMessage(
                    content=f"Take these summaries of meetings in {state['place']} and distill them into one final "
                    f"article of about 120 words.\n\n{joined}"
                ),
            ]
        )
        return {"final_summary": response.content}

    graph = StateGraph(OverallState)
    graph.add_node("generate_summary", generate_summary)
    graph.add_node("generate_final_summary", generate_final_summary)
    graph.add_conditional_edges(START, map_summaries, ["generate_summary"])
    graph.add_edge("generate_summary", "generate_final_summary")
    graph.add_edge("generate_final_summary", END)
    return graph.compile()
