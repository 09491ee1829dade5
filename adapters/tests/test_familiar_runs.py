"""Of runs like others that were foreseen few are looked at: what users see is of all, and changes are noticed."""

from __future__ import annotations

from typing import Any

import accel
from accel import accelerate
from accel.run.gains.familiar import LOOKS, SELDOM

from .core_fakes import Chat, State, World, chain, three

RUNS = 8 * LOOKS


def asked(number: int) -> dict[str, str]:
    return {"q": f"history of lighthouse number {number} and its keepers"}


def run(fast: Any, number: int) -> Any:
    """One that is followed, although models of tests take no time that early calls could save."""
    fast.plan.pace.news()
    result = fast.invoke(asked(number))
    assert accel.settle()
    return result


def test_reports_and_the_last_run_are_of_all() -> None:
    world = World()
    fast = accelerate(three(world, Chat(world)))
    for number in range(RUNS):
        run(fast, number)
    assert fast.plan.last is not None and fast.plan.last.input == asked(RUNS - 1)
    assert fast.plan.runs == RUNS and len(fast.plan.history) == RUNS
    known = fast.plan.tally.runs
    assert RUNS - SELDOM < known <= RUNS
    assert [line.runs for line in fast.plan.tally.lines.values()] == [known] * 3
    assert len(fast.plan.tally.requests) == known, "means are over all that are known"


def test_another_wording_of_a_call_that_is_never_early_is_noticed() -> None:
    """What it asks leads to the others, and nothing that is in vain would tell."""
    world, wording = World(), ["Alpha asks"]
    model = Chat(world)

    def a(state: State) -> Any:
        return {"a": model.invoke(f"{wording[0]}: {state['q']}").content}

    def b(state: State) -> Any:
        return {"b": model.invoke(f"Beta asks: {state['q']}").content}

    fast = accelerate(chain(("a", a), ("b", b)))
    for number in range(RUNS):
        run(fast, number)
    wording[0] = "Alpha wonders"
    for number in range(RUNS, RUNS + SELDOM + 4):
        assert run(fast, number)["a"] == world.answer(f"Alpha wonders: {asked(number)['q']}")
    assert {node.within for node in fast.plan.learnt.nodes if node.predictable} == {"a", "b"}
    assert "Alpha wonders: " in str([node.input for node in fast.plan.learnt.nodes if node.within == "a"])
