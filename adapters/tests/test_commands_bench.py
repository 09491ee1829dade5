"""`accel.bench`: what is measured, from which pairs, and what is made of that. No time is asserted."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

import accel
from accel.commands import tapping
from accel.commands.figures import BenchResult, Level, Pair, Ran, bootstrap, seconds
from accel.commands.picture import picture
from accel.errors import ConfigurationError
from adapters.tests import checked_programs as programs
from adapters.tests.llamaindex_kinds import KINDS
from adapters.tests.llamaindex_programs import QUESTIONS

INPUTS = programs.INPUTS


def pairs(*ratios: float) -> list[Pair]:
    return [Pair(0, Ran(ratio, 0.1), Ran(1.0, 0.2)) for ratio in ratios]


def level(*ratios: float, concurrency: int = 1) -> Level:
    made = Level(concurrency, 1, pairs(*ratios))
    made.latencies["unmodified"] += ratios
    made.latencies["accelerated"] += [1.0] * len(ratios)
    return made


def test_both_arms_are_asked_the_same_and_calls_go_early() -> None:
    result = accel.bench(programs.graph, INPUTS, rounds=2, concurrency=(1, 3))
    assert result.exit_code == 0
    one, three = result.levels
    assert [pair.input for pair in one.pairs] == [0, 1, 2] * 2
    assert (len(three.pairs), three.requests, len(three.seconds("accelerated"))) == (2, 6, 12)
    assert one.counts["demanded"] == 18 and one.counts["retired"] > 0
    assert set(result.limits_s) == {0, 1, 2} and result.share_of_limit is not None


def test_coroutines_run_side_by_side_on_one_loop() -> None:
    result = accel.bench(programs.awaited, INPUTS, rounds=1, warm=1, concurrency=(4,))
    assert not result.failed and len(result.levels[0].seconds("unmodified")) == 8


def test_engines_are_measured_too() -> None:
    result = accel.bench(KINDS["hyde"].make(), QUESTIONS[:2], rounds=1, warm=2)
    assert not result.failed and len(result.levels[0].pairs) == 2


def test_with_a_cassette_models_are_asked_once_for_all_runs(tmp_path: Path) -> None:
    model = programs.Oracle(samples=True)
    graph = programs.three_calls(model).compile()
    for _ in range(2):
        result = accel.bench(graph, INPUTS, rounds=1, concurrency=(1, 2), cassette=tmp_path / "answers.jsonl")
        assert not result.failed and result.replayed
    assert model.tally.count == 9
    assert accel.check(graph, INPUTS, cassette=tmp_path / "answers.jsonl"), "the same file serves both"
    assert model.tally.count == 9


def test_replayed_answers_take_as_long_as_they_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = tmp_path / "answers.jsonl"
    accel.check(programs.graph, INPUTS[:1], rounds=1, cassette=tape)
    head, *lines = tape.read_text().splitlines()
    took = [{**json.loads(line), "seconds": 0.5 + number} for number, line in enumerate(lines)]
    tape.write_text("\n".join([head, *map(json.dumps, took)]) + "\n")
    waited: list[float] = []
    monkeypatch.setattr(tapping.time, "sleep", waited.append)
    assert accel.bench(programs.graph, INPUTS[:1], rounds=1, warm=0, cassette=tape).exit_code == 0
    assert set(waited) == {0.5, 1.5, 2.5}
    waited.clear()
    assert accel.check(programs.graph, INPUTS[:1], rounds=1, cassette=tape)
    assert set(waited) == {tapping.LEAST_S}, "a check does not wait for what it need not"


def test_runs_that_raise_are_told_and_not_measured() -> None:
    result = accel.bench(programs.graph, [{"question": "fragile"}], rounds=2, warm=1)
    assert result.exit_code == 2 and result.failed == 7 and "no answer to" in str(result)
    some = accel.bench(programs.graph, [*INPUTS[:1], {"question": "fragile"}], rounds=1, warm=0)
    assert some.exit_code == 0 and len(some.levels[0].pairs) == 1


def test_the_interval_holds_the_median_and_narrows_with_pairs() -> None:
    few, many = bootstrap([1.0, 1.2, 1.4, 1.6]), bootstrap([1.0, 1.2, 1.4, 1.6] * 20)
    assert few[0] <= 1.3 <= few[1] and many[1] - many[0] < few[1] - few[0]
    assert bootstrap([1.5]) == (1.5, 1.5)
    assert few == bootstrap([1.0, 1.2, 1.4, 1.6]), "the same each time"


def test_figures_are_those_of_the_pairs() -> None:
    made = level(2.0, 3.0, 4.0)
    assert made.ratio == 3.0
    assert made.throughput("unmodified") == pytest.approx(1 / 3)
    assert made.processor_s("accelerated") == pytest.approx(0.2)
    result = BenchResult("p", 2, 3, [made], limits_s={0: 0.5, 1: 0.9}, accelerated_s={0: 1.0, 1: 1.0})
    assert result.share_of_limit == pytest.approx(0.7)
    told = json.loads(json.dumps(result.as_dict()))
    assert told["levels"][0]["ratio"] == 3.0 and told["levels"][0]["unmodified"]["median_s"] == 3.0


def test_it_says_where_no_difference_is_sure() -> None:
    unsure = BenchResult("p", 1, 4, [level(0.8, 0.9, 1.1, 1.2)])
    assert any("no difference is sure" in note for note in unsure.notes)
    assert not any("sure" in note for note in BenchResult("p", 1, 4, [level(2.0, 2.0, 2.1)]).notes)


def test_seconds_have_the_unit_that_suits_them() -> None:
    assert [seconds(value) for value in (12.3, 0.123, 0.0123, 0.0999)] == ["12.30 s", "123 ms", "12.3 ms", "100 ms"]


def test_the_picture_is_whole_and_needs_nothing_else() -> None:
    result = BenchResult('a "b" <c>', 1, 2, [level(2.0, 3.0), level(1.0, 2.0, concurrency=16)], limits_s={0: 0.5})
    drawn = picture(result)
    root = ElementTree.fromstring(drawn)
    circles = [each for each in root.iter() if each.tag.endswith("circle")]
    assert len(circles) == 8 and "limit" in drawn and "16 at a time" in drawn
    assert "href" not in drawn and "url(" not in drawn and "<script" not in drawn


def test_the_command_measures_draws_and_writes(tmp_path: Path) -> None:
    from accel.cli import app

    given = ["bench", "adapters.tests.checked_programs:graph", "--rounds", "1", "--concurrency", "1,2"]
    asked = [part for value in INPUTS for part in ("--input", json.dumps(value))]
    drawn = tmp_path / "bench.svg"
    result = CliRunner().invoke(app, [*given, *asked, "--json", "--picture", str(drawn)])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert [each["concurrency"] for each in told["levels"]] == [1, 2]
    assert drawn.read_text().startswith("<svg")
    assert CliRunner().invoke(app, [*given[:-1], "many", *asked]).exit_code == 2


def test_what_can_not_be_measured_is_said() -> None:
    with pytest.raises(ConfigurationError, match="no inputs"):
        accel.bench(programs.graph, [])
    from accel.cli import app

    asked = ["bench", "adapters.tests.checked_programs:graph", "--input", "{}", "--concurrency", "0"]
    assert CliRunner().invoke(app, asked).exit_code == 2


def test_one_number_of_runs_at_a_time_may_stand_alone() -> None:
    result = accel.bench(programs.graph, INPUTS, rounds=1, warm=0, concurrency=2)
    assert [level.concurrency for level in result.levels] == [2]
