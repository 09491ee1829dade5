"""What a plan knows before the first user comes, and what later runs add to it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import accel
from accel import accelerate
from adapters.tests.core_fakes import Chat, State, World, chain, three, train

NEW = {"q": "deserts of Chile"}


def listing(world: World) -> Any:
    """A note on every item that it is given."""
    model = Chat(world)

    def notes(state: State) -> State:
        world.node("notes")
        return {"b": [model.invoke(f"Note on {item}").content for item in state["q"].split(", ")]}

    return chain(("notes", notes))


def test_a_longer_list_than_any_before_is_known_from_then_on() -> None:
    world = World()
    fast = accelerate(listing(world))
    train(fast, ["oak, ash, elm", "cod, eel, ray", "ruby, opal, onyx, topaz, beryl"])
    assert len(world.texts("Note on", early=True)) <= 3, "no more than any run had"
    world.forget()
    world.hooks["notes"] = lambda: world.wait(lambda: len(world.texts("Note on", early=True)) == 5)
    fast.invoke({"q": "rye, oats, wheat, rice, millet"})


async def test_a_program_of_coroutines_is_warmed_up() -> None:
    world = World()
    model = Chat(world)

    async def a(state: State) -> State:
        return {"a": (await model.ainvoke(f"Alpha asks: {state['q']}")).content}

    async def b(state: State) -> State:
        await asyncio.to_thread(world.node, "b")  # the early call goes on in this loop
        return {"b": (await model.ainvoke(f"Beta asks: {state['q']}")).content}

    fast = accelerate(chain(("a", a), ("b", b)))
    await fast.awarmup({"q": topic} for topic in ("volcanoes of Iceland", "glaciers of Norway"))
    assert fast.report().demanded == 4
    world.hooks["b"] = lambda: world.wait_early("Beta asks: deserts")
    await fast.ainvoke(NEW)
    assert world.texts("Beta asks: deserts", early=True)


def test_explanations_say_that_what_is_known_was_loaded(tmp_path: Path) -> None:
    path, world = str(tmp_path / "plan.json"), World()
    graph = three(world, Chat(world))
    ready = accelerate(graph)
    train(ready)
    assert accel.explain(ready).startswith("What waits for what, learnt from 2 requests:")
    ready.save_plan(path)

    fast = accelerate(graph, plan=path)
    assert accel.explain(fast).startswith("What waits for what, from a loaded plan:")
    assert accel.explain(fast, graph=True).startswith("p-graph, from a loaded plan:")
    fast.invoke(NEW)
    fast.invoke({"q": "lakes of Finland"})
    assert accel.explain(fast).startswith("What waits for what, from a loaded plan")


def test_the_first_object_of_a_scope_may_bring_a_plan(tmp_path: Path) -> None:
    path, world = str(tmp_path / "plan.json"), World()
    graph = three(world, Chat(world))
    ready = accelerate(graph)
    train(ready)
    ready.save_plan(path)

    first = accelerate(graph, plan=path, plan_scope="the first tenant")
    second = accelerate(graph, plan_scope="the first tenant")
    other = accelerate(graph, plan_scope="another tenant")
    assert first.plan is second.plan is not other.plan
    world.forget()
    world.hooks["b"] = lambda: world.wait_early("Beta asks")
    second.invoke(NEW)
    assert accel.settle()
    assert not other.plan.learnt.nodes


def test_a_worker_that_reads_a_plan_while_another_writes_it_reads_all_of_it(tmp_path: Path) -> None:
    world = World()
    fast = accelerate(three(world, Chat(world)))
    train(fast)
    path = tmp_path / "plan.json"
    path.write_text("of yesterday", encoding="utf-8")
    with path.open(encoding="utf-8") as reading:
        fast.save_plan(path)
        assert reading.read() == "of yesterday"
    assert [file.name for file in tmp_path.iterdir()] == ["plan.json"]
    accelerate(three(world, Chat(world)), plan=path)


def test_a_plan_is_written_to_the_file_that_a_link_names(tmp_path: Path) -> None:
    world = World()
    fast = accelerate(three(world, Chat(world)))
    train(fast)
    (tmp_path / "link.json").symlink_to(tmp_path / "plan.json")
    fast.save_plan(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    accelerate(three(world, Chat(world)), plan=tmp_path / "plan.json")
