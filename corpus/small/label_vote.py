"""Labels by vote: each text goes by `Send` to a node that asks three times, the majority wins, ties get a referee."""

from __future__ import annotations

import asyncio
import operator
from collections import Counter
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

ASYNC = True
LABELS = ["praise", "complaint", "question", "idea"]
MESSAGES = (
    "The new timetable saves me ten minutes every day.", "Why is there no bus after nine on Sundays?",
    "The heating on line 12 is either off or tropical.", "Put a shelf for umbrellas next to the driver.",
    "Your app shows buses that left an hour ago.", "The driver waited for my grandmother, thank you!",
    "Could tickets be valid in both directions?", "Somebody should paint the stops in different colours.",
    "I stood in the rain because the roof leaks.", "Do dogs need a ticket of their own?",
    "Best coffee of the city at the ticket office.", "The announcements are so quiet that I missed my stop.",
)  # fmt: skip
INPUTS = [
    {
        "batch": f"week {week}",
        "messages": [MESSAGES[(3 * week + k * (week % 4 + week // 9 + 1)) % len(MESSAGES)] for k in range(3)],
    }
    for week in range(1, 13)
]
VOTES = 3

LABEL = """Label a message to a bus company.
Answer with one of: {labels}

Message: {message}"""
REFEREE = """Three readers disagree about the label of a message to a bus company. They said: {votes}.
Decide. Answer with one of: {labels}

Message: {message}"""
REPORT = """Write a report of about 60 words on the messages of {batch} for the manager.

{table}"""


class Labelled(TypedDict):
    message: str
    label: str
    agreement: float


class Batch(TypedDict, total=False):
    batch: str
    messages: list[str]
    labelled: Annotated[list[Labelled], operator.add]
    report: str


class OneMessage(TypedDict):
    message: str


def build(parts: Any) -> Any:
    voters = [parts.llm.bind(temperature=0.8, seed=seed, max_tokens=8) for seed in range(VOTES)]

    def fan_out(state: Batch) -> list[Send]:
        return [Send("label", {"message": message}) for message in state["messages"]]

    async def label(state: OneMessage) -> Batch:
        prompt = LABEL.format(labels=", ".join(LABELS), message=state["message"])
        responses = await asyncio.gather(*(voter.ainvoke(prompt) for voter in voters))
        votes = [response.content.strip().lower() for response in responses]
        winner, count = Counter(votes).most_common(1)[0]
        if count == 1:
            prompt = REFEREE.format(votes=", ".join(votes), labels=", ".join(LABELS), message=state["message"])
            winner = (await parts.llm.ainvoke(prompt)).content.strip().lower()
        return {"labelled": [{"message": state["message"], "label": winner, "agreement": count / VOTES}]}

    async def report(state: Batch) -> Batch:
        ranked = sorted(state["labelled"], key=lambda one: (LABELS.index(one["label"]), -one["agreement"]))
        rows = [f"{one['label']:<10} {one['agreement']:.0%}  {one['message']}" for one in ranked]
        response = await parts.llm.ainvoke(REPORT.format(batch=state["batch"], table="\n".join(rows)))
        return {"report": response.content}

    graph = StateGraph(Batch)
    graph.add_node("label", label)
    graph.add_node("report", report)
    graph.add_conditional_edges(START, fan_out, ["label"])
    graph.add_edge("label", "report")
    graph.add_edge("report", END)
    return graph.compile()
