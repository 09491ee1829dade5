"""Where a program works a text out by itself, the report names the function that may, and its line."""

from __future__ import annotations

import datetime
import gc
import hashlib
import time
from collections.abc import Callable
from typing import Any

from langchain_core.tools import tool
from langgraph.graph import START, StateGraph

import accel
from accel import accelerate
from accel.graph.rules import COMPUTED
from accel.learn.learner import UNEXPLAINED
from adapters.tests.test_report_rows import Declared
from adapters.tests.three_calls import State

TOPICS = ("bees and their hives", "iron smelting in Sweden", "the far side of the moon", "bread of long ago")
model = Declared()


def tally(text: str) -> str:
    """Nothing that a lesson could know."""
    return hashlib.sha256(text.encode()).hexdigest()


def other(text: str) -> str:
    return text.upper()


class Desk:
    def tally(self, text: str) -> str:
        return tally(text)


def asks(prompt: str) -> str:
    """It makes the call, so it computes nothing that goes into one."""
    return str(model.invoke(prompt).content)


def program(ask: Callable[[str], str]) -> Any:
    def work(state: State) -> State:
        time.sleep(0.03)
        return {"outline": "written"}

    def last(state: State) -> State:
        return {"both": ask(state["topic"])}

    graph = StateGraph(State).add_node("work", work).add_node("last", last)
    return graph.add_edge(START, "work").add_edge("work", "last").compile()


def report(graph: Any) -> Any:
    fast = accelerate(graph)
    for topic in TOPICS:
        fast.invoke({"topic": topic})
        assert accel.settle(10)
    return fast.report()


def lines(told: Any) -> list[str]:
    return [each.line for each in told.declarations if each.kind == "pure"]


def reasons(told: Any) -> list[str]:
    return [late.why for row in told.rows for late in row.late if late.rule == COMPUTED.name]


def named_by(function: Any) -> str:
    return f"(test_computing_functions.py:{function.__code__.co_firstlineno})"


def test_the_function_of_a_line_is_named_and_its_line_gains() -> None:
    def ask(topic: str) -> str:
        return asks(f"What does {tally(topic)} mean?")

    told = report(program(ask))
    assert lines(told) == ["tally = accel.pure(tally)"]
    (declaration,) = [each for each in told.declarations if each.kind == "pure"]
    assert declaration.where == f"test_computing_functions.py:tally:{tally.__code__.co_firstlineno}"
    assert declaration.gain_s > 0 and "tally only computes" in declaration.sure
    (reason,) = reasons(told)
    assert reason.startswith(UNEXPLAINED) and f"tally {named_by(tally)}" in reason and "accel.pure" in reason

    declared = accel.pure(tally)

    def ask_declared(topic: str) -> str:
        return asks(f"What does {declared(topic)} mean?")

    after = report(program(ask_declared))
    assert after.retired > 0 and lines(after) == [] and reasons(after) == []


def test_what_chooses_a_component_computes_nothing() -> None:
    models = {"plain": model}

    def get_model(name: str) -> Any:
        return models[name]

    told = report(program(lambda topic: str(get_model("plain").invoke(f"What does {tally(topic)} mean?").content)))
    assert lines(told) == ["tally = accel.pure(tally)"]
    assert not any("get_model" in reason for reason in reasons(told))


def made() -> Any:
    """A model of its own for each call."""
    return Declared()


def today() -> str:
    return f"{datetime.datetime.now(datetime.UTC):%B %Y}"


def test_what_makes_components_or_asks_for_the_time_computes_nothing() -> None:
    def ask(topic: str) -> str:
        return str(made().invoke(f"Today is {today()}. What does {hash_of(topic)} mean?").content)

    def hash_of(topic: str) -> str:
        return hashlib.sha256(topic.encode()).hexdigest()

    assert lines(report(program(ask))) == ["hash_of = accel.pure(hash_of)"]


@tool
def look_up(topic: str) -> str:
    """What a dictionary says."""
    time.sleep(0.03)
    return hashlib.sha256(topic.encode()).hexdigest()


def test_what_comes_after_an_undeclared_tool_may_be_what_that_said() -> None:
    def ask(topic: str) -> str:
        return asks(f"What does {other(look_up.invoke(topic))} mean?")

    told = report(program(ask))
    assert lines(told) == []


def test_methods_and_lambdas_are_named() -> None:
    desk = Desk()
    shorten = lambda text: tally(text)  # noqa: E731

    kept = program(lambda topic: asks(f"What does {desk.tally(topic)} mean?"))
    assert lines(report(kept)) == ["accel.pure(desk.tally)"]
    gc.collect()  # the functions of this program live on, and are the last to be found
    told = report(program(lambda topic: asks(f"What does {shorten(topic)} mean?")))
    assert lines(told) == ["shorten = accel.pure(shorten)"]


def test_of_several_none_is_chosen() -> None:
    told = report(program(lambda topic: asks(f"What does {tally(topic)} or {other(topic)} mean?")))
    assert lines(told) == []
    (reason,) = reasons(told)
    assert f"tally {named_by(tally)}" in reason and f"other {named_by(other)}" in reason


def test_without_a_function_the_reason_is_what_it_was() -> None:
    told = report(program(lambda topic: asks(f"What does {hashlib.sha256(topic.encode()).hexdigest()} mean?")))
    assert lines(told) == reasons(told) == []
    assert UNEXPLAINED in [late.why for row in told.rows for late in row.late]
