"""What the first run with a saved plan calls early: components are known by where else the program uses them."""

from __future__ import annotations

from pathlib import Path

from accel import accelerate
from adapters.tests.core_fakes import Chat, World, three, train

NEW = {"q": "deserts of Chile"}


def test_a_component_is_known_by_another_site_that_calls_it(tmp_path: Path) -> None:
    """There are two models of one class: c calls the one that a does."""
    path, world = str(tmp_path / "plan.json"), World()
    ready = accelerate(three(world, Chat(world), Chat(world, style="!")))
    train(ready)
    ready.save_plan(path)

    world = World()
    world.hooks["c"] = lambda: world.wait_early("Gamma joins")
    fast = accelerate(three(world, Chat(world), Chat(world, style="!")), plan=path)
    assert fast.invoke(NEW)["c"] == "answer to <Gamma joins answer to <Alpha asks: deserts of Chile> with " + (
        "answer to <Beta asks: deserts of Chile>!.>"
    )
    assert len(world.texts("Gamma")) == 1 and not world.texts("Beta", early=True)


def test_what_calls_the_same_component_is_kept_by_a_process_that_never_went_there(tmp_path: Path) -> None:
    first, second = str(tmp_path / "first.json"), str(tmp_path / "second.json")
    world = World()
    ready = accelerate(three(world, Chat(world), Chat(world, style="!")))
    train(ready)
    ready.save_plan(first)
    between = accelerate(three(World(), Chat(World()), Chat(World(), style="!")), plan=first)
    between.save_plan(second)

    world = World()
    world.hooks["c"] = lambda: world.wait_early("Gamma joins")
    fast = accelerate(three(world, Chat(world), Chat(world, style="!")), plan=second)
    fast.invoke(NEW)
    assert len(world.texts("Gamma")) == 1
