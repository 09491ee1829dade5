"""The soak in a process of its own, so that what it measures is its own and what hangs can be ended."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("runs", "every"),
    [
        pytest.param(400, 50, marks=pytest.mark.timeout(300)),
        pytest.param(20_000, 500, marks=[pytest.mark.long, pytest.mark.timeout(7200)]),
    ],
)
def test_many_runs_end_as_plain_ones_and_nothing_grows(runs: int, every: int) -> None:
    paths = ":".join(str(ROOT / part) for part in (".", "adapters", "backends"))
    command = [sys.executable, "-m", "compat_tests.soak", "--runs", str(runs), "--every", str(every)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
    early = [int(n) for n in re.findall(r"(\d+) retired", done.stdout)]
    assert not done.stdout.rstrip().endswith(" 0 stalled calls, 0 faults"), "no early call has stalled"
    assert sum(n > 0 for n in early) >= 5, f"hardly anything was early, so this has shown little:\n{done.stdout}"
