"""What `python -m bench overhead` makes of blocks of runs, and that its rows measure what they say."""

from __future__ import annotations

from typing import Any

import pytest

from bench import overhead
from bench.overhead import (
    BESIDE,
    EARLY,
    OUTSIDE,
    RECORDED,
    WATCHED,
    Row,
    added_ms,
    document,
    of_call_and_run_ms,
    reached,
    rows,
)
from bench.pictures import ACCELERATED, UNMODIFIED
from corpus.served import ASYNC, STYLES, THREADS

TINY = {"rounds": 1, "runs": 2}


def record(mode: str, *added_s: float) -> dict[str, Any]:
    """Two runs of five calls in each block; unmodified they take a second."""
    blocks = [{UNMODIFIED: 1.0, ACCELERATED: 1.0 + more_s, "lessons_s": 0.5} for more_s in added_s]
    return {"program": "p", "style": THREADS, "mode": mode, "runs": 2, "calls": 5, "early": 0.5, "blocks": blocks}


def test_what_a_block_took_more_is_divided_by_its_calls() -> None:
    found = added_ms(record(EARLY, 0.001, 0.004, 0.002))
    assert found.values == pytest.approx((0.1, 0.4, 0.2)) and found.middle == pytest.approx(0.2)


def test_a_call_and_its_run_are_told_apart_by_runs_with_one_item() -> None:
    """32 calls for 16 items, two runs in a block: 0.1 ms a call and 1 ms a run."""
    blocks = [{UNMODIFIED: 1.0, ACCELERATED: 1.0084} for _ in range(3)]
    assert of_call_and_run_ms({"calls": 32, "runs": 2, "blocks": blocks}) is None
    blocks = [{**block, f"{UNMODIFIED}, one item": 0.1, f"{ACCELERATED}, one item": 0.1024} for block in blocks]
    assert of_call_and_run_ms({"calls": 32, "runs": 2, "blocks": blocks}) == pytest.approx((0.1, 1.0))


def test_goals_are_judged_by_the_median_as_it_is_printed() -> None:
    assert reached(record(EARLY, 0.004, 0.004, 0.009)) and not reached(record(EARLY, 0.0041, 0.0041, 0.0))
    assert reached(record(RECORDED, 0.001504)) and not reached(record(RECORDED, 0.001506))
    assert reached(record(BESIDE, 5.0)), "no goal was set"


def test_the_document_says_which_rows_miss_their_goal() -> None:
    shown = document([record(RECORDED, 0.003), record(RECORDED, 0.001), record(EARLY, 0.003)], "a machine", "a command")
    lines = [line for line in shown.splitlines() if line.startswith("| p ")]
    assert lines[0] == "| p | threads | 5 | 50% | 100.000 ms | +0.300 ms | 0.15 ms, missed | - | - | 50.000 ms |"
    assert [line.split(" | ")[-4] for line in lines[1:]] == ["0.15 ms", "0.4 ms"]
    assert "1 of 2 rows reach the goal." in shown and "1 of 1 rows reach the goal." in shown
    assert f"## {OUTSIDE.capitalize()}" not in shown, "nothing was measured there"


def test_programs_whose_components_are_declared_are_not_measured_as_unknown_ones() -> None:
    every = rows(overhead.known(), STYLES, list(overhead.MODES))
    assert {program for program, _, mode in every if mode == WATCHED} == set(overhead.LOOPS)
    assert {program for program, _, mode in every if mode == EARLY} == set(overhead.known())


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("mode", [OUTSIDE, BESIDE, RECORDED, WATCHED, EARLY])
def test_a_row_of_each_mode(style: str, mode: str) -> None:
    row = Row("chat model", style, mode, **TINY)
    found = overhead.alone(row) if mode in (OUTSIDE, BESIDE) else overhead.measured(row)  # those uninstall
    assert found["calls"] == 16
    assert all(block[arm] > 0 for block in found["blocks"] for arm in (UNMODIFIED, ACCELERATED))
    assert (found["early"] > 0) == (mode == EARLY)


def test_calls_inside_others_count() -> None:
    assert overhead.measured(Row("retriever", ASYNC, RECORDED, **TINY))["calls"] == 48
