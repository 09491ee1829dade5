"""Streams that nobody reads to their end: what is inside them ends with them, once, and no event loop hears of it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableGenerator
from langgraph.graph import END, START, StateGraph

import accel
from adapters.tests.core_fakes import Chat, State, World


class Slow(Chat):
    """Streams words, and takes a while for each and for its end."""

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        try:
            for _ in range(1000):
                await asyncio.sleep(0.001)
                yield ChatGenerationChunk(message=AIMessageChunk(content="word "))
        finally:
            await asyncio.sleep(0)
            self._world.visits.append("closed")


accel.register(Slow, pure=True, local=True, concurrency=8, streams_equal=True)


def graph(world: World, node: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("a", node)
    builder.add_edge(START, "a")
    builder.add_edge("a", END)
    return builder.compile()


def of_a_run(world: World, model: Any) -> Any:
    async def talk(state: State) -> Any:
        async for _ in model.astream(state["q"]):
            pass

    return accel.accelerate(graph(world, talk)).astream({"q": "lakes"}, stream_mode="messages")


def of_a_chain_in_a_node(world: World, model: Any) -> Any:
    async def parts(texts: Any) -> Any:
        async for text in texts:
            yield text

    return (model | RunnableGenerator(parts)).astream("lakes")


def in_a_circle(stream: Any) -> None:
    circle = [stream]
    circle.append(circle)


async def thrown_away(stream: Any, world: World) -> None:
    await anext(stream)
    in_a_circle(stream)
    del stream
    gc.collect()
    for _ in range(1000):
        if world.visits:
            break
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("begin", [of_a_run, of_a_chain_in_a_node])
def test_a_stream_in_a_circle_that_is_collected_is_closed_once(begin: Any) -> None:
    world, heard = World(), list[Any]()
    model = Slow(world)

    async def read() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, said: heard.append(said))
        if begin is of_a_run:
            await thrown_away(begin(world, model), world)
        else:

            async def talk(state: State) -> Any:
                await thrown_away(begin(world, model), world)

            await accel.accelerate(graph(world, talk)).ainvoke({"q": "lakes"})
        gc.collect()
        await asyncio.sleep(0.01)

    asyncio.run(read())
    gc.collect()
    assert heard == [] and world.visits == ["closed"]


def test_a_call_of_no_run_is_closed_with_its_stream() -> None:
    """It is over when `aclose` is, as it would be without Accel."""
    world = World()
    model = Slow(world)
    accel.accelerate(graph(world, lambda state: {}))

    async def read() -> list[str]:
        stream = model._astream(["lakes"])
        await anext(stream)
        await stream.aclose()
        return list(world.visits)

    assert asyncio.run(read()) == ["closed"]
