"""Which expected call a demand is taken for, where several could be it."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

import accel
from accel import accelerate
from adapters.tests.catching_up import catch_up
from adapters.tests.core_fakes import TOPICS, Chat, SampledChat, World, train

NEW = {"q": "deserts of Chile"}


class Items(TypedDict, total=False):
    q: str
    lines: list[str]
    line: str
    found: Annotated[list[str], operator.add]


def fan_out(world: World) -> Any:
    """Three items, asked about side by side, each followed up on; the last one begins."""
    planner, worker = Chat(world, style="\n"), Chat(world)

    def plan(state: Items) -> Items:
        return {"lines": planner.invoke(f"List {state['q']}").content.strip().split("\n")}

    def each(state: Items) -> Items:
        if not state["line"].startswith("third"):
            world.wait(lambda: bool(world.texts("About third")))
        about = worker.invoke(f"About {state['line']}").content
        world.node("each")
        catch_up()
        return {"found": [worker.invoke(f"More than {about}").content]}

    builder = StateGraph(Items)
    builder.add_node("plan", plan)
    builder.add_node("each", each)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", lambda state: [Send("each", {"line": line}) for line in state["lines"]])
    builder.add_edge("each", END)
    return builder.compile()


def listed(text: str) -> str:
    if not text.startswith("List"):
        return f"answer to <{text}>"
    topic = text.removeprefix("List ")
    return "\n".join(f"{number} of {topic}" for number in ("first", "second", "third"))


def test_the_first_call_of_a_component_has_the_place_that_it_is_predicted_for(tmp_path: Path) -> None:
    """It shows which component the site calls, and is not the site's first element for that."""
    path, world = str(tmp_path / "plan.json"), World(answer=listed)
    ready = accelerate(fan_out(world))
    train(ready)
    ready.save_plan(path)

    world = World(answer=listed)
    fast = accelerate(fan_out(world), plan=path)
    fast.invoke(NEW)
    assert accel.settle()
    counts = fast.plan.history[-1]
    assert (counts.missed, counts.wasted) == (0, 0)
    assert counts.retired >= 2
    assert len(world.texts("About")) == len(world.texts("More")) == 3


def test_two_sites_that_ask_the_same_keep_their_samples_apart() -> None:
    """Both calls are made early; the second site demands first, and what follows is asked of its own sample."""
    world = World()
    model = SampledChat(world)

    def left(state: Any) -> Any:
        world.node("left")
        said = model.invoke(f"Both ask: {state['a']}").content
        world.node("left asked")
        return {"b": model.invoke(f"Left on {said}").content}

    def right(state: Any) -> Any:
        world.node("right")
        said = model.invoke(f"Both ask: {state['a']}").content
        world.node("right asked")
        return {"c": model.invoke(f"Right on {said}").content}

    def first(state: Any) -> Any:
        world.node("first")
        return {"a": model.invoke(f"First asks: {state['q']}").content}

    def both_early() -> None:
        world.wait(lambda: len(world.texts("Both", early=True)) == 2)

    fast = accelerate(side_by_side(first, left, right))
    world.hooks["right"] = lambda: world.wait(lambda: "left asked" in world.visits)
    for topic in TOPICS:
        world.forget()
        train(fast, [topic])
    world.forget()
    world.hooks["left"] = lambda: world.wait(lambda: "right asked" in world.visits)
    world.hooks["right"] = both_early
    fast.invoke(NEW)
    assert accel.settle()
    counts = fast.plan.history[-1]
    assert (counts.missed, counts.wasted) == (0, 0)
    assert counts.retired >= 4


def side_by_side(first: Any, left: Any, right: Any) -> Any:
    class Both(TypedDict, total=False):
        q: str
        a: str
        b: str
        c: str

    builder = StateGraph(Both)
    for node in (first, left, right):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "first")
    builder.add_edge("first", "left")
    builder.add_edge("first", "right")
    builder.add_edge("left", END)
    builder.add_edge("right", END)
    return builder.compile()
