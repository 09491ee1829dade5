"""What web frameworks keep for a request: early calls see it, or aren't made; and nobody asks it for what it isn't."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from asgiref.local import Local

import accel
from accel import accelerate
from adapters.tests.catching_up import catch_up
from adapters.tests.core_fakes import Chat, State, World, chain

TENANT, CRITICAL = Local(), Local(thread_critical=True)
TOPICS = ("tides", "reefs", "foxes", "mills", "wells", "larks")


class Shared(Chat):
    """Its tenant is in what Django keeps a request's language in."""

    def _result(self, messages: Any, kwargs: Any) -> Any:
        return super()._result(messages, {"tenant": getattr(TENANT, "name", "nobody")})


class OfThread(Chat):
    """Its tenant is where Django keeps a database's connection."""

    def _result(self, messages: Any, kwargs: Any) -> Any:
        return super()._result(messages, {"tenant": getattr(CRITICAL, "name", "nobody")})


class Proxy:
    """Stands for an object of a request, as `flask.g` does."""

    @property
    def __wrapped__(self) -> Any:
        raise RuntimeError("working outside of a request")

    @property
    def tenant(self) -> str:
        return "nobody"


PROXY = Proxy()


class Proxied(Chat):
    """Names such a proxy."""

    def _result(self, messages: Any, kwargs: Any) -> Any:
        return super()._result(messages, {"tenant": PROXY.tenant})


def graph(model: Any) -> Any:
    def a(state: State) -> State:
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        catch_up()
        return {"b": model.invoke(f"Beta asks: {state['q']}").content}

    return chain(("a", a), ("b", b))


def serve(program: Any, number: int, topic: str) -> Any:
    """A request of a server of threads; requests of one thread leave theirs to the next one."""
    TENANT.name = CRITICAL.name = ("ann", "ben", "cat")[number % 3]
    return program.invoke({"q": topic})


@pytest.mark.parametrize("one_thread", [True, False], ids=["pool", "each its own"])
@pytest.mark.parametrize("model_class", [Shared, OfThread])
def test_what_asgiref_keeps_for_a_thread_is_what_early_calls_see(model_class: Any, one_thread: bool) -> None:
    world = World()
    program = graph(model_class(world))
    fast = accelerate(program)
    early = 0
    with ThreadPoolExecutor(1) as shared:
        for number, topic in enumerate(TOPICS):
            answers = []
            for each in (program, fast):
                world.forget()
                with ThreadPoolExecutor(1) as own:
                    answers.append((shared if one_thread else own).submit(serve, each, number, topic).result())
                assert accel.settle()
            assert answers[0] == answers[1]
            assert sorted(world.texts("Beta")) == [f"Beta asks: {topic}"]
            early += len(world.texts("Beta", early=True))
    assert (early > 0) == (model_class is Shared)


async def test_on_a_loop_they_see_what_the_program_sees_there() -> None:
    """Nodes that are no coroutines run on other threads, where there is nothing."""
    world = World()
    program = graph(Shared(world))
    fast = accelerate(program)
    for number, topic in enumerate(TOPICS):
        TENANT.name = ("ann", "ben", "cat")[number % 3]
        expected = await program.ainvoke({"q": topic})
        world.forget()
        assert await fast.ainvoke({"q": topic}) == expected
        assert await asyncio.to_thread(accel.settle)
        assert len(world.texts("Beta")) == 1, "and nobody is asked for somebody else"


def test_a_proxy_is_not_asked_for_what_it_stands_for() -> None:
    world = World()
    program = graph(Proxied(world))
    fast = accelerate(program)
    for topic in TOPICS:
        assert fast.invoke({"q": topic}) == program.invoke({"q": topic})
