"""What `accel.pure` is given beside plain functions: methods, partial functions, lambdas, and what it refuses."""

from __future__ import annotations

import asyncio
import functools
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.func import task
from langgraph.graph import START, StateGraph
from llama_index.core.tools import FunctionTool

import accel
from accel import accelerate
from accel.errors import AccelWarning, ConfigurationError
from adapters.tests.three_calls import State

TOPICS = ("bees and their hives", "iron smelting in Sweden", "the far side of the moon", "bread of long ago")
TAKES_S = 0.03


class Desk:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def tally(self, topic: str) -> str:
        time.sleep(TAKES_S)
        self.asked.append(topic)
        return topic.upper()

    async def atally(self, topic: str) -> str:
        return self.tally(topic)

    @classmethod
    def of_all(cls, topic: str) -> str:
        return topic


class Declared(Desk):
    @accel.pure
    def count(self, topic: str) -> str:
        return self.tally(topic)

    @staticmethod
    @accel.pure
    def length(topic: str) -> str:
        time.sleep(TAKES_S)
        return str(len(topic))


def early(ask: Callable[[str], Any]) -> int:
    """How many calls of the last run were early, of a program that works before it calls; results are the plain
    ones."""

    def first(state: State) -> State:
        time.sleep(2 * TAKES_S)
        return {"outline": "written"}

    def last(state: State) -> State:
        return {"both": ask(f"count {state['topic']}")}

    graph = StateGraph(State).add_node("first", first).add_node("last", last)
    compiled = graph.add_edge(START, "first").add_edge("first", "last").compile()
    fast, before = accelerate(compiled), 0
    for topic in TOPICS:
        before = fast.report().retired
        assert fast.invoke({"topic": topic}) == compiled.invoke({"topic": topic})
        assert accel.settle(10)
    total: int = fast.report().retired
    return total - before


def test_a_method_of_an_object() -> None:
    """It is called as ever, and what `accel.pure` gives is the same method."""
    desk, other = Desk(), Desk()
    tally = accel.pure(desk.tally, concurrency=4)
    assert tally == desk.tally and tally("a") == "A"
    assert early(lambda topic: desk.tally(topic)) == 1
    assert early(tally) == 1
    assert early(lambda topic: other.tally(topic)) == 0, "it was said of the one object"


def test_a_method_in_the_body_of_its_class() -> None:
    desk = Declared()
    assert early(lambda topic: desk.count(topic)) == 1
    assert early(lambda topic: desk.tally(topic)) == 0


def test_a_static_method() -> None:
    assert Declared().length("abc") == "3"
    assert early(Declared.length) == 1


def slow_joined(first: str, second: str) -> str:
    time.sleep(TAKES_S)
    return f"{first} {second}"


def test_partial_functions_and_lambdas() -> None:
    partial = accel.pure(functools.partial(slow_joined, "all"))
    by_lambda = accel.pure(lambda topic: slow_joined(topic, "too"))
    assert partial("a") == "all a" and by_lambda("a") == "a too"
    assert early(lambda topic: partial(topic)) == 1
    assert early(lambda topic: by_lambda(topic)) == 1


@pytest.mark.parametrize(
    ("declared", "line"),
    [
        (accel.pure(slow_joined), "slow_joined = accel.pure(slow_joined, concurrency=8)"),
        (
            accel.pure(lambda a, b: slow_joined(a, b)),
            "accel.pure(..., concurrency=8) around the lambda, where it is made",
        ),
        (
            accel.pure(functools.partial(slow_joined)),
            "accel.pure(..., concurrency=8) around the partial, where it is made",
        ),
    ],
    ids=["function", "lambda", "partial"],
)
def test_the_line_for_several_at_a_time_can_be_pasted(declared: Any, line: str) -> None:
    def first(state: State) -> State:
        time.sleep(TAKES_S)
        return {"outline": "written"}

    def last(state: State) -> State:
        return {"both": " ".join([declared(str(number), state["topic"]) for number in range(3)])}

    graph = StateGraph(State).add_node("first", first).add_node("last", last)
    fast = accelerate(graph.add_edge(START, "first").add_edge("first", "last").compile())
    for topic in TOPICS:
        fast.invoke({"topic": topic})
        assert accel.settle(10)
    assert line in [each.line for each in fast.report().declarations]
    assert "function: " not in str(fast.report()), "its row has its own name"


class Asked:
    def __call__(self, topic: str) -> str:
        return slow_joined("asked", topic)


