"""Agents whose rounds are not all alike: tools that fail or write, messages that are dropped, calls that end a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.tools import BaseTool, tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

import accel
from accel import accelerate
from adapters.tests.agent_programs import Called, Scripted, as_pure, digest, research, rounds_of, supervisor
from adapters.tests.core_fakes import World
from adapters.tests.test_agents import LAST, QUESTIONS, asked, invoke, stream

Keep = Callable[[Sequence[BaseMessage]], Sequence[BaseMessage]]


def all_of(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    return messages


def agent_with(
    world: World, tools: list[BaseTool], script: Callable[..., Called] = research, keep: Keep = all_of, last: str = ""
) -> Any:
    """`keep`: which messages the model gets. `last`: a run ends when this tool is called."""
    llm = Scripted(world, script=script).bind_tools(tools)

    def agent(state: MessagesState) -> Any:
        world.node("agent")
        return {"messages": [llm.invoke([SystemMessage("You are curious."), *keep(state["messages"])])]}

    def books(state: MessagesState) -> Any:
        world.node("books")
        return {}

    def route(state: MessagesState) -> str:
        answer = state["messages"][-1]
        names = [call["name"] for call in answer.tool_calls] if isinstance(answer, AIMessage) else []
        return "tools" if names and last not in names else END

    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_node("books", books)
    graph.add_node("tools", ToolNode(tools, handle_tool_errors=True))
    graph.add_edge(START, "agent")
    graph.add_edge("agent", "books")
    graph.add_conditional_edges("books", route, ["tools", END])
    graph.add_edge("tools", "agent")
    return graph.compile()


def searching(world: World, bad: str = "") -> BaseTool:
    def search(query: str) -> str:
        """Search the web."""
        if bad and digest(query)[0] in bad:
            raise ValueError(f"nothing is known of {query}")
        return world.serve("search", f"{query} was found to be {digest(query)}.")

    return as_pure(search)


def weather(world: World) -> Callable[[str], str]:
    def weather(city: str) -> str:
        """The weather."""
        return world.serve("weather", city)

    return weather


def compare(build: Callable[[World], Any], way: Any) -> tuple[World, World]:
    world, plain = World(), World()
    fast, slow = accelerate(build(world)), build(plain)
    for question in [*QUESTIONS, LAST, *(LAST.replace("corals", other) for other in ("trams", "kites", "bells"))]:
        assert way(fast, asked(question)) == way(slow, asked(question)), fast.explain()
        assert accel.settle()
    return world, plain


@pytest.mark.parametrize("way", [invoke, stream])
def test_tools_that_fail_now_and_then(way: Any) -> None:
    compare(lambda world: agent_with(world, [searching(world, "0123"), as_pure(weather(world))]), way)


@pytest.mark.parametrize("way", [invoke, stream])
def test_a_tool_that_nobody_declared_is_called_by_the_program_alone(way: Any) -> None:
    world, plain = compare(lambda world: agent_with(world, [searching(world), tool(weather(world))]), way)
    assert world.texts("City", early=True) == []
    assert world.texts("City") == plain.texts("City") != []
    assert world.texts("part", early=True) != []


def test_messages_that_are_dropped() -> None:
    def some(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
        return messages if rounds_of(messages) < 2 else [messages[0], *messages[-2:]]

    def script(messages: Sequence[BaseMessage], names: list[str]) -> Called:
        key = digest(str(messages[-1].content))
        return [("search", {"query": f"part of {key}"})] if key[0] not in "0123" else []

    compare(lambda world: agent_with(world, [searching(world)], script, some), invoke)


def test_a_tool_that_ends_the_run_is_not_called_early_for_long() -> None:
    """The program never calls it, although the model does; that is learnt."""

    def script(messages: Sequence[BaseMessage], names: list[str]) -> Called:
        return research(messages, names) or [("submit", {"text": f"all of {len(messages)} messages"})]

    def build(world: World) -> Any:
        def submit(text: str) -> str:
            """Hand it in."""
            return world.serve("submit", text)

        return agent_with(world, [searching(world), as_pure(weather(world)), as_pure(submit)], script, last="submit")

    world, _ = compare(build, invoke)
    assert world.texts("all of") == []
    assert world.texts("part", early=True) != []


@pytest.mark.parametrize("way", [invoke, stream])
def test_a_handoff_to_the_graph_around_is_no_failure(way: Any) -> None:
    fast, slow = accelerate(supervisor(World())), supervisor(World())
    for question in [*QUESTIONS, LAST]:
        assert way(fast, asked(question)) == way(slow, asked(question)), fast.explain()
        assert accel.settle()
    assert not fast.plan.barriers, "nothing went wrong in any node"
    rounds = [node for node in fast.plan.learnt.nodes if "was asked" in str(node)]
    assert rounds and all(node.evidence.confidence == "verified" for node in rounds), fast.explain()
