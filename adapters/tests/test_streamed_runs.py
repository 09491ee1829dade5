"""Models stream in runs that somebody listens to, and answer at once in others: what one kind of run taught is no
promise of what the other asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk

import accel
from accel import accelerate
from accel.graph.rules import UNHEARD
from adapters.tests.core_fakes import Chat, World, three

TOPICS = [f"{what} of {where}" for where in ("Chile", "Peru") for what in ("deserts", "lakes", "woods")]


class Speaker(Chat):
    """Nobody says that its chunks, merged, are its answer."""

    def _result(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> Any:
        return super()._result(messages, kwargs)

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        answer = self._result(messages, kwargs).generations[0].message
        yield ChatGenerationChunk(message=AIMessageChunk(answer.content))


accel.register(Speaker, pure=True, local=True, concurrency=8)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def fast(world: World) -> Any:
    return accelerate(three(world, Speaker(world)))


def ask(fast: Any, world: World, topic: str, streamed: bool, early: bool = True) -> None:
    """A run, in which the second node's call is early or not; in vain is none of that node."""
    beta = f"Beta asks: {topic}"
    world.hooks["b"] = (lambda: world.wait_early(beta)) if early else (lambda: None)
    if streamed:
        said = "".join(part.text for part, _ in fast.stream({"q": topic}, stream_mode="messages"))
        assert f"<{beta}>" in said
    else:
        assert f"<{beta}>" in fast.invoke({"q": topic})["c"]
    assert accel.settle()
    assert len(world.texts(beta)) == 1 and bool(world.texts(beta, early=True)) == early


def test_what_plain_runs_taught_is_no_promise_of_what_a_stream_asks_for(fast: Any, world: World) -> None:
    for topic in TOPICS[:2]:
        ask(fast, world, topic, streamed=False, early=False)
    ask(fast, world, TOPICS[2], streamed=True, early=False)
    assert UNHEARD.sentence in " ".join(str(fast.report()).split())
    for topic, streamed in zip(TOPICS[3:], (True, False, True), strict=True):
        ask(fast, world, topic, streamed)


def test_what_streams_taught_is_no_promise_of_what_a_plain_run_asks_for(fast: Any, world: World) -> None:
    for topic in TOPICS[:2]:
        ask(fast, world, topic, streamed=True, early=False)
    ask(fast, world, TOPICS[2], streamed=False, early=False)
    for topic, streamed in zip(TOPICS[3:], (False, True, False), strict=True):
        ask(fast, world, topic, streamed)
