"""Metrics and spans for OpenTelemetry, if the program has it: no import, and one look per run, where it has not.

`accel.issued`, `accel.retired`, `accel.wasted_tokens`, `accel.saved_s` and `accel.stood_down` are counters, by program;
a run is a span `accel.run`, a child of what was current when it began and current itself nowhere, so that the program's
own spans keep their places. Attributes are names and counts; as in logs, never a value of a program.
"""

from __future__ import annotations

import sys
from contextvars import Context
from time import time_ns
from typing import Any

from ...process.threads import learner
from ...trace.record import Trace
from ..gains.gained import gains
from ..settings import Counts

_COUNTERS = (
    ("accel.issued", "{call}", "Calls started early."),
    ("accel.retired", "{call}", "Calls of programs that an early one answered."),
    ("accel.wasted_tokens", "{token}", "Of early calls that nobody demanded."),
    ("accel.saved_s", "s", "What calls that early ones answered did not take any more, one by one."),
    ("accel.stood_down", "{time}", "Times that a program or a component stood down, by reason."),
)
_made: dict[str, Any] = {}
"""Counters by name."""


def stood_down(program: str, reason: str) -> None:
    learner.do(lambda: _add("accel.stood_down", 1, {"accel.program": program, "accel.reason": reason}))


def ended(program: str, trace: Trace, counts: Counts, entry: Context) -> None:
    """A run is over. `entry`: the context that it began in."""
    if "opentelemetry.metrics" in sys.modules or "opentelemetry.trace" in sys.modules:
        learner.do(lambda: _ended(program, trace, counts, entry))  # what exporters raise is not the program's problem


def _ended(program: str, trace: Trace, counts: Counts, entry: Context) -> None:
    saved_s = sum(map(min, gains(trace)))
    for name, amount in zip(
        ("accel.issued", "accel.retired", "accel.wasted_tokens", "accel.saved_s"),
        (counts.issued, counts.retired, counts.wasted_tokens, saved_s),
        strict=True,
    ):
        _add(name, amount, {"accel.program": program})
    traces = sys.modules.get("opentelemetry.trace")
    if traces is not None:
        entry.copy().run(_span, traces, program, trace, counts, saved_s)


def _add(name: str, amount: float, attributes: dict[str, str]) -> None:
    metrics: Any = sys.modules.get("opentelemetry.metrics")
    if metrics is None:
        return
    if not _made:
        meter = metrics.get_meter("accel")  # one that has no provider yet hands on to the one that comes
        for counter, unit, description in _COUNTERS:
            _made[counter] = meter.create_counter(counter, unit, description)
    _made[name].add(amount, attributes)


def _span(traces: Any, program: str, trace: Trace, counts: Counts, saved_s: float) -> None:
    ended_s = trace.ended_s if trace.ended_s is not None else trace.started_s
    now_ns, took_ns = time_ns(), int((ended_s - trace.started_s) * 1e9)
    span = traces.get_tracer("accel").start_span("accel.run", start_time=now_ns - took_ns)
    if span.is_recording():
        span.set_attribute("accel.program", program)
        span.set_attribute("accel.saved_s", saved_s)
        span.set_attribute("accel.completed", trace.completed)
        for name in ("demanded", "issued", "retired", "wasted", "wasted_tokens"):
            span.set_attribute(f"accel.{name}", getattr(counts, name))
    span.end(now_ns)
