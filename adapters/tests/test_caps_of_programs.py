"""Caps of waste in a program: once one is reached nothing is early, until the window has moved on."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import pytest

import accel
from accel.process import clock
from accel.run.ongoing import followed
from accel.run.scope import scope
from accel.text.values import texts_of
from adapters.tests.core_fakes import Chat, World
from adapters.tests.test_decisions import MOSTLY_HOT, router, said, trained


def ask(fast: Any, topic: str, tenant: str = "ada") -> None:
    word = "Ice" if "cold" in topic else "Fire"
    assert fast.invoke({"q": topic}, {"configurable": {"tenant": tenant}})["c"] == f"answer to <{word} and {topic}>"
    assert accel.settle()


def program(world: World, *caps: accel.Cap) -> Any:
    """It often takes the other way than is likely."""
    fast = trained(world, router(world, Chat(world)), MOSTLY_HOT, speculate="likely", budget=accel.Budget(caps=caps))
    world.gates["Route"] = gate = threading.Event()

    def begin_what_is_likely() -> None:
        """Before anything is decided."""
        here = scope.get()
        assert followed(30.0)
        early = [call for call in here.run.calls.all() if call.early] if here is not None else []
        for text in (text for call in early for text in texts_of(call.input) if text.startswith("Fire and")):
            world.wait_early(text)
        gate.set()

    world.hooks["route"] = begin_what_is_likely
    world.hooks["look"] = gate.clear
    for number, tenant in enumerate(("ada", "bob", "ada", "bob")):
        ask(fast, f"before {number}, hot", tenant)
    return fast


def waste(fast: Any, tenant: str = "ada") -> None:
    """More than any cap here bears."""
    for number in range(12):
        ask(fast, f"{number}, {('hot', 'cold')[number % 2]}", tenant)  # only cold, and hot would not be likely any more


def likely_ones(fast: Any, world: World, tenant: str = "ada") -> int:
    """How many calls are early before it is decided that they are made."""
    world.forget()
    likely: list[str] = []
    begin = world.hooks["route"]
    world.hooks["route"] = lambda: (begin(), likely.extend(world.texts("Fire", early=True)))[0]
    for number in range(6):
        ask(fast, f"afterwards {number}, hot", tenant)
        world.forget()
    world.hooks["route"] = begin
    return len(likely)


def test_a_cap_that_is_used_up_lets_nothing_be_early_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "accel")
    world, cap = World(answer=said), accel.Cap(calls=4)
    fast = program(world, cap)
    waste(fast)
    assert likely_ones(fast, world) == 0
    report = fast.report()
    assert 0 < report.wasted <= 4 and report.caps[0].calls == report.wasted and report.caps[0].held_runs > 0
    assert "cap of 4 calls in vain within 3600 s: " in str(report)
    (shown,) = report.to_dict()["caps"]
    assert (shown["of_calls"], shown["calls"], shown["per"]) == (4, report.wasted, None)
    assert shown["requests_held"] == report.caps[0].held_runs
    told = [record.getMessage() for record in caplog.records if " a cap is used up: " in record.getMessage()]
    assert len(told) == 1 and "4 calls in vain within 3600 s" in told[0]
    with clock.replaced(lambda: time.perf_counter() + 4_000):
        assert likely_ones(fast, world) > 0


def test_one_tenant_s_waste_takes_nothing_from_another() -> None:
    world, cap = World(answer=said), accel.Cap(calls=4, per="configurable.tenant")
    fast = program(world, cap)
    waste(fast, "ada")
    assert likely_ones(fast, world, "ada") == 0
    assert likely_ones(fast, world, "bob") > 0
    (now,) = fast.report().caps
    assert now.calls <= 4 and now.held_runs > 0
    assert "ada" not in str(fast.report()) and "for each configurable.tenant" in str(fast.report())
