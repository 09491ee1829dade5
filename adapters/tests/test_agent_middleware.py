"""Middleware of LangChain's agents that may rewrite or stop what goes to a model is a guard without being marked."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ModelCallLimitMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
    after_model,
    before_agent,
    before_model,
    dynamic_prompt,
    wrap_model_call,
    wrap_tool_call,
)
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

import accel
from accel import accelerate
from accel_langgraph.topology import topology_of
from adapters.tests.core_fakes import Chat, World


class Rewrites(AgentMiddleware[Any, Any]):
    def before_model(self, state: Any, runtime: Any) -> None:
        pass


class Waits(AgentMiddleware[Any, Any]):
    async def abefore_agent(self, state: Any, runtime: Any) -> None:
        pass


class Wraps(AgentMiddleware[Any, Any]):
    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)


class Address(PIIMiddleware):  # type: ignore[type-arg]
    """Of the user's own."""


class Watches(Rewrites):
    guard = False


class Decides(AgentMiddleware[Any, Any]):
    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)


class Counts(Decides):
    guard = False


@before_agent
def first_of_all(state: Any, runtime: Any) -> None:
    pass


@before_model
def before(state: Any, runtime: Any) -> None:
    pass


@after_model
def after(state: Any, runtime: Any) -> None:
    pass


@wrap_model_call
def around(request: Any, handler: Any) -> Any:
    return handler(request)


@wrap_tool_call
def around_tools(request: Any, handler: Any) -> Any:
    return handler(request)


@dynamic_prompt
def prompt(request: Any) -> str:
    return "You are kind."


def agent(world: World, *middleware: Any) -> Any:
    return create_agent(Chat(world), tools=[], middleware=list(middleware))


GUARDS: dict[str, tuple[Any, set[str]]] = {
    "redacts": (PIIMiddleware("email"), {"PIIMiddleware[email].before_model", "PIIMiddleware[email].after_model"}),
    "a class made of one that redacts": (Address("email"), {"Address[email].before_model"}),
    "limits calls": (ModelCallLimitMiddleware(run_limit=2), {"ModelCallLimitMiddleware.before_model"}),
    "limits calls of tools": (ToolCallLimitMiddleware(run_limit=2), {"ToolCallLimitMiddleware.after_model"}),
    "the user's, before a call": (Rewrites(), {"Rewrites.before_model"}),
    "the user's, a coroutine": (Waits(), {"Waits.before_agent"}),
    "the user's, around a call": (Wraps(), {"model"}),
    "a function before all": (first_of_all, {"first_of_all.before_agent"}),
    "a function before a call": (before, {"before.before_model"}),
    "a function after a call": (after, {"after.after_model"}),
    "a function around a call": (around, {"model"}),
    "a function around tools": (around_tools, {"tools"}),
    "decides about tools": (Decides(), {"tools"}),
}
NONE: dict[str, Any] = {
    "saves tokens": SummarizationMiddleware(Chat(World())),
    "tries again": ModelRetryMiddleware(),
    "keeps a list": TodoListMiddleware(),
    "gives a system prompt": prompt,
    "says so": Watches(),
    "says so of tools": Counts(),
    "tries tools again": ToolRetryMiddleware(),
}


@pytest.mark.parametrize("name", GUARDS)
def test_the_nodes_of_guards_are_known(name: str) -> None:
    """As `create_agent` makes them: nothing public says which node is whose."""
    middleware, nodes = GUARDS[name]
    inner = agent(World(), middleware)
    assert nodes <= (guards := topology_of(inner).guards) <= nodes | {f"{middleware.name}.after_model"}
    outer = StateGraph(MessagesState).add_node("agent", inner).add_edge(START, "agent").compile()
    assert guards and topology_of(outer).guards == {"agent"}


@pytest.mark.parametrize("name", NONE)
def test_what_keeps_nothing_from_a_model_is_none(name: str) -> None:
    assert topology_of(agent(World(), NONE[name])).guards == frozenset()


@pytest.mark.parametrize("says", [None, False])
def test_a_function_around_the_tools_of_a_node_is_a_guard_unless_it_says_otherwise(says: bool | None) -> None:
    def refuses(request: Any, execute: Any) -> Any:
        return execute(request)

    if says is not None:
        vars(refuses)["guard"] = says
    node = ToolNode([], wrap_tool_call=refuses)
    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()
    assert topology_of(graph).guards == ({"tools"} if says is None else frozenset())


class Open(PIIMiddleware):  # type: ignore[type-arg]
    guard = False


@pytest.mark.parametrize("redacts", [PIIMiddleware, Open])
def test_nothing_goes_to_a_model_past_it(redacts: Any) -> None:
    """Though it had nothing to redact so far."""
    world = World()

    def first(state: Any) -> Any:
        world.node("first")
        return {}

    builder = StateGraph(MessagesState).add_node("first", first).add_node("agent", agent(world, redacts("email")))
    builder.add_edge(START, "first").add_edge("first", "agent").add_edge("agent", END)
    fast = accelerate(builder.compile(), speculate="likely")
    for topic in ("the tides", "big rivers", "the ice", "sand and dust"):
        fast.invoke({"messages": [("user", f"tell about {topic}")]})
        assert accel.settle()
    if redacts is Open:  # where its class says that it is none, the call is early
        world.hooks["first"] = lambda: world.wait_early("tell about reefs")
    fast.invoke({"messages": [("user", "tell about reefs of kim@corp.example")]})
    assert accel.settle()
    assert any("kim@" in text for text in world.texts()) is (redacts is Open)
    assert bool(fast.report().issued) is (redacts is Open)
