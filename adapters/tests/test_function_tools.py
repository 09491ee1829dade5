"""Tools made of functions: those that are declared are called early, and calls of the others are not seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool, tool

import accel
from accel import accelerate
from accel.parts.components import kind_of
from adapters.tests.agent_programs import Scripted, with_a_loop
from adapters.tests.core_fakes import World, chain
from adapters.tests.test_agents import LAST, QUESTIONS, asked, invoke

Declare = Callable[[Callable[..., Any]], BaseTool]


def registered(function: Callable[..., Any]) -> BaseTool:
    made: BaseTool = accel.register(tool(function), readonly=True, local=True, concurrency=8)
    return made


def with_metadata(function: Callable[..., Any]) -> BaseTool:
    made = StructuredTool.from_function(function, metadata={"readonly": True})
    accel.register(made, local=True, concurrency=8)
    return made


def unclear(function: Callable[..., Any]) -> BaseTool:
    """Nobody says that it changes nothing."""
    made = tool(function)
    accel.register(made, local=True, concurrency=8)
    return made


def trained(world: World, declare: Declare) -> Any:
    fast = accelerate(with_a_loop(world, Scripted, declare))
    for question in QUESTIONS:
        assert invoke(fast, asked(question)) == invoke(with_a_loop(World(), Scripted, declare), asked(question))
        assert accel.settle()
    world.forget()
    return fast


@pytest.mark.parametrize("declare", [registered, with_metadata])
def test_a_declared_tool_begins_when_the_model_has_called_it(declare: Declare) -> None:
    world = World()
    fast = trained(world, declare)
    visits = iter((3, 5))

    def all_begun() -> None:
        many = next(visits)
        world.wait(lambda: len(world.texts("part", early=True) + world.texts("City", early=True)) >= many)

    world.hooks["tool_node"] = all_begun
    assert invoke(fast, asked(LAST)) == invoke(with_a_loop(World(), Scripted, declare), asked(LAST))
    assert world.texts("part", early=False) == world.texts("City", early=False) == []
    assert fast.report().counts.missed == 0


@pytest.mark.parametrize("declare", [tool, unclear])
def test_calls_of_a_tool_that_nobody_declared_are_not_seen(declare: Any) -> None:
    world = World()
    fast = trained(world, declare)
    before = fast.report().demanded
    assert invoke(fast, asked(LAST)) == invoke(with_a_loop(World(), Scripted, declare), asked(LAST))
    assert world.texts("part", early=True) == world.texts("City", early=True) == []
    assert fast.report().demanded == before + 3, "calls of the model"


def test_a_tool_that_is_given_more_than_the_model_said_is_the_programs_own() -> None:
    world = World()

    def search(query: str, config: RunnableConfig) -> str:
        """Search."""
        assert config["metadata"] is not None
        return world.serve("search", query)

    def weather(city: str, days: int = 3, callbacks: Any = None) -> str:
        """Weather."""
        return world.serve("weather", city)

    by_name: dict[str, Callable[..., Any]] = {"search": search, "weather": weather}

    def declare(function: Callable[..., Any]) -> BaseTool:
        return registered(by_name[function.__name__])

    fast = accelerate(with_a_loop(world, Scripted, declare))
    for question in [*QUESTIONS, LAST]:
        assert invoke(fast, asked(question)) == invoke(with_a_loop(World(), Scripted, declare), asked(question))
        assert accel.settle()
    assert world.texts("part", early=True) == world.texts("City", early=True) == []


def test_tools_of_one_class_are_told_by_their_functions() -> None:
    """What is found out about one says nothing about another."""
    one, other = Tool("one", lambda text: text, "One."), Tool("other", lambda text: text * 2, "Other.")
    assert kind_of(one) != kind_of(other)
    assert kind_of(one) == kind_of(Tool("again", one.func, "Again."))


def test_the_report_says_of_a_declared_tool_what_keeps_it_from_being_early() -> None:
    @tool
    def look(query: str, config: RunnableConfig) -> str:
        """Look."""
        return f"found {query} for {config['configurable'].get('user')}"

    accel.register(look, readonly=True, local=True, concurrency=4)
    fast = accel.accelerate(chain(("a", lambda state: {"a": look.invoke({"query": state["q"]})})))
    for topic in ("tides", "reefs", "foxes"):
        fast.invoke({"q": topic})
        assert accel.settle()
    said = " ".join(str(accel.report(fast)).split())
    assert "the tool look is declared, but takes what its node has" in said and "nobody said" not in said
