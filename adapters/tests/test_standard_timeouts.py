"""How long an answer of AccelChatModel may take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from accel.engine import Delta, Priority
from accel.errors import RequestError
from accel_langgraph.chat_model import AccelChatModel
from accel_langgraph.timeouts import within
from accel_sim import SimLLMConfig


async def never(begun: asyncio.Event, ended: asyncio.Event) -> AsyncGenerator[Delta, None]:
    try:
        yield Delta("a", 1)
        begun.set()
        await asyncio.Event().wait()
    finally:
        ended.set()


async def test_an_answer_that_takes_too_long_is_an_error_and_aborted() -> None:
    ended = asyncio.Event()
    texts = []
    with pytest.raises(RequestError, match="longer than 0.01 s"):
        async for delta in within(never(asyncio.Event(), ended), 0.01, Priority(0)):
            texts.append(delta.text)
    assert texts == ["a"] and ended.is_set()


async def test_the_time_of_an_early_call_begins_when_the_program_waits_for_it() -> None:
    begun, ended, urgency = asyncio.Event(), asyncio.Event(), Priority(1)

    async def ask() -> None:
        async for _ in within(never(begun, ended), 0.0, urgency):
            pass

    task = asyncio.create_task(ask())
    await begun.wait()
    for _ in range(20):  # with a limit of nothing it would have failed by now
        await asyncio.sleep(0)
    assert not task.done()
    await asyncio.to_thread(urgency.raise_to_demand)
    with pytest.raises(RequestError):
        await task
    assert ended.is_set()


def test_a_timeout_of_a_model_and_of_a_call() -> None:
    slow = AccelChatModel(engine=SimLLMConfig("30b", name="slow"), timeout=0.001)
    with pytest.raises(RequestError, match="raise the model's timeout"):
        slow.invoke("What is the weather in the harbour?")
    with pytest.raises(RequestError, match="longer"):
        list(slow.stream("What is the weather in the harbour?"))
    assert slow.invoke("What is the weather in the harbour?", timeout=None, max_tokens=2).content
