"""Agents that tell their tools and models who asks: one user's name is no literal in a plan that others use, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatResult
from langchain_core.tools import StructuredTool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode

import accel
from accel import accelerate
from adapters.tests.agent_programs import Called, Scripted, digest, rounds_of
from adapters.tests.catching_up import catch_up
from adapters.tests.core_fakes import World

USERS = ["alice-4711"] * 4 + ["bob-0815", "carol-99", "bob-0815"]
"""Several runs of one before any of another."""
Sign = Callable[[Any, str], None]
"""What a program writes of who asks into a message."""


class Telling(Scripted):
    """It notes all that it is asked, names included."""

    def _result(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> ChatResult:
        self._world.serve("model", f"{[(message.name, message.additional_kwargs) for message in messages]} {kwargs}")
        return super()._result(messages, kwargs)


class Asked(MessagesState):
    user: str


def script(messages: Any, names: list[str]) -> Called:
    done, key = rounds_of(messages), digest(*(str(message.content) for message in messages))
    return [(names[0], {"query": f"part {i} of {key}"}) for i in range(2)] if done < 3 else []


def nobody(message: Any, user: str) -> None:
    """Messages say nothing of who asks."""


def answer_named(message: Any, user: str) -> None:
    if isinstance(message, AIMessage):
        message.name = user


def result_marked(message: Any, user: str) -> None:
    if not isinstance(message, AIMessage):
        message.additional_kwargs["for"] = user


def build(world: World, sign: Sign, own: str) -> Any:
    """`own`: begins the names of tools that each user has for themselves."""

    def search(query: str, user: Annotated[str, InjectedState("user")]) -> str:
        """Search what a user may read."""
        return world.serve("search", f"{query}, for {user}: {digest(query, user)}")

    declared, model = accel.pure(search, concurrency=8), Telling(world, script=script)
    made: dict[str, StructuredTool] = {}

    def tool_of(user: str) -> StructuredTool:
        name = f"{own}{user}" if own else "search"
        return made.setdefault(name, StructuredTool.from_function(declared, name=name))

    def agent(state: Asked) -> Any:
        answer = model.bind_tools([tool_of(state["user"])]).invoke([SystemMessage("Curious."), *state["messages"]])
        sign(answer, state["user"])
        return {"messages": [answer]}

    def books(state: Asked) -> Any:
        catch_up()
        return {}

    def tools(state: Asked) -> Any:
        said = ToolNode([tool_of(state["user"])]).invoke(state)
        for message in said["messages"]:
            sign(message, state["user"])
        return said

    graph = StateGraph(Asked)
    graph.add_node("agent", agent)
    graph.add_node("books", books)
    graph.add_node("tools", tools)
    graph.add_edge(START, "agent")
    graph.add_edge("agent", "books")
    graph.add_conditional_edges("books", lambda s: "tools" if s["messages"][-1].tool_calls else END, ["tools", END])
    graph.add_edge("tools", "agent")
    return graph.compile()


def said(result: Any) -> list[Any]:
    return [(m.content, m.name, m.additional_kwargs, getattr(m, "tool_calls", None)) for m in result["messages"]]


@pytest.mark.parametrize("own", ["", "library_of_"])
@pytest.mark.parametrize("sign", [nobody, answer_named, result_marked])
def test_nothing_is_asked_for_one_user_with_the_name_of_another(sign: Sign, own: str, tmp_path: Path) -> None:
    world, plain = World(), World()
    fast, slow = accelerate(build(world, sign, own)), build(plain, sign, own)
    for number, user in enumerate(USERS):
        world.forget(), plain.forget()
        value = {"user": user, "messages": [HumanMessage(f"Question {digest(str(number))}?", id=f"human {number}")]}
        assert said(fast.invoke(value)) == said(slow.invoke(value))
        assert accel.settle()
        assert set(world.texts()) <= set(plain.texts()), "what the plain program never asks"
        assert number < 3 or world.texts("part", early=True), "searches, whoever asks"
        fast.save_plan(tmp_path / "plan.json")
        kept = (tmp_path / "plan.json").read_text()
        assert not [name for name in USERS if name in kept]
