"""A plugin for pytest: the learner without one of its readings, which the environment names (`bench.ablation`)."""

from __future__ import annotations

import os

from accel.learn import lessons
from accel.learn.covers.readings import without


def pytest_configure() -> None:
    vars(lessons)["ALL"] = without(os.environ["ACCEL_WITHOUT"])
