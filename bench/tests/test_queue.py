"""The document on calls that wait: what is measured are decisions of the scheduler itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import queue


@pytest.mark.parametrize("reuse", [True, False])
def test_each_decision_takes_one_call_and_its_run_asks_for_the_next(
    reuse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = []

    class Counted(queue.Waiting[object]):
        def take(self, accept):  # type: ignore[no-untyped-def]
            counted.append(len(self))
            return super().take(accept)

    monkeypatch.setattr(queue, "Waiting", Counted)
    monkeypatch.setattr(queue, "DECISIONS", 9)
    assert queue.decisions(20, batch=True, reuse=reuse) > 0.0
    assert counted == [20] * 10


def test_the_table_has_a_row_for_each_kind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(queue, "DECISIONS", 2)
    monkeypatch.setattr(queue, "SIZES", (10, 20))
    assert queue.main([f"--out={tmp_path}"]) == 0
    found = json.loads((tmp_path / "queue.json").read_text())
    text = queue.shown({name: {10: 1e-5, 20: 2e-5} for name in found}, "A machine")
    assert text.count("| 10 µs | 20 µs | 2.00 |") == len(queue.MEASURED)
