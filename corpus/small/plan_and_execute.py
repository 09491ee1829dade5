"""Plan and execute: a numbered plan, a step per turn with the results so far in its prompt, and a final answer."""

from __future__ import annotations

import operator
import re
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph

INPUTS = [
    {"goal": goal}
    for goal in (
        "start a lending library for tools", "bring an old piano back into tune", "count the owls of a valley",
        "print a newspaper for one street", "teach a choir a song without sheet music", "dry the cellar of a school",
        "ship a sculpture to Chile", "rename a river ferry",
        "plant an orchard behind a station", "map the wells of a village", "stage a play in a barn",
        "mend the roof of a chapel",
    )
]  # fmt: skip

PLANNER = "Make a plan for this goal. Write exactly 3 numbered steps and nothing else.\n\nGoal: {goal}"
EXECUTOR = """You carry out one step of a plan. Say in about 45 words what came of it.

Goal: {goal}

Step: {step}

Done so far:
{done}"""
ANSWER = "The goal was to {goal}. Tell in about 70 words how it went.\n\n{done}"


class PlanState(TypedDict, total=False):
    goal: str
    plan: list[str]
    past_steps: Annotated[list[tuple[str, str]], operator.add]
    response: str


def parse_plan(text: str) -> list[str]:
    return [match.group(1).strip() for match in re.finditer(r"^\s*\d+[.)]\s*(.+)$", text, re.MULTILINE)]


def history(past: list[tuple[str, str]]) -> str:
    return "\n".join(f"{number}. {step} -> {result}" for number, (step, result) in enumerate(past, 1)) or "nothing yet"


def build(parts: Any) -> Any:
    llm = parts.llm

    def planner(state: PlanState) -> dict[str, Any]:
        text = llm.invoke(PLANNER.format(goal=state["goal"])).content
        return {"plan": parse_plan(text)}

    def execute_step(state: PlanState) -> dict[str, Any]:
        past = state.get("past_steps", [])
        step = state["plan"][len(past)]
        result = llm.invoke(EXECUTOR.format(goal=state["goal"], step=step, done=history(past)))
        return {"past_steps": [(step, result.content)]}

    def respond(state: PlanState) -> dict[str, Any]:
        response = llm.invoke(ANSWER.format(goal=state["goal"], done=history(state["past_steps"])))
        return {"response": response.content}

    def more_steps(state: PlanState) -> str:
        return "execute_step" if len(state["past_steps"]) < len(state["plan"]) else "respond"

    workflow = StateGraph(PlanState)
    workflow.add_node("planner", planner)
    workflow.add_node("execute_step", execute_step)
    workflow.add_node("respond", respond)
    workflow.add_edge(START, "planner")
    workflow.add_edge("planner", "execute_step")
    workflow.add_conditional_edges("execute_step", more_steps, ["execute_step", "respond"])
    workflow.add_edge("respond", END)
    return workflow.compile()
