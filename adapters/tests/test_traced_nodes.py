"""Spans around the work of nodes, as instrumentation makes them, say nothing of the run; baggage does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from llama_index_instrumentation.span import active_span_id
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import TracerProvider

import accel
from accel import accelerate
from adapters.tests.catching_up import catch_up
from adapters.tests.core_fakes import Chat, State, World, chain

TOPICS = ("tides", "reefs", "foxes", "mills", "wells")
tracer = TracerProvider().get_tracer("program")


@contextmanager
def spanned(topic: str) -> Iterator[None]:
    with trace.use_span(tracer.start_span("node")):
        yield


@contextmanager
def carried(topic: str) -> Iterator[None]:
    token = context.attach(baggage.set_baggage("tenant", topic))
    try:
        yield
    finally:
        context.detach(token)


@contextmanager
def of_llamaindex(topic: str) -> Iterator[None]:
    token = active_span_id.set(f"span of {topic}")
    try:
        yield
    finally:
        active_span_id.reset(token)


class Reads(Chat):
    """Its code may read the baggage."""

    def _result(self, messages: Any, kwargs: Any) -> Any:
        return super()._result(messages, {"tenant": baggage.get_baggage("tenant")})


@pytest.mark.parametrize("model_class", [Chat, Reads])
@pytest.mark.parametrize("around", [spanned, carried, of_llamaindex])
def test_what_a_node_sets_for_its_trace_holds_nothing_back(model_class: Any, around: Callable[[str], Any]) -> None:
    world = World()
    model = model_class(world)

    def a(state: State) -> State:
        with around(state["q"]):
            return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        with around(state["q"]):
            catch_up()
            return {"b": model.invoke(f"Beta asks: {state['q']}").content}

    program = chain(("a", a), ("b", b))
    fast = accelerate(program)
    early = 0
    for topic in TOPICS:
        expected = program.invoke({"q": topic})
        world.forget()
        assert fast.invoke({"q": topic}) == expected
        assert accel.settle()
        assert len(world.texts("Beta")) == 1
        early += len(world.texts("Beta", early=True))
    assert (early > 0) == (around is not carried)
