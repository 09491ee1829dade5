"""Agents, plain and accelerated: equal outputs whatever the number of rounds, and what is early of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk

import accel
from accel import accelerate
from accel_langgraph.tool_calls import closed_calls
from adapters.tests.agent_programs import (
    Streaming,
    as_one_class,
    as_pure,
    created,
    prebuilt,
    trading_desk,
    with_a_loop,
    with_tool_node,
)
from adapters.tests.core_fakes import World

QUESTIONS = [
    f"What of {subject}, {wanted}, please?"
    for subject, wanted in (
        ("tides", "2x2"),
        ("harbours", "1x1"),
        ("salt", "3x2"),
        ("airships", "0x0"),
        ("glass", "2x3"),
    )
]
COMPANIES = (("NVDA", "2024-05-10"), ("APPLE", "2024-06-11"), ("MSFT", "2023-07-12"), ("TESLA", "2022-08-13"))
LAST = "What of corals, 2x2, please?"


def asked(question: str) -> Any:
    return {"messages": [("user", question)]}


def plain(value: Any) -> Any:
    """Without ids that the framework makes up."""
    if isinstance(value, BaseMessage):
        return {name: item for name, item in value.model_dump().items() if name != "id" or "chatcmpl" in str(item)}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def invoke(graph: Any, value: Any) -> Any:
    return plain(graph.invoke(value))


def stream(graph: Any, value: Any) -> Any:
    return [plain(part) for part in graph.stream(value, stream_mode="values")]


def ainvoke(graph: Any, value: Any) -> Any:
    async def run() -> Any:
        return await graph.ainvoke(value)

    return plain(asyncio.run(run()))


@pytest.mark.parametrize("way", [invoke, stream, ainvoke])
@pytest.mark.parametrize("build", [prebuilt, created, with_tool_node, with_a_loop])
def test_outputs_are_equal_whatever_the_number_of_rounds(build: Callable[[World], Any], way: Any) -> None:
    fast, slow = accelerate(build(World())), build(World())
    for question in [*QUESTIONS, LAST]:
        assert way(fast, asked(question)) == way(slow, asked(question)), fast.explain()
        assert accel.settle()
    counts = fast.report().counts
    assert counts.missed == 0 and counts.retired == counts.issued, str(fast.report())


def trained(build: Callable[[World], Any], world: World) -> Any:
    fast = accelerate(build(world))
    for question in QUESTIONS[:3]:
        fast.invoke(asked(question))
        assert accel.settle()
    world.forget()
    return fast


@pytest.mark.parametrize("declare", [as_pure, as_one_class])
def test_tools_called_one_after_the_other_begin_together(declare: Any) -> None:
    world = World()
    fast = trained(partial(with_a_loop, declare=declare), world)
    visits = iter((3, 5))  # both rounds together: two searches and the weather, two searches

    def all_begun() -> None:
        many = next(visits)
        world.wait(lambda: len(world.texts("part", early=True) + world.texts("City", early=True)) >= many)

    world.hooks["tool_node"] = all_begun
    assert invoke(fast, asked(LAST)) == invoke(with_a_loop(World(), declare=declare), asked(LAST))
    assert world.texts("part", early=False) == world.texts("City", early=False) == []


def test_the_next_call_of_the_model_does_not_wait_for_the_nodes_between() -> None:
    world = World()
    fast = trained(with_tool_node, world)
    visits = iter(range(1, 4))

    def next_begun() -> None:
        coming = next(visits)
        if coming < 3:
            world.wait_early(f"{coming} rounds", over=True)

    world.hooks["audit"] = next_begun
    assert invoke(fast, asked(LAST)) == invoke(with_tool_node(World()), asked(LAST))
    assert world.texts("1 rounds", early=False) == world.texts("2 rounds", early=False) == []
    assert world.texts("part", early=False) == world.texts("City", early=False) == []


@pytest.mark.parametrize("way", [invoke, stream])
def test_tools_begin_while_the_model_goes_on_with_the_next_call(way: Any) -> None:
    world = World()

    def build(world: World) -> Any:
        return with_a_loop(world, Streaming)

    fast = trained(build, world)
    world.gates["call 1"] = threading.Event()
    answer = world.answer

    def go_on(text: str) -> str:
        if text.startswith("part 0"):
            world.gates["call 1"].set()
        return answer(text)

    world.answer = go_on
    assert way(fast, asked(LAST)) == way(build(World()), asked(LAST))
    assert world.texts("part 0", early=True)  # in the first round, after which the gate is open


def desk(company: str, date: str) -> Any:
    return {"messages": [("user", company)], "company": company, "date": date}


@pytest.mark.parametrize("way", [invoke, stream])
def test_every_agent_of_a_chain_begins_when_its_inputs_are_known(way: Any) -> None:
    world = World()
    fast, slow = accelerate(trading_desk(world)), trading_desk(World())
    for company in COMPANIES[:3]:
        assert way(fast, desk(*company)) == way(slow, desk(*company))
        assert accel.settle()
    world.forget()
    answer = world.answer

    def last_report_first(text: str) -> str:
        if text.startswith("0 rounds of You analyse market"):
            world.wait_early("2 rounds of You analyse news", over=True)
        return answer(text)

    world.answer = last_report_first
    assert way(fast, desk(*COMPANIES[3])) == way(slow, desk(*COMPANIES[3])), fast.explain()
    assert [world.texts(f"{n} rounds of You analyse news", early=False) for n in range(3)] == [[], [], []]
    assert world.texts("round", early=False) == [], "news was looked up early"
    assert fast.report().counts.missed == 0, str(fast.report())


def chunk(*parts: tuple[int | None, str | None, str]) -> ChatGenerationChunk:
    held: Any = [{"index": i, "name": name, "args": args, "id": f"id {i}" if name else None} for i, name, args in parts]
    return ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=held))


CLOSED = {"type": "tool_call", "id": "id 0"}


@pytest.mark.parametrize(
    ("chunks", "closed"),
    [
        ([chunk((0, "look", '{"a": '))], []),
        ([chunk((0, "look", '{"a": ')), chunk((0, None, "1}"))], [{"name": "look", "args": {"a": 1}, **CLOSED}]),
        ([chunk((0, "look", ""))], []),
        ([chunk((0, "look", "")), chunk((1, "see", ""))], [{"name": "look", "args": {}, **CLOSED}]),
        ([chunk((0, "look", "{")), chunk((1, "see", "{}"))], []),
        ([chunk((0, "look", '"a"'))], []),
        ([chunk((0, "look", "{}"), (1, "see", '{"b"'))], [{"name": "look", "args": {}, **CLOSED}]),
        ([chunk((None, "look", "{}"))], []),
        ([chunk((0, "look", "{}")), chunk((0, None, "")), chunk((2, "see", "{}"))], []),
    ],
)
def test_calls_are_known_when_nothing_more_can_change_them(
    chunks: list[ChatGenerationChunk], closed: list[Any]
) -> None:
    assert closed_calls(chunks) == closed
