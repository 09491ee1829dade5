"""Approval by `interrupt()`: a reply is drafted, a person approves it or says what to change, then it is sent on."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

ASYNC = True
COMPLAINTS = (
    "The heating in our room was off all night.", "The breakfast was over at nine.", "My suitcase is still in Rome.",
    "The pool was full of leaves.", "Nobody answered the telephone.", "The bill lists a sauna that I never saw.",
    "The key opened another room.", "The bus left without us.", "The curtains don't close.",
    "There was a wedding below my window.", "The lift smelled of fish.", "The taxi was never ordered.",
)  # fmt: skip
INPUTS = [{"complaint": complaint, "guest": f"guest {40 + k}"} for k, complaint in enumerate(COMPLAINTS)]
ANSWERS = [{"approved": True, "note": f"add my direct line, {200 + 3 * k}"} for k in range(len(COMPLAINTS))]


class Case(TypedDict, total=False):
    complaint: str
    guest: str
    facts: str
    draft: str
    note: str
    letter: str
    entry: str


def build(parts: Any) -> Any:
    llm = parts.llm

    async def collect(state: Case) -> Case:
        prompt = f"What has to be found out about this complaint? About 40 words.\n\n{state['complaint']}"
        return {"facts": (await llm.ainvoke(prompt)).content}

    async def draft(state: Case) -> Case:
        prompt = (
            f"Draft a reply of about 70 words to {state['guest']}.\n\nComplaint: {state['complaint']}\n\n"
            f"To be found out: {state['facts']}"
        )
        return {"draft": (await llm.ainvoke(prompt)).content}

    async def approve(state: Case) -> Command[Literal["finish"]]:
        decision = interrupt({"question": "Send this?", "draft": state["draft"]})
        return Command(goto="finish", update={"note": decision["note"]})

    async def finish(state: Case) -> Case:
        prompt = f"Finish this reply: {state['note']}. About 80 words.\n\n{state['draft']}"
        return {"letter": (await llm.ainvoke(prompt)).content}

    async def book(state: Case) -> Case:
        prompt = f"Write an entry of about 30 words for the book of {state['guest']}'s stay.\n\n{state['complaint']}"
        return {"entry": (await llm.ainvoke(prompt)).content}

    graph = StateGraph(Case)
    graph.add_node("collect", collect)
    graph.add_node("write_draft", draft)
    graph.add_node("approve", approve)
    graph.add_node("finish", finish)
    graph.add_node("book", book)
    graph.add_edge(START, "collect")
    graph.add_edge("collect", "write_draft")
    graph.add_edge("write_draft", "approve")
    graph.add_edge("finish", "book")
    return graph.compile(checkpointer=InMemorySaver())


def turns(number: int) -> list[Any]:
    """What is said in a conversation, one after the other."""
    return [INPUTS[number], Command(resume=ANSWERS[number])]
