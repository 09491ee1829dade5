"""The agents that LangGraph and LangChain build, with their tool nodes; plain, accelerated and forced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from compat_tests.fakes import Parts
from compat_tests.graphs import TOPICS
from compat_tests.named import asked, catch_up, said, was_early
from compat_tests.named_models import AgentChat, declare

ACCEL_DIFFERENTIAL = True

Compared = Callable[..., None]
BUILDERS = ["prebuilt", "langchain"]
pytestmark = pytest.mark.filterwarnings("ignore::langgraph.warnings.LangGraphDeprecatedSinceV10")


def built(kind: str, model: Any, tools: list[BaseTool], **options: Any) -> Any:
    if kind == "prebuilt":
        return create_react_agent(model, tools, prompt="You are curious.", **options)
    return create_agent(model, tools, system_prompt="You are curious.", **options)


def tools_of(parts: Parts, used: list[str]) -> list[BaseTool]:
    @tool
    def look(query: str) -> str:
        """Look something up."""
        catch_up()
        used.append(f"look {query}")
        first = said(parts.local, f"Search terms for {query}")
        said(parts.local, f"Doubts on {query}")
        return said(parts.local, f"Look {first} up")

    @tool
    def count(query: str) -> str:
        """Count the letters of something."""
        catch_up()
        used.append(f"count {query}")
        return f"{len(query)} as in {said(parts.local, f'Number of {query}')}"

    return [look, count]


@pytest.mark.parametrize("kind", BUILDERS)
def test_agents_with_tools(parts: Parts, accel_mode: str, compared: Compared, kind: str) -> None:
    """Each step and each tool once, in order, with the same messages."""
    used: list[str] = []
    declare(accel_mode, AgentChat)
    agent = built(kind, AgentChat(parts.probe), tools_of(parts, used))
    for topic in (*TOPICS, "cedar 44", "river 55"):
        used.clear()
        found = agent.invoke({"messages": [("human", topic)]})
        assert [message.type for message in found["messages"]] == ["human", "ai", "tool", "ai", "tool", "ai"]
        assert [one.split()[0] for one in used] == ["look", "count"]
        compared(used)
    was_early(agent, accel_mode, 1)


@pytest.mark.parametrize("kind", BUILDERS)
async def test_async_agents_stream(parts: Parts, accel_mode: str, compared: Compared, kind: str) -> None:
    used: list[str] = []
    declare(accel_mode, AgentChat)
    agent = built(kind, AgentChat(parts.probe), tools_of(parts, used), checkpointer=InMemorySaver())
    for topic in TOPICS:
        config: Any = {"configurable": {"thread_id": topic}}
        given = {"messages": [("human", topic)]}
        assert [chunk async for chunk in agent.astream(given, config, stream_mode=["updates", "messages"])]
    compared(used)


@pytest.mark.parametrize("kind", BUILDERS)
def test_agents_that_ask_people(parts: Parts, accel_mode: str, compared: Compared, kind: str) -> None:
    """A tool interrupts; what comes after it waits, also when the runs before went through."""
    declare(accel_mode, AgentChat)
    booked: list[str] = []

    @tool
    def book(query: str) -> str:
        """Book something."""
        catch_up()
        price = said(parts.local, f"Price of {query}")
        answer = interrupt({"price": price})
        booked.append(query)
        return said(parts.local, f"Book {query} as {answer}")

    agent = built(kind, AgentChat(parts.probe), [book], checkpointer=InMemorySaver())
    for topic in TOPICS:
        config: Any = {"configurable": {"thread_id": f"{topic}"}}
        given: Any = {"messages": [("human", topic)]}
        resumed = 0
        parts.probe.calls.clear()
        while "__interrupt__" in agent.invoke(given, config):
            assert len(booked) == len(asked(parts, "Book")) == resumed
            given, resumed = Command(resume=f"yes {resumed}"), resumed + 1
        booked.clear()
        compared(resumed, agent.get_state(config).values["messages"])


@pytest.mark.parametrize("kind", BUILDERS)
def test_structured_answers(parts: Parts, accel_mode: str, compared: Compared, kind: str) -> None:
    """A response format is filled by the model's tool calls."""

    class Found(BaseModel):
        query: str

    declare(accel_mode, AgentChat)
    if kind == "prebuilt":
        agent = create_react_agent(AgentChat(parts.probe), [], response_format=Found)
    else:
        from langchain.agents.structured_output import ToolStrategy

        agent = create_agent(AgentChat(parts.probe), [], response_format=ToolStrategy(Found))
    for topic in TOPICS:
        found = agent.invoke({"messages": [("human", topic)]})  # type: ignore[arg-type]
        assert isinstance(found["structured_response"], Found)
        compared(found["structured_response"])


def test_middleware_runs_as_it_would(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """Hooks before, around and after the model; one retries, one answers instead of the model."""
    declare(accel_mode, AgentChat)
    heard: list[str] = []

    class Watching(AgentMiddleware[Any, Any]):
        def before_model(self, state: Any, runtime: Any) -> None:
            catch_up()
            heard.append(f"before {len(state['messages'])}")

        def after_model(self, state: Any, runtime: Any) -> None:
            heard.append(f"after {state['messages'][-1].tool_calls}")

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            if "33" in request.messages[0].content:
                return AIMessage("not that topic")
            handler(request)
            return handler(request.override(system_prompt=f"Think {len(request.messages)} times."))

    class Listening(AgentMiddleware[Any, Any]):
        guard = False

        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            heard.append(f"tool {request.tool_call['args']}")
            return handler(request)

    used: list[str] = []
    agent = create_agent(AgentChat(parts.probe), tools_of(parts, used), middleware=[Watching(), Listening()])
    for topic in (*TOPICS, "cedar 44"):
        agent.invoke({"messages": [("human", topic)]})  # type: ignore[arg-type]
    compared(heard, used)
    was_early(agent, accel_mode, 1)
