"""Call sites are the user's lines, also of what LangChain runs in tasks and threads of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnableSequence
from langgraph.graph import END, START, StateGraph

import accel
from accel.trace.record import where
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


def graph(model: Any, ask: Ask) -> Any:
    async def node(state: State) -> State:
        return {"a": str(await ask(model, state["q"]))}

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    return builder.compile()


@pytest.mark.parametrize("ask", [plain, chained, gathered, abatched, batched, side_by_side])
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


def test_uninstall_puts_langchain_s_methods_back() -> None:
    accel.accelerate(graph(Chat(World()), plain))
    assert hasattr(RunnableSequence.ainvoke, "__wrapped__")
    accel.uninstall()
    assert not hasattr(RunnableSequence.ainvoke, "__wrapped__")
