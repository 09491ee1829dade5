"""Calls in threads of plain pools, which drop the context: they are a part of the run, and see no more than ever."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import pytest

import accel
from accel import accelerate
from adapters.tests.core_fakes import Chat, State, World, chain, train

TOPIC = "beaches of Portugal"
PARTS = ("one", "two", "three")
WHO: ContextVar[str] = ContextVar("who", default="nobody")


def mapped(pool: ThreadPoolExecutor, ask: Callable[[str], str], questions: list[str]) -> list[str]:
    return list(pool.map(ask, questions))


def submitted(pool: ThreadPoolExecutor, ask: Callable[[str], str], questions: list[str]) -> list[str]:
    return [future.result() for future in [pool.submit(ask, question) for question in questions]]


def reviewed(world: World, how: Any, lasting: ThreadPoolExecutor | None = None) -> Any:
    model, first = Chat(world), Chat(world, label="first")

    def ask(question: str) -> str:
        return f"{WHO.get()}: {model.invoke(question).content}"

    def a(state: State) -> State:
        world.node("a")
        return {"a": first.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        questions = [f"Review {part} of {state['q']}" for part in PARTS]
        if lasting is not None:
            return {"b": how(lasting, ask, questions)}
        with ThreadPoolExecutor(2) as pool:
            return {"b": how(pool, ask, questions)}

    return chain(("a", a), ("b", b))


@pytest.mark.parametrize("kept", [False, True], ids=["per run", "lasting"])
@pytest.mark.parametrize("how", [mapped, submitted])
def test_calls_in_a_pool_are_early(how: Any, kept: bool) -> None:
    world = World()
    with ThreadPoolExecutor(2) as lasting:
        pool = lasting if kept else None
        fast = accelerate(reviewed(world, how, pool))
        train(fast)
        world.forget()
        world.hooks["b"] = lambda: [world.wait_early(f"Review {part}") for part in PARTS]
        assert fast.invoke({"q": TOPIC}) == reviewed(World(), how, pool).invoke({"q": TOPIC})
    assert len(world.texts("Review", early=True)) == len(world.texts("Review")) == len(PARTS)
    assert fast.report().counts.wasted == 0


def test_what_the_program_s_context_says_stays_out_of_a_pool() -> None:
    world = World()
    token = WHO.set("ann")
    try:
        fast = accelerate(reviewed(world, mapped))
        train(fast)
        found, plain = fast.invoke({"q": TOPIC}), reviewed(World(), mapped).invoke({"q": TOPIC})
        assert accel.settle()
    finally:
        WHO.reset(token)
    assert found == plain and all(text.startswith("nobody: ") for text in found["b"])


def test_a_callable_of_the_program_s_is_not_asked_what_it_is() -> None:
    asked: list[str] = []

    class Standing:
        """For a function that nobody has yet."""

        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            raise LookupError(name)

        def __call__(self, topic: str) -> str:
            return topic.upper()

    with ThreadPoolExecutor(1) as pool:

        def a(state: State) -> State:
            return {"a": pool.submit(Standing(), state["q"]).result()}

        assert accelerate(chain(("a", a))).invoke({"q": TOPIC})["a"] == TOPIC.upper()
    assert not asked


def test_what_a_pool_does_after_the_run_is_none_of_its_calls() -> None:
    world = World()
    model = Chat(world)
    later: list[Any] = []
    with ThreadPoolExecutor(1) as pool:

        def a(state: State) -> State:
            world.node("a")
            later.append(lambda: model.invoke(f"Afterwards: {state['q']}").content)
            later.append(pool.submit(lambda: world.wait(lambda: bool(world.visits) and world.visits[-1] == "over")))
            later.append(pool.submit(later[0]))
            return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

        fast = accelerate(chain(("a", a)))
        for topic in ("volcanoes", "glaciers", TOPIC):
            fast.invoke({"q": topic})
            with world.cond:
                world.visits.append("over")
                world.cond.notify_all()
            assert later[-1].result().startswith("answer")
            assert accel.settle()
    assert fast.report().counts.demanded == 3
