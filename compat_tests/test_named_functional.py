"""LangGraph's functional interface, `@entrypoint` and `@task`: plain, accelerated and forced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import CachePolicy, Command, RetryPolicy, StreamWriter, interrupt

from compat_tests.answers import ModelError
from compat_tests.fakes import Parts
from compat_tests.graphs import TOPICS, Topic
from compat_tests.named import acatch_up, asaid, asked, catch_up, said, was_early

ACCEL_DIFFERENTIAL = True

Compared = Callable[..., None]


def thread(name: object) -> Any:
    return {"configurable": {"thread_id": str(name)}}


@pytest.mark.parametrize("mode", ["values", "updates", "messages", "tasks", ["updates", "custom", "messages"]], ids=str)
def test_tasks_in_an_entrypoint(parts: Parts, accel_mode: str, mode: Any) -> None:
    """Tasks in a row and side by side, and what they stream."""

    @task
    def note(topic: str) -> str:
        return said(parts.local, f"Note on {topic}")

    @entrypoint()
    def write(topic: str, writer: StreamWriter) -> dict[str, Any]:
        catch_up()
        first = note(f"{topic} first").result()
        writer(first)
        catch_up()
        rest = [note(f"{topic} {number}") for number in range(3)]
        return {"first": first, "rest": [one.result() for one in rest], "last": said(parts.local, f"Sum up {first}")}

    for topic in TOPICS:
        chunks = list(write.stream(topic, stream_mode=mode))
        assert chunks
    was_early(write, accel_mode, 2)


async def test_async_tasks(parts: Parts, accel_mode: str, compared: Compared) -> None:
    @task
    async def note(topic: str) -> str:
        return await asaid(parts.local, f"Note on {topic}")

    @entrypoint()
    async def write(topic: str) -> list[str]:
        await acatch_up()
        first = await note(f"{topic} first")
        await acatch_up()
        return [first, *await asyncio.gather(note(f"{topic} a"), note(f"{topic} b")), await note(first)]

    for topic in TOPICS:
        compared(await write.ainvoke(topic))
        events = [event async for event in write.astream_events(topic, version="v2")]
        compared(sorted((event["event"], event["name"]) for event in events))  # tasks run side by side
    was_early(write, accel_mode, 2)


def test_previous_and_final(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """What an entrypoint saves for its next run is not what it returns."""

    @entrypoint(checkpointer=InMemorySaver())
    def count(topic: str, *, previous: int | None = None) -> Any:
        catch_up()
        found = said(parts.local, f"Number {previous} on {topic}")
        more = said(parts.local, f"More on {topic}")
        return entrypoint.final(value=[found, more], save=(previous or 0) + 1)

    for number, topic in enumerate((*TOPICS, "cedar 44")):
        compared(count.invoke(topic, thread(number % 2)))
    compared([state.values for name in "01" for state in count.get_state_history(thread(name))])
    was_early(count, accel_mode)


def test_interrupts_between_tasks(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """A resumed entrypoint doesn't run again what is done: neither the task nor, early, its call."""
    ran: list[str] = []

    @task
    def draft(topic: str) -> str:
        ran.append(topic)
        return said(parts.local, f"Draft {topic}")

    @task
    def publish(text: str) -> str:
        return said(parts.local, f"Publish {text}")

    @entrypoint(checkpointer=InMemorySaver())
    def write(topic: str) -> dict[str, Any]:
        catch_up()
        text = draft(topic).result()
        review = interrupt({"text": text}) if "no review" not in topic else "none"
        return {"text": publish(f"{text} as {review}").result(), "review": review}

    topics = ("no review 1", "no review 2", "no review 3", "quartz 11", "meadow 22", "no review 4")
    for number, topic in enumerate(topics):
        found = write.invoke(topic, thread(number))
        parts.probe.calls.clear()
        if "__interrupt__" in found:
            found = write.invoke(Command(resume=f"fine {number}"), thread(number))
            assert asked(parts, "Draft") == []
        compared(found)
    assert ran == list(topics)
    was_early(write, accel_mode)


def test_retry_and_cache_of_tasks(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """A task's policies hold; nothing is asked for a task that its cache answers for."""
    ran: list[str] = []

    @task(cache_policy=CachePolicy())
    def cached(topic: str) -> str:
        return said(parts.local, f"Cached {topic}")

    @task(retry_policy=RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=3, retry_on=ModelError))
    def shaky(topic: str) -> str:
        ran.append(topic)
        found = said(parts.sampled, f"Shaky {topic}")
        if len(ran) % 3 != 0:
            raise ModelError("again")
        return found

    @entrypoint(cache=InMemoryCache())
    def write(topic: str) -> list[str]:
        catch_up()
        said(parts.local, f"Begin {topic}")
        catch_up()
        return [cached(topic).result(), "sampled" if shaky(topic).result() else ""]

    for topic in (*TOPICS, "meadow 22", "cedar 44"):
        found = write.invoke(topic)
        assert len(found) == 2
    assert len(asked(parts, "Cached")) == 4
    compared(ran)
    assert len(ran) == 18 and len(asked(parts, "Shaky")) >= 18


def test_a_cached_task_in_a_node(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """The same where a node of a graph calls the task."""

    @task(cache_policy=CachePolicy())
    def cached(topic: str) -> str:
        return said(parts.local, f"Cached {topic}")

    def node(state: Topic) -> Topic:
        catch_up()
        said(parts.local, f"Begin {state['topic']}")
        catch_up()
        return {"answer": cached(state["topic"]).result()}

    def last(state: Topic) -> Topic:
        catch_up()
        return {"notes": [said(parts.local, f"Last {state['topic']}")]}

    graph = StateGraph(Topic)
    graph.add_sequence([node, last])
    graph.add_edge(START, "node")
    fast = graph.compile(cache=InMemoryCache())
    for topic in (*TOPICS, "meadow 22", "cedar 44"):
        fast.invoke({"topic": topic})
    assert len(asked(parts, "Cached")) == 4
    was_early(fast, accel_mode, 1)


def test_an_entrypoint_with_a_store(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """What a task put into the store is what the next one reads."""
    store = InMemoryStore()

    @task
    def put(topic: str) -> None:
        store.put(("notes",), "last", {"said": said(parts.local, f"Note {topic}")})

    @entrypoint(store=store)
    def write(topic: str, *, store: BaseStore) -> str:
        catch_up()
        put(topic).result()
        item = store.get(("notes",), "last")
        assert item is not None
        return said(parts.local, f"Opinion on {topic}") + said(parts.local, f"Answer from {item.value}")

    for topic in (*TOPICS, "cedar 44"):
        compared(write.invoke(topic))
    was_early(write, accel_mode, 2)


def test_what_an_accelerated_entrypoint_is(parts: Parts, accel_mode: str, compared: Compared) -> None:
    @entrypoint()
    def write(topic: str) -> str:
        catch_up()
        return said(parts.local, f"One {topic}") + said(parts.local, f"Two {topic}")

    for topic in TOPICS:
        compared(write.invoke(topic), write.with_config(tags=["x"]).invoke(topic))
    compared(
        type(write).__name__, type(write).__module__, write.name, write.get_graph().draw_mermaid(),
        write.get_input_jsonschema(), write.get_output_jsonschema(), sorted(write.nodes), sorted(write.channels),
        write.batch(["a", "b"]),
    )  # fmt: skip
    was_early(write, accel_mode, 2)
