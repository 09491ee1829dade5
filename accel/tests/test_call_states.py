"""The states of calls, under any order of events: what is over stays over, and a result is handed out once."""

from __future__ import annotations

from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from accel.parts.listed.facts import Facts
from accel.parts.methods.methods import Method
from accel.process import forks
from accel.run.calls.call import STANDINGS, STATES, Call, Event, Standing, State
from accel.run.calls.calls import Calls
from accel.run.settings import Counts
from accel.run.waits.waiting import Party, Woken, begin
from accel.trace.record import CallRecord

FACTS = Facts(pure=True, concurrency=4, twins=False, streams_equal=False)
KEYS = st.sampled_from("abc")
AMBIENT: Any = ({}, None)


class Component:
    pass


COMPONENT = Component()


def _read(component: Any, args: Any, kwargs: Any) -> Any:
    return None


def _build(component: Any, tree: Any) -> Any:
    return (), {}


def method(shared: bool) -> Method:
    def copy(result: Any) -> Any:
        return result

    return Method(
        "ask", "asked", "tool", "sync", lambda *_: None, lambda *_: ((), {}), str, copy=copy if shared else None
    )


ONCE, SHARED = method(shared=False), method(shared=True)


def test_the_tables_lead_to_states_there_are() -> None:
    assert set(STATES.values()) | {state for state, _ in STATES} == set(get_args(State))
    assert set(STANDINGS.values()) | {standing for standing, _ in STANDINGS} <= set(get_args(Standing))
    assert {event for _, event in [*STATES, *STANDINGS]} == set(get_args(Event))


def test_nothing_happens_to_what_failed_or_was_dropped() -> None:
    for state, event in product(("failed", "dropped"), get_args(Event)):
        call = Call(ONCE, COMPONENT, None, "", "", AMBIENT, standing="own")
        call.state = state
        assert not call.happens(event) and call.state == state and call.standing == "own"


@pytest.mark.parametrize("waits", [False, True])
def test_an_early_call_that_only_waits_is_not_in_vain(waits: bool) -> None:
    """For the place of a call that it begins with, until it gives way to one of the program's: nothing was done."""
    counts = Counts()
    calls = Calls(forks.lock(), counts)
    call = Call(ONCE, COMPONENT, None, "", "key", AMBIENT, standing="early")
    assert calls.hold(call) and calls.begin(call)
    if waits:
        assert begin(call, lambda: (Party(COMPONENT),), Woken())
    call.abandon()
    assert call.state == "dropped" and counts.wasted == (0 if waits else 1)


class Orders(RuleBasedStateMachine):
    """Early calls are held, begin, end and are given up while the program makes the same calls."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = Counts()
        self.calls = Calls(forks.lock(), self.counts)
        self.early: list[Call] = []
        self.own: list[Call] = []
        self.answers: list[Call] = []
        self.over: dict[Call, str] = {}
        self.taken_over = 0

    def one(self, data: st.DataObject, state: str) -> Call:
        return data.draw(st.sampled_from([call for call in self.early + self.own if call.state == state]))

    def some(self, state: str) -> bool:
        return any(call.state == state for call in self.early + self.own)

    @rule(key=KEYS, how=st.sampled_from([ONCE, SHARED]))
    def issue(self, key: str, how: Method) -> None:
        call = Call(how, COMPONENT, None, key, (how.copy is None, key), AMBIENT, standing="early")
        if self.calls.hold(call):
            self.early.append(call)

    @precondition(lambda self: self.some("queued"))
    @rule(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        assert self.calls.begin(self.one(data, "queued"))

    @precondition(lambda self: self.some("running"))
    @rule(data=st.data(), well=st.booleans())
    def end(self, data: st.DataObject, well: bool) -> None:
        call = self.one(data, "running")
        assert call.happens("finish" if well else "fail")
        if well:
            call.outcome.give(call)
        else:
            call.outcome.fail(ValueError())

    @precondition(lambda self: self.early)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        call = data.draw(st.sampled_from(self.early))
        kept = call.standing == "own" or (call.standing == "joined" and call.state == "done")
        before = call.state
        self.calls.drop(call)
        assert (call.state == before) if kept else call.useless
        if call.state == "dropped" and before != "dropped":
            assert call.outcome.dropped or before == "done"

    @rule(key=KEYS, how=st.sampled_from([ONCE, SHARED]))
    def demand(self, key: str, how: Method) -> None:
        record = CallRecord("", "", "", "", "", COMPONENT, None, key, key, 0, 0.0)
        same = (how.copy is None, key)
        call = self.calls.claim(same, "", how, AMBIENT, FACTS)
        if call is None:
            call = Call(how, COMPONENT, None, key, same, AMBIENT, standing="own")
            self.calls.add(call)
            self.own.append(call)
        elif not call.joined and call.record is None:
            assert call.standing == "own" and call.state == "running" and call.method is how
            self.taken_over += 1
        else:
            assert not call.useless
            self.answers.append(call)
        if call.record is None:
            call.record = record
        elif call.standing != "again":
            again = call.again(record)
            assert again.outcome is call.outcome and again.demanded and again.joined and not again.early

    @rule()
    def silence(self) -> None:
        self.calls.drop_undemanded(forget=True)
        assert all(call.over or call.demanded for call in self.early)
        self.calls.accepting = True  # as of the next run

    @invariant()
    def a_result_is_handed_out_once(self) -> None:
        once = [call for call in self.answers if call.method.copy is None]
        assert len(once) == len(set(once))

    @invariant()
    def what_is_over_stays_so(self) -> None:
        for call, state in self.over.items():
            assert call.state == state or (state == "done" and call.state == "dropped" and not call.demanded)
        self.over = {call: call.state for call in self.early + self.own if call.over}

    @invariant()
    def what_was_issued_is_counted(self) -> None:
        assert self.counts.issued == len(self.early) - self.taken_over
        assert self.counts.wasted <= sum(call.state == "dropped" for call in self.early)


TestOrders = Orders.TestCase
