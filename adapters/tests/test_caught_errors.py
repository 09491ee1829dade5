"""Errors of calls that a node catches, such as timeouts of its own: what follows is early all the same."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.outputs import ChatResult
from langgraph.types import RetryPolicy

import accel
from accel import accelerate
from adapters.tests.core_fakes import Chat, State, World, as_text, chain, train

TOPIC = "beaches of Portugal"


class SlowChat(Chat):
    """Never answers what asks for more."""

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        if as_text(messages).startswith("More"):
            self._world.serve(self.label, as_text(messages))
            await asyncio.Event().wait()
        return self._result(messages, kwargs)


accel.register(SlowChat, pure=True, local=True, concurrency=8)


def patient(world: World) -> Any:
    """Asks, asks for more without waiting long for it, and asks about the first answer."""
    model = SlowChat(world)

    async def a(state: State) -> State:
        world.node("a")
        return {"a": (await model.ainvoke(f"Alpha asks: {state['q']}")).content}

    async def b(state: State) -> State:
        world.node("b")
        try:
            return {"b": (await asyncio.wait_for(model.ainvoke(f"More on {state['q']}"), 0.01)).content}
        except TimeoutError:
            return {"b": "nothing"}

    async def c(state: State) -> State:
        world.node("c")
        return {"c": [(await model.ainvoke(f"Rate {part} of {state['a']}")).content for part in ("one", "two")]}

    return chain(("a", a), ("b", b), ("c", c))


async def test_what_follows_a_timeout_of_the_programs_own_is_early() -> None:
    world = World()
    fast = accelerate(patient(world))
    for number in range(3):
        await fast.ainvoke({"q": f"{number} {TOPIC}"})
        assert await asyncio.to_thread(accel.settle)
    world.forget()
    found = await fast.ainvoke({"q": TOPIC})
    assert await asyncio.to_thread(accel.settle)
    assert found == await patient(World()).ainvoke({"q": TOPIC})
    assert len(world.texts()) == 4 and len(world.texts("Rate", early=True)) == 2
    assert len(world.texts("Alpha", early=True)) == 1 and fast.report().wasted == 0


def careful(world: World) -> Any:
    """A node that goes on without an answer, and one after it."""
    model = Chat(world)

    def a(state: State) -> State:
        world.node("a")
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        found = []
        for part in ("one", "two", "three"):
            try:
                found.append(model.invoke(f"Beta asks: {part} of {state['q']}").content)
            except ConnectionError:
                found.append("nothing")
        return {"b": found}

    def c(state: State) -> State:
        world.node("c")
        return {"c": model.invoke(f"Gamma asks: {state['a']}").content}

    return chain(("a", a), ("b", b), ("c", c))


def test_what_follows_an_error_that_a_node_catches_is_early() -> None:
    world = World()
    fast = accelerate(careful(world))
    train(fast)
    world.forget()
    refused = {f"Beta asks: two of {TOPIC}": ConnectionError("refused")}
    world.errors.update(refused)

    def seen() -> None:
        for text in (*refused, "Beta asks: three", "Gamma asks"):
            world.wait_early(text)

    world.hooks["b"] = seen
    plain = World(errors=dict(refused))
    assert fast.invoke({"q": TOPIC}) == careful(plain).invoke({"q": TOPIC})
    assert accel.settle()
    assert len(world.texts("Gamma asks", early=True)) == 1 and len(world.texts("Gamma asks")) == 1
    assert sorted(set(world.texts())) == sorted(plain.texts())
    assert len(world.texts()) == 6, "the one that was refused is asked for again"
    world.forget()
    world.errors.clear()
    refused.clear()
    assert fast.invoke({"q": f"other {TOPIC}"})["b"][1].startswith("answer")
    assert accel.settle() and len(world.texts()) == 5
    assert len(world.texts("Gamma asks", early=True)) == 1


def retried(world: World, stumble: dict[str, bool]) -> Any:
    """The second node asks twice, and then may stumble; another call of it and the third node come after that."""
    model = Chat(world)

    def a(state: State) -> State:
        world.node("a")
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        found = [model.invoke(f"Beta asks: {part} of {state['q']}").content for part in ("one", "two")]
        world.node("after")
        if stumble.pop("once", False):
            raise ConnectionError("stumbled")
        return {"b": [*found, model.invoke(f"Check: {state['q']}").content]}

    def c(state: State) -> State:
        world.node("c")
        return {"c": model.invoke(f"Gamma asks: {state['a']}").content}

    builder = chain(("a", a), ("b", b), ("c", c)).builder
    builder.nodes["b"].retry_policy = RetryPolicy(max_attempts=2, initial_interval=0.001, retry_on=ConnectionError)
    return builder.compile()


def test_a_node_that_was_retried_gains_up_to_where_it_raised_and_nothing_goes_past() -> None:
    world, stumble = World(), dict[str, bool]()
    fast = accelerate(retried(world, stumble))
    train(fast)
    stumble["once"] = True
    fast.invoke({"q": f"stumbling {TOPIC}"})
    assert accel.settle()
    world.forget()
    seen: list[list[str]] = []

    def note() -> None:
        world.wait_early("Beta asks: two")
        seen.append(sorted(world.texts(early=True)))

    world.hooks |= {"a": lambda: world.wait_early("Alpha asks"), "b": note, "after": note}
    plain = retried(World(), {}).invoke({"q": TOPIC})
    assert fast.invoke({"q": TOPIC}) == plain
    assert seen == [[f"Alpha asks: {TOPIC}", f"Beta asks: one of {TOPIC}", f"Beta asks: two of {TOPIC}"]] * 2
    assert accel.settle() and len(world.texts()) == 5
