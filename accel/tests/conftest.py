"""Hypothesis explores anew on every run by hand; in CI it takes the same examples each time, so that a change is judged
by what it changed."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("thorough", max_examples=3000, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else os.environ.get("ACCEL_HYPOTHESIS", "explore"))
