"""Tools that nobody declared: what a declaration of theirs may gain."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from accel.reports.declarations import unseen
from accel.trace.record import CallRecord, Trace, Use


def gains(*uses: Use, answer: Any = None) -> list[float]:
    asked = CallRecord("model", "", "ask", "ask", "decode", None, None, None, None, 1, 100.0, output=answer)
    asked.end, asked.ended_s = 2, 101.0
    trace = Trace(calls=[asked], uses=list(uses), started_s=100.0)
    return [round(each.gain_s, 3) for each in unseen(trace, 0.05, nodes=False, program="graph")]


def used(start_s: float, took_s: float = 0.5) -> Use:
    return Use(SimpleNamespace(), "look_up", "|Tool|app.py:ask:30", "", None, start_s, start_s + took_s)


CALLS = {"content": "", "tool_calls": [{"name": "look_up", "args": {}}]}


@pytest.mark.parametrize(
    ("answer", "starts", "gain"),
    [
        (None, [101.0], [0.5]),
        (CALLS, [101.0], []),
        (CALLS, [101.0, 101.5], [0.5]),
        ({"content": "", "tool_calls": [{"name": "other"}]}, [101.0], [0.5]),
        (None, [100.2], [0.2]),
        (None, [100.01], []),
    ],
    ids=["unknown", "called by the answer", "one after the other", "another one", "soon after the begin", "at once"],
)
def test_a_tool_can_begin_no_sooner_than_the_run_and_the_answer_that_calls_it(
    answer: Any, starts: list[float], gain: list[float]
) -> None:
    assert gains(*map(used, starts), answer=answer) == gain
