"""Invariant 3 with components that a program declares, and ContextVars that they or its nodes set meanwhile."""

from __future__ import annotations

import asyncio
import logging
from contextvars import ContextVar
from typing import Any

import pytest

import accel
from accel import accelerate
from adapters.tests.core_fakes import TOPICS, UnknownChat, World, after_thinking, chain, train

TOPIC = "beaches of Portugal"
LAST: ContextVar[str] = ContextVar("declared_contexts_last", default="none")


class Leaving(UnknownChat):
    """Leaves the number of its last request for those who ask."""

    def _result(self, messages: Any, kwargs: Any) -> Any:
        result = super()._result(messages, kwargs)
        LAST.set(f"request of {result.generations[0].message.content}")
        return result


class Search:
    def __init__(self, world: World) -> None:
        self.world = world

    async def find(self, topic: str) -> str:
        await asyncio.sleep(0)
        LAST.set(f"search for {topic}")
        return self.world.serve("search", topic)


accel.register(Leaving, pure=True, local=True, concurrency=8)
accel.register(Search, methods=["find"], readonly=True, local=True)


def test_what_a_call_leaves_in_a_context_var_is_found(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    model = Leaving(world)

    def asks(state: Any) -> Any:
        return model.invoke(f"Beta asks: {state['q']}").content, LAST.get()

    plain = after_thinking(world, asks).invoke({"q": TOPIC})
    fast = accelerate(after_thinking(world, asks))
    train(fast)
    world.forget()
    world.hooks["b"] = lambda: world.wait_early(f"Beta asks: {TOPIC}")
    with caplog.at_level(logging.WARNING, "accel"):
        assert fast.invoke({"q": TOPIC}) == plain
    assert len(world.texts(f"Beta asks: {TOPIC}")) == 2, "one was early, and its answer is nobody's"
    assert f"its calls set the ContextVar {LAST.name}" in caplog.text
    world.forget()
    world.hooks.clear()
    fast.invoke({"q": "lakes of Malawi"})
    assert world.texts("Beta", early=True) == [] and len(world.texts("Beta")) == 1


def test_what_a_coroutine_leaves_in_a_context_var_is_found() -> None:
    world = World()
    search = Search(world)

    async def b(state: Any) -> Any:
        await asyncio.sleep(0.001)
        return {"b": (await search.find(state["q"]), LAST.get())}

    async def a(state: Any) -> Any:
        await asyncio.sleep(0.001)
        return {"a": await search.find(f"all about {state['q']}")}

    def run(program: Any, topic: str) -> Any:
        return asyncio.run(program.ainvoke({"q": topic}))

    plain, fast = chain(("a", a), ("b", b)), accelerate(chain(("a", a), ("b", b)))
    for topic in (*TOPICS, TOPIC, "lakes of Malawi"):
        assert run(fast, topic) == run(plain, topic)
        assert accel.settle()
