"""Reasoning without observation: a plan names its results #E1 and so on, each step reads those it names, one answer."""

from __future__ import annotations

import re
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

DOCUMENTS = [
    f"{town}: {note}"
    for town in ("Alba", "Brunn", "Cassel", "Dorn", "Elster", "Falk")
    for note in (
        "the lighthouse was built by fishermen and is open on Sundays.",
        "the museum shows boats, nets and the oldest compass of the coast.",
        "the ferry leaves at eight and at noon, and takes bicycles.",
        "the fair in August is known for smoked fish and for its parade.",
    )
]
INPUTS = [
    {"task": task}
    for task in (
        "Which town is best for a rainy Sunday with children?", "Where can I see old boats and eat smoked fish?",
        "How do I get to a lighthouse by bicycle?", "Which fair is worth a day's journey in August?",
        "Who built the lighthouses of this coast?", "What should a class of pupils see first?",
        "Where does the noon ferry go, and what is there?", "Which museum has the oldest compass?",
        "Where can a painter stay for a week?", "Which towns can be seen in one day?",
        "What do the parades have in common?", "Is there a town for people who dislike boats?",
    )
]  # fmt: skip

PLAN = """Make a plan of four steps for the task. Name the result of each step #E1, #E2 and so on, and give each a
tool:
Search[input], which looks something up in the travel guide, or LLM[input], which asks a model like yourself.
A later step may name the result of an earlier one in its input.

Task: {task}"""
STEP = r"Plan: Look at (the ferries|the fairs|museums|lighthouses) first\. "
FORM = (
    rf"{STEP}#E1 = Search\[(ferries|museums|lighthouses) of (Alba|Brunn|Cassel|Dorn)\]\n"
    rf"{STEP}#E2 = LLM\[Say in about 30 words what a visitor has to know, given #E1\]\n"
    rf"{STEP}#E3 = LLM\[Say in about 30 words what (children|walkers|painters) would like best, given #E1\]\n"
    rf"{STEP}#E4 = LLM\[Compare (the towns|the prices|the hours) in about 30 words, given #E2 and #E3\]"
)
SOLVE = """Solve the task with the plan below. The results of its steps are given. Answer in about 60 words.

{plan}

Task: {task}"""
LINE = re.compile(r"Plan:\s*(.+)\s*(#E\d+)\s*=\s*(\w+)\s*\[([^\]]+)\]")


class ReWOO(TypedDict, total=False):
    task: str
    plan_string: str
    steps: list[Any]
    results: dict[str, str]
    result: str


def build(parts: Any) -> Any:
    planner = parts.llm.bind(regex=FORM)

    def get_plan(state: ReWOO) -> dict[str, Any]:
        text = planner.invoke(PLAN.format(task=state["task"])).content
        return {"steps": LINE.findall(text), "plan_string": text}

    def current(state: ReWOO) -> int | None:
        done = state.get("results") or {}
        return None if len(done) == len(state["steps"]) else len(done)

    def tool_execution(state: ReWOO) -> dict[str, Any]:
        results = dict(state.get("results") or {})
        _, name, tool, tool_input = state["steps"][len(results)]
        for key, value in results.items():
            tool_input = tool_input.replace(key, value)
        if tool == "Search":
            found = parts.store.similarity_search(tool_input, k=2)
            results[name] = "; ".join(document.page_content for document in found)
        else:
            results[name] = parts.llm.invoke(tool_input).content
        return {"results": results}

    def solve(state: ReWOO) -> dict[str, Any]:
        plan = ""
        for sentence, name, tool, tool_input in state["steps"]:
            results = state["results"]
            for key, value in results.items():
                tool_input = tool_input.replace(key, value)
            plan += f"Plan: {sentence}\n{name} = {tool}[{tool_input}]\nResult: {results[name]}\n"
        return {"result": parts.llm.invoke(SOLVE.format(plan=plan, task=state["task"])).content}

    def route(state: ReWOO) -> str:
        return "solve" if current(state) is None else "tool"

    graph = StateGraph(ReWOO)
    graph.add_node("plan", get_plan)
    graph.add_node("tool", tool_execution)
    graph.add_node("solve", solve)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "tool")
    graph.add_conditional_edges("tool", route)
    graph.add_edge("solve", END)
    return graph.compile()
