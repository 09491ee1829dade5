"""Named traps: waiting is nobody's problem but the waiter's.

Each test runs in a process of its own (`apart`): where the program hangs, it says so, and where.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings

import accel
from compat_tests.apart import apart
from compat_tests.traps import TOPICS, WAIT_S
from compat_tests.traps_waiting import (
    KINDS,
    Guarded,
    Locked,
    SlowShelf,
    asker,
    asks,
    asks_async,
    declared,
    given,
    in_a_row,
    settled,
    shelf,
)

pytestmark = pytest.mark.timeout(60)
ns = pytest.mark.parametrize("n", [1, 2, 8])
NAMES = ("first", "second", "third")


def was_early(graph: Any) -> None:
    assert graph.report().issued > 0, f"this shows nothing: {graph.report()}"


def runs(graph: Any) -> list[Any]:
    found = []
    for topic in TOPICS:
        found.append(graph.invoke(given(topic)))
        accel.settle(WAIT_S)
    return found


async def runs_async(graph: Any) -> list[Any]:
    found = []
    for topic in TOPICS:
        found.append(await graph.ainvoke(given(topic)))
        await asyncio.to_thread(accel.settle, WAIT_S)
    return found


# --- calls inside calls


@ns
@pytest.mark.parametrize("kind", KINDS)
@apart
def test_embeddings_that_call_themselves(kind: str, n: int) -> None:
    """By themselves, in a store, in a retriever; one by one, and eight at a time."""
    graph = asks(asker(kind, n)[0], *NAMES)
    fast = accel.accelerate(graph)
    assert runs(fast) == runs(graph)
    was_early(fast)


@ns
@pytest.mark.parametrize("kind", KINDS)
@apart
def test_embeddings_that_call_themselves_awaited(kind: str, n: int) -> None:
    graph = asks_async(asker(kind, n)[1], *NAMES)
    fast = accel.accelerate(graph)
    assert asyncio.run(runs_async(fast)) == asyncio.run(runs_async(graph))
    was_early(fast)


@ns
@apart
def test_embeddings_that_hold_a_lock_of_their_own(n: int) -> None:
    graph = asks(asker("embeddings", n, Locked)[0], *NAMES)
    fast = accel.accelerate(graph)
    assert runs(fast) == runs(graph)
    was_early(fast)


@ns
@pytest.mark.parametrize("kind", ["embeddings", "store"])
@apart
def test_sixty_requests_at_once(kind: str, n: int) -> None:
    graph = asks_async(asker(kind, n)[1], *NAMES)
    fast = accel.accelerate(graph)

    async def main() -> None:
        await runs_async(fast)
        inputs = [given(f"{TOPICS[number % 6]} again {number}") for number in range(60)]
        got = await asyncio.gather(*map(fast.ainvoke, inputs))
        assert got == await asyncio.gather(*map(graph.ainvoke, inputs))

    asyncio.run(main())
    was_early(fast)


@pytest.mark.parametrize("n", [1, 3])
@apart
def test_two_event_loops_use_one_graph(n: int) -> None:
    graph = asks_async(asker("store", n)[1], *NAMES)
    fast = accel.accelerate(graph)
    want = asyncio.run(runs_async(graph))
    asyncio.run(runs_async(fast))
    found: list[Any] = []
    begin = threading.Barrier(2)

    def loop() -> None:
        begin.wait(WAIT_S)
        found.append(asyncio.run(together()))

    async def together() -> list[Any]:
        return await asyncio.gather(*(fast.ainvoke(given(topic)) for topic in TOPICS))

    threads = [threading.Thread(target=loop, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [want, want]
    was_early(fast)


@ns
@apart
def test_graphs_inside_graphs(n: int) -> None:
    """Both accelerated, with one component."""
    ask = asker("embeddings", n)[0]

    def whole(wrap: Callable[[Any], Any]) -> Any:
        inner = wrap(asks(ask, "inner"))

        def nested(state: Any) -> Any:
            return {"notes": inner.invoke(given(f"inside {state['topic']}"))["notes"]}

        def own(state: Any) -> Any:
            return {"notes": [str(ask(f"own on {state['topic']}"))]}

        return wrap(in_a_row(("settled", settled), ("own", own), ("nested", nested), ("graph", asks(ask, "second"))))

    fast = whole(accel.accelerate)
    assert runs(fast) == runs(whole(lambda graph: graph))
    was_early(fast)


# --- locks of the program


@ns
@apart
def test_a_lock_that_the_node_holds_around_the_call(n: int) -> None:
    """The second call is made early while the node holds the lock that it takes."""
    lock = threading.RLock()
    model = declared(Guarded(lock=lock), n)

    def node(state: Any) -> Any:
        with lock:
            first = model.invoke(f"first on {state['topic']}").content
            accel.settle(WAIT_S)
            return {"notes": [first, model.invoke(f"second on {first}").content]}

    graph = in_a_row(("node", node))
    fast = accel.accelerate(graph)
    assert runs(fast) == runs(graph)
    was_early(fast)


@ns
@apart
def test_a_lock_that_the_node_holds_around_a_search(n: int) -> None:
    """The lock is the embeddings' own, which a listed store calls."""
    embedding = declared(Locked(), n)
    store = shelf(embedding)

    def node(state: Any) -> Any:
        with embedding.lock:
            first = store.similarity_search(f"first on {state['topic']}", k=1)[0].page_content
            accel.settle(WAIT_S)
            return {"notes": [first, str(embedding.embed_query(f"second on {first} of {state['topic']}"))]}

    graph = in_a_row(("node", node))
    fast = accel.accelerate(graph)
    assert runs(fast) == runs(graph)
    was_early(fast)


