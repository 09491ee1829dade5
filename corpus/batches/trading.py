"""Nineteen agents decide about a share: analysts, two researchers, a trader, a risk debate, a manager: 88 calls.

Agents and calls are as many as Helium counts; how the 88 are made up is ours: 12 analysts read 4 reports each and write
one (60), bull and bear argue 4 times (8), the trader plans (1), three risk officers argue 6 times (18), the manager
decides (1). Shares and their reports are made of SQuAD's articles. The market's reports are the same for all shares of
a batch, so that what its three analysts note of them (12 calls) is, too.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from corpus.batches.contexts import documents, pieces
from corpus.papers.data import DataSets
from corpus.papers.parts import Parts
from corpus.papers.text import about_words

PAPER = "Helium, trading: 19 agents, 88 calls per share"
MARKET = ("interest rates", "world trade", "commodities")
COMPANY = ("sales", "costs", "debt", "products", "competitors", "management", "news", "rumours", "lawsuits")
REPORTS = 4
DEBATERS = {"bull": "for buying", "bear": "against buying"}
DEBATE_ROUNDS = 4
OFFICERS = {"bold": "takes risks", "careful": "avoids risks", "neutral": "weighs risks"}
RISK_ROUNDS = 6
CALLS = (len(MARKET) + len(COMPANY)) * (REPORTS + 1) + len(DEBATERS) * DEBATE_ROUNDS + len(OFFICERS) * RISK_ROUNDS + 2


class State(TypedDict, total=False):
    share: str
    market: str
    company: str
    notes: dict[str, str]
    debate: list[str]
    plan: str
    risks: list[str]
    decision: str


def build(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    words = about_words(parts.sizes.verdict_tokens)
    llm = parts.llm.bind(max_tokens=parts.sizes.verdict_tokens)

    async def write(prompt: str) -> str:
        return (await llm.ainvoke(f"{prompt}\n\nWrite about {words} words.")).text

    async def analyse(state: State) -> dict[str, Any]:
        async def note(subject: str, reports: list[str]) -> str:
            read = await asyncio.gather(
                *(write(f"Report:\n{report}\n\nNote what it says of {subject}.") for report in reports)
            )
            return await write(f"What do these notes on {subject} mean for {state['share']}?\n\n" + "\n\n".join(read))

        market, company = pieces(state["market"], REPORTS), pieces(state["company"], REPORTS)
        subjects = {**dict.fromkeys(MARKET, market), **dict.fromkeys(COMPANY, company)}
        written = await asyncio.gather(*(note(subject, reports) for subject, reports in subjects.items()))
        return {"notes": dict(zip(subjects, written, strict=True))}

    async def argue(state: State) -> dict[str, Any]:
        notes = "\n".join(f"{subject}: {note}" for subject, note in state["notes"].items())
        said: list[str] = []
        for _ in range(DEBATE_ROUNDS):
            for name, side in DEBATERS.items():
                before = "\n".join(said)
                argued = await write(f"Share: {state['share']}\n{notes}\n\nDebate:\n{before}\n\nArgue {side}.")
                said.append(f"{name}: {argued}")
        return {"debate": said}

    async def plan(state: State) -> dict[str, Any]:
        said = "\n".join(state["debate"])
        return {"plan": await write(f"Plan a trade in {state['share']} after this debate:\n{said}")}

    async def weigh(state: State) -> dict[str, Any]:
        said: list[str] = []
        for _ in range(RISK_ROUNDS):
            for name, bent in OFFICERS.items():
                before = "\n".join(said)
                case = f"Plan for {state['share']}:\n{state['plan']}\n\nRisk debate:\n{before}"
                argued = await write(f"{case}\n\nYou are an officer who {bent}. What do you say?")
                said.append(f"{name}: {argued}")
        return {"risks": said}

    async def decide(state: State) -> dict[str, Any]:
        said = "\n".join(state["risks"])
        return {"decision": await write(f"Plan:\n{state['plan']}\n\nRisk debate:\n{said}\n\nBuy, hold or sell?")}

    builder = StateGraph(State)
    builder.add_sequence([analyse, argue, plan, weigh, decide])
    builder.add_edge(START, "analyse")
    builder.add_edge("decide", END)
    return builder.compile()


async def prepare(parts: Parts, data_sets: DataSets) -> None:
    """Nothing."""


def inputs(data_sets: DataSets, count: int, seed: int) -> list[dict[str, Any]]:
    market, *companies = documents(data_sets, count + 1, seed)
    return [
        {"share": f"share number {number}", "market": market, "company": company}
        for number, company in enumerate(companies, 1)
    ]
