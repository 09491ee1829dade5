"""The corpus: its programs of coroutines are equal and never slower in virtual time; what the table says of records."""

from __future__ import annotations

import ast
import json
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path

import pytest

import accel_local
from bench import corpus
from bench.corpus import Arms, Request
from bench.measure import ACCELERATED, UNMODIFIED
from corpus import Program, programs

PROGRAMS = programs()


@pytest.mark.parametrize("program", [one for one in PROGRAMS if one.awaited], ids=lambda program: program.name)
def test_programs_of_coroutines(program: Program, tmp_path: Path) -> None:
    engines = corpus.engines_for(program)
    arms = Arms(program, engines)
    requests = engines.run(lambda: arms.measured(tmp_path / "plan.json", count=5))
    accel_local.shutdown()
    assert all(request.equal for request in requests)
    assert min(request.ratio for request in requests[1:]) >= corpus.GOALS["ratio"]
    assert (tmp_path / "plan.json").exists()


def test_all_inputs_differ_and_programs_say_what_they_are() -> None:
    for program in PROGRAMS:
        assert len({repr(value) for value in program.inputs}) >= corpus.REQUESTS + 1, program.name
        assert program.about.endswith("."), program.name


def test_public_applications_name_their_source() -> None:
    assert len(PROGRAMS) == 71
    applications = {program.name for program in PROGRAMS if program.build.__module__.startswith("corpus.applications.")}
    assert applications == {program.name for program in PROGRAMS if program.source}


def test_no_program_knows_accel() -> None:
    """What a server declares of its components stands in `components` and `served`."""
    home = Path(str(files("corpus")))
    sources = [path for family in ("small", "applications", "papers") for path in (home / family).glob("*.py")]
    assert len(sources) > len(PROGRAMS)
    for path in sources:
        assert not [name for name in imported(path) if name.startswith("accel")], path


def imported(path: Path) -> list[str]:
    """The modules that a file imports."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(node.module or "")
    return found


def test_no_measurement_needs_a_test() -> None:
    """Programs and components that measurements run are not to be looked for among tests."""
    for package in ("bench", "corpus"):
        home = Path(str(files(package)))
        for path in home.rglob("*.py"):
            if "tests" not in path.relative_to(home).parts:
                assert not [name for name in imported(path) if "tests" in name.replace("_", ".").split(".")], path


def test_unknown_programs_are_refused() -> None:
    with pytest.raises(ValueError, match="no program 'nothing'"):
        programs(["nothing"])


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
    names = [program.name for program in PROGRAMS[:3]]
    for number, name in enumerate((*reversed(names), names[0])):
        record = corpus.keep(file, {name: [asdict(request(number, 2.0, 2.0, 0))]})
    assert json.loads(file.read_text(encoding="utf-8")) == record
    assert [(name, one[0]["number"]) for name, one in record["programs"].items()] == list(
        zip(names, (3, 1, 0), strict=True)
    )
    file.write_text(json.dumps({**record, "machine": "another one"}), encoding="utf-8")
    assert list(corpus.keep(file, {names[1]: []})["programs"]) == [names[1]], "times of two machines are not compared"
