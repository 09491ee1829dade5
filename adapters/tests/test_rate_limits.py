"""Endpoints that answer 429: real clients, with retries of their own and without, and a server that takes few calls.

The programs make one call at a time, which the server never refuses. So whatever it refuses is Accel's doing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypedDict

import httpx
import openai
import pytest
import requests
from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph
from pydantic import SecretStr

import accel
from accel import accelerate
from accel.graph.rules import LIMITED
from adapters.tests.narrow_server import ITEMS, NarrowServer, narrow_server, reply

TOPICS = tuple(f"{what} of {where}" for where in ("bread", "iron", "bees") for what in ("history", "uses", "price"))
FIRST = 4
"""Requests after which it is known how many calls the server takes, but for one more that is tried now and then."""

Ask = Callable[[str], Any]
Server = Callable[[int], NarrowServer]


class State(TypedDict, total=False):
    topic: str
    parts: list[str]
    notes: list[str]
    text: str


@pytest.fixture
def server() -> Iterator[NarrowServer]:
    """Takes two calls at a time."""
    with narrow_server(2) as made:
        yield made


def chat(server: NarrowServer, retries: int, **more: Any) -> ChatOpenAI:
    key = SecretStr("k")
    return ChatOpenAI(model="m", base_url=server.url, api_key=key, max_retries=retries, temperature=0, **more)


def program(ask: Ask) -> Any:
    """A list, something on each item, and all of it together."""

    def listed(state: State) -> State:
        return {"parts": ask(f"List parts: {state['topic']}").splitlines()}

    def noted(state: State) -> State:
        return {"notes": [ask(f"Explain: {part}") for part in state["parts"]]}

    def merged(state: State) -> State:
        return {"text": ask(f"Merge: {' '.join(state['notes'])}")}

    return _graph(listed, noted, merged)


def aprogram(ask: Callable[[str], Coroutine[Any, Any, str]]) -> Any:
    async def listed(state: State) -> State:
        return {"parts": (await ask(f"List parts: {state['topic']}")).splitlines()}

    async def noted(state: State) -> State:
        return {"notes": [await ask(f"Explain: {part}") for part in state["parts"]]}

    async def merged(state: State) -> State:
        return {"text": await ask(f"Merge: {' '.join(state['notes'])}")}

    return _graph(listed, noted, merged)


def _graph(*nodes: Any) -> Any:
    graph = StateGraph(State)
    names = [START]
    for node in nodes:
        graph.add_node(f"{node.__name__}_node", node)
        graph.add_edge(names[-1], f"{node.__name__}_node")
        names.append(f"{node.__name__}_node")
    return graph.compile()


PLAIN = program(reply)
"""As without a server."""


def asking(model: ChatOpenAI) -> Ask:
    return lambda prompt: model.invoke(prompt).content


def invoke(graph: Any, value: State) -> Any:
    return graph.invoke(value)


def check(server: NarrowServer, fast: Any, run: Callable[[Any, State], Any] = invoke) -> None:
    """The same results; the server refuses some calls at first, and hardly any later; the others are early."""
    refused = 0
    for number, topic in enumerate(TOPICS):
        if number == FIRST:
            refused = server.refused
        assert run(fast, {"topic": topic}) == PLAIN.invoke({"topic": topic})
        assert accel.settle(10)
    report = fast.report()
    assert refused > 0 and server.refused - refused <= len(TOPICS) - FIRST
    assert 0 < report.counts.turned_away <= server.refused
    assert report.wasted <= 3 and report.retired > len(TOPICS)
    assert "turned away by the endpoint" in str(report)
    assert report.to_dict()["calls"]["turned_away"] == report.counts.turned_away


@pytest.mark.parametrize("retries", [0, 2])
def test_calls_of_a_client(server: NarrowServer, retries: int) -> None:
    ask = asking(chat(server, retries))
    check(server, accelerate(program(ask)))


@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.parametrize("connections", [1, 2])
def test_a_client_with_few_connections(retries: int, connections: int) -> None:
    """It turns calls away itself: one after the other, the program's never wait for a connection."""
    limits, timeout = httpx.Limits(max_connections=connections), httpx.Timeout(10.0, pool=0.01)
    with narrow_server(ITEMS) as server, httpx.Client(limits=limits, timeout=timeout) as client:
        model = chat(server, retries, http_client=client, timeout=timeout)
        fast = accelerate(program(asking(model)))
        for topic in TOPICS:
            assert fast.invoke({"topic": topic}) == PLAIN.invoke({"topic": topic})
            assert accel.settle(10)
        assert fast.report().counts.turned_away > 0


@pytest.mark.parametrize("retries", [0, 2])
def test_streams_of_a_client(server: NarrowServer, retries: int) -> None:
    ask = asking(chat(server, retries, streaming=True))
    check(server, accelerate(program(ask)))


