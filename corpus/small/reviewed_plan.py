"""Plan that a person looks at: the graph pauses before the node that acts, and goes on as it was, step by step."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

ASYNC = True
INPUTS = [
    {"project": project}
    for project in (
        "a path through the reeds", "new numbers for all houses", "a market on the frozen lake",
        "a bus that stops everywhere", "a roof for the fountain", "trees for the school yard",
        "benches along the canal", "a bell for the fire brigade", "a library in a tram",
        "a kitchen in the town hall", "a tower to look at storks", "a night without lamps",
    )
]  # fmt: skip


class Project(TypedDict, total=False):
    project: str
    steps: list[str]
    risks: str
    orders: list[str]
    report: str


def build(parts: Any) -> Any:
    llm = parts.llm

    async def plan(state: Project) -> Project:
        response = await llm.ainvoke(f"Name 3 steps towards {state['project']}, one per line.")
        return {"steps": [line for line in response.content.split("\n") if line]}

    async def assess(state: Project) -> Project:
        steps = "\n".join(f"{number}. {step}" for number, step in enumerate(state["steps"], 1))
        return {"risks": (await llm.ainvoke(f"What may go wrong? About 50 words.\n\n{steps}")).content}

    async def act(state: Project) -> Project:
        orders = []
        for step in state["steps"]:
            prompt = f"Write an order of about 40 words to the builders of {state['project']}: {step}"
            orders.append((await llm.ainvoke(prompt)).content)
        return {"orders": orders}

    async def report(state: Project) -> Project:
        orders = "\n\n".join(state["orders"])
        prompt = f"Report to the council in about 70 words.\n\nRisks: {state['risks']}\n\nOrders:\n{orders}"
        return {"report": (await llm.ainvoke(prompt)).content}

    graph = StateGraph(Project)
    graph.add_node("plan", plan)
    graph.add_node("assess", assess)
    graph.add_node("act", act)
    graph.add_node("write_report", report)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "assess")
    graph.add_edge("assess", "act")
    graph.add_edge("act", "write_report")
    graph.add_edge("write_report", END)
    return graph.compile(checkpointer=InMemorySaver(), interrupt_before=["act"])


def turns(number: int) -> list[Any]:
    """What is said in a conversation, one after the other."""
    return [INPUTS[number], None]
