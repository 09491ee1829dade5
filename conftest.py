"""For all tests."""

from __future__ import annotations

import gc
import math

import pytest

from accel.run.gains import hopes
from accel.run.gains.pace import load


def pytest_collection_finish() -> None:
    """What all test modules have imported stays to the end: no collection need look at it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def nobody_loses_hope(monkeypatch: pytest.MonkeyPatch) -> None:
    """Components of tests take no time: there would be nothing to gain, and every program would rest."""
    monkeypatch.setattr(hopes, "LEAST_S", math.inf)


@pytest.fixture(autouse=True)
def the_process_has_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, every run is followed, and early calls are worth what they are."""
    monkeypatch.setattr(load, "enabled", False)
    monkeypatch.setattr(load, "tick", lambda *late, **ticks: None)
    monkeypatch.setattr(load, "lag_s", 0.0)