class Awaited:
    async def __call__(self, word: str) -> str:
        await asyncio.sleep(TAKES_S)
        return word[::-1]


@pytest.mark.parametrize("template", [ChatPromptTemplate, PromptTemplate])
def test_a_function_behind_a_prompt_template(template: Any) -> None:
    """It is given what the template makes, an object of LangChain's."""
    ask = RunnableLambda(accel.pure(lambda prompt: slow_joined(prompt.to_string(), "it is")))
    chain = template.from_template("Say what is known of {topic}:") | ask
    assert early(lambda topic: chain.invoke({"topic": topic})) == 1


def test_objects_that_can_be_called() -> None:
    asked = accel.pure(Asked())
    assert early(lambda topic: asked(topic)) == 1
    assert looked_up_by(accel.pure(Awaited()), awaited=True).retired >= 3


def test_a_method_that_was_put_into_its_class_later_says_so_once() -> None:
    class Late(Desk):
        pass

    Late.tally = accel.pure(Desk.tally)  # type: ignore[method-assign]
    with pytest.warns(AccelWarning, match=r"no call of the method Late\.tally go") as told:
        assert Late().tally("a") == Late().tally("a") == "A"
    assert len(told) == 1 and "accel.register(Late, methods=['tally'], pure=True)" in str(told[0].message)


def rows(topic: str) -> Iterator[str]:
    yield topic


class Rows:
    def __call__(self, topic: str) -> Iterator[str]:
        yield topic


def described(topic: str) -> str:
    """Nothing but the topic."""
    return topic


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (Desk.of_all, "Desk.of_all is a method of a class"),
        ("abc".upper, "'upper' of a str"),
        (Desk, r"accel\.register\(Desk, methods="),
        (None, "takes a function"),
        (7, "takes a function, not int"),
        (functools.partial(rows), "partial yields"),
        (Rows(), "Rows yields"),
        (FunctionTool.from_defaults(slow_joined), r"FunctionTool\.from_defaults\(accel\.pure\(f\)\)"),
        (tool(described), r"accel\.register\(obj, pure=True\)"),
        (RunnableLambda(slow_joined), r"RunnableLambda\(accel\.pure\(f\)\)"),
        (task(slow_joined), r"task\(accel\.pure\(f\)\)"),
    ],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__,
)
def test_what_it_can_not_declare_says_why(given: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        accel.pure(given)


def test_functions_of_modules_are_functions() -> None:
    assert accel.pure(math.sqrt)(4.0) == 2.0


def test_as_a_decorator_with_options() -> None:
    @accel.pure(concurrency=4)
    def count(topic: str) -> str:
        return slow_joined("count", topic)

    class Body:
        @accel.pure(concurrency=4)
        def tally(self, topic: str) -> str:
            return slow_joined("tally", topic)

    body = Body()
    assert early(lambda topic: count(topic)) == 1
    assert early(lambda topic: body.tally(topic)) == 1


def looked_up(*, awaited: bool, **options: int) -> Any:
    """A node that looks up four words, one after the other; accelerated, after requests for three others."""

    @accel.pure(**options)
    def plain(word: str) -> str:
        time.sleep(TAKES_S)
        return word[::-1]

    @accel.pure(**options)
    async def coroutine(word: str) -> str:
        await asyncio.sleep(TAKES_S)
        return word[::-1]

    return looked_up_by(coroutine if awaited else plain, awaited)


def looked_up_by(ask: Callable[[str], Any], awaited: bool) -> Any:
    async def look_up(state: State) -> State:
        words = state["topic"].split()
        return {"both": " ".join([await ask(word) if awaited else ask(word) for word in words])}

    graph = StateGraph(State).add_node("look_up", look_up).add_edge(START, "look_up").compile()
    fast = accelerate(graph)
    for words in ("ash birch cedar elm", "fir hazel ivy oak", "lime pear plum rowan", "sorrel thyme violet yew"):
        assert asyncio.run(fast.ainvoke({"topic": words})) == asyncio.run(graph.ainvoke({"topic": words}))
        assert accel.settle(10)
    return fast.report()


def test_early_calls_of_a_coroutine_function_run_side_by_side() -> None:
    assert looked_up(awaited=True).retired >= 3


def test_the_report_says_with_which_line_those_of_a_function_would() -> None:
    lines = [each.line for each in looked_up(awaited=False).declarations]
    assert "plain = accel.pure(plain, concurrency=8)" in lines
    assert not any("concurrency" in each.line for each in looked_up(awaited=False, concurrency=4).declarations)
