"""Follow-up of a meeting: tasks with a number of days each as JSON, dates from the day of the meeting, reminders."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Annotated, Any, TypedDict

from langgraph.graph import StateGraph

ASYNC = True
NOTES = (
    "The roof leaks above the archive.", "The choir wants the hall on Thursdays.", "Nobody has the key of the shed.",
    "The bus takes another road in summer.", "The printer costs more than the books.", "A class visits in a fortnight.",
    "The oven has to be looked at.", "Two windows were left open.", "The garden needs a gate.",
    "The newsletter was late again.", "A donor asks for a receipt.", "The piano is out of tune.",
)  # fmt: skip
INPUTS = [
    {"held": f"2026-{3 + k // 2:02d}-{5 + 2 * k:02d}", "notes": f"{NOTES[k]} {NOTES[(5 * k + 1) % len(NOTES)]}"}
    for k in range(len(NOTES))
]


class Task(TypedDict):
    """Something to do after a meeting."""

    what: Annotated[str, ..., "What has to be done"]
    days: Annotated[int, ..., "In how many days at the latest, from 1 to 30"]


class Tasks(TypedDict):
    """What has to be done after a meeting."""

    tasks: Annotated[list[Task], ..., "The most urgent first"]


class Meeting(TypedDict, total=False):
    held: str
    notes: str
    tasks: list[dict[str, Any]]
    reminders: list[str]
    summary: str


REMIND = "Write a reminder of about 30 words: {what}. It is due on {due}."
SUMMARY = """Sum the meeting of {held} up in about 60 words. The next one is on {next}.

{notes}

{table}"""


def build(parts: Any) -> Any:
    extract = parts.llm.with_structured_output(Tasks)

    async def find_tasks(state: Meeting) -> Meeting:
        found = await extract.ainvoke(f"What has to be done after this meeting, and when?\n\n{state['notes']}")
        held = datetime.strptime(state["held"], "%Y-%m-%d")
        return {
            "tasks": [
                {"what": task["what"], "due": (held + timedelta(days=task["days"])).strftime("%d.%m.%Y")}
                for task in found["tasks"]
            ]
        }

    async def remind(state: Meeting) -> Meeting:
        prompts = [REMIND.format(what=task["what"].rstrip("."), due=task["due"]) for task in state["tasks"]]
        return {"reminders": [message.content for message in await asyncio.gather(*map(parts.llm.ainvoke, prompts))]}

    async def summarize(state: Meeting) -> Meeting:
        again = datetime.strptime(state["held"], "%Y-%m-%d") + timedelta(weeks=2)
        table = "\n".join(f"{task['due']}: {task['what']}" for task in state["tasks"])
        prompt = SUMMARY.format(held=state["held"], next=f"{again:%Y-%m-%d}", notes=state["notes"], table=table)
        return {"summary": (await parts.llm.ainvoke(prompt)).content}

    graph = StateGraph(Meeting)
    graph.add_sequence([find_tasks, remind, summarize])
    graph.set_entry_point("find_tasks")
    graph.set_finish_point("summarize")
    return graph.compile()
