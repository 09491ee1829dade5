"""Agent with tools: the model asks for two tools, which only read, and then answers.

Calls per request: 2 of the model and 2 of tools.
"""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

import accel
from corpus.answers import LOOKUP_S, answer, seconds
from corpus.components import Model
from corpus.served import ASYNC

SYSTEM = SystemMessage("Use the tools before you answer.")


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class LookUp(BaseTool):
    """A tool that reads what nobody changes."""

    scale: float = 1.0

    def _run(self, query: str) -> str:
        time.sleep(self.scale * seconds(query, LOOKUP_S))
        return answer(f"{self.name}: {query}")

    async def _arun(self, query: str) -> str:
        await asyncio.sleep(self.scale * seconds(query, LOOKUP_S))
        return answer(f"{self.name}: {query}")


class Scripted(Model):
    """Asks for both tools first."""

    def _reply(self, messages: list[BaseMessage]) -> AIMessage:
        if isinstance(messages[-1], ToolMessage):
            return super()._reply(messages)
        question = messages[-1].text
        wanted = {"encyclopedia": question, "archive": answer(f"A query of the archive on {question}")}
        calls = [
            {"name": name, "args": {"query": query}, "id": f"call-{number}", "type": "tool_call"}
            for number, (name, query) in enumerate(wanted.items())
        ]
        return AIMessage("", tool_calls=calls)


accel.register(LookUp, readonly=True, local=True, concurrency=10_000, twins=True)


def build(style: str, scale: float) -> Any:
    tools = [
        LookUp(name="encyclopedia", description="Articles on everything.", scale=scale),
        LookUp(name="archive", description="What was written here before.", scale=scale),
    ]
    llm, named = Scripted(scale=scale).bind_tools(tools), {tool.name: tool for tool in tools}

    def think(state: State) -> dict[str, Any]:
        return {"messages": [llm.invoke([SYSTEM, *state["messages"]])]}

    def act(state: State) -> dict[str, Any]:
        asked = state["messages"][-1]
        assert isinstance(asked, AIMessage)
        return {"messages": [named[call["name"]].invoke(call) for call in asked.tool_calls]}

    async def athink(state: State) -> dict[str, Any]:
        return {"messages": [await llm.ainvoke([SYSTEM, *state["messages"]])]}

    async def aact(state: State) -> dict[str, Any]:
        asked = state["messages"][-1]
        assert isinstance(asked, AIMessage)
        return {"messages": [await named[call["name"]].ainvoke(call) for call in asked.tool_calls]}

    def after(state: State) -> str:
        asked = state["messages"][-1]
        return "act" if isinstance(asked, AIMessage) and asked.tool_calls else END

    builder = StateGraph(State)
    builder.add_node("think", athink if style == ASYNC else think)
    builder.add_node("act", aact if style == ASYNC else act)
    builder.add_edge(START, "think")
    builder.add_conditional_edges("think", after, ["act", END])
    builder.add_edge("act", "think")
    return builder.compile()


def _outcome(state: Any) -> Any:
    """Without the ids, which are new in every run."""
    return [
        [message.type, message.content, getattr(message, "tool_calls", None), getattr(message, "tool_call_id", None)]
        for message in state["messages"]
    ]


def ask(app: Any, question: str) -> Any:
    return _outcome(app.invoke({"messages": [HumanMessage(question)]}))


async def aask(app: Any, question: str) -> Any:
    return _outcome(await app.ainvoke({"messages": [HumanMessage(question)]}))
