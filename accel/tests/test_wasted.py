"""Early calls that the program does without, in runs of a host without a framework: they stop, whatever traces say."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import pytest

from accel import settle
from accel.run.plans.plan import Plan
from accel.run.settings import Settings, Speculate
from accel.tests.fake_host import Model, Refers, opened, patched, think

WHOSE: ContextVar[Any] = ContextVar("whose", default=None)


@pytest.fixture(scope="module", autouse=True)
def _patched() -> Iterator[None]:
    with patched():
        yield


def wasted(plan: Plan, number: int, speculate: Speculate) -> int:
    """Asks about four things, every second time on behalf of somebody that nothing tells of beforehand."""
    model, customer = Model(), SimpleNamespace(name="")
    token = WHOSE.set(customer)
    given = {"things": [f"thing {place} of {number}" for place in range(4)]}
    with opened(plan, given, Settings(speculate=speculate), references=Refers(model)) as run:
        for place, thing in enumerate(given["things"]):
            think(run)
            customer.name = f"customer {place} of {number}" if place % 2 else ""
            model.fake_ask(f"What is {thing}?")
    WHOSE.reset(token)
    assert settle()
    return run.counts.wasted


@pytest.mark.parametrize("speculate", ["auto", "certain"])
def test_what_is_in_vain_every_second_time_stops(speculate: Speculate) -> None:
    plan = Plan()
    counts = [wasted(plan, number, speculate) for number in range(10)]
    assert sum(counts[:4]) > 0, "all traces say that these calls are made"
    assert sum(counts[4:]) == 0
