"""Support desk: a structured decision picks a branch, which answers from the ticket; a polite closing is added."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

INPUTS = [
    {"ticket": ticket}
    for ticket in (
        "My invoice from May shows two charges for one seat.", "The app closes when I open the map on a tablet.",
        "Can I move my team to the yearly plan?", "Export to CSV writes an empty file since yesterday.",
        "The card on file has expired, where do I change it?", "Search returns results from a deleted project.",
        "Is there a discount for schools?", "Uploads over 20 MB stop at 99 percent.",
        "Why was I charged for a month after I had cancelled?", "The login page is blank in an old browser.",
        "Can we pay by bank transfer once a quarter?", "Reminders arrive an hour late since the clocks changed.",
    )
]  # fmt: skip


class Route(BaseModel):
    """Where a ticket belongs."""

    team: Literal["billing", "technical"] = Field(description="The team that should answer")


class State(TypedDict, total=False):
    ticket: str
    team: str
    summary: str
    answer: str
    closing: str


def build(parts: Any) -> Any:
    router = parts.llm.with_structured_output(Route)

    def route(state: State) -> State:
        prompt = f"Which team should answer this ticket, billing or technical?\n\nTicket: {state['ticket']}"
        return {"team": router.invoke(prompt).team}

    def summarize(state: State) -> State:
        return {"summary": parts.llm.invoke(f"Summarize in about 25 words.\n\nTicket: {state['ticket']}").text}

    def billing(state: State) -> State:
        prompt = f"You work in billing. Answer the customer in about 60 words.\n\nTicket: {state['ticket']}"
        return {"answer": parts.llm.invoke(prompt).text}

    def technical(state: State) -> State:
        prompt = f"You work in technical support. Answer the customer in about 60 words.\n\nTicket: {state['ticket']}"
        return {"answer": parts.llm.invoke(prompt).text}

    def close(state: State) -> State:
        prompt = "Write one closing sentence for this answer.\n\nSummary: {summary}\n\nAnswer: {answer}"
        return {"closing": parts.llm.invoke(prompt.format(**state)).text}

    graph = StateGraph(State)
    for node in (route, summarize, billing, technical, close):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "route")
    graph.add_edge("route", "summarize")
    graph.add_conditional_edges("summarize", lambda state: state["team"], ["billing", "technical"])
    graph.add_edge("billing", "close")
    graph.add_edge("technical", "close")
    graph.add_edge("close", END)
    return graph.compile()