@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.parametrize("sdk", [False, True])
def test_coroutines_of_a_client(server: NarrowServer, retries: int, sdk: bool) -> None:
    with asyncio.Runner() as runner:
        model = chat(server, retries)
        client = openai.AsyncOpenAI(base_url=server.url, api_key="k", max_retries=retries)

        async def ask(prompt: str) -> str:
            if not sdk:
                return str((await model.ainvoke(prompt)).content)
            answer = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": prompt}])
            return str(answer.choices[0].message.content)

        check(server, accelerate(aprogram(ask)), lambda graph, value: runner.run(graph.ainvoke(value)))
        runner.run(client.close())


def test_a_function_that_sends_by_itself(server: NarrowServer) -> None:
    def post(prompt: str) -> str:
        body = {"messages": [{"role": "user", "content": prompt}]}
        response = requests.post(server.url, json=body, timeout=30)
        response.raise_for_status()
        return str(response.json()["choices"][0]["message"]["content"])

    ask = accel.pure(post, concurrency=8, local=True)
    check(server, accelerate(program(ask)))


@pytest.mark.parametrize("retries", [0, 2])
def test_two_programs_with_one_endpoint(server: NarrowServer, retries: int) -> None:
    """What one has learnt of it holds for the other."""
    fast = [accelerate(program(asking(chat(server, retries)))) for _ in range(2)]
    with ThreadPoolExecutor(2) as threads:
        for number, topic in enumerate(TOPICS):
            if number == FIRST:
                refused = server.refused
            values: list[State] = [{"topic": f"{topic} here"}, {"topic": f"{topic} there"}]
            assert list(threads.map(invoke, fast, values)) == [PLAIN.invoke(value) for value in values]
            assert accel.settle(10)
    assert server.refused - refused <= len(TOPICS) - FIRST


@pytest.mark.parametrize("colour", ["call", "coroutine", "stream", "astream"])
def test_a_program_beside_it_that_is_not_followed(server: NarrowServer, colour: str) -> None:
    """Its calls are made again where they are turned away because early ones are there: it has no part in them."""
    fast = accelerate(program(asking(chat(server, 0))))
    model = chat(server, 0)

    async def acalled(prompt: str) -> str:
        if colour == "coroutine":
            return str((await model.ainvoke(prompt)).content)
        return "".join([str(chunk.content) async for chunk in model.astream(prompt)])

    def called(prompt: str) -> str:
        if colour == "call":
            return str(model.invoke(prompt).content)
        return "".join(str(chunk.content) for chunk in model.stream(prompt))

    def beside(value: State) -> Any:
        if colour in ("call", "stream"):
            return program(called).invoke(value)
        return runner.run(aprogram(acalled).ainvoke(value))

    with asyncio.Runner() as runner, ThreadPoolExecutor(2) as threads:
        for topic in TOPICS[:FIRST]:
            value: State = {"topic": topic}
            both = threads.submit(fast.invoke, value), threads.submit(beside, value)
            assert [each.result() for each in both] == [PLAIN.invoke(value)] * 2
            assert accel.settle(10)
    assert server.refused > 0


@pytest.mark.parametrize("retries", [0, 2])
def test_the_report_says_what_holds_early_calls_back(retries: int) -> None:
    """A server that takes no early call beside one of the program's."""
    with narrow_server(1) as server:
        fast = accelerate(program(asking(chat(server, retries))))
        for topic in TOPICS[:FIRST]:
            assert fast.invoke({"topic": topic}) == PLAIN.invoke({"topic": topic})
            assert accel.settle(10)
        report = fast.report()
    late = [late for row in report.rows for late in row.late]
    limited = [each for each in late if each.rule == LIMITED.name]
    early = sum(row.early for row in report.rows)  # it takes one that comes between two calls of the program
    assert sum(each.calls for each in late) == ITEMS + 2 - early, str(report)
    assert len(limited) == 1 and 0 < limited[0].calls <= ITEMS, str(report)
    assert "accel.register(..., concurrency=n)" in limited[0].why and "rate limiter" in limited[0].why
    assert "not verified yet" not in str(report)


def test_a_limit_that_is_declared_is_kept_from_the_first(server: NarrowServer) -> None:
    model = chat(server, 2)
    accel.register(model, concurrency=2)
    fast = accelerate(program(asking(model)))
    for topic in TOPICS[:FIRST]:
        assert fast.invoke({"topic": topic}) == PLAIN.invoke({"topic": topic})
        assert accel.settle(10)
    assert server.refused == 0 and fast.report().retired > 0


def test_clients_are_as_they_were_after_uninstall(server: NarrowServer) -> None:
    graph = program(asking(chat(server, 0)))
    accelerate(graph).invoke({"topic": "bread"})
    assert hasattr(httpx.Client.send, "__wrapped__")
    accel.uninstall()
    try:
        assert not any(hasattr(cls.send, "__wrapped__") for cls in (httpx.Client, httpx.AsyncClient, requests.Session))
    finally:
        accelerate(graph)
