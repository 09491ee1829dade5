"""What `python -m bench where` says of runs and of a profile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from accel.run.foresight import forecast, permits
from bench.where import OTHERS, Spent, document, measured, module_of, shares

FORECAST, PERMITS = (Path(str(module.__file__)) for module in (forecast, permits))


def test_what_the_library_takes_is_its_callers() -> None:
    of_forecast, of_permits = (str(FORECAST), 1, "ahead"), (str(PERMITS), 1, "refuses")
    length, walk = ("~", 0, "<built-in method builtins.len>"), ("/usr/lib/python3/copy.py", 1, "deepcopy")
    stats: Any = {
        of_forecast: (1, 1, 3.0, 9.0, {}),
        of_permits: (1, 1, 1.0, 3.0, {}),
        walk: (4, 4, 2.0, 4.0, {of_forecast: (3, 3, 2.0, 4.0), walk: (1, 1, 0.0, 0.0)}),
        length: (8, 8, 4.0, 4.0, {walk: (4, 4, 1.0, 1.0), of_permits: (4, 4, 3.0, 3.0)}),
    }
    found = shares(stats)
    assert found == pytest.approx({"accel.run.foresight.forecast": 0.6, "accel.run.foresight.permits": 0.4})


def test_files_are_modules_of_accel_or_others() -> None:
    assert module_of(str(FORECAST)) == "accel.run.foresight.forecast"
    assert module_of(str(Path(__file__).parent.parent.parent / "adapters/accel_langgraph/graph.py")) == (
        "accel_langgraph.graph"
    )
    assert module_of(pytest.__file__) == module_of(__file__) == OTHERS
    assert module_of("~") is None


def test_a_program_is_measured_and_described() -> None:
    spent = measured("agent", 2)
    assert spent.calls == 4 and spent.early > 0 and spent.accelerated_ms > 0 and spent.unmodified_ms > 0
    assert sum(spent.shares.values()) == pytest.approx(1.0) and sum(spent.own.values()) == pytest.approx(1.0)
    assert spent.own["accel.run.foresight.forecast"] > 0 and OTHERS not in spent.own


def test_the_document_says_what_the_goal_of_a_call_allows() -> None:
    spent = Spent(
        "p", 10, 0.5, 5.0, 12.0, {OTHERS: 0.5, "accel.run.foresight.forecast": 0.3, "accel.run.foresight.permits": 0.2}
    )
    shown = document([spent], "a machine", "a command")
    assert "| p | 10 | 50% | 5.00 ms | 12.00 ms | 2.40x | 1.80x |" in shown
    rows = [line for line in shown.splitlines() if line.startswith("| `accel")]
    assert [(row.split(" | ")[0], row.split(" | ")[-1]) for row in rows] == [
        ("| `accel.run.foresight.forecast`", "60% |"), ("| `accel.run.foresight.permits`", "40% |"),
    ]  # fmt: skip
    assert "What a run is expected to demand" in rows[0]
