"""`accel report`, `accel explain` and `accel timeline`: programs by their names, files, exit codes and remedies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from accel import __version__
from accel.cli import app
from accel.run import switch
from accel.tests.reported import check_chrome_trace, check_mermaid, check_page
from adapters.tests import checked_programs as programs

MODULE = "adapters.tests.checked_programs"


@pytest.fixture
def inputs(tmp_path: Path) -> str:
    file = tmp_path / "inputs.jsonl"
    file.write_text("\n".join(json.dumps(one) for one in programs.INPUTS), encoding="utf-8")
    return str(file)


def accel(*words: str) -> Any:
    return CliRunner().invoke(app, [*words])


def test_report_says_what_is_gained_and_where(inputs: str) -> None:
    said = accel("report", f"{MODULE}:graph", "--inputs", inputs)
    assert said.exit_code == 0, said.output
    assert " per request: " in said.stdout and "  checked_programs.py:" in said.stdout
    found = json.loads(accel("report", f"{MODULE}:graph", "--inputs", inputs, "--json").stdout)
    assert found["runs"]["followed"] and found["lines"]


def test_explain_says_what_waits_for_what(inputs: str) -> None:
    said = accel("explain", f"{MODULE}:graph", "--inputs", inputs)
    assert said.exit_code == 0, said.output
    assert "What waits for what" in said.stdout and "(checked_programs.py:" in said.stdout
    assert "apples" not in said.stdout


def test_a_folder_that_is_not_there_is_said_before_anything_runs(inputs: str) -> None:
    for words in (["timeline", "--out", "nowhere/run.html"], ["explain", "--out", "nowhere/graph.svg"]):
        said = accel(words[0], "no_such_program.py:graph", "--inputs", inputs, *words[1:])
        assert said.exit_code == 2 and "There is no folder nowhere" in said.stderr


def test_a_format_that_timelines_have_not_is_said_before_anything_runs(inputs: str) -> None:
    said = accel("timeline", "no_such_program.py:graph", "--inputs", inputs, "--out", "run.pdf")
    assert said.exit_code == 2 and "run.pdf ends in no format of a timeline" in said.stderr


@pytest.mark.parametrize("command", ["report", "explain", "timeline", "check", "bench"])
def test_where_accel_is_off_nothing_is_run(
    command: str, inputs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switch, "_process", "off")
    out = ["--out", str(tmp_path / "run.html")] if command == "timeline" else []
    said = accel(command, f"{MODULE}:graph", "--inputs", inputs, *out)
    assert said.exit_code == 2 and "Accel is off" in said.stderr and "ACCEL=on" in said.stderr


def test_explain_draws_into_files(inputs: str, tmp_path: Path) -> None:
    chart, picture = tmp_path / "graph.mmd", tmp_path / "graph.svg"
    for form, path in (("mermaid", chart), ("svg", picture)):
        said = accel("explain", f"{MODULE}:graph", "--inputs", inputs, "--format", form, "--out", str(path))
        assert (said.exit_code, said.stdout) == (0, ""), said.output
    boxes, arrows = check_mermaid(chart.read_text(encoding="utf-8"))
    assert len(boxes) > 2 and arrows
    assert picture.read_text(encoding="utf-8").startswith("<svg")


def test_the_format_is_as_the_file_ends(inputs: str, tmp_path: Path) -> None:
    for name, begins in (("graph.svg", "<svg"), ("graph.mmd", "flowchart"), ("graph.txt", "What waits")):
        said = accel("explain", f"{MODULE}:graph", "--inputs", inputs, "--out", str(tmp_path / name))
        assert said.exit_code == 0, said.output
        assert begins in (tmp_path / name).read_text(encoding="utf-8")[:200]


def test_the_version() -> None:
    said = accel("--version")
    assert (said.exit_code, said.stdout) == (0, f"accel {__version__}\n")


def test_the_package_is_the_command() -> None:
    shell = [sys.executable, "-m", "accel"]
    assert subprocess.run([*shell, "--version"], capture_output=True, text=True, check=True).stdout == (
        f"accel {__version__}\n"
    )
    wrong = subprocess.run([*shell, "report", f"{MODULE}:nothing", "--input", "x"], capture_output=True, text=True)
    assert (wrong.returncode, wrong.stdout) == (2, "") and "nothing" in wrong.stderr


def test_the_compilers_view_is_an_option(inputs: str) -> None:
    assert "p-graph, learnt from" in accel("explain", f"{MODULE}:graph", "--inputs", inputs, "--graph").stdout


@pytest.mark.parametrize("program", ["graph", "awaited"])
def test_timeline_draws_a_page(program: str, inputs: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    said = accel("timeline", f"{MODULE}:{program}", "--inputs", inputs, "--out", str(page))
    assert said.exit_code == 0, said.output
    found = check_page(page.read_text(encoding="utf-8"))
    assert len(found.panels) == 2 and len(found.panels[0]) == len(found.panels[1]) > 0
    assert "a painted door" not in page.read_text(encoding="utf-8")


def test_timeline_shows_texts_where_they_are_asked_for_and_goes_to_perfetto(inputs: str, tmp_path: Path) -> None:
    trace = tmp_path / "run.json"
    said = accel("timeline", f"{MODULE}:graph", "--inputs", inputs, "--out", str(trace), "--texts", "--measured")
    assert said.exit_code == 0, said.output
    check_chrome_trace(trace.read_text(encoding="utf-8"))
    assert "a painted door" in trace.read_text(encoding="utf-8")


def test_models_are_asked_once_where_there_is_a_cassette(inputs: str, tmp_path: Path) -> None:
    tape, page = tmp_path / "answers.jsonl", tmp_path / "page.html"
    for _ in range(2):
        said = accel(
            "timeline", f"{MODULE}:graph", "--inputs", inputs, "--out", str(page), "--cassette", str(tape)
        )  # fmt: skip
        assert said.exit_code == 0, said.output
        recorded = tape.read_text(encoding="utf-8")
    assert recorded == tape.read_text(encoding="utf-8") and check_page(page.read_text(encoding="utf-8")).panels


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["explain", f"{MODULE}:nothing", "--input", "x"], "nothing"),
        (["explain", f"{MODULE}:graph"], "There are no inputs"),
        (["explain", f"{MODULE}:graph", "--input", '{"question": "fragile"}'], "Every run raised ValueError"),
        (["explain", f"{MODULE}:graph", "--input", '{"question": "pears"}', "--format", "png"], "mermaid"),
        (
            ["timeline", f"{MODULE}:graph", "--input", '{"question": "pears"}', "--out", "/nowhere/page.html"],
            "no folder",
        ),
    ],
    ids=["unknown name", "no inputs", "raises", "unknown format", "no such folder"],
)
def test_what_is_wrong_is_said_with_its_remedy(words: list[str], remedy: str) -> None:
    said = accel(*words)
    assert said.exit_code == 2 and remedy in said.output and "Traceback" not in said.output
