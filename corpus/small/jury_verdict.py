"""Jury: five jurors with characters of their own choose an outcome one by one, and the majority's reasons are told."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypedDict

from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.graph import END, START, StateGraph

INPUTS = [
    {"case": case}
    for case in (
        "A goat ate the laundry of a neighbour.", "A balloon landed in a field of wheat.",
        "A choir rehearses above a bakery at five in the morning.", "A dog follows a postman home every day.",
        "A kite pulled a chimney down.", "A statue looks like the mayor.", "A hedge grew over a bus stop.",
        "A bell rings thirteen times at noon.", "Someone painted the wrong house yellow.",
        "A parrot repeats what the guests of an inn say.", "A well was found under a shop.",
        "Two bakers sell the same cake under one name.",
    )
]  # fmt: skip
JURORS = {
    "teacher": "You are a strict teacher who believes in rules.",
    "farmer": "You are a farmer who believes in common sense.",
    "poet": "You are a poet who pities everybody.",
    "clerk": "You are a clerk who has read every law.",
    "cook": "You are a cook who wants to go home.",
}
BALLOT = """A case before the village court: {case}
Choose one of: fine, warning, acquittal, mediation"""
REASONS = """The jury of a village court decided for {outcome} with {count} of {all} votes.
Write its reasons in about 70 words.

The case was: {case}"""
DISSENT = "In the case below the jury decided for {outcome}. Write a dissent of about 50 words.\n\n{case}"
NOTICE = "Announce the outcome, {outcome}, in about 25 words on the notice board.\n\n{reasons}"


class Court(TypedDict, total=False):
    case: str
    ballots: list[str]
    outcome: str
    count: int
    reasons: str
    dissent: str
    notice: str


def build(parts: Any) -> Any:
    juror = parts.llm.bind(max_tokens=6)

    def vote(state: Court) -> Court:
        ballots = []
        for character in JURORS.values():
            asked = [SystemMessage(character), HumanMessage(BALLOT.format(case=state["case"]))]
            ballots.append(juror.invoke(asked).content.strip().lower().strip("."))
        return {"ballots": ballots}

    def count(state: Court) -> Court:
        outcome, votes = Counter(state["ballots"]).most_common(1)[0]
        return {"outcome": outcome, "count": votes}

    def reasons(state: Court) -> Court:
        prompt = REASONS.format(
            outcome=state["outcome"], count=state["count"], all=len(state["ballots"]), case=state["case"]
        )
        return {"reasons": parts.llm.invoke(prompt).content}

    def dissent(state: Court) -> Court:
        prompt = DISSENT.format(outcome=state["outcome"], case=state["case"])
        return {"dissent": parts.llm.invoke(prompt).content}

    def notice(state: Court) -> Court:
        prompt = NOTICE.format(outcome=state["outcome"].upper(), reasons=state["reasons"])
        return {"notice": parts.llm.invoke(prompt).content}

    graph = StateGraph(Court)
    graph.add_sequence([vote, count, ("reasons_of_the_jury", reasons), ("dissenting", dissent), notice])
    graph.add_edge(START, "vote")
    graph.add_edge("notice", END)
    return graph.compile()
