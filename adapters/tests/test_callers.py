"""Call sites are the user's lines, also of what LangChain runs in tasks and threads of its own."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableGenerator, RunnableLambda, RunnableParallel, RunnableSequence
from langchain_core.tools import BaseTool, tool
from langgraph.graph import END, START, StateGraph

import accel
from accel.trace.sites import where
from adapters.tests.core_fakes import Chat, State, World

Ask = Callable[[Any, str], Awaitable[Any]]


async def plain(model: Any, topic: str) -> Any:
    return await model.ainvoke(f"Describe {topic}")


async def chained(model: Any, topic: str) -> Any:
    return await (ChatPromptTemplate.from_template("Describe {topic}") | model).ainvoke({"topic": topic})


async def gathered(model: Any, topic: str) -> Any:
    chain = ChatPromptTemplate.from_template("Describe {topic}") | model
    both = [chain.ainvoke({"topic": topic}), chain.ainvoke({"topic": topic[::-1]})]
    return (await asyncio.gather(*both))[0]


async def abatched(model: Any, topic: str) -> Any:
    return (await (model | StrOutputParser()).abatch([f"Describe {topic}", f"Name {topic}"]))[0]


async def batched(model: Any, topic: str) -> Any:
    return (model | StrOutputParser()).batch([f"Describe {topic}", f"Name {topic}"])[0]


async def side_by_side(model: Any, topic: str) -> Any:
    parts = RunnableParallel(described=RunnableLambda(lambda text: f"Describe {text}") | model, kept=str)
    return (await parts.ainvoke(topic))["described"]


async def retried(model: Any, topic: str) -> Any:
    return await asyncio.wait_for(model.with_retry().ainvoke(f"Describe {topic}"), 60)


async def configured(model: Any, topic: str) -> Any:
    bound = model.bind(stop=["."]).with_config(tags=["kept"])
    return (await asyncio.gather(bound.ainvoke(f"Describe {topic}"), bound.ainvoke(f"Name {topic}")))[0]


async def with_another(model: Any, topic: str) -> Any:
    return (await asyncio.gather(model.with_fallbacks([model]).ainvoke(f"Describe {topic}")))[0]


async def by_function(model: Any, topic: str) -> Any:
    async def prompt(text: str) -> Any:
        return model

    return (await asyncio.gather(RunnableLambda(prompt).ainvoke(topic)))[0]


async def by_tool(model: Any, topic: str) -> Any:
    class Describe(BaseTool):
        name: str = "describe"
        description: str = "Describes."

        def _run(self, text: str) -> Any:
            raise NotImplementedError

        async def _arun(self, text: str) -> Any:
            return await asyncio.wait_for(model.ainvoke(f"Describe {text}"), 60)

    return (await asyncio.gather(Describe().ainvoke(topic)))[0]


async def streamed(model: Any, topic: str) -> Any:
    chain = ChatPromptTemplate.from_template("Describe {topic}") | model | StrOutputParser()
    return "".join([part async for part in chain.astream({"topic": topic})])


def graph(model: Any, ask: Ask) -> Any:
    async def node(state: State) -> State:
        return {"a": str(await ask(model, state["q"]))}

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    return builder.compile()


ASKS = [
    plain, chained, gathered, abatched, batched, side_by_side, retried, configured, with_another, by_function, streamed,
]  # fmt: skip


@pytest.mark.parametrize("ask", [*ASKS, by_tool])
def test_a_call_is_known_by_the_line_of_the_program_that_led_to_it(ask: Ask) -> None:
    fast = accel.accelerate(graph(Chat(World()), ask))
    asyncio.run(fast.ainvoke({"q": "volcanoes"}))
    assert accel.settle()
    sites = {where(call.site) for call in fast.plan.last.calls}
    assert len(sites) == 1 and f":{ask.__name__}" in sites.pop()


def test_two_chains_that_one_node_runs_side_by_side_are_two_sites() -> None:
    async def two(model: Any, topic: str) -> Any:
        first = (ChatPromptTemplate.from_template("Describe {topic}") | model).ainvoke({"topic": topic})
        other = (ChatPromptTemplate.from_template("Name {topic}") | model.bind(stop=["."])).ainvoke({"topic": topic})
        return [answer.content for answer in await asyncio.gather(first, other)]

    fast = accel.accelerate(graph(Chat(World()), two))
    asyncio.run(fast.ainvoke({"q": "volcanoes"}))
    assert accel.settle()
    assert len({where(call.site) for call in fast.plan.last.calls}) == 2


def test_a_chain_that_is_a_node_has_no_line_of_whoever_runs_the_graph() -> None:
    chain = RunnableLambda(lambda state: f"Describe {state['q']}") | Chat(World()) | (lambda said: {"a": said.content})
    builder = StateGraph(State)
    builder.add_node("node", chain)
    builder.add_edge(START, "node")
    fast = accel.accelerate(builder.compile())
    outer = RunnableLambda(lambda topic: {"q": topic}) | fast
    sites = set()
    for run in (lambda: asyncio.run(outer.ainvoke("volcanoes")), lambda: asyncio.run(outer.ainvoke("glaciers"))):
        run()
        assert accel.settle()
        sites |= {where(call.site) for call in fast.plan.last.calls}
    assert sites == {"no user frame"}


def test_what_runs_at_the_same_time_on_two_lines_is_two_sites() -> None:
    async def two(model: Any, topic: str) -> Any:
        first = model.with_retry().ainvoke(f"Describe {topic}")
        other = model.with_retry().ainvoke(f"Name {topic}")
        return (await asyncio.gather(first, other))[0].content

    fast = accel.accelerate(graph(Chat(World()), two))
    asyncio.run(fast.ainvoke({"q": "volcanoes"}))
    assert accel.settle()
    assert len({where(call.site) for call in fast.plan.last.calls}) == 2


def test_a_streamed_chain_that_is_left_is_closed() -> None:
    closed = []

    async def first_only(model: Any, topic: str) -> Any:
        async def parts(texts: Any) -> Any:
            try:
                async for text in texts:
                    yield text
            finally:
                closed.append(topic)

        stream = (model | RunnableGenerator(parts)).astream(f"Describe {topic}")
        async for part in stream:
            await stream.aclose()
            return part.content

    asyncio.run(accel.accelerate(graph(Chat(World()), first_only)).ainvoke({"q": "volcanoes"}))
    assert closed == ["volcanoes"]


@pytest.mark.filterwarnings("error")
async def test_a_task_that_is_cancelled_before_it_begins_leaves_nothing_that_was_not_awaited() -> None:
    world = World()
    model = Chat(world)
    chain = ChatPromptTemplate.from_template("Describe {topic}") | model

    @tool
    async def look(topic: str) -> str:
        """Look it up."""
        return topic

    async def node(state: State) -> State:
        given_up = [
            chain.ainvoke({"topic": "x"}),
            model.ainvoke("x"),
            look.ainvoke({"topic": "x"}),
            look.arun({"topic": "x"}),
        ]
        tasks = [asyncio.ensure_future(one) for one in given_up]
        for task in tasks:
            task.cancel()
        assert all(
            isinstance(one, asyncio.CancelledError) for one in await asyncio.gather(*tasks, return_exceptions=True)
        )
        return {"a": (await chain.ainvoke({"topic": state["q"]})).content}

    graph = StateGraph(State)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_edge("node", END)
    plain = graph.compile()
    fast = accel.accelerate(plain)
    unraisable: list[Any] = []
    before, sys.unraisablehook = sys.unraisablehook, unraisable.append
    try:
        assert await fast.ainvoke({"q": "moss"}) == await plain.ainvoke({"q": "moss"})
        gc.collect()
    finally:
        sys.unraisablehook = before
    assert unraisable == []
    assert world.texts() == ["Describe moss"] * 2


def test_uninstall_puts_langchain_s_methods_back() -> None:
    accel.accelerate(graph(Chat(World()), plain))
    assert hasattr(RunnableSequence.ainvoke, "__wrapped__")
    accel.uninstall()
    assert not hasattr(RunnableSequence.ainvoke, "__wrapped__")
