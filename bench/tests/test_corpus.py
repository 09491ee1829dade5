"""The corpus: its programs of coroutines are equal and never slower in virtual time; what the table says of records."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

import accel_local
from bench import corpus
from bench.corpus import Program, Request
from bench.measure import ACCELERATED, UNMODIFIED

MODULES = corpus.programs()


@pytest.mark.parametrize("name", [name for name, module in MODULES.items() if getattr(module, "ASYNC", False)])
def test_programs_of_coroutines(name: str, tmp_path: Path) -> None:
    engines = corpus.engines_for(MODULES[name])
    program = Program(name, MODULES[name], engines)
    requests = engines.run(lambda: program.measured(tmp_path / "plan.json", count=5))
    accel_local.shutdown()
    assert all(request.equal for request in requests)
    assert min(request.ratio for request in requests[1:]) >= corpus.GOALS["ratio"]
    assert (tmp_path / "plan.json").exists()


def test_all_inputs_differ() -> None:
    needed = corpus.REQUESTS + 1
    for name, module in MODULES.items():
        assert len({repr(value) for value in module.INPUTS}) >= needed, name
        assert (module.__doc__ or "").splitlines()[0].endswith("."), name


def test_unknown_programs_are_refused() -> None:
    with pytest.raises(ValueError, match="no program 'nothing'"):
        corpus.programs(["nothing"])


def request(number: int, before_s: float, after_s: float, retired: int, wasted: int = 0) -> Request:
    seconds = {UNMODIFIED: before_s, ACCELERATED: after_s}
    return Request(number, seconds, True, 1.0, 10, retired, tokens=100, wasted_tokens=wasted)


def test_the_table_says_which_goals_are_missed() -> None:
    warm = [request(number, 2.0, 2.0, 0) for number in range(corpus.WARM)]
    good = [request(corpus.WARM + number, 2.0, 1.0, 9) for number in range(corpus.STEADY)]
    bad = [request(corpus.WARM + number, 1.9, 2.0, 8, wasted=3) for number in range(corpus.STEADY)]
    programs = {name: [asdict(one) for one in (*warm, *late)] for name, late in (("good", good), ("bad", bad))}
    shown = corpus.report({"machine": "m", "programs": programs}, {"programs": {}}, {})
    assert "1 of 2 programs meet all goals; m." in shown
    rows = [line for line in shown.splitlines() if line.startswith(("| good", "| bad"))]
    assert rows[0].endswith("| 2.00x | 2.00x | 1.00 | 36 of 40 | 0.0% | - | 7 of 7 | met |")
    assert rows[1].endswith("| 32 of 40 | 3.0% | - | 7 of 7 | retired, share, ratio, waste |")
    assert shown.splitlines()[-1].startswith("- `bad`: retired, share, ratio, waste. Request 4: 0.95x, ")


def test_programs_that_are_measured_anew_leave_the_others_records(tmp_path: Path) -> None:
    file = tmp_path / "corpus.json"
    names = list(MODULES)[:3]
    for number, name in enumerate((*reversed(names), names[0])):
        record = corpus.keep(file, {name: [asdict(request(number, 2.0, 2.0, 0))]})
    assert json.loads(file.read_text(encoding="utf-8")) == record
    assert [(name, one[0]["number"]) for name, one in record["programs"].items()] == list(
        zip(names, (3, 1, 0), strict=True)
    )
    file.write_text(json.dumps({**record, "machine": "another one"}), encoding="utf-8")
    assert list(corpus.keep(file, {names[1]: []})["programs"]) == [names[1]], "times of two machines are not compared"
