"""Figures and files of `python -m bench report`, from raw records written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.pictures import App, lanes, quantile
from bench.report import main, ordered, results

WARM = 1


def request(arm: str, number: int, seconds: float, output: str = "same", **fields: Any) -> dict[str, Any]:
    raw = {"arm": arm, "number": number, "began_s": 10.0, "ended_s": 10.0 + seconds, "output": output, "calls": ["a"]}
    return raw | {"counts": {"issued": 3, "retired": 2, "wasted": 1, "wasted_tokens": 7}} | fields


def raw(**fields: Any) -> dict[str, Any]:
    """Two measured requests after one learnt from: 2.00x and 1.60x by Accel, 1.25x by hand, limits 4 and 5 s."""
    seconds = {"unmodified": (10, 8, 8), "accelerated": (10, 4, 5), "by hand": (10, 6.4, 6.4)}
    requests = [request(arm, n, s) for arm, all_s in seconds.items() for n, s in enumerate(all_s)]
    loads = [
        {"arm": arm, "rate": None, "began_s": [0.0, 0.0], "seconds": [took, took], "outputs": ["x", "y"]}
        for arm, took in (("unmodified", 10.0), ("by hand", 8.0), ("accelerated", 12.5))
    ]
    traces = {
        "unmodified": [span("decode", 0, 4), span("searching", 4, 5)],
        "accelerated": [span("decode", 0, 4), span("searching", 2, 3, asked=4.0), span("decode", 1, 2, asked=1.5)],
    }
    app = {"app": "pairs", "paper": "Paper: 1.5x", "requests": requests, "loads": loads, "traces": traces}
    app["limits"] = {"1": {"makespan_s": 4.0}, "2": {"makespan_s": 5.0}}
    return {"engines": "simulated 7b", "clock": "virtual", "warm": WARM, "seed": 3, "apps": [app]} | fields


def span(primitive: str, start: float, end: float, asked: float | None = None) -> dict[str, Any]:
    at = start if asked is None else asked
    return {"primitive": primitive, "node": "n", "start_s": start, "end_s": end, "asked_s": at, "tokens": [1, 2]}


def changed(arm: str, number: int, **fields: Any) -> dict[str, Any]:
    one = raw()
    for found in one["apps"][0]["requests"]:
        if (found["arm"], found["number"]) == (arm, number):
            found |= fields
    return one


def report_of(*raws: dict[str, Any]) -> str:
    return results(ordered(raws))


def section(text: str, title: str) -> str:
    return text.split(f"### {title}\n")[1].split("\n##")[0].strip()


# --- figures


def test_the_main_table_stands_on_the_raw_seconds() -> None:
    row = next(line for line in report_of(raw()).splitlines() if line.startswith("| pairs | 8.00 s"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2:4] == ["1.25x", "1.80x (1.60 to 2.00)"]
    assert "1.80x" in cells[5]  # the limit's ratio: the median of 8/4 and 8/5
    assert cells[6] == "1.00 (1.00 to 1.00)" and cells[7] == "3 of 3"
    assert cells[8] == "6 / 4 / 2 (14 tokens)" and cells[9] == "Paper: 1.5x"


def test_requests_learnt_from_are_shown_apart() -> None:
    assert "| pairs | 1.00x |" in section(report_of(raw()), "First requests")


def test_a_difference_is_named_with_arm_and_request() -> None:
    text = report_of(changed("accelerated", 2, output="other"))
    assert "accelerated: output of request 3" in section(text, "Not equal to the unmodified program")
    assert "2 of 3" in text
    text = report_of(changed("by hand", 1, calls=["a", "b"]))
    assert "by hand: calls of request 2" in section(text, "Not equal to the unmodified program")
    assert section(report_of(raw()), "Not equal to the unmodified program") == "- None."


def test_what_is_slower_is_named() -> None:
    slower = section(report_of(raw()), "Slower than the unmodified program")
    assert "accelerated, load all at once: throughput **0.800x**, p50 **0.800x**, p95 **0.800x**" in slower
    assert "by hand" not in slower
    slower = section(report_of(changed("accelerated", 1, ended_s=30.0)), "Slower than the unmodified program")
    assert "not at the median, but request 2, down to **0.400x**" in slower


def test_a_run_that_beats_its_limit_is_named() -> None:
    text = report_of(changed("accelerated", 1, ended_s=12.0))
    assert "request 2 faster than the limit (up to 2.000)" in section(text, "Share of limit below 0.9, or above 1")


def test_what_was_not_measured_is_named() -> None:
    missing = section(report_of(raw()), "Not measured")
    assert "real engines" in missing and "each pass off" in missing and "a GPU" in missing
    one = raw()
    one["apps"][0]["requests"] = [r for r in one["apps"][0]["requests"] if (r["arm"], r["number"]) != ("by hand", 2)]
    assert "pairs, by hand: request 3" in section(report_of(one), "Not measured")


def test_quantiles_are_interpolated() -> None:
    assert quantile([3.0, 1.0], 0.5) == 2.0
    assert quantile([1.0, 2.0, 3.0], 0.95) == pytest.approx(2.9)
    assert quantile([5.0], 0.95) == 5.0


def test_lanes_hold_what_does_not_overlap() -> None:
    found = lanes([span("decode", 0, 4), span("decode", 1, 2), span("decode", 2, 3), span("searching", 0, 1)])
    times = [[(call["start_s"], call["end_s"]) for call in row] for row in found["decode"]]
    assert times == [[(0, 4)], [(1, 2), (2, 3)]]
    assert len(found["searching"]) == 1


def test_load_figures_are_of_the_whole_point() -> None:
    load = App(raw()["apps"][0], WARM).loads[None]["accelerated"]
    assert (load.throughput, load.p50_s, load.p95_s) == (2 / 12.5, 12.5, 12.5)


# --- files


def test_the_command_writes_the_same_bytes_whatever_the_order(tmp_path: Path) -> None:
    paths = []
    for name, clock in (("one", "virtual"), ("two", "real")):
        path = tmp_path / name / "records.json"
        path.parent.mkdir()
        path.write_text(json.dumps(raw(clock=clock)), encoding="utf-8")
        paths.append(str(path))
    for out, given in (("a", paths), ("b", paths[::-1])):
        assert main([*given, "--out", str(tmp_path / out)]) == 0
    files = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*.*"))
    assert {path.name for path in files} == {
        "RESULTS.md",
        *(f"simulated-7b-{clock}-time-pairs-{kind}.png" for clock in ("virtual", "real") for kind in ("load", "run")),
    }
    for path in files:
        assert (tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes()
    text = (tmp_path / "a" / "RESULTS.md").read_text(encoding="utf-8")
    for name in {path.name for path in files} - {"RESULTS.md"}:
        assert f"(pictures/{name})" in text


def test_what_is_no_record_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "records.json"
    path.write_text('{"no": "apps"}', encoding="utf-8")
    assert main([str(path), "--out", str(tmp_path / "out")]) == 2
    assert "no records" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
