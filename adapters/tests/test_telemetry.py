"""Counters and spans of OpenTelemetry: there with names and counts where the program has it, else not even imported."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import accel
from accel import accelerate
from accel.process.threads import learner
from accel.run.plans import telemetry
from adapters.tests.core_fakes import Chat, State, World, chain, three, train

TOPIC = "beaches of Portugal"
SECRET = "sesame-4711"
NAME = "CompiledStateGraph (a, b, c)"


class Told:
    """What the program's exporters got."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reader, self.exporter, self.traces = InMemoryMetricReader(), InMemorySpanExporter(), TracerProvider()
        self.traces.add_span_processor(SimpleSpanProcessor(self.exporter))
        meters = MeterProvider([self.reader])
        monkeypatch.setattr(telemetry, "_made", {})
        monkeypatch.setattr(metrics, "get_meter", meters.get_meter)
        monkeypatch.setattr(trace, "get_tracer", self.traces.get_tracer)

    def counted(self) -> dict[tuple[str, str], float]:
        """By name of the counter and reason."""
        data: Any = self.reader.get_metrics_data()
        found = {}
        for metric in data.resource_metrics[0].scope_metrics[0].metrics:
            for point in metric.data.data_points:
                assert point.attributes["accel.program"].startswith("CompiledStateGraph (a")
                found[metric.name, point.attributes.get("accel.reason", "")] = point.value
        return found

    def spans(self) -> list[Any]:
        return [span for span in self.exporter.get_finished_spans() if span.name == "accel.run"]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    yield Told(monkeypatch)


@pytest.fixture
def world() -> World:
    return World()


def test_what_early_calls_did_is_counted(told: Told, world: World) -> None:
    fast = accelerate(three(world, Chat(world)))
    train(fast)
    world.hooks["b"] = lambda: world.wait_early("Beta asks")
    fast.invoke({"q": TOPIC})
    assert accel.settle()
    report, counted = fast.report(), told.counted()
    assert counted["accel.issued", ""] == report.issued > 0
    assert counted["accel.retired", ""] == report.retired > 0
    assert counted["accel.wasted_tokens", ""] == 0
    assert counted["accel.saved_s", ""] > 0
    assert ("accel.stood_down", "max_issued") not in counted


def test_who_stands_down_is_counted_with_the_reason(told: Told, world: World) -> None:
    fast = accelerate(three(world, Chat(world)), budget=accel.Budget(max_issued=1))
    train(fast)
    world.hooks["b"] = lambda: world.wait_early("")
    for _ in range(2):
        fast.invoke({"q": TOPIC})
        assert accel.settle()
    assert told.counted()["accel.stood_down", "max_issued"] == 1


def test_a_run_is_a_span_beside_those_of_the_program(told: Told, world: World) -> None:
    """Its parent is what was current when it began; what the program opens inside is not its child."""
    tracer, inside = told.traces.get_tracer("program"), []
    model = Chat(world)

    def a(state: State) -> State:
        with tracer.start_as_current_span("node") as span:
            inside.append(span)
            return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    fast = accelerate(chain(("a", a)))
    with tracer.start_as_current_span("request") as request:
        fast.invoke({"q": f"{SECRET} {TOPIC}"}, {"metadata": {"customer": SECRET}})
    (run,) = told.spans()
    assert run.parent.span_id == inside[0].parent.span_id == request.get_span_context().span_id
    assert dict(run.attributes) == {
        "accel.program": "CompiledStateGraph (a)", "accel.saved_s": 0.0, "accel.completed": True,
        "accel.demanded": 1, "accel.issued": 0, "accel.retired": 0, "accel.wasted": 0, "accel.wasted_tokens": 0,
    }  # fmt: skip
    assert request.start_time <= run.start_time < run.end_time <= request.end_time
    assert SECRET not in run.to_json()


def test_runs_that_raised_have_spans_too_and_those_that_are_off_have_none(told: Told, world: World) -> None:
    fast = accelerate(three(world, Chat(world)))
    world.errors["Beta"] = RuntimeError(SECRET)
    with pytest.raises(RuntimeError):
        fast.invoke({"q": TOPIC})
    fast_off = {"metadata": {"accel": "off"}}
    with pytest.raises(RuntimeError):
        fast.invoke({"q": TOPIC}, fast_off)
    (run,) = told.spans()
    assert run.attributes["accel.completed"] is False and SECRET not in run.to_json()


def test_an_exporter_that_fails_is_not_the_programs_problem(told: Told, world: World) -> None:
    class Fails(SpanProcessor):
        def on_end(self, span: Any) -> None:
            raise OSError("no collector")

    told.traces.add_span_processor(Fails())
    fast, before = accelerate(three(world, Chat(world))), learner.faults
    assert fast.invoke({"q": TOPIC})["b"] == f"answer to <Beta asks: {TOPIC}>"
    assert learner.faults == before + 1


WITHOUT = """
import sys
sys.modules["opentelemetry"] = None  # as if it were not installed
import accel
from langchain_core.runnables import RunnableLambda
fast = accel.accelerate(RunnableLambda(len) | RunnableLambda(str))
assert fast.invoke("tides") == "5" and accel.settle()
assert accel.report(fast).runs == 1
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""


def test_a_program_without_it_does_not_get_it() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], env=os.environ, capture_output=True, text=True, timeout=60)
    assert done.stdout == "['opentelemetry']\n", done.stderr
