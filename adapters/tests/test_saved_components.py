"""What the first run with a saved plan calls early: components are known by where else the program uses them, and texts
by what the program says now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.prompts import PromptTemplate

import accel
from accel import accelerate
from adapters.tests.core_fakes import TOPICS, Chat, RemoteChat, State, World, chain, three, train

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


def test_sites_that_no_longer_call_the_same_component_tell_nothing_of_each_other(tmp_path: Path) -> None:
    path, world = str(tmp_path / "plan.json"), World()
    ready = accelerate(three(world, Chat(world)))
    train(ready)
    ready.save_plan(path)

    world = World()
    fast = accelerate(three(world, Chat(world, label="x"), Chat(world, label="y", style="!")), plan=path)
    fast.invoke(NEW)
    assert accel.settle()
    joined = [call for call in world.calls if call.text.startswith("Gamma") and "!" in call.text]
    assert [(call.component, call.early) for call in joined] == [("x", False)]


def test_an_endpoint_elsewhere_is_not_known_by_another_site(tmp_path: Path) -> None:
    path, world = str(tmp_path / "plan.json"), World()
    ready = accelerate(three(world, RemoteChat(world)), egress="inputs")
    train(ready)
    ready.save_plan(path)

    world = World()
    graph = three(world, RemoteChat(world, label="x"), RemoteChat(world, label="y"))
    fast = accelerate(graph, plan=path, egress="inputs")
    fast.invoke(NEW)
    assert accel.settle()
    assert [call.component for call in world.calls] == ["x", "y", "x"]


def test_the_call_that_shows_a_component_is_not_made_twice_where_the_prompt_has_changed(tmp_path: Path) -> None:
    def program(world: World, words: str) -> Any:
        model, other = Chat(world), Chat(world, style="!")

        def a(state: State) -> State:
            world.node("a")
            return {"a": model.invoke(f"{words}: {state['q']}").content}

        def b(state: State) -> State:
            return {"b": other.invoke(f"Beta asks: {state['q']}").content}

        return chain(("a", a), ("b", b))

    path, world = str(tmp_path / "plan.json"), World()
    ready = accelerate(program(world, "Alpha asks"))
    train(ready)
    ready.save_plan(path)

    fast = accelerate(program(World(), "Alpha wonders"), plan=path)
    fast.invoke(NEW)
    assert accel.settle()
    assert fast.report().issued == 0


def test_a_site_that_calls_several_components_stands_for_no_other(tmp_path: Path) -> None:
    """The plan is saved again by a process in which the first site called one model per user."""
    first, second = str(tmp_path / "first.json"), str(tmp_path / "second.json")
    world = World()
    ready = accelerate(three(world, Chat(world)))
    train(ready)
    ready.save_plan(first)
    between = accelerate(three(world, Chat(world)), plan=first)
    site = next(node.site for node in between.plan.learnt.nodes if node.name == "a.decode")
    between.plan.used.at[site] = ready.plan.used.at[site]
    between.plan.used.varying.add(site)
    between.save_plan(second)
    calls = accelerate(three(world, Chat(world)), plan=second).plan.used.saved
    assert all(call.like == where for where, call in calls.items())


def asking(world: World, prompt: Callable[[str], str]) -> Any:
    """A question, and another one by `prompt`."""
    model = RemoteChat(world, base_url="")

    def a(state: State) -> State:
        world.node("a")
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        return {"b": model.invoke(prompt(state["q"])).content}

    return chain(("a", a), ("b", b))


def formatted(world: World, words: str) -> Any:
    """The words come from a file, say, into a prompt template, which is the program's own."""
    template = PromptTemplate.from_template(words + " {topic}")
    return asking(world, lambda topic: template.format(topic=topic))


def joined(world: World, words: str) -> Any:
    """The same with a variable."""
    return asking(world, lambda topic: f"{words} {topic}")


def saved_of_acme(program: Any, tmp_path: Path) -> str:
    path = str(tmp_path / "plan.json")
    ready = accelerate(program(World(), ACME), egress="inputs")
    train(ready)
    ready.save_plan(path)
    return path


ACME, GLOBEX = "The rules of Acme are secret.", "Globex is kind to all."


@pytest.mark.parametrize("program", [formatted, joined])
def test_what_another_process_said_is_not_sent_by_one_that_does_not_say_it(program: Any, tmp_path: Path) -> None:
    path = saved_of_acme(program, tmp_path)
    world = World()
    fast = accelerate(program(world, GLOBEX), plan=path, egress="inputs")
    train(fast, ("deserts of Chile", *TOPICS))
    assert not any("Acme" in text for text in world.texts())
    world.forget()
    world.hooks["a"] = lambda: world.wait_early("Globex is")
    fast.invoke({"q": "rivers of Siberia"})
    assert accel.settle()
    assert world.texts("Globex is", early=True) and not any("Acme" in text for text in world.texts())
    fast.save_plan(path)
    assert "Globex" in (written := Path(path).read_text()) and "Acme" not in written


@pytest.mark.parametrize("program", [formatted, joined])
def test_what_it_says_as_well_goes_early_with_the_first_run(program: Any, tmp_path: Path) -> None:
    path = saved_of_acme(program, tmp_path)
    world = World()
    fast = accelerate(program(world, ACME), plan=path, egress="inputs")
    fast.invoke(NEW)
    assert accel.settle()
    assert world.texts(ACME, early=True)