# --- early work that can only feed predictions


@pytest.mark.parametrize("n", [1, 3])
@apart
def test_a_search_that_only_feeds_predictions_never_delays_the_programs_own(n: int) -> None:
    store = declared(SlowShelf(), n)

    def node(state: Any) -> Any:
        store.demanding = True
        found = store.similarity_search(f"search of {state['topic']}")
        store.demanding = False
        return {"notes": [found[0].page_content]}

    graph = in_a_row(("settled", settled), ("node", node))
    fast = accel.accelerate(graph)
    assert runs(fast) == runs(graph)


@pytest.mark.parametrize("n", [1, 3])
@apart
def test_two_waiters_of_an_embedding_one_of_them_cancelled(n: int) -> None:
    """The other one gets its result."""
    going = threading.Event()
    release = asyncio.Event()

    class Slow(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise AssertionError("the program awaits")

        def embed_query(self, text: str) -> list[float]:
            raise AssertionError("the program awaits")

        async def aembed_query(self, text: str) -> list[float]:
            if going.is_set():
                await release.wait()
            return [float(len(text))]

    embedding = declared(Slow(), n)

    async def node(state: Any) -> Any:
        await asyncio.to_thread(accel.settle, WAIT_S)
        text = f"twice on {state['topic']}"
        first, second = (asyncio.create_task(embedding.aembed_query(text)) for _ in range(2))
        for _ in range(20):
            await asyncio.sleep(0)
        if going.is_set():
            first.cancel()
            release.set()
            with pytest.raises(asyncio.CancelledError):
                await first
            async with asyncio.timeout(WAIT_S):
                return {"notes": [str(await second)]}
        return {"notes": [str(await first), str(await second)]}

    graph = in_a_row(("before", asks_nothing), ("node", node))

    async def main() -> None:
        fast = accel.accelerate(graph)
        await runs_async(fast)
        going.set()
        got = await fast.ainvoke(given("cancelled amber 7"))
        release.clear()
        assert got == await graph.ainvoke(given("cancelled amber 7"))
        was_early(fast)

    asyncio.run(main())


async def asks_nothing(state: Any) -> Any:
    await asyncio.to_thread(accel.settle, WAIT_S)
    return {}
