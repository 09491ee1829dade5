"""Calls that fail, of which the program catches the error, in runs of a host without a framework: the others go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest

from accel import settle
from accel.graph.rules import FAILING
from accel.parts.components import register
from accel.parts.methods.patches import install
from accel.run.plans.plan import Plan
from accel.run.run import Run
from accel.run.settings import Settings
from accel.tests.fake_host import ASK, Embedder, Refers, opened, patched, think

ASKED: list[str] = []


class Frail:
    """Fails at what is in `BROKEN`, once each if it is mended by that."""

    def fake_ask(self, text: str) -> str:
        ASKED.append(text)
        for broken in BROKEN:
            if broken in text:
                BROKEN.discard(broken) if MENDS.is_set() else None
                raise ConnectionError(broken)
        return f"That of <{text}> is well known since {len(text)} years."


MODEL = Frail()
BROKEN: set[str] = set()
MENDS = threading.Event()
"""Not a list: what stands in a variable that its code reads makes another component of it."""


@pytest.fixture(scope="module", autouse=True)
def _patched() -> Iterator[None]:
    with patched():
        install(Frail, ASK)
        register(Frail, pure=True, local=True, concurrency=8)
        yield


@pytest.fixture(autouse=True)
def _sound() -> Iterator[None]:
    yield
    BROKEN.clear()
    MENDS.clear()
    ASKED.clear()


def program(run: Run, model: Frail, things: list[str]) -> list[str]:
    """Asks about things, then about the answers; who does not answer is asked once more."""
    answers, found = [], []
    for thing in things:
        think(run)
        for _ in range(2):
            try:
                answers.append(model.fake_ask(f"What is {thing}?"))
                break
            except ConnectionError:
                continue
        else:
            answers.append("nothing")
    for answer in answers:
        think(run)
        found.append(model.fake_ask(f"Is it true? {answer}"))
    return found


def ran(plan: Plan, number: int, *broken: int, mends: bool = True) -> tuple[Run, list[str]]:
    things = [f"thing {place} of {number}" for place in range(5)]
    ASKED.clear()
    BROKEN.update(things[place] for place in broken)
    MENDS.set() if mends else MENDS.clear()
    with opened(plan, {"things": things}, Settings(speculate="likely"), references=Refers(MODEL)) as run:
        with ThreadPoolExecutor(1) as thread:  # a node of a framework: who asks for the run is not part of call sites
            found = thread.submit(copy_context().run, program, run, MODEL, things).result()
    assert settle()
    assert found == [
        f"That of <{asks}> is well known since {len(asks)} years."
        for thing in things
        for known in [f"That of <What is {thing}?> is well known since {len(thing) + 9} years."]
        for asks in [f"Is it true? {known if mends or thing not in BROKEN else 'nothing'}"]
    ]
    return run, list(ASKED)


def trained() -> Plan:
    plan = Plan()
    for number in range(3):
        ran(plan, number)
    run, _ = ran(plan, 3)
    assert run.counts.retired == 10 and run.counts.wasted == 0
    return plan


def test_what_follows_an_error_that_the_program_catches_is_early_all_the_same() -> None:
    plan = trained()
    run, asked = ran(plan, 4, 1)
    assert len(asked) == 11 and run.counts.wasted == 1, "the early one that failed; the program makes its own"
    assert run.counts.retired == 9
    run, asked = ran(plan, 5)
    assert run.counts.retired == 10 and len(asked) == 10, "in the next run nothing has changed"


def test_where_the_program_goes_on_without_an_answer_the_rest_is_early() -> None:
    plan = trained()
    run, asked = ran(plan, 4, 1, mends=False)
    assert len(asked) == 12 and run.counts.wasted == 1
    assert run.counts.retired == 4 + 4
    run, asked = ran(plan, 5)
    assert run.counts.retired == 10 and len(asked) == 10


def test_a_component_that_keeps_failing_is_left_alone_in_that_run() -> None:
    plan = trained()
    run, _ = ran(plan, 4, 0, 1, 2)
    assert any(reason is not None and reason.rule is FAILING for reason in run.reasons.values())
    assert run.counts.retired < 5
    run, _ = ran(plan, 5)
    assert run.counts.retired == 10


def test_early_calls_that_were_made_before_errors_are_used_all_the_same() -> None:
    plan = trained()
    run, asked = ran(plan, 4, 3, 4, mends=False)
    assert run.counts.wasted == 2, "the two that failed"
    assert len(asked) == 5 + 2 + 5 + 2, "of the things two twice, each answer, and those two"


def test_nothing_that_was_there_before_an_error_is_shared_with_the_next_attempt() -> None:
    """Copies of an embedding answer equal demands, but for those of another attempt."""
    embedder = Embedder()
    with opened(Plan(), {"thing": "thing"}, references=Refers(MODEL, embedder)) as run:
        embedder.fake_embed("thing")
        embedder.fake_embed("thing")
        assert run.counts.shared == 1
        BROKEN.add("thing")
        with pytest.raises(ConnectionError):
            MODEL.fake_ask("thing")
        embedder.fake_embed("thing")
        assert run.counts.shared == 1
        embedder.fake_embed("thing")
        assert run.counts.shared == 2
