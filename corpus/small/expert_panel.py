"""Expert panel: a compiled subgraph per `Send` interviews an expert; two calls quote the sources it numbers."""

from __future__ import annotations

import operator
from typing import Annotated, Any

from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

ASYNC = True
EXPERTS = {
    "an engineer": ["load", "drainage", "concrete"],
    "a historian": ["old maps", "the first bridge", "the flood of 1908"],
    "an ecologist": ["otters", "reed beds", "night light"],
    "a shopkeeper": ["parking", "market days", "deliveries"],
    "a cyclist": ["the towpath", "night light", "parking"],
}
PLACES = ("the old bridge", "the canal basin", "the mill weir", "the market square", "the ferry stairs", "the towpath")
NAMES = list(EXPERTS)
INPUTS = [
    {"place": place, "plan": plan, "experts": [NAMES[(number + k) % len(NAMES)] for k in range(2 + number % 2)]}
    for number, (place, plan) in enumerate(
        (place, plan) for plan in ("be rebuilt", "be closed to cars") for place in PLACES
    )
]


class Interview(MessagesState):
    place: str
    plan: str
    expert: str
    sources: str
    sections: list[str]


class Memos(TypedDict):
    sections: list[str]


class Panel(TypedDict, total=False):
    place: str
    plan: str
    experts: list[str]
    sections: Annotated[list[str], operator.add]
    report: str


def search(expert: str, place: str) -> list[str]:
    """The files of the council, by subject."""
    return [
        f"File {len(subject) * 17 + len(place)}: what {expert} said of {subject} near {place}, "
        f"and {len(place) % 4 + 2} letters about it."
        for subject in EXPERTS[expert]
    ]


def interview_graph(llm: Any) -> Any:
    async def ask(state: Interview) -> dict[str, Any]:
        system = f"You interview {state['expert']}. Ask one question in about 25 words."
        response = await llm.ainvoke([SystemMessage(system), *state["messages"]])
        return {"messages": [response]}

    def look_up(state: Interview) -> dict[str, Any]:
        found = search(state["expert"], state["place"])
        return {
            "sources": "\n\n---\n\n".join(
                f'<Document nr="{i}">\n{text}\n</Document>' for i, text in enumerate(found, 1)
            )
        }

    async def answer(state: Interview) -> dict[str, Any]:
        system = f"You are {state['expert']}. Answer in about 60 words from these sources:\n\n{state['sources']}"
        response = await llm.ainvoke([SystemMessage(system), *state["messages"]])
        return {"messages": [response]}

    async def write_section(state: Interview) -> dict[str, Any]:
        system = f"Write a memo of about 60 words on {state['place']} for the council. Cite the sources by number."
        response = await llm.ainvoke([SystemMessage(system), HumanMessage(f"Use these sources:\n\n{state['sources']}")])
        return {"sections": [response.content]}

    graph = StateGraph(Interview, output_schema=Memos)
    graph.add_sequence([ask, look_up, answer, write_section])
    graph.add_edge(START, "ask")
    graph.add_edge("write_section", END)
    return graph.compile()


def invite(state: Panel) -> list[Send]:
    return [
        Send(
            "interview",
            {
                "place": state["place"],
                "plan": state["plan"],
                "expert": expert,
                "messages": [HumanMessage(f"So you have a view on why {state['place']} should {state['plan']}?")],
            },
        )
        for expert in state["experts"]
    ]


def build(parts: Any) -> Any:
    async def report(state: Panel) -> Panel:
        memos = "\n\n".join(state["sections"])
        prompt = f"Write a report of about 80 words: should {state['place']} {state['plan']}?\n\nMemos:\n{memos}"
        return {"report": (await parts.llm.ainvoke(prompt)).content}

    graph = StateGraph(Panel)
    graph.add_node("interview", interview_graph(parts.llm))
    graph.add_node("report", report)
    graph.add_conditional_edges(START, invite, ["interview"])
    graph.add_edge("interview", "report")
    graph.add_edge("report", END)
    return graph.compile()
