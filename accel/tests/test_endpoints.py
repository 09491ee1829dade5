"""Endpoints that turn calls away: early ones are held back, the program's are made again, and reports say so."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextvars import copy_context
from types import SimpleNamespace
from typing import Any

import pytest

from accel import settle
from accel.graph import rules
from accel.parts.components import register
from accel.parts.methods.patches import install
from accel.parts.network import http
from accel.process import clock
from accel.run.issued import early
from accel.run.plans.plan import Plan
from accel.run.run import Run
from accel.run.scope import Scope, scope
from accel.run.waits.endpoints import FIRST, Endpoint
from accel.run.waits.gates import gate_of
from accel.run.waits.waiting import Party
from accel.tests.fake_host import ASK, Model, node, opened, patched, think


class Inside:
    """Calls that are at an endpoint."""

    def __init__(self, endpoint: Endpoint, early: int) -> None:
        self.early = {Party(None): float("inf") for _ in range(early)}
        self.others = 0
        endpoint.places.add(self)

    @property
    def inside(self) -> int:
        return len(self.early) + self.others


def after(endpoint: Endpoint, calls: int) -> int | None:
    for _ in range(calls):
        endpoint.left(Party(None), early=False)
    return endpoint.limit


# --- how many at a time


def test_nothing_is_held_before_a_call_was_turned_away() -> None:
    endpoint = Endpoint()
    there = Inside(endpoint, early=50)
    assert endpoint.holds() is None and after(endpoint, 1_000) is None and there.inside == 50


@pytest.mark.parametrize(("inside", "limit"), [(6, 3), (3, 2), (2, 1), (1, 0)])
def test_a_call_that_is_turned_away_halves_how_many_may_be_there(inside: int, limit: int) -> None:
    endpoint = Endpoint()
    there = Inside(endpoint, early=inside)
    assert endpoint.turned_away(clock.now_s(), 0.0)
    held = endpoint.holds()
    assert endpoint.limit == limit and held is not None and held.rule is rules.LIMITED and there.inside == inside


def test_calls_that_were_sent_together_count_once() -> None:
    endpoint = Endpoint()
    there = Inside(endpoint, early=8)
    sent_s = clock.now_s()
    assert [endpoint.turned_away(sent_s, 0.0) for _ in range(5)] == [True, *[False] * 4]
    assert endpoint.limit == 4 and there.inside == 8


def test_what_the_program_alone_is_refused_leaves_room_for_one() -> None:
    """Early calls had no part in it."""
    endpoint = Endpoint()
    there = Inside(endpoint, early=0)
    there.others = 1
    for _ in range(3):
        endpoint.turned_away(clock.now_s(), 0.0)
    assert endpoint.limit == 1 and endpoint.holds() is not None
    there.others = 0
    assert endpoint.holds() is None


def test_one_more_is_tried_ever_more_seldom() -> None:
    endpoint = Endpoint()
    there = Inside(endpoint, early=3)
    endpoint.turned_away(clock.now_s(), 0.0)
    for patience in (FIRST, 2 * FIRST, 4 * FIRST):
        assert endpoint.holds() is not None and after(endpoint, patience - 1) == 2
        assert after(endpoint, 1) == 3
        endpoint.turned_away(clock.now_s(), 0.0)
    assert there.inside == 3


def test_it_grows_faster_where_it_could_grow_before_and_only_where_it_holds_something() -> None:
    endpoint = Endpoint()
    there = Inside(endpoint, early=8)
    endpoint.turned_away(clock.now_s(), 0.0)
    assert endpoint.holds() is not None and after(endpoint, FIRST) == 5
    endpoint.turned_away(clock.now_s(), 0.0)
    assert after(endpoint, 100 * FIRST) == 3, "nothing was held back"
    for limit, patience in ((4, 1), (5, 2 * FIRST), (6, FIRST)):
        assert endpoint.holds() is not None
        assert after(endpoint, patience - 1) == limit - 1
        assert after(endpoint, 1) == limit
    assert there.inside == 8


def test_nothing_is_early_before_the_endpoint_says_it_may_come_again() -> None:
    now = 100.0
    with clock.replaced(lambda: now):
        endpoint = Endpoint()
        there = Inside(endpoint, early=4)
        endpoint.turned_away(99.0, 7.0)
        there.early.clear()
        assert endpoint.holds() is not None
        now = 106.9
        assert endpoint.holds() is not None
        now = 107.0
        assert endpoint.holds() is None


# --- what says so


def answer(status: int, **headers: str) -> Any:
    return SimpleNamespace(status_code=status, headers={name.replace("_", "-"): text for name, text in headers.items()})


@pytest.mark.parametrize(("response", "after_s"), [
    (answer(200), None),
    (answer(200, retry_after="3"), None),
    (answer(404), None),
    (answer(500), None),
    (answer(429), 0.0),
    (answer(429, retry_after="2.5"), 2.5),
    (answer(429, retry_after="Wed, 21 Oct 2015 07:28:00 GMT"), 0.0),
    (answer(429, retry_after="nan"), 0.0),
    (answer(503), 0.0),
    (answer(529), 0.0),
    (answer(403, retry_after="60"), 60.0),
    (answer(429, retry_after="1000000"), http.MAX_AFTER_S),
])  # fmt: skip
def test_answers_that_turn_a_call_away(response: Any, after_s: float | None) -> None:
    assert http._after_s(response) == after_s


class RateLimitError(Exception):
    pass


class Failed(Exception):
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


@pytest.mark.parametrize(("error", "says"), [
    (RateLimitError(), True),
    (Failed(status_code=429), True),
    (Failed(code=503), True),
    (Failed(response=answer(529)), True),
    (Failed(response={"ResponseMetadata": {"HTTPStatusCode": 429}}), True),
    (Failed(response={"Error": {"Code": "NoSuchKey"}}), False),
    (Failed(status_code=400), False),
    (Failed(response=None), False),
    (ValueError("429"), False),
])  # fmt: skip
def test_errors_that_do(error: Exception, says: bool) -> None:
    assert http.says_so(error) is says
    try:
        raise ValueError("wrapped") from error
    except ValueError as wrapped:
        assert http.says_so(wrapped) is says


# --- in runs


class Server:
    """Takes so many calls at a time."""

    def __init__(self, takes: int) -> None:
        self.takes = takes
        self.asked: list[str] = []
        self.refused = 0
        self.began, self.may_end, self.was_refused = threading.Event(), threading.Event(), threading.Event()
        self._inside = 0
        self._lock = threading.Lock()

    def answer(self, text: str) -> str:
        with self._lock:
            self.asked.append(text)
            self._inside += 1
            full = self._inside > self.takes
            self.refused += full
        try:
            if full:
                self.was_refused.set()
                raise RateLimitError("too many")
            if text.startswith("long"):
                self.began.set()
                assert self.may_end.wait(30)
            return f"answer to {text}"
        finally:
            with self._lock:
                self._inside -= 1


class Narrow(Model):
    def __init__(self, takes: int) -> None:
        super().__init__()
        self.server = Server(takes)

    def fake_ask(self, text: str) -> str:
        return self.server.answer(text)


class Waiting(Model):
    """Its client waits and tries again when it is turned away, as the first call is; it tells of that."""

    def __init__(self) -> None:
        super().__init__()
        self.server = Server(takes=1)

    def fake_ask(self, text: str) -> str:
        self.server.asked.append(text)
        if len(self.server.asked) == 1:
            self.server.began.set()
            assert self.server.may_end.wait(30)
            http.turned_away(clock.now_s(), 0.0)
            raise AssertionError("an early call that was turned away goes on")
        return f"answer to {text}"


@pytest.fixture(scope="module", autouse=True)
def _patched() -> Iterator[None]:
    with patched():
        for cls in (Narrow, Waiting):
            install(cls, ASK)
            register(cls, pure=True, local=True, concurrency=8)
        yield


def issued(run: Run, model: Model, text: str) -> Any:
    if run.bindings.of(node()) is None:
        run.bindings.note("here", model, ASK, run.identities.of(model, ASK.by_object))
    bound = run.bindings.of(node())
    assert bound is not None
    tree = ASK.read(model, (text,), {})
    return early.issue(run, node(), bound, tree, bound.key(tree))


def test_an_early_call_that_is_turned_away_answers_nobody_and_holds_the_next_ones() -> None:
    model, plan = Narrow(takes=0), Plan()
    with opened(plan) as run:
        call = issued(run, model, "question")
        think(run)
        assert call.state == "dropped" and gate_of(model).endpoint.limit == 0
        held = issued(run, model, "another")
        assert isinstance(held, rules.Reason) and held.rule is rules.LIMITED
        model.server.takes = 1
        assert model.fake_ask("question") == "answer to question"
    assert (run.counts.turned_away, run.counts.wasted, run.counts.delayed) == (1, 0, 0)
    assert model.server.asked == ["question", "question"]


def test_a_call_of_the_programs_alone_is_refused_as_without_accel() -> None:
    model = Narrow(takes=0)
    with opened(Plan()) as run, pytest.raises(RateLimitError):
        model.fake_ask("question")
    assert model.server.asked == ["question"] and run.counts.delayed == 0


def test_a_call_of_the_programs_that_is_turned_away_beside_an_early_one_is_made_again() -> None:
    model = Narrow(takes=1)
    with opened(Plan()) as run:
        issued(run, model, "long")
        assert model.server.began.wait(30)
        threading.Thread(target=lambda: model.server.was_refused.wait(30) and model.server.may_end.set()).start()
        assert model.fake_ask("question") == "answer to question"
        record = run.trace.calls[-1]
        assert model.server.asked == ["long", "question", "question"] and model.server.refused == 1
        assert run.counts.delayed == 1 and 0 < record.delayed_s <= record.waited_s
        assert record.took_s == pytest.approx(record.waited_s - record.delayed_s)
        assert model.fake_ask("long") == "answer to long" and len(model.server.asked) == 3, (
            "what was early still answers"
        )
    assert not run.quiet, "nothing has failed"


def test_who_waits_for_an_early_call_that_is_turned_away_makes_its_own() -> None:
    model = Waiting()
    with opened(Plan()) as run:
        call = issued(run, model, "question")
        assert model.server.began.wait(30)
        found: list[str] = []

        def program() -> None:
            scope.set(Scope(run))
            found.append(model.fake_ask("question"))

        asking = threading.Thread(target=copy_context().run, args=(program,))
        asking.start()
        while not call.waiters:
            assert asking.is_alive()
        model.server.may_end.set()
        asking.join(30)
        assert found == ["answer to question"] and model.server.asked == ["question"] * 2
    assert run.counts.turned_away == 1 and run.counts.retired == 0


def test_nobody_is_told_of_answers_outside_of_calls() -> None:
    http.turned_away(clock.now_s(), 0.0)
    with opened(Plan()):
        http.turned_away(clock.now_s(), 0.0)


def test_a_request_that_a_call_left_behind_says_nothing() -> None:
    with opened(Plan()) as run:
        call = issued(run, Narrow(takes=1), "question")
        think(run)
        token = scope.set(Scope(run, call=call, early=True))
        http.turned_away(clock.now_s(), 0.0)
        scope.reset(token)
        assert gate_of(call.component).endpoint.limit is None


def test_what_was_held_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with opened(Plan()) as run:
        issued(run, Narrow(takes=0), "question")
        think(run)
    assert settle(10)
    said = [record.getMessage() for record in caplog.records if "turns calls away" in record.getMessage()]
    assert len(said) == 1 and "Narrow" in said[0] and "Remedy" in said[0]
