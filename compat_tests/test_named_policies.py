"""Named traps of policies and stores: retries, caches, limits, timeouts, cancellation; plain, accelerated, forced."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.errors import NodeTimeoutError
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import CachePolicy, RetryPolicy, Send

from accel_langgraph.testing.log import unlogged
from compat_tests.answers import ModelError
from compat_tests.fakes import Parts
from compat_tests.graphs import TOPICS, Topic
from compat_tests.named import acatch_up, asaid, asked, catch_up, said, was_early

ACCEL_DIFFERENTIAL = True

Compared = Callable[..., None]


def looking(parts: Parts) -> StateGraph[Any, Any, Any, Any]:
    """A graph with one node, `look`, that asks twice: something of it is always early."""

    def look(state: Topic) -> Topic:
        catch_up()
        said(parts.local, f"Look at {state['topic']}")
        catch_up()
        said(parts.local, f"Look again at {state['topic']}")
        return {}

    graph = StateGraph(Topic)
    graph.add_node(look)
    graph.add_edge(START, "look")
    return graph


def test_trap_13_retry_attempts_and_backoff(
    parts: Parts, accel_mode: str, compared: Compared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attempts are counted and spaced as the policy says; an answer of a failed attempt is not used again."""
    pauses: list[float] = []
    rest = time.sleep

    def sleep(pause_s: float) -> None:
        if pause_s < 0.01:  # the fakes' own
            rest(pause_s)
        else:
            pauses.append(pause_s)

    monkeypatch.setattr(time, "sleep", sleep)
    attempts: list[tuple[str, int]] = []

    def shaky(state: Topic, runtime: Runtime[Any]) -> Topic:
        catch_up()
        assert runtime.execution_info is not None
        attempt = runtime.execution_info.node_attempt
        found = said(parts.sampled, f"Sample {state['topic']}")
        attempts.append((state["topic"], attempt))
        if attempt < (4 if "33" in state["topic"] else 1):
            raise ModelError(f"attempt {attempt}")
        return {"answer": "found" if found else ""}

    graph = looking(parts)
    policy = RetryPolicy(initial_interval=0.01, backoff_factor=2.0, max_interval=0.03, jitter=False, max_attempts=4)
    graph.add_node("shaky", shaky, retry_policy=policy)
    graph.add_edge("look", "shaky")
    fast = graph.compile()
    for topic in ("quartz 11", "meadow 22", "cedar 44", "harbor 33", "amber 33"):
        said_now = len(asked(parts, f"Sample {topic}"))
        fast.invoke({"topic": topic}, config={"recursion_limit": 5})
        tried = len([1 for tried_on, _ in attempts if tried_on == topic])
        assert len(asked(parts, f"Sample {topic}")) - said_now >= tried, "each attempt has a sample of its own"
    compared(attempts, pauses)
    assert pauses == [0.01, 0.02, 0.03] * 2
    was_early(fast, accel_mode, 2)


@pytest.mark.parametrize("where", ["node", "defaults", "sends"])
def test_trap_14_cache_policies(parts: Parts, accel_mode: str, compared: Compared, where: str) -> None:
    """Nothing is asked for a node that its cache answers for; keys, hits and clearing are those of the plain graph."""
    ran: list[str] = []

    def cached(state: Topic) -> Topic:
        ran.append(state["topic"])
        return {"notes": [said(parts.local, f"Cached {state['topic']}")]}

    def last(state: Topic) -> Topic:
        catch_up()
        return {"answer": said(parts.local, f"Last {state['topic']}") if "topic" in state else ""}

    graph = looking(parts)
    policy: CachePolicy[Any] = CachePolicy(key_func=lambda state: state["topic"][:6])
    if where == "defaults":
        graph.set_node_defaults(cache_policy=policy)
        graph.add_node(cached)
    else:
        graph.add_node("cached", cached, cache_policy=policy)
    graph.add_node(last)
    if where == "sends":
        graph.add_conditional_edges("look", lambda s: [Send("cached", {"topic": s["topic"]})], ["cached"])
    else:
        graph.add_edge("look", "cached")
    graph.add_edge("cached", "last")
    fast = graph.compile(cache=InMemoryCache())
    topics = ("quartz 11", "meadow 22", "harbor 33", "quartz 99", "meadow 22", "cedar 44")
    for topic in topics:
        compared(list(fast.stream({"topic": topic}, stream_mode="updates")))
    assert ran == [topics[i] for i in (0, 1, 2, 5)]
    assert len(asked(parts, "Cached")) == 4
    fast.clear_cache(["cached"])
    fast.invoke({"topic": "quartz 11"})
    assert len(asked(parts, "Cached")) == len(ran) == 5
    if where != "defaults":  # there, every node is cached
        was_early(fast, accel_mode, 2)


