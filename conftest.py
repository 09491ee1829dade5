"""For all tests."""

from __future__ import annotations

import gc
import math

import pytest

from accel.run import hopes


def pytest_collection_finish() -> None:
    """What all test modules have imported stays to the end: no collection need look at it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def nobody_loses_hope(monkeypatch: pytest.MonkeyPatch) -> None:
    """Components of tests take no time: there would be nothing to gain, and every program would rest."""
    monkeypatch.setattr(hopes, "LEAST_S", math.inf)
