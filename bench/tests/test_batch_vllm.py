"""`python -m bench batch --engines vllm`, with a simulated model in vLLM's place; nothing is said of times."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from rich.console import Console

from bench import batch, batch_vllm
from bench.batch_report import ACCEL_BATCH, IN_TURN, LANGGRAPH_BATCH, LEARNT_BATCH
from bench.engines import simulated
from corpus.papers import SMALL, data


def one(arm: str, seconds: float, most: int = 0, number: int = 0, different: int = 0) -> batch_vllm.Record:
    about = {"program": "reflection", "inputs": 4, "load": 1.0, "seconds": seconds, "worked_s": 2 * seconds}
    return {**about, "arm": arm, "most": most, "round": number, "different": different}


FOUND = [
    one(IN_TURN, 60.0, 1),
    one(LANGGRAPH_BATCH, 30.0, 8), one(LANGGRAPH_BATCH, 20.0, 16, different=1),
    one(LANGGRAPH_BATCH, 18.0, 8, 1), one(LANGGRAPH_BATCH, 22.0, 16, 1),
    one(ACCEL_BATCH, 10.0), one(ACCEL_BATCH, 11.0, number=1, different=3),
    one(LEARNT_BATCH, 20.0), one(LEARNT_BATCH, 20.0, number=1),
]  # fmt: skip


def test_accel_is_compared_with_langgraphs_best_bound_round_by_round() -> None:
    assert batch_vllm.row(FOUND) == [
        "reflection", "4 x 4", "60.0 s", "21.0 s at 16", "2.86x (2.73 to 3.00)", "2.00x (2.00 to 2.00)",
        "1.05x (1.00 to 1.10)", "1.05x (1.00 to 1.10)", "1 of 16", "3 of 8", "0 of 8",
    ]  # fmt: skip


def test_the_section_stands_before_what_is_written_by_hand_and_stays_when_tables_are_written_anew() -> None:
    before = f"# Title\n\ntables\n\n{batch.READ}\n\nby hand\n"
    once = batch_vllm.placed(before, batch_vllm.section(FOUND, "one", "a machine", 2), batch.READ)
    twice = batch_vllm.placed(once, batch_vllm.section(FOUND, "two", "a machine", 2), batch.READ)
    assert once.replace("one", "two") == twice.replace("one", "two")
    assert twice.startswith("# Title\n\ntables\n\n## On vLLM") and twice.endswith(f"{batch.READ}\n\nby hand\n")
    assert batch_vllm.kept(twice, batch.READ) == twice.removeprefix("# Title\n\ntables\n\n")
    assert batch_vllm.kept("", batch.READ) == ""


def test_every_arm_is_asked_in_turns_and_answers_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_vllm, "on_this_machine", lambda _, sizes: simulated(sizes=sizes, kv_tokens=4096))
    monkeypatch.setattr(data, "load", data.sample)
    options = argparse.Namespace(out=tmp_path, inputs=2, repetitions=2)
    status, text = batch_vllm.run(options, ["reflection"], "a command", Console(quiet=True))
    assert status == 0 and "| reflection | 2 x 4 |" in text and text.count("0 of 4 |") == 2 and "0 of 8 |" in text
    assert batch_vllm.SHORT.answer_tokens < SMALL.answer_tokens
    written = (tmp_path / "batch-vllm.jsonl").read_text()
    arms = [line.split('"arm": "')[1].partition('"')[0] for line in written.splitlines()]
    turn = [LANGGRAPH_BATCH, LANGGRAPH_BATCH, ACCEL_BATCH, LEARNT_BATCH]
    assert arms == [IN_TURN, *turn, *reversed(turn)]
