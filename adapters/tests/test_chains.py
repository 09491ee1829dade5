"""LangChain's chains without a graph: the same results, and calls that don't depend on each other side by side."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import (
    Runnable,
    RunnableBranch,
    RunnableConfig,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)

import accel
from accel.errors import ConfigurationError
from accel.run.scope import scope
from adapters.tests.core_fakes import Chat, StreamingChat, World

TOPICS = ["birds of Iceland", "trains in Japan", "bread from France", "caves under Malta"]


def prompt(text: str) -> Any:
    return ChatPromptTemplate.from_template(text)


def sequence(model: Any) -> Runnable[Any, Any]:
    """Two calls that are made one after the other for no reason, and one that joins them."""
    first = prompt("Facts about {topic}.") | model | StrOutputParser()
    second = prompt("Names around {topic}.") | model | StrOutputParser()
    join = prompt("Join {facts} with {names}.") | model | StrOutputParser()
    return RunnablePassthrough.assign(facts=first) | RunnablePassthrough.assign(names=second) | join


def branches(model: Any) -> Runnable[Any, Any]:
    ask = prompt("Say {topic} at once.") | model | StrOutputParser()
    return RunnableParallel(
        said=RunnableBranch((lambda given: "birds" in given["topic"], ask), ask | RunnableLambda(str.upper)),
        kept=RunnableLambda(lambda given: given["topic"]),
    )


def guarded(model: Any) -> Runnable[Any, Any]:
    return sequence(model).with_retry(stop_after_attempt=2).with_fallbacks([RunnableLambda(lambda given: "nothing")])


def with_config(model: Any) -> Runnable[Any, Any]:
    return sequence(model).with_config(tags=["mine"], configurable={"tenant": "a"})


def answers_when_another_was_early(world: World, topic: str) -> Callable[[str], str]:
    """What a model answers to what a sequence asks; to the first question on this topic, in an accelerated run, when
    the second one has been answered."""

    def answer(text: str) -> str:
        if scope.get() is not None and text == f"Facts about {topic}.":
            world.wait_early(f"Names around {topic}.")
        return f"answer to <{text}>"

    return answer


def asked(chain: Any, topic: str) -> Any:
    return chain.invoke({"topic": topic})


def streamed(chain: Any, topic: str) -> Any:
    return list(chain.stream({"topic": topic}))


def aasked(chain: Any, topic: str) -> Any:
    return asyncio.run(chain.ainvoke({"topic": topic}))


def astreamed(chain: Any, topic: str) -> Any:
    async def parts() -> list[Any]:
        return [part async for part in chain.astream({"topic": topic})]

    return asyncio.run(parts())


@pytest.mark.parametrize("make", [sequence, branches, guarded, with_config])
@pytest.mark.parametrize("ask", [asked, streamed, aasked, astreamed])
def test_results_are_equal(make: Callable[[Any], Any], ask: Callable[[Any, str], Any]) -> None:
    world = World()
    world.answer = answers_when_another_was_early(world, TOPICS[-1])
    chain = make(StreamingChat(world))
    fast = accel.accelerate(chain)
    assert type(fast).__name__ == type(chain).__name__ and isinstance(fast, type(chain))
    for topic in TOPICS:
        got, want = ask(fast, topic), ask(chain, topic)
        if make is branches and isinstance(got, list):  # the parts of a parallel's members come in any order
            got, want = sorted(got, key=repr), sorted(want, key=repr)
        assert got == want
        assert accel.settle()
    if make is not branches:
        assert fast.report().retired > 0, fast.explain()


def test_the_second_call_is_issued_while_the_first_runs() -> None:
    """The first waits until the second has begun."""
    world = World()
    second_began, waited = threading.Event(), []

    class Waiting(Chat):
        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
            text = str(messages[-1].content)
            if text.startswith("Names"):
                second_began.set()
            elif text.startswith("Facts") and TOPICS[-1] in text:
                waited.append(second_began.wait(30))
            return super()._generate(messages, stop, run_manager, **kwargs)

    accel.register(Waiting, pure=True, local=True, concurrency=8)
    fast = accel.accelerate(sequence(Waiting(world)))
    fast.warmup({"topic": topic} for topic in TOPICS[:-1])
    second_began.clear()
    asked(fast, TOPICS[-1])
    assert waited == [True]


def test_who_calls_a_chain_is_no_part_of_a_call_site() -> None:
    fast = accel.accelerate(sequence(Chat(World())))
    for topic, ask in zip(TOPICS, (asked, lambda c, t: asked(c, t), streamed, asked), strict=True):
        ask(fast, topic)
        assert accel.settle()
    assert len([node for node in fast.plan.learnt.nodes if node.op.name == "decode"]) == 3, fast.explain()


def test_a_chain_in_a_graph_s_run_or_another_chain_joins_that() -> None:
    world = World()
    world.answer = answers_when_another_was_early(world, TOPICS[-1])
    inner = accel.accelerate(sequence(Chat(world)))
    outer = accel.accelerate(RunnableLambda(lambda given: inner.invoke(given)))
    for topic in TOPICS:
        assert asked(outer, topic) == asked(sequence(Chat(world)), topic)
        assert accel.settle()
    assert inner.plan.runs == 0 and outer.report().retired > 0


def test_the_configuration_of_a_call_reaches_its_parts() -> None:
    seen: list[Any] = []

    def note(given: Any, config: RunnableConfig) -> Any:
        seen.append((sorted(config.get("tags") or ()), (config.get("configurable") or {}).get("tenant")))
        return given

    fast = accel.accelerate(RunnableLambda(note) | RunnablePassthrough())
    fast.invoke({"topic": "x"}, {"tags": ["t"], "configurable": {"tenant": "a"}})
    fast.with_config(tags=["bound"]).invoke({"topic": "x"})
    assert seen == [(["t"], "a"), (["bound"], None)]


def test_errors_are_the_chain_s_own() -> None:
    def fails(given: Any) -> Any:
        raise LookupError("gone")

    fast = accel.accelerate(RunnablePassthrough() | RunnableLambda(fails))
    with pytest.raises(LookupError, match="gone"):
        asked(fast, "x")
    parts = fast.stream({"topic": "x"})
    with pytest.raises(LookupError, match="gone"):
        list(parts)
    assert accel.settle() and fast.plan.runs == 2


def test_a_stream_that_is_thrown_away_ends_its_run() -> None:
    fast = accel.accelerate(sequence(StreamingChat(World())))
    parts = fast.stream({"topic": TOPICS[0]})
    next(parts)
    del parts
    gc.collect()
    assert accel.settle() and fast.plan.runs == 1


async def test_an_async_stream_that_is_closed_ends_its_run() -> None:
    fast = accel.accelerate(sequence(StreamingChat(World())))
    parts = fast.astream({"topic": TOPICS[0]})
    await anext(parts)
    await parts.aclose()
    assert await asyncio.to_thread(accel.settle) and fast.plan.runs == 1


def test_what_is_accepted() -> None:
    model = Chat(World())
    chain = sequence(model)
    fast = accel.accelerate(chain)
    assert accel.accelerate(fast) is fast
    assert (
        vars(chain).keys() == vars(fast).keys() and fast.get_graph().draw_mermaid() == chain.get_graph().draw_mermaid()
    )
    with pytest.raises(ConfigurationError, match="nodes of a graph"):
        accel.accelerate(chain, pure_nodes=["x"])
    for other in (model, prompt("x")):
        with pytest.raises(TypeError, match="chain"):
            accel.accelerate(other)


def test_lines_of_reports_name_a_chain() -> None:
    fast: Any = accel.accelerate(RunnableLambda(str) | RunnableLambda(len))
    assert fast._accel.program == "chain"
