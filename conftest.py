"""For all tests."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    """What all test modules have imported stays to the end: no collection need look at it."""
    gc.collect()
    gc.freeze()
