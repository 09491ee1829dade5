"""A node that is sent items of one list first, and of another one later: the first ones are known with their list."""

from __future__ import annotations

import operator
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

import accel

from .core_fakes import StreamingChat, World

FEW = {"tides": 2, "reefs": 1, "moors": 2, "fjords": 0, "dunes": 2}
"""Of these topics, how many items are listed after a first reflection; after a second one there are none."""


class Research(TypedDict, total=False):
    q: str
    items: list[str]
    found: Annotated[list[str], operator.add]
    more: list[str]
    out: str


def said(text: str) -> str:
    kind, *_, topic = text.split()
    if kind == "List":
        count = 2 + len(topic) % 2
        return "".join(f"- {what} of {topic}\n~" for what in ("ways", "tales", "names")[:count]) + "That is all."
    if kind == "Reflect":
        return "\n".join(f"- more {what} of {topic}" for what in ("dates", "maps")[: FEW[topic]])
    return f"{kind} so much: {text[::-1]}"


def research(model: Any) -> Any:
    def items(text: str) -> list[str]:
        return [line[2:] for line in text.splitlines() if line.startswith("- ")]

    def plan(state: Research) -> Research:
        return {"items": items(model.invoke(f"List parts of {state['q']}").content)}

    def look(state: Any) -> Research:
        told = str(model.invoke(f"Look for {state['item']}").content)
        return {"found": [f"{told[:4]} [{len(told) % 7}] {told[4:].swapcase()}"]}  # no text that anybody else has had

    def reflect(state: Research) -> Research:
        told = " ".join(state["found"])
        return {"more": items(model.invoke(f"Reflect on {told} for {state['q']}").content)}

    def first(state: Research) -> Any:
        return [Send("look", {"item": item}) for item in state["items"]]

    def further(state: Research) -> Any:
        more = [item for item in state["more"] if len(state["found"]) < 4]
        return [Send("look", {"item": item}) for item in more] or "write"

    def write(state: Research) -> Research:
        return {"out": str(model.invoke(f"Write of {' '.join(state['found'])} for {state['q']}").content)}

    builder = StateGraph(Research)
    for node in (plan, look, reflect, write):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", first, ["look"])
    builder.add_edge("look", "reflect")
    builder.add_conditional_edges("reflect", further, ["look", "write"])
    builder.add_edge("write", END)
    return builder.compile()


def test_items_of_the_first_list_start_while_it_is_written_although_later_ones_are_of_another() -> None:
    world = World(answer=said)
    graph = research(StreamingChat(world))
    fast = accel.accelerate(graph)
    for topic in ("tides", "reefs", "moors", "fjords"):
        fast.invoke({"q": topic})
        assert accel.settle()
    world.forget()
    world.gates["piece 2"] = threading.Event()
    with ThreadPoolExecutor() as pool:
        run = pool.submit(fast.invoke, {"q": "dunes"})
        try:
            world.wait_early("Look for ways of dunes")
            world.wait_early("Look for tales of dunes")
        finally:
            world.gates["piece 2"].set()
        told = run.result()
    asked = sorted(world.texts())
    world.forget()
    assert told == graph.invoke({"q": "dunes"})
    assert asked == sorted(world.texts())
