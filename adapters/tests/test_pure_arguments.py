"""What a declared pure function is given matters as a whole: an early or shared result is of these very arguments."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.prompt_values import ChatPromptValue, StringPromptValue
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from pydantic import PrivateAttr

import accel
from accel import accelerate
from accel.text.comparable import is_comparable
from accel.text.values import Opaque, snapshot, thaw
from adapters.tests.core_fakes import Chat, World

TOPICS = ("bees and their hives", "iron smelting in Sweden", "the far side of the moon", "bread of long ago")


class State(TypedDict, total=False):
    topic: str
    out: list[Any]


def same_as_plain(work: Any) -> None:
    """A node does `work` with its topic; all its results are those of the unmodified program."""
    graph = StateGraph(State).add_node("work", lambda state: {"out": work(state["topic"])})
    compiled = graph.add_edge(START, "work").compile()
    fast = accelerate(compiled)
    for topic in TOPICS:
        assert fast.invoke({"topic": topic})["out"] == compiled.invoke({"topic": topic})["out"]
        assert accel.settle(10)


# --- ids of messages


class Messages(TypedDict, total=False):
    messages: Annotated[list[BaseMessage], add_messages]
    summary: str


def redacted(messages: list[BaseMessage]) -> list[BaseMessage]:
    return [message.model_copy(update={"content": f"[{len(str(message.content))}]"}) for message in messages]


def trimmed(messages: list[BaseMessage]) -> list[BaseMessage]:
    return [RemoveMessage(id=str(message.id)) for message in messages[:-2]]


@pytest.mark.parametrize("function", [redacted, trimmed])
@pytest.mark.parametrize("whole", [True, False], ids=["node", "function"])
def test_messages_are_overwritten_and_removed_by_the_ids_they_have(function: Any, whole: bool) -> None:
    model, tidied = Chat(World()), function if whole else accel.pure(function)

    def ask(state: Messages) -> Messages:
        return {"messages": [model.invoke([state["messages"][-1]])]}

    def again(state: Messages) -> Messages:
        return {"messages": [HumanMessage(f"more on {state['messages'][0].content}")]}

    def tidy(state: Messages) -> Messages:
        return {"messages": tidied(state["messages"])}

    def last(state: Messages) -> Messages:
        return {"summary": str(model.invoke(state["messages"]).content)}

    graph = StateGraph(Messages).add_sequence([ask, again, tidy, last]).add_edge(START, "ask").compile()
    fast = accelerate(graph, pure_nodes=("tidy",) if whole else (), speculate="likely")

    def told(program: Any, topic: str) -> Any:
        state = program.invoke({"messages": [HumanMessage(topic)]})
        return [(message.type, message.content) for message in state["messages"]], state["summary"]

    for topic in TOPICS:
        assert told(fast, topic) == told(graph, topic)
        assert accel.settle(10)


def test_messages_that_differ_in_their_made_up_ids_are_not_the_same_argument() -> None:
    identified = accel.pure(lambda message: str(message.id))
    ids = [f"0000000{number}-0000-0000-0000-000000000000" for number in range(3)]
    same_as_plain(lambda topic: [identified(AIMessage(topic, id=each)) for each in ids])


# --- subclasses, and what stands beside fields


class Scored(Document):
    score: float = 0.0


class Marked(HumanMessage):
    _mark: str = PrivateAttr("")


class MarkedDocument(Document):
    _mark: str = PrivateAttr("")


class MarkedPrompt(StringPromptValue):
    _mark: str = PrivateAttr("")


class Important(HumanMessage):
    important: bool = True
    language: str | None = "en"


def marked(value: Any, mark: str) -> Any:
    value._mark = mark
    return value


MADE: dict[str, Callable[[int], Any]] = {
    "document": lambda number: Scored(page_content="a", score=number),
    "document with a private attribute": lambda number: marked(MarkedDocument(page_content="a"), str(number)),
    "message": lambda number: Important("a", important=number > 0, language="en" if number else None),
    "message with a private attribute": lambda number: marked(Marked("a"), str(number)),
    "prompt": lambda number: StringPromptValue(text=f"a {number}"),
    "prompt with a private attribute": lambda number: marked(MarkedPrompt(text="a"), str(number)),
    "prompt of messages": lambda number: ChatPromptValue(messages=[Important("a", id="1", language=f"{number}")]),
}


def told(value: Any) -> Any:
    """All that a function may read of it."""
    return sorted({**vars(value), **(value.__pydantic_private__ or {})}.items())


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_arguments_that_differ_in_anything_are_not_the_same(make: Callable[[int], Any]) -> None:
    read = accel.pure(lambda value: str(told(value)))
    same_as_plain(lambda _: [read(make(number)) for number in (1, 0, 2, 1)])


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
@pytest.mark.parametrize("number", [0, 1])
def test_what_is_not_opaque_is_built_again_with_all_it_holds(make: Callable[[int], Any], number: int) -> None:
    value = make(number)
    [again] = thaw(snapshot([value], exact=True))
    assert type(again) is type(value) and told(again) == told(value)


# --- functions and classes


def test_a_function_that_keeps_something_is_never_the_same_argument() -> None:
    applied, count = accel.pure(lambda function: function()), [0]

    def counted() -> int:
        return count[0]

    def work(_: str) -> list[int]:
        found = []
        for count[0] in range(3):
            found.append(applied(counted))
        return found

    same_as_plain(work)


def test_a_class_of_the_program_may_change() -> None:
    class Limits:
        most = 0

    limited = accel.pure(lambda limits: limits.most)

    def work(_: str) -> list[int]:
        found = []
        for Limits.most in range(3):
            found.append(limited(Limits))
        return found

    same_as_plain(work)


def plain(text: str, most: int = 3) -> str:
    return text[:most]


def keeping(text: str, seen: list[str] = []) -> list[str]:  # noqa: B006  # what it keeps between calls
    return [*seen, text]


@pytest.mark.parametrize("value", [plain, len, json.dumps, str, Scored, State, datetime.date], ids=repr)
def test_what_never_changes_is_the_same_argument(value: Any) -> None:
    assert is_comparable([Opaque(value)])


@pytest.mark.parametrize(
    "value", [keeping, lambda: None, [].append, Document.model_validate, World.node, type("Limits", (), {})], ids=repr
)
def test_what_may_change_is_none(value: Any) -> None:
    assert not is_comparable([Opaque(value)])
