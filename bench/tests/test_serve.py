"""`python -m bench serve` on one program with tiny waits; nothing is said of times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import serve
from bench.__main__ import main
from bench.pictures import ACCELERATED, UNMODIFIED
from bench.verdicts import FIRST, STEADY, compared, document
from corpus.served import STYLES, program, questions

TINY = {"requests": 4, "blocks": 1, "first": 4, "scale": 0.01}
FIGURES = {"requests", "wall_s", "worked_s", "p50_s", "p95_s", "lag_s"}


@pytest.mark.parametrize("style", STYLES)
def test_both_arms_are_measured_on_the_same_requests_and_answer_alike(style: str) -> None:
    found = serve.measured(serve.Row("fan-out", style, 2, **TINY))  # type: ignore[arg-type]
    assert [(one["phase"], one["arm"]) for one in found] == [
        (phase, arm) for phase in (FIRST, STEADY) for arm in (UNMODIFIED, ACCELERATED)
    ]
    for one in found:
        assert FIGURES <= set(one) and one["requests"] == 4
        assert one["wall_s"] > 0 and one["p95_s"] >= one["p50_s"] > 0
    assert [one["different"] for one in found if one["arm"] == ACCELERATED] == [0, 0]
    assert found[1]["counts"]["demanded"] == 4 * 14


@pytest.mark.parametrize("style", STYLES)
def test_an_answer_that_differs_is_an_error(style: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def records(row: serve.Row) -> list[dict[str, object]]:
        made = serve.measured(row)
        made[1]["different"] = 1
        return [{"program": row.program, "style": row.style, "at_once": row.at_once, **one} for one in made]

    monkeypatch.setattr(serve, "records", records)
    options = ["--requests=2", "--blocks=1", "--first=2", "--scale=0.01", "--at-once=1", f"--out={tmp_path}"]
    assert main(["serve", "--programs=chain", f"--styles={style}", *options]) == 1
    written = [json.loads(line) for line in (tmp_path / "serve.jsonl").read_text().splitlines()]
    assert len(written) == 4
    (first,) = compared(written, FIRST)
    assert "1 OUTPUTS DIFFER" in first.missed()
    assert "1 OUTPUTS DIFFER" in document(written, "a machine", 0.01, "a command")


def test_no_two_questions_are_alike_and_no_two_programs_share_one() -> None:
    asked = [*questions(200, "0 0"), *questions(200, "0 1")]
    assert len(set(asked)) == 400
    assert program("chain") is not program("fan-out")
