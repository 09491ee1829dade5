"""Form letters: a template with [NAME] marks is written once, values are found for each mark and replaced into it."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

from langgraph.graph import StateGraph

ASYNC = True
MARKS = ("[OFFER]", "[REASON]", "[NEXT STEP]")
INPUTS = [
    {"occasion": occasion, "customer": customer}
    for occasion, customer in (
        ("a late delivery of chairs", "a hotel in the mountains"), ("a new price list", "a bakery with three shops"),
        ("the end of a lease", "a dance school"), ("a broken boiler", "a home for the elderly"),
        ("a first order", "a florist who moved here"), ("an overpaid invoice", "a travel agency"),
        ("a lost parcel", "a collector of maps"), ("the tenth year as a customer", "a printer of cards"),
        ("a changed opening time", "a swimming club"), ("a recall of lamps", "a theatre"),
        ("a survey with few answers", "a dentist"), ("the visit of an inspector", "a farm with a shop"),
    )
]  # fmt: skip

TEMPLATE = """Write a letter in the voice of a friendly company.

Occasion: {occasion}"""
FORM = (
    r"Dear customer, (we write|this is) about (your last order|our agreement|what happened)\. We can offer you "
    r"\[OFFER\]\. (The reason is|We do so because of) \[REASON\]\. (Please|Now|From here) \[NEXT STEP\]\. "
    r"(Yours|With best wishes|Kind regards)\."
)
VALUE = "In about 12 words, what belongs into the place of {mark} in a letter to {customer} about {occasion}?"
POLISH = """Rewrite this letter in about 90 words. Keep every fact.

{letter}"""
SUBJECT = "Write a subject line of about 8 words.\n\n{letter}"


class Letter(TypedDict, total=False):
    occasion: str
    customer: str
    template: str
    values: dict[str, str]
    letter: str
    subject: str
    polished: str


def build(parts: Any) -> Any:
    llm = parts.llm

    async def template(state: Letter) -> Letter:
        written = await llm.bind(regex=FORM).ainvoke(TEMPLATE.format(occasion=state["occasion"]))
        return {"template": written.content}

    async def fill(state: Letter) -> Letter:
        asked = [VALUE.format(mark=m, customer=state["customer"], occasion=state["occasion"]) for m in MARKS]
        answers = await asyncio.gather(*map(llm.ainvoke, asked))
        letter = state["template"]
        for mark, response in zip(MARKS, answers, strict=True):
            letter = letter.replace(mark, response.content.strip().rstrip("."))
        return {"letter": letter}

    async def subject(state: Letter) -> Letter:
        return {"subject": (await llm.ainvoke(SUBJECT.format(letter=state["letter"]))).content.strip()}

    async def polish(state: Letter) -> Letter:
        response = await llm.ainvoke(POLISH.format(letter=state["letter"]))
        return {"polished": f"Subject: {state['subject']}\n\n{response.content}"}

    graph = StateGraph(Letter)
    graph.add_sequence([template, fill, subject, polish])
    graph.set_entry_point("template")
    graph.set_finish_point("polish")
    return graph.compile()
