"""A saved plan goes on where new runs teach something: what it knows of branches they didn't take stays."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import accel
from accel import accelerate
from adapters.tests.core_fakes import Chat, State, World, forked
from adapters.tests.test_decisions import TOPICS, said


def puzzling_router(world: World) -> Any:
    """A routing call, one that nothing known explains, then one of two nodes that ask twice."""
    model = Chat(world)

    def route(state: State) -> State:
        return {"a": model.invoke(f"Route: {state['q']}").content}

    def puzzle(state: State) -> State:
        world.node("puzzle")
        return {"b": model.invoke(f"Number {hashlib.sha256(state['q'].encode()).hexdigest()}").content}

    def hot(state: State) -> State:
        world.node("hot")
        return {"c": model.invoke(f"Fire and {state['q']}").content}

    def cold(state: State) -> State:
        world.node("cold")
        first = model.invoke(f"Ice and {state['q']}").content
        return {"c": model.invoke(f"Snow on {first}").content}

    return forked(route, puzzle, hot, cold)


def test_a_branch_that_no_new_run_took_is_still_known(tmp_path: Path) -> None:
    path, world = str(tmp_path / "plan.json"), World(answer=said)
    ready = accelerate(puzzling_router(world))
    for topic in TOPICS:
        ready.invoke({"q": topic})
        assert accel.settle()
    ready.save_plan(path)

    world = World(answer=said)
    fast = accelerate(puzzling_router(world), plan=path)
    for topic in ("embers, hot", "stoves, hot", "ovens, hot"):
        fast.invoke({"q": topic})
        assert accel.settle()
    world.forget()
    world.hooks["cold"] = lambda: world.wait_early("Snow on")
    fast.invoke({"q": "glaciers of Norway, cold"})
    assert len(world.texts("Ice and")) == len(world.texts("Snow on")) == 1
