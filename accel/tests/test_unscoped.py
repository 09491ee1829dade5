"""Calls that belong to no run: what they leave behind."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from accel.run.demands import unscoped
from accel.run.issued.turned_away import begun_first
from accel.run.waits.gates import gate_of

ASKED: Any = SimpleNamespace(kind="async", opens=False, direct=False)


class Component:
    """Takes one call at a time."""


@pytest.fixture
def component(monkeypatch: pytest.MonkeyPatch) -> Component:
    monkeypatch.setattr(unscoped, "agreed", lambda component: 1)
    return Component()


def called(component: Component, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return unscoped.call(ASKED, component, work, (), {})


def test_a_coroutine_needs_no_loop_of_asyncio(component: Component) -> None:
    async def work() -> str:
        return "done"

    with pytest.raises(StopIteration, match="done"):
        called(component, work).send(None)
    assert gate_of(component).has_room(1)


def test_a_task_that_is_thrown_away_with_its_loop_gives_its_place_back(component: Component) -> None:
    async def work() -> None:
        await asyncio.get_running_loop().create_future()

    async def begun() -> asyncio.Task[Any]:
        task = asyncio.create_task(called(component, work))
        await asyncio.sleep(0)
        assert not gate_of(component).has_room(1)
        return task

    loop = asyncio.new_event_loop()
    task = loop.run_until_complete(begun())
    loop.close()
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    del task
    gc.collect()
    assert gate_of(component).has_room(1)


def test_a_stream_that_was_begun_is_asked_for_anew_also_after_that_has_failed() -> None:
    answers = iter((ValueError("turned away"), ValueError("turned away"), "another"))

    def ask() -> str:
        answer = next(answers)
        if isinstance(answer, ValueError):
            raise answer
        return answer

    streams = begun_first(ask, "begun")
    assert streams() == "begun"
    for _ in range(2):
        with pytest.raises(ValueError, match="turned away"):
            streams()
    assert streams() == "another"
