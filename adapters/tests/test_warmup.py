"""A configuration for each run of a warm-up: what differs with every request differs there, too."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver

import accel
from accel import accelerate
from accel.errors import ConfigurationError
from adapters.tests.core_fakes import TOPICS, Chat, World, after_thinking, three

INPUTS = [{"q": topic} for topic in TOPICS]
NEW = {"q": "deserts of Chile"}


def thread(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name}, "metadata": {"request": name}}


def early_of_a_new_thread(fast: Any) -> int:
    before = accel.report(fast).issued
    fast.invoke(NEW, thread("new"))
    return accel.report(fast).issued - before


def saving() -> Any:
    world = World()
    return accelerate(three(world, Chat(world, before=after_thinking), checkpointer=InMemorySaver()))


def test_what_differed_with_each_run_does_not_matter_afterwards() -> None:
    fast = saving()
    accel.warmup(fast, INPUTS, config=[thread("first"), thread("second")])
    assert early_of_a_new_thread(fast) > 0
    assert fast.get_state(thread("first")).values["q"] == TOPICS[0]


def test_one_configuration_is_that_of_all_runs() -> None:
    fast = saving()
    accel.warmup(fast, INPUTS, config=thread("only"))
    assert early_of_a_new_thread(fast) == 0, "no two threads were seen"
    assert fast.get_state(thread("only")).values["q"] == TOPICS[1]


async def test_coroutines_are_given_them_too() -> None:
    given: list[Any] = []

    async def note(value: str, config: RunnableConfig) -> str:
        given.append((value, config["configurable"]))
        return value

    fast = accelerate(RunnableLambda(note) | RunnableLambda(str))
    await accel.awarmup(fast, iter(["tides", "reefs"]), config=({"configurable": {"n": 1}}, {"configurable": {"n": 2}}))
    assert given == [("tides", {"n": 1}), ("reefs", {"n": 2})]


def test_errors_of_a_program_that_need_not_be_awaited_are_its_own() -> None:
    def wrong(value: str) -> str:
        raise TypeError(value)

    with pytest.raises(TypeError, match="tides"):
        accel.warmup(accelerate(RunnableLambda(wrong) | RunnableLambda(str)), ["tides", "reefs"])


def test_nothing_runs_where_configurations_are_wrong() -> None:
    world = World()
    fast = accelerate(three(world, Chat(world)))
    wrong: Any
    for wrong in ([thread("first")], "first", ["first", "second"], 7):
        with pytest.raises(ConfigurationError):
            accel.warmup(fast, INPUTS, config=wrong)
    assert accel.report(fast).runs == 0 and not accel.report(fast).demanded
