"""For the tests of the adapters."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from accel.run.pace import load


@pytest.fixture
def loop_at_hand() -> Iterator[None]:
    """For LlamaIndex, which takes the thread's loop from wherever there is none, and leaves one that it made open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture
def at_ease(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process has time, however busy the machine is: runs are followed, and early calls are worth what they are."""
    monkeypatch.setattr(load, "enabled", False)
    monkeypatch.setattr(load, "tick", lambda *late, **ticks: None)
    load.lag_s = 0.0
