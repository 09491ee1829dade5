"""Every way to stream that LangGraph offers: plain, accelerated and forced give the same chunks in the same order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from compat_tests.fakes import Parts
from compat_tests.graphs import TOPICS, Topic
from compat_tests.named import in_a_row, in_a_row_async, newer, was_early

ACCEL_DIFFERENTIAL = True
ACCEL_STRICT_ORDER = True

Compared = Callable[..., None]
MODES = ("values", "updates", "checkpoints", "tasks", "debug", "messages", "custom")
EVERY: list[Any] = [*MODES, list(MODES), ["updates"]]
RUNS = ("quartz 11", "meadow 22", "harbor 33")


def thread(topic: str) -> Any:
    return {"configurable": {"thread_id": topic}}


def nested(inner: StateGraph[Any, Any, Any, Any]) -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(Topic)
    graph.add_node("inner", inner.compile())
    graph.add_edge(START, "inner")
    return graph


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("mode", EVERY, ids=str)
def test_stream(parts: Parts, accel_mode: str, mode: Any, version: Any) -> None:
    """Modes alone and together, with a checkpointer; chunks are compared by the log."""
    fast = in_a_row(parts, "first second").compile(checkpointer=InMemorySaver())
    for topic in RUNS:
        list(fast.stream({"topic": topic}, thread(topic), stream_mode=mode, version=version))
    was_early(fast, accel_mode)


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("mode", ["values", "messages", list(MODES)], ids=str)
async def test_astream(parts: Parts, accel_mode: str, mode: Any, version: Any) -> None:
    fast = in_a_row_async(parts, "first second").compile(checkpointer=InMemorySaver())
    for topic in RUNS:
        chunks = fast.astream({"topic": topic}, thread(topic), stream_mode=mode, version=version)
        assert [chunk async for chunk in chunks]
    was_early(fast, accel_mode)


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("mode", ["updates", list(MODES)], ids=str)
def test_stream_of_subgraphs(parts: Parts, accel_mode: str, mode: Any, version: Any) -> None:
    fast = nested(in_a_row(parts, "first second")).compile()
    for topic in RUNS:
        chunks = list(fast.stream({"topic": topic}, stream_mode=mode, subgraphs=True, version=version))
        namespaces = [chunk["ns"] if version == "v2" else chunk[0] for chunk in chunks]  # type: ignore[call-overload]
        assert any(namespaces)
    was_early(fast, accel_mode)


async def test_astream_of_subgraphs(parts: Parts, accel_mode: str) -> None:
    fast = nested(in_a_row_async(parts, "first second")).compile()
    for topic in RUNS:
        chunks = fast.astream({"topic": topic}, stream_mode=["messages", "updates"], subgraphs=True)
        assert [chunk async for chunk in chunks]
    was_early(fast, accel_mode)


def test_options_of_stream(parts: Parts, accel_mode: str, compared: Compared, capsys: Any) -> None:
    """`output_keys`, `print_mode` and `debug` do what they do."""
    fast = in_a_row(parts, "first second").compile()
    for topic in RUNS:
        compared(list(fast.stream({"topic": topic}, output_keys=["answer"], stream_mode="updates")))
        compared(list(fast.stream({"topic": topic}, output_keys="answer", stream_mode="values")))
        list(fast.stream({"topic": topic}, print_mode="updates"))
        compared(capsys.readouterr().out)
    was_early(fast, accel_mode)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_invoke(parts: Parts, accel_mode: str, compared: Compared, version: Any) -> None:
    """`invoke` with every mode gives what it gives: v2 an object with value and interrupts."""
    fast = in_a_row(parts, "first second").compile(checkpointer=InMemorySaver())
    for topic in RUNS:
        for mode in ("values", "updates", "tasks"):
            found = fast.invoke({"topic": topic}, thread(topic), stream_mode=mode, version=version)  # type: ignore[call-overload]
            compared(type(found).__name__, found)
    was_early(fast, accel_mode)


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainDeprecationWarning")
async def test_astream_events(parts: Parts, accel_mode: str, compared: Compared, version: Any) -> None:
    """Names, data, parents, tags and metadata of all events."""
    fast = in_a_row_async(parts, "first second").compile()
    for topic in TOPICS:
        events = [event async for event in fast.astream_events({"topic": topic}, version=version)]
        kinds = {event["event"] for event in events}
        assert {"on_chain_start", "on_chat_model_stream", "on_chain_end"} <= kinds
        compared(events)
    was_early(fast, accel_mode)


def without_times(events: list[Any]) -> list[Any]:
    return [(e["method"], e["seq"], {k: v for k, v in e["params"].items() if k != "timestamp"}) for e in events]


@newer
@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
def test_stream_events_v3(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """Protocol events, typed projections and the output of the newest streaming interface."""
    fast = nested(in_a_row(parts, "first second")).compile()
    for topic in RUNS:
        stream = fast.stream_events({"topic": topic}, version="v3")
        compared(without_times(list(stream)), stream.output, stream.interrupted)
        stream = fast.stream_events({"topic": topic}, version="v3")
        compared([dict(value) for value in stream.values])
    stream = fast.stream_events({"topic": "cedar 44"}, version="v3")
    stream.abort()
    compared(fast.invoke({"topic": "cedar 44"}))
    was_early(fast, accel_mode)


@newer
@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
async def test_astream_events_v3(parts: Parts, accel_mode: str, compared: Compared) -> None:
    fast = in_a_row_async(parts, "first second").compile()
    for topic in RUNS:
        stream = await fast.astream_events({"topic": topic}, version="v3")
        compared(without_times([event async for event in stream]), await stream.output())
        stream = await fast.astream_events({"topic": topic}, version="v3")
        compared([await message.text async for message in stream.messages])
    was_early(fast, accel_mode)
