"""A program looks up a text of each tenant's in a dict, and changes one of them: the others' runs are foreseen as
before."""

from __future__ import annotations

from typing import Any

import pytest

import accel
from adapters.tests.core_fakes import Chat, World, chain

HOUSES = {
    "ann": "In this house all is told in rhymes, and in rhymes alone.",
    "ben": "Numbers come first here; words follow where they must.",
    "eve": "Whoever asks is greeted by name before he is answered.",
}
PLACES = ("Iceland", "Norway", "Chile", "Gabon", "Fiji", "Peru")
TOPICS = [f"{what} of {where}" for where in PLACES for what in ("rivers", "lakes", "hills")]
CHANGED = "This house says as little as it can, and says it once."


def program(world: World) -> Any:
    model = Chat(world)

    def first(state: Any) -> dict[str, str]:
        world.node("first")
        return {"a": model.invoke(f"{HOUSES[state['c']]}\nTell of the {state['q']}").content}

    def second(state: Any) -> dict[str, str]:
        world.node("second")
        return {"b": model.invoke(f"Which words name the {state['q']}? {HOUSES[state['c']]}").content}

    return chain(("first", first), ("second", second))


def ask(fast: Any, world: World, number: int, tenant: str) -> bool:
    """Whether its second call was early."""
    world.forget()
    found = fast.invoke({"q": TOPICS[number], "c": tenant})
    assert accel.settle()
    topic, house = TOPICS[number], HOUSES[tenant]
    asked = [f"{house}\nTell of the {topic}", f"Which words name the {topic}? {house}"]
    assert [found["a"], found["b"]] == [world.answer(text) for text in asked]
    assert not [text for text in world.texts() for other in HOUSES.keys() - {tenant} if HOUSES[other] in text]
    return asked[1] in world.texts(early=True)


def test_one_tenants_changed_text_is_nothing_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    fast = accel.accelerate(program(world))
    tenants = (*HOUSES, *HOUSES)
    before = [ask(fast, world, number, tenant) for number, tenant in enumerate(tenants)]
    assert before[3:] == [True] * 3, "three runs teach which text goes with whom"
    monkeypatch.setitem(HOUSES, "ann", CHANGED)
    for number, tenant in enumerate(("ann", "ben")):  # three runs that say the same as before are enough
        ask(fast, world, 6 + number, tenant)
    after = {tenant: ask(fast, world, 8 + number, tenant) for number, tenant in enumerate(HOUSES)}
    assert after == {"ann": False, "ben": True, "eve": True}


def test_a_text_that_is_changed_back_is_the_programs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    fast = accel.accelerate(program(world))
    for number, tenant in enumerate(HOUSES):
        ask(fast, world, number, tenant)
    with monkeypatch.context() as patched:
        patched.setitem(HOUSES, "ann", CHANGED)
        ask(fast, world, 3, "ann")
        for number, tenant in enumerate(("ben", "eve", "ben", "eve")):
            ask(fast, world, 4 + number, tenant)
    early = [ask(fast, world, 8 + number, tenant) for number, tenant in enumerate((*HOUSES, *HOUSES, *HOUSES))]
    assert early[-3:] == [True] * 3
