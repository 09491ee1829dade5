"""Calls of runs that are not the last one any more keep no component alive, and are calls like others."""

from __future__ import annotations

import gc
from dataclasses import replace

from accel.trace.record import CallRecord
from accel.trace.released import release


class Client:
    pass


def call_of(component: object) -> CallRecord:
    return CallRecord("site", "", "ask", "ask", "decode", component, None, None, None, 1, 1.0, output="answer", end=2)


def test_a_released_call_knows_its_component_as_long_as_somebody_else_does() -> None:
    client = Client()
    call = call_of(client)
    release(call, "what it does first")
    assert call.component is client and call.first == "what it does first"
    del client
    gc.collect()
    assert call.component is None and call.output == "answer"


def test_a_copy_of_a_released_call_can_be_made_and_released() -> None:
    client = Client()
    call = call_of(client)
    release(call, None)
    copy = replace(call, end=None, output=None)
    assert copy.component is client and copy.output is None and call.output == "answer"
    release(copy, None)
    del client
    gc.collect()
    assert copy.component is None and call.component is None
