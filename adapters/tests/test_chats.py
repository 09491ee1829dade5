"""Chats of any length: the messages so far, or the last ones, behind what a program says itself, or as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    get_buffer_string,
    trim_messages,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import accel

from .core_fakes import Chat, World, as_text

SYSTEM = SystemMessage("Be kind, and brief.")
ROUNDS = (4, 1, 0, 2, 3, 0)
"""How often the desk has answered in each of the chats that are learnt from."""
PLACED = ChatPromptTemplate.from_messages([
    ("system", "You answer {name}."), MessagesPlaceholder("before"), ("human", "{name} asks: {last}"),
])  # fmt: skip


class Talk(MessagesState, total=False):
    asked: list[tuple[str, str]]
    name: str
    mood: str
    note: str


class Caller(Chat):
    """Calls the tool that it is offered, once, and says nothing of itself."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=[{"type": "function", "function": {"name": each.name}} for each in tools])

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        said = self._world.serve(self.label, as_text(messages))
        last = messages[-1]
        calls = [{"name": "look", "args": {"what": last.content[-9:]}, "id": f"call {len(said)}"}]
        asks = "tools" in kwargs and isinstance(last, HumanMessage)
        message = AIMessage("", tool_calls=calls) if asks else AIMessage(said)
        return ChatResult(generations=[ChatGeneration(message=message)])


accel.register(Caller, pure=True, local=True, concurrency=8)


@tool
def look(what: str) -> str:
    """What is known of it."""
    return f"there is {len(what)} of {what[::-1]}"


look.metadata = {"readonly": True}


def chat(number: int, rounds: int) -> dict[str, Any]:
    messages: list[BaseMessage] = []
    for at in range(rounds):
        messages.append(HumanMessage(f"Question {at} of chat {number * 37}", id=f"q{number}{at}"))
        messages.append(AIMessage(f"Answer {at} in chat {number * 37}", id=f"a{number}{at}"))
    messages.append(HumanMessage(f"What now, in chat {number * 37}?", id=f"q{number}"))
    texts = [f"{message.content}, by letter" for message in messages]
    asked = list(zip(texts[:-1:2], texts[1::2], strict=True))
    return {"messages": messages, "asked": asked, "name": f"Customer {number * 41}"}


def placed(state: Any) -> Any:
    *before, last = state["messages"]
    return PLACED.invoke({"name": state["name"], "before": before, "last": last.content}).to_messages()


def named(message: BaseMessage) -> str:
    return f"{'Customer' if isinstance(message, HumanMessage) else 'Desk'}: {message.content}"


def line_by_line(state: Any) -> Any:
    *before, last = state["messages"]
    text = "So far:\n"
    for message in before:
        text += named(message) + "\n"
    return [HumanMessage(f"{text}\nNow the customer asks: {last.content}")]


ASKED: dict[str, Callable[[Any], Any]] = {
    "all of them": lambda state: [SYSTEM, *state["messages"]],
    "and a question behind": lambda state: [*state["messages"], HumanMessage(f"Sum it up for {state['name']}.")],
    "the last four": lambda state: [SYSTEM, *state["messages"][-4:]],
    "trimmed": lambda state: [
        SYSTEM, *trim_messages(state["messages"], max_tokens=3, token_counter=len, start_on="human"),
    ],
    "all but the last in a placeholder": placed,
    "with names as text": lambda state: [HumanMessage("Sum up:\n" + "\n".join(map(named, state["messages"])))],
    "as LangChain writes them": lambda state: [HumanMessage(f"Sum up: {get_buffer_string(state['messages'])}")],
    "by type": lambda state: [HumanMessage("\n".join(f"- {m.type}: {m.content}" for m in state["messages"]))],
    "line by line": line_by_line,
    "questions with their answers": lambda state: [
        HumanMessage("\n".join(f"Q: {q}\nA: {a}" for q, a in state["asked"][-3:]) + f"\nQ: {state['name']}?\nA:"),
    ],
    "or that there is none": lambda state: [
        HumanMessage(("\n".join(map(named, state["messages"][:-1])) or "Nothing so far.") + f"\nFor {state['name']}."),
    ],
}  # fmt: skip


def noted(world: World, model: Any, asked: Callable[[Any], Any]) -> Any:
    def mood(state: Talk) -> Any:
        world.node("mood")
        return {"mood": model.invoke(f"Mood of {state['name']}").content}

    def note(state: Talk) -> Any:
        return {"note": model.invoke(asked(state)).content}

    builder = StateGraph(Talk)
    builder.add_sequence([mood, note])
    builder.add_edge(START, "mood")
    return builder.compile()


@pytest.mark.parametrize("which", ASKED)
def test_a_call_with_a_chat_of_any_length_starts_with_the_request(which: str) -> None:
    world = World()
    fast = accel.accelerate(noted(world, Chat(world), ASKED[which]))
    for number, rounds in enumerate(ROUNDS):
        fast.invoke(chat(number, rounds))
        assert accel.settle()
    for number, rounds in enumerate((5, 0, 1), len(ROUNDS)):
        given = chat(number, rounds)
        text = as_text(ASKED[which](given))
        world.forget()
        world.hooks["mood"] = lambda text=text: world.wait_early(text)
        fast.invoke(given)
        assert sorted(world.texts()) == sorted([text, f"Mood of {given['name']}"])


def test_an_agent_that_is_given_a_chat_of_any_length_is_early_in_all_of_its_rounds() -> None:
    world = World()
    model = Caller(world)
    agent = model.bind_tools([look])

    def mood(state: Talk) -> Any:
        world.node("mood")
        return {"mood": model.invoke(f"Mood of {state['name']}").content}

    def answer(state: Talk) -> Any:
        return {"messages": [agent.invoke([SYSTEM, *state["messages"]])]}

    builder = StateGraph(Talk)
    builder.add_sequence([mood, answer])
    builder.add_node("tools", ToolNode([look]))
    builder.add_edge(START, "mood")
    builder.add_conditional_edges("answer", tools_condition)
    builder.add_edge("tools", "answer")
    fast = accel.accelerate(builder.compile(), egress="inputs")
    for number, rounds in enumerate(ROUNDS):
        fast.invoke(chat(number, rounds))
        assert accel.settle()
    world.forget()
    given = chat(9, 5)
    found = look.invoke({"what": given["messages"][-1].content[-9:]})
    last = "\n".join((as_text([SYSTEM, *given["messages"]]), "", found))
    world.hooks["mood"] = lambda: world.wait_early(last)
    fast.invoke(given)
    assert len(world.texts("Be kind")) == 2
