"""Exact match or nothing: which early call answers a demand, case by case (invariants 3 to 5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from accel.parts.components import note_told
from accel.parts.methods.epochs import bump, epoch
from accel.parts.methods.methods import Method
from accel.process import forks
from accel.run.calls.call import Call
from accel.run.calls.calls import Calls
from accel.run.settings import Counts
from accel.tests.fake_host import AMBIENT, ASK, FIND, PURE, as_coroutine, as_stream, early
from accel.text.values import Opaque
from accel.trace.ambient import INCOMPARABLE

STORE = "the store of these tests"
SEARCH = {"method": FIND, "input": "query", "resource": STORE}
STREAM, COROUTINE = as_stream(ASK), as_coroutine(ASK)
SHARED = replace(ASK, copy=str)


def demanded(call: Call, method: Method = ASK, ambient: Any = AMBIENT, site: str = "here", **facts: Any) -> Call | None:
    return held(call).claim(call.key, site, method, ambient, replace(PURE, **facts))


def held(*calls: Call) -> Calls:
    found = Calls(forks.lock(), Counts())
    for call in calls:
        found.add(call)
    return found


@pytest.fixture
def quiet_model() -> Any:
    """A kind of component whose calls were seen to tell nobody of themselves."""

    class Told:
        pass

    for method in (ASK, STREAM):
        note_told(Told(), method.name, "")
    return Told()


@pytest.mark.parametrize(("state", "answers"), [
    ("queued", True), ("running", True), ("done", True), ("failed", False), ("dropped", False),
])  # fmt: skip
def test_what_is_under_way_or_done_answers(state: Any, answers: bool) -> None:
    call = early(state=state)
    assert demanded(call) is (call if answers else None)


def test_what_has_not_begun_is_taken_over_and_anything_else_is_joined(quiet_model: Any) -> None:
    for state, early_still in (("queued", False), ("running", True), ("done", True)):
        call = early(state=state)
        assert demanded(call) is call
        assert (call.demanded, call.joined, call.early) == (True, early_still, early_still)
    assert demanded(call := early(COROUTINE, quiet_model, state="queued"), twins=True) is call
    assert call.state == "running" and call.method is ASK, "the program runs it with the method it has called"


@pytest.mark.parametrize(("call", "method", "answers"), [
    ({}, ASK, False),
    ({}, SHARED, True),
    ({"state": "running"}, SHARED, False),
    ({"tells": "by its callbacks"}, SHARED, False),
])  # fmt: skip
def test_a_result_that_was_handed_out_answers_again_only_as_a_copy(
    call: dict[str, Any], method: Method, answers: bool
) -> None:
    given = early(**({"state": "done", "standing": "joined"} | call))
    assert (demanded(given, method) is given) == answers


def test_nothing_answers_for_a_component_that_nobody_vouches_for() -> None:
    assert demanded(early(state="done"), pure=False) is None


@pytest.mark.parametrize(("issued", "at_demand", "answers"), [
    (AMBIENT, ({}, None), True),
    (AMBIENT, ({}, "another configuration"), False),
    (({"tenant": "ann"}, None), ({"tenant": "ben"}, None), False),
    (INCOMPARABLE, INCOMPARABLE, False),
])  # fmt: skip
def test_the_context_must_be_the_same(issued: Any, at_demand: Any, answers: bool) -> None:
    call = early(state="done", ambient=issued)
    assert (demanded(call, ambient=at_demand) is call) == answers


def test_an_input_that_holds_an_object_proves_nothing_but_a_function_is_itself() -> None:
    assert demanded(early(state="done", input={"by": Opaque(object())})) is None
    call = early(state="done", input={"by": Opaque(len)})
    assert demanded(call) is call


@pytest.mark.parametrize(("facts", "written", "answers"), [
    ({}, False, False),
    ({"readonly": True}, True, True),
    ({"owned": True}, False, True),
    ({"owned": True}, True, False),
])  # fmt: skip
def test_a_read_answers_if_nothing_can_have_been_written(facts: dict[str, bool], written: bool, answers: bool) -> None:
    call = early(**SEARCH, state="done", epoch=epoch(STORE))
    call.only_feeds = not facts
    if written:
        bump(STORE)
    assert (demanded(call, FIND, **facts) is call) == answers
    assert call.fed == call.only_feeds, "one that has become too old was in vain"


@pytest.mark.parametrize(("made_as", "called_as", "facts", "answers"), [
    (ASK, COROUTINE, {}, False),
    (ASK, COROUTINE, {"twins": True}, True),
    (COROUTINE, ASK, {}, False),
    (ASK, STREAM, {"streams_equal": True}, False),
    (STREAM, ASK, {}, False),
    (STREAM, ASK, {"streams_equal": True}, True),
    (STREAM, STREAM, {}, True),
])  # fmt: skip
def test_methods_of_one_family(
    made_as: Method, called_as: Method, facts: dict[str, bool], answers: bool, quiet_model: Any
) -> None:
    note_told(quiet_model, COROUTINE.name, "")
    call = early(made_as, quiet_model, state="done")
    assert (demanded(call, called_as, **facts) is call) == answers


def test_another_method_answers_only_where_calls_are_known_to_tell_nobody_of_themselves() -> None:
    class Unseen:
        pass

    assert demanded(early(STREAM, Unseen(), state="done"), ASK, streams_equal=True) is None
    note_told(Unseen(), ASK.name, "by an event")
    assert demanded(early(STREAM, Unseen(), state="done"), ASK, streams_equal=True) is None


async def test_what_an_event_loop_is_at_answers_only_there() -> None:
    import asyncio

    here = asyncio.get_running_loop()
    call = early(COROUTINE, state="running", loop=here)
    assert demanded(call, COROUTINE) is call
    assert await asyncio.to_thread(demanded, early(COROUTINE, state="running", loop=here), COROUTINE) is None
    assert await asyncio.to_thread(demanded, early(COROUTINE, state="done", loop=here), COROUTINE) is not None


def test_what_was_issued_for_this_call_site_comes_first() -> None:
    elsewhere, here = early(state="done", issued_for="elsewhere"), early(state="done")
    calls = held(elsewhere, here)
    assert calls.claim(here.key, "here", ASK, AMBIENT, PURE) is here
    assert calls.claim(here.key, "here", ASK, AMBIENT, PURE) is elsewhere
    assert calls.claim(here.key, "here", ASK, AMBIENT, PURE) is None
