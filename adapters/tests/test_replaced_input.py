"""A question that a node rewrites: whether later calls go by the old or the new one is seen before it is guessed."""

from __future__ import annotations

from typing import Any

import pytest

import accel
from accel import accelerate
from adapters.tests.core_fakes import Chat, State, World, chain, train

CLEAR = ("volcanoes of Iceland", "glaciers of Norway")
UNCLEAR = ("the unclear deserts", "the unclear rivers", "the unclear forests")


def program(world: World, by_state: bool) -> Any:
    """Rewrites what is unclear; then b asks about the question, old or new, and about what a was told."""
    model = Chat(world)
    asked: dict[str, str] = {}

    def rewrite(state: State) -> State:
        world.node("rewrite")
        asked["q"] = state["q"]
        rewritten: State = {"q": state["q"].upper()} if "unclear" in state["q"] else {}
        return {"c": state["q"][::-1], **rewritten}

    def a(state: State) -> State:
        world.node("a")
        return {"a": model.invoke(f"Alpha asks: {state['c']}").content}

    def b(state: State) -> State:
        world.node("b")
        return {"b": model.invoke(f"Beta asks: {state['q'] if by_state else asked['q']}, {state['a']}").content}

    return chain(("rewrite", rewrite), ("a", a), ("b", b))


@pytest.mark.parametrize("by_state", [True, False])
def test_a_replaced_question_is_not_guessed_and_then_known(by_state: bool) -> None:
    world = World()
    fast = accelerate(program(world, by_state))
    train(fast, CLEAR)
    for topic in UNCLEAR[:2]:
        world.forget()
        fast.invoke({"q": topic})
        assert accel.settle()
        assert len(world.texts("Beta")) == 1, "nothing was sent in vain"
    world.forget()
    world.hooks["b"] = lambda: world.wait_early("Beta asks: THE" if by_state else "Beta asks: the")
    fast.invoke({"q": UNCLEAR[2]})
    assert len(world.texts("Beta")) == 1


def test_the_reason_is_told(tmp_path: Any) -> None:
    world, path = World(), str(tmp_path / "plan.json")
    fast = accelerate(program(world, by_state=True))
    train(fast, CLEAR)
    fast.save_plan(path)
    again = accelerate(program(world, by_state=True), plan=path)
    again.invoke({"q": UNCLEAR[0]})
    assert accel.settle()
    assert "the program's state has replaced what the run was given" in str(again.report())
    assert len(world.texts("Beta asks: the unclear")) == 0