def test_trap_14_a_cache_inside_a_subgraph(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """The same one level down."""

    def cached(state: Topic) -> Topic:
        return {"notes": [said(parts.local, f"Cached {state['topic']}")]}

    def before(state: Topic) -> Topic:
        catch_up()
        return {"queries": [said(parts.local, f"Before {state['topic']}")]}

    inner = StateGraph(Topic)
    inner.add_node(before)
    inner.add_node("cached", cached, cache_policy=CachePolicy(key_func=lambda state: state["topic"]))
    inner.add_edge(START, "before")
    inner.add_edge("before", "cached")
    graph = looking(parts)
    graph.add_node("inner", inner.compile(cache=InMemoryCache()))
    graph.add_edge("look", "inner")
    fast = graph.compile()
    for topic in ("quartz 11", "meadow 22", "harbor 33", "quartz 11", "meadow 22"):
        fast.invoke({"topic": topic})
    assert len(asked(parts, "Cached")) == 3
    was_early(fast, accel_mode, 2)


def test_trap_19_store_put_then_get(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """A node reads what the one before it, or an earlier run, put into the store."""

    def put(state: Topic, store: BaseStore) -> Topic:
        catch_up()
        count = len(store.search(("notes",)))
        store.put(("notes",), state["topic"], {"said": said(parts.local, f"Note {state['topic']}"), "count": count})
        return {}

    def get(state: Topic, store: BaseStore) -> Topic:
        catch_up()
        item = store.get(("notes",), state["topic"])
        assert item is not None
        opinion = said(parts.local, f"Opinion on {state['topic']}")
        return {"answer": said(parts.local, f"Answer {opinion} from {item.value}")}

    graph = StateGraph(Topic)
    graph.add_sequence([put, get])
    graph.add_edge(START, "put")
    store = InMemoryStore()
    fast = graph.compile(store=store)
    for topic in (*TOPICS, "cedar 44"):
        fast.invoke({"topic": topic})
    compared(sorted((item.key, item.value["count"], item.value["said"]) for item in store.search(("notes",))))
    was_early(fast, accel_mode, 2)


@pytest.mark.parametrize("limit", [1, 2, None])
async def test_trap_21_max_concurrency(parts: Parts, accel_mode: str, compared: Compared, limit: int | None) -> None:
    """No more calls are inside components at once than `max_concurrency` allows nodes."""
    inside: list[int] = []
    probe = parts.probe
    enter = probe.enter

    def counted(*args: Any, **kwargs: Any) -> Any:
        call = enter(*args, **kwargs)
        with probe.lock:
            inside.append(sum(map(len, probe.inside.values())))
        return call

    probe.enter = counted  # type: ignore[method-assign]

    async def expand(state: Topic) -> Topic:
        await acatch_up()
        return {"queries": (await asaid(parts.local, f"Write lines on {state['topic']}")).splitlines()}

    async def note(state: Topic) -> Topic:
        return {"notes": [await asaid(parts.local, f"Note on {state['topic']}")]}

    async def join(state: Topic) -> Topic:
        await acatch_up()
        return {"answer": await asaid(parts.local, " | ".join(state["notes"]))}

    graph = StateGraph(Topic)
    for node in (expand, note, join):
        graph.add_node(node)
    graph.add_edge(START, "expand")
    graph.add_conditional_edges("expand", lambda s: [Send("note", {"topic": q}) for q in s["queries"]], ["note"])
    graph.add_edge("note", "join")
    fast = graph.compile()
    for topic in TOPICS:
        await fast.ainvoke({"topic": topic}, {"max_concurrency": limit})
    if limit is not None:
        assert max(inside) <= limit
    was_early(fast, accel_mode, 1)


@pytest.mark.parametrize("declared", ["send", "step"])
async def test_trap_21_timeouts(parts: Parts, accel_mode: str, compared: Compared, declared: str) -> None:
    """A node that takes too long raises as it would; early work of its run ends with it."""

    async def slow(state: Topic) -> Topic:
        await acatch_up()
        found = await asaid(parts.local, f"Slow {state['topic']}")
        if "33" in state["topic"]:
            await asyncio.Event().wait()
        return {"notes": [found]}

    async def after(state: Topic) -> Topic:
        await acatch_up()
        return {"answer": await asaid(parts.local, f"After {state['topic']}")}

    graph = StateGraph(Topic)

    def begin(state: Topic) -> Send:
        limit_s = 0.2 if declared == "send" and "33" in state["topic"] else None
        return Send("slow", state, timeout=limit_s)

    graph.add_node(slow)
    graph.add_node(after)
    graph.add_conditional_edges(START, begin, ["slow"])
    graph.add_edge("slow", "after")
    fast = graph.compile()
    for topic in ("quartz 11", "meadow 22", "cedar 44", "harbor 33", "river 55"):
        fast.step_timeout = 0.2 if declared == "step" and "33" in topic else None
        if "33" in topic:
            with unlogged(), pytest.raises((NodeTimeoutError, TimeoutError)) as caught:
                await fast.ainvoke({"topic": topic})  # not logged: its message says how long it took
            compared(type(caught.value).__name__)
        else:
            await fast.ainvoke({"topic": topic})
    was_early(fast, accel_mode, 1)


async def test_trap_22_cancelled_and_closed_streams(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """Cancelling `astream`, or closing a generator: nothing early goes on, and the next request is as ever."""
    reached = asyncio.Event()

    async def first(state: Topic) -> Topic:
        await acatch_up()
        found = await asaid(parts.local, f"First {state['topic']}")
        if "33" in state["topic"]:
            reached.set()
            await asyncio.Event().wait()
        return {"notes": [found]}

    async def second(state: Topic) -> Topic:
        await acatch_up()
        return {"answer": await asaid(parts.local, f"Second {state['topic']}")}

    graph = StateGraph(Topic)
    graph.add_sequence([first, second])
    graph.add_edge(START, "first")
    fast = graph.compile()

    async def read(topic: str) -> list[Any]:
        return [chunk async for chunk in fast.astream({"topic": topic})]

    for topic in ("quartz 11", "meadow 22", "cedar 44"):
        compared(await read(topic))
    task = asyncio.create_task(read("harbor 33"))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    chunks = fast.astream({"topic": "river 55"})
    compared(await anext(chunks))
    await chunks.aclose()  # type: ignore[attr-defined]
    compared(await read("willow 66"))
    assert asyncio.all_tasks() == {asyncio.current_task()}
    was_early(fast, accel_mode, 2)


def test_trap_22_a_closed_sync_generator(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """The nodes behind the chunk that was read last don't run."""
    ran: list[str] = []

    def second(state: Topic) -> Topic:
        catch_up()
        ran.append(state["topic"])
        return {"answer": said(parts.local, f"Second {state['topic']}")}

    graph = looking(parts)
    graph.add_node(second)
    graph.add_edge("look", "second")
    fast = graph.compile()
    for topic in TOPICS:
        fast.invoke({"topic": topic})
    for topic in ("cedar 44", "river 55"):
        chunks = fast.stream({"topic": topic})
        compared(next(chunks))
        chunks.close()  # type: ignore[attr-defined]
        assert topic not in ran
    assert fast.invoke({"topic": "willow 66"})["answer"]
    assert not any(probe for probe in parts.probe.inside.values())
    was_early(fast, accel_mode, 3)
