"""Loans by risk: a number from 0 to 100 is read from text, three ways by two bounds, letters quote the application."""

from __future__ import annotations

import re
from typing import Any, Literal, TypedDict

from langgraph.graph import StateGraph
from langgraph.types import Command

ASYNC = True
WISHES = (
    "a new roof for a barn", "a second oven", "a boat for excursions", "a stall at the station", "forty bee hives",
    "a used bus", "shelves for a shop of maps", "a cold store", "a loom", "a crane for a harbour", "a press for cider",
    "tents for a festival",
)  # fmt: skip
INPUTS = [
    {"application": f"I need {2 + 5 * k % 37} thousand euros for {wish}. I have worked for {1 + 7 * k % 20} years."}
    for k, wish in enumerate(WISHES)
]


class Loan(TypedDict, total=False):
    application: str
    risk: int
    reply: str
    letter: str


def build(parts: Any) -> Any:
    llm = parts.llm

    async def assess(state: Loan) -> Command[Literal["make_offer", "ask_back", "refuse"]]:
        prompt = f"Give the risk of this loan as a number from 0 to 100, nothing else.\n\n{state['application']}"
        text = (await llm.ainvoke(prompt)).content
        found = re.search(r"\d+", text)
        risk = int(found.group()) if found else 100
        goto: Any = "make_offer" if risk < 40 else "ask_back" if risk <= 75 else "refuse"
        return Command(goto=goto, update={"risk": risk})

    async def make_offer(state: Loan) -> Command[Literal["write"]]:
        prompt = f"Make an offer of about 50 words for this application.\n\n{state['application']}"
        return Command(goto="write", update={"reply": (await llm.ainvoke(prompt)).content})

    async def ask_back(state: Loan) -> Command[Literal["write"]]:
        prompt = f"Ask for what is missing in about 50 words.\n\n{state['application']}"
        return Command(goto="write", update={"reply": (await llm.ainvoke(prompt)).content})

    async def refuse(state: Loan) -> Command[Literal["write"]]:
        prompt = f"Refuse politely in about 40 words, and name another way.\n\n{state['application']}"
        return Command(goto="write", update={"reply": (await llm.ainvoke(prompt)).content})

    async def write(state: Loan) -> Loan:
        prompt = f"Put this into a letter of about 70 words.\n\n{state['reply']}\n\nIt answers: {state['application']}"
        return {"letter": (await llm.ainvoke(prompt)).content}

    graph = StateGraph(Loan)
    for node in (assess, make_offer, ask_back, refuse, write):
        graph.add_node(node)
    graph.set_entry_point("assess")
    return graph.compile()
