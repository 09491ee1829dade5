"""What `python -m bench memory` makes of its records, and that it tells a plan that grows from one that doesn't."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bench import memory
from bench.memory import FLAT_BYTES, Subject, document, figures, measured
from bench.pictures import ACCELERATED, UNMODIFIED

KB = 1024


def record(left: float | None = None) -> dict[str, Any]:
    return {
        "program": "p",
        "calls": 7,
        "saved": 3 * KB,
        "kept": {UNMODIFIED: 10 * KB, ACCELERATED: 60 * KB},
        "peaks": {UNMODIFIED: [5 * KB, 7 * KB, 6 * KB], ACCELERATED: [25 * KB, 107 * KB, 36 * KB]},
        "left": {} if left is None else {UNMODIFIED: 100.0, ACCELERATED: 100.0 + left},
    }


def test_figures_are_those_over_the_unmodified_program() -> None:
    found = figures(record(left=2.0))
    assert (found.kept, found.peak, found.highest) == (50 * KB, 30 * KB, 100 * KB)
    assert found.left == pytest.approx(2.0) and figures(record()).left is None


def test_the_document_says_what_grows() -> None:
    shown = document([record(), record(FLAT_BYTES), record(FLAT_BYTES + 1)], "a machine", 1000, "a command")
    rows = [line for line in shown.splitlines() if line.startswith("| p ")]
    assert rows[0] == "| p | 7 | 50 KB | 3 KB | 6 KB | 30 KB | 100 KB | - |"
    assert [row.split(" | ")[-1] for row in rows[1:]] == ["16 bytes |", "17 bytes, GROWS |"]
    assert "1 of 2 are flat." in shown


def test_a_program_that_keeps_its_runs_is_seen_to_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both arms keep a little; the accelerated one, which is made from it, keeps more."""
    monkeypatch.setattr(memory, "SETTLED_AFTER", 10)
    loop = memory.of_server("chat model")
    kept: list[bytes] = []

    async def ask(app: Any, number: int) -> None:
        await loop.ask(app, number)
        kept.append(b"x" * (9_000 if hasattr(app, "plan") else 1_000) + str(number).encode())

    found = asyncio.run(measured(Subject(loop.build, ask, loop.settle), 10))
    assert found["calls"] == 16 and found["saved"] > 0
    assert all(peak > 0 for peaks in found["peaks"].values() for peak in peaks)
    left = figures({"program": "p", **found}).left
    assert left is not None and left > 4_000


def test_programs_of_the_corpus_are_measured_without_growth() -> None:
    found = memory.alone("research_queries", runs=5)
    assert found["program"] == "research_queries" and found["left"] == {}
    assert figures(found).kept > 0
