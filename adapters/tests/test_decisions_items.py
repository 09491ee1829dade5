"""Decisions item by item: what is done for some items of a list only keeps their places, however many calls it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

import accel
from accel import accelerate
from accel.graph.predict import nested
from accel.text.extract import Open
from accel.text.paths import DROPPED, UNKNOWN, enumerate_stars, follow
from accel.text.steps import STAR
from adapters.tests.core_fakes import Chat, State, World, chain

TOPICS = ("volcanoes of Iceland", "glaciers of Norway", "deserts of Chile", "rivers of Siberia")
NAMES = ("the oldest", "the coldest", "the widest", "the loudest")
WANTED = {
    TOPICS[0]: (False, True, True, False),
    TOPICS[1]: (True, False, True, True),
    TOPICS[2]: (True, True, False, True),
    TOPICS[3]: (False, False, True, True),
}


def plan_of(topic: str) -> str:
    rows = [{"name": f"{name} of {topic}", "look": wanted} for name, wanted in zip(NAMES, WANTED[topic], strict=True)]
    return json.dumps({"rows": rows})


def said(text: str) -> str:
    return plan_of(text.removeprefix("Plan ")) if text.startswith("Plan ") else f"{len(text)} words on <{text[:60]}>"


def researcher(world: World) -> Any:
    """A plan says which items are looked into; of those each is described, judged, and all are summed up."""
    model = Chat(world)

    def plan(state: State) -> State:
        world.node("plan")
        return {"a": model.invoke(f"Plan {state['q']}").content}

    def look(state: State) -> State:
        world.node("look")
        found = []
        for row in json.loads(state["a"])["rows"]:
            if row["look"]:
                described = model.invoke(f"Describe {row['name']}").content
                found.append(model.invoke(f"Judge {row['name']} by: {described}").content)
        return {"b": found}

    def think(state: State) -> State:
        world.node("think")
        return {}

    def conclude(state: State) -> State:
        world.node("conclude")
        return {"c": model.invoke("Conclude from:\n" + "\n".join(f"- {one}" for one in state["b"])).content}

    return chain(("plan", plan), ("look", look), ("think", think), ("conclude", conclude))


def test_calls_for_some_items_are_made_before_their_node_is_reached() -> None:
    world = World(answer=said)
    fast = accelerate(researcher(world))
    for topic in TOPICS[:3]:
        fast.invoke({"q": topic})
        assert accel.settle()
    world.forget()
    topic = TOPICS[3]
    world.hooks["look"] = lambda: world.wait(lambda: len(world.texts("Judge", early=True)) == sum(WANTED[topic]))
    world.hooks["think"] = lambda: world.wait_early("Conclude")
    plain = researcher(World(answer=said)).invoke({"q": topic})
    assert fast.invoke({"q": topic}) == plain
    assert world.texts("Describe", early=False) + world.texts("Judge", early=False) == []
    assert len(world.texts("Describe")) == sum(WANTED[topic])


OUTPUTS = nested([(1,), (3,)], [{"t": "b"}, {"t": "d"}], 1, True, True)


def test_outputs_for_some_elements_stand_where_those_do() -> None:
    assert OUTPUTS == [DROPPED, {"t": "b"}, DROPPED, {"t": "d"}]
    assert enumerate_stars(OUTPUTS, (STAR, "t")) == ([(1,), (3,)], True)
    assert [follow(OUTPUTS, (STAR, "t"), (place,)) for place in range(4)] == [UNKNOWN, "b", UNKNOWN, "d"]


def test_what_is_not_decided_yet_ends_what_is_known() -> None:
    still = nested([(1,), (3,)], [{"t": "b"}, UNKNOWN], 1, False, True)
    assert isinstance(still, Open) and enumerate_stars(still, (STAR, "t")) == ([(1,), (3,)], False)
    assert follow(still, (STAR, "t"), (3,)) is UNKNOWN


@pytest.mark.parametrize("complete", [True, False])
def test_no_element_at_all(complete: bool) -> None:
    assert nested([], [], 1, complete, True) == [] and isinstance(nested([], [], 1, complete, True), list)
