"""Invariant 3 with components that a program declares, and ContextVars that they or its nodes set meanwhile."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import pathlib
from collections.abc import Callable
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import pytest

import accel
from accel import accelerate
from accel.graph import rules
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


TENANT: ContextVar[Any] = ContextVar("declared_contexts_tenant", default="the platform")


class ByTenant(UnknownChat):
    """A model elsewhere that sends the key of a tenant along."""

    def _result(self, messages: Any, kwargs: Any) -> Any:
        tenant = TENANT.get()
        return super()._result(messages, {"for": getattr(tenant, "name", tenant)})


accel.register(ByTenant, pure=True, concurrency=8)


def set_anew(tenant: str) -> None:
    TENANT.set(tenant)


def changed_in_place(tenant: str) -> None:
    TENANT.get().name = tenant


def by_tenant(world: World, become: Callable[[str], None]) -> Any:
    """Its nodes say for whom they ask before they do."""
    model = ByTenant(world)

    def b(state: Any) -> Any:
        become(f"tenant of {state['q']}")
        return model.invoke(f"Beta asks: {state['q']}").content

    def c(state: Any) -> Any:
        become(f"tenant of {state['q']}")
        return model.invoke(f"Gamma asks: {state['q']}").content

    return after_thinking(world, b, c)


def begun_for_the_platform(program: Any, topic: str) -> Any:
    def run() -> Any:
        TENANT.set(SimpleNamespace(name="the platform"))
        return program.invoke({"q": topic})

    return contextvars.copy_context().run(run)


@pytest.mark.parametrize("become", [set_anew, changed_in_place])
def test_calls_before_which_nodes_set_a_context_var_are_not_early(
    become: Callable[[str], None], tmp_path: pathlib.Path
) -> None:
    """They would be sent in another one's name, whether their answers are used or not."""
    world = World()
    plain = by_tenant(world, become)
    fast = accelerate(by_tenant(world, become), egress="inputs")
    for topic in (*TOPICS, TOPIC, "lakes of Malawi"):
        expected = begun_for_the_platform(plain, topic)
        assert begun_for_the_platform(fast, topic) == expected
        assert accel.settle()
    assert not [text for text in world.texts(early=True) if not text.startswith("Alpha")]
    held = [reason for reason in fast.plan.reasons.values() if reason is not None and reason.rule is rules.MOVED]
    assert len(held) == 2 and TENANT.name in str(held[0])
    fast.save_plan(tmp_path / "plan.json")
    again = accelerate(by_tenant(world, become), egress="inputs", plan=accel.load_plan(tmp_path / "plan.json"))
    world.forget()
    assert begun_for_the_platform(again, TOPIC) == begun_for_the_platform(plain, TOPIC)
    assert set(world.texts(early=True)) <= {f"Alpha asks: {TOPIC}"}


def test_a_context_var_that_is_set_before_the_run_holds_nothing_back() -> None:
    world = World()
    fast = accelerate(by_tenant(world, lambda tenant: None), egress="inputs")
    for topic in TOPICS:
        begun_for_the_platform(fast, topic)
        assert accel.settle()
    world.hooks["b"] = lambda: world.wait_early(f"Gamma asks: {TOPIC}")
    assert "the platform" in begun_for_the_platform(fast, TOPIC)["c"]
