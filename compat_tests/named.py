"""What the named tests share: letting early calls catch up with the program, and seeing what reached components."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, wait
from importlib.metadata import version
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

import accel
from accel.run.scope import scope
from accel.run.waits.waiting import Woken
from compat_tests.fakes import Parts
from compat_tests.graphs import Topic
from compat_tests.probe import Probe

WAIT_S = 20.0

LANGGRAPH = tuple(map(int, version("langgraph").split(".")[:2]))
newer = pytest.mark.skipif(LANGGRAPH < (1, 2), reason="LangGraph 1.2 brought it")


def said(model: Any, text: str) -> str:
    """What a model answers."""
    return str(model.invoke(text).text)


async def asaid(model: Any, text: str) -> str:
    return str((await model.ainvoke(text)).text)


def _early() -> list[Any]:
    here = scope.get()
    return [] if here is None else [call for call in here.run.calls.all() if call.early]


def _over(calls: list[Any]) -> list[Future[None]]:
    """Resolved when these are over."""
    return list(map(_end, calls))


def _end(call: Any) -> Future[None]:
    end, woken = Future[None](), Woken()
    woken.tell(lambda _: end.set_result(None))
    call.outcome.wake(woken)
    return end


def catch_up() -> None:
    """First line of a node: everything that may be issued by now was, and is over. Without it, who comes first
    is a matter of threads."""
    before: list[Any] | None = None
    while scope.get() is not None and before != (early := _settled()):
        assert not wait(_over(early), WAIT_S).not_done
        before = early


def _settled() -> list[Any]:
    assert accel.settle(WAIT_S)
    return _early()


async def acatch_up() -> None:
    """The same on a loop, where early calls may be coroutines."""
    before: list[Any] | None = None
    while scope.get() is not None and before != (early := await asyncio.to_thread(_settled)):
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(*map(asyncio.wrap_future, _over(early)), return_exceptions=True)
        before = early


def was_early(fast: Any, mode: str, retired: int = 1) -> None:
    """Early calls were issued and answered demands: a test that shows nothing goes wrong must not do so by doing
    nothing."""
    if mode != "plain":
        report = fast.report()
        assert report.retired >= retired, report


def asked(parts: Parts | Probe, part: str = "") -> list[str]:
    """What reached the components so far, of the calls whose text holds `part`."""
    probe = parts.probe if isinstance(parts, Parts) else parts
    return sorted(call.text for call in probe.calls if part in call.text)


def in_a_row(
    parts: Parts, names: str = "first second third", begun: Callable[[str, str], None] = lambda name, topic: None
) -> StateGraph[Any, Any, Any, Any]:
    """Nodes in a row that ask of the topic and of what the node before has found: most of it may be early."""
    graph = StateGraph(Topic)

    def node(name: str) -> Callable[[Topic], Topic]:
        def run(state: Topic) -> Topic:
            catch_up()
            begun(name, state["topic"])
            about = said(parts.local, f"{name} on {state['topic']}")
            return {"notes": [about], "answer": said(parts.local, f"{name} concludes from {about}")}

        return run

    graph.add_sequence([(name, node(name)) for name in names.split()])
    graph.add_edge(START, names.split()[0])
    return graph


def in_a_row_async(parts: Parts, names: str = "first second third") -> StateGraph[Any, Any, Any, Any]:
    """The same as coroutines."""
    graph = StateGraph(Topic)

    def node(name: str) -> Callable[[Topic], Any]:
        async def run(state: Topic) -> Topic:
            await acatch_up()
            about = await asaid(parts.local, f"{name} on {state['topic']}")
            return {"notes": [about], "answer": await asaid(parts.local, f"{name} concludes from {about}")}

        return run

    graph.add_sequence([(name, node(name)) for name in names.split()])
    graph.add_edge(START, names.split()[0])
    return graph
