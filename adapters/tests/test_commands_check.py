"""`accel.check` on programs that pass, that must not pass, and that differ by themselves."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest

import accel
from accel.commands.findings import CheckResult
from accel.commands.programs import program_of
from accel.errors import ConfigurationError
from adapters.tests import checked_programs as programs

INPUTS = programs.INPUTS


def test_an_honest_program_is_equal_and_calls_went_early() -> None:
    result = accel.check(programs.graph, INPUTS)
    assert result, str(result)
    assert (result.verdict, result.exit_code, result.runs) == ("equal", 0, 12)
    assert result.counts["retired"] > 0


def test_a_function_that_is_declared_pure_and_is_not_is_found() -> None:
    result = accel.check(programs.wrong, INPUTS)
    assert not result
    assert (result.verdict, result.exit_code) == ("different", 1)
    first = result.found[0]
    assert first.difference.path == "result.two"
    assert first.difference.unmodified.endswith("1 notes'") and first.difference.accelerated.endswith("0 notes'")
    assert first.difference.unmodified in str(result)


def test_a_program_that_differs_from_itself_is_not_laid_to_acceleration() -> None:
    result = accel.check(programs.restless, INPUTS, rounds=1)
    assert (result.verdict, result.exit_code) == ("varying", 1)
    assert "by itself" in str(result)


def test_a_sampled_model_needs_a_cassette() -> None:
    assert accel.check(programs.sampled, INPUTS, rounds=1).verdict == "varying"


@pytest.mark.parametrize("make", [programs.sampled, programs.streaming, programs.awaited, programs.opinions])
def test_with_a_cassette_a_sampled_model_is_asked_once(make: Any, tmp_path: Path) -> None:
    tape = tmp_path / "answers.jsonl"
    first = accel.check(make, INPUTS, cassette=tape)
    assert first, str(first)
    recorded = len(tape.read_text().splitlines()) - 1
    calls = {"sampled": 9, "streaming": 9, "awaited": 6, "opinions": 18}[make.__name__]
    assert first.cassette is not None and first.cassette.recorded == recorded == calls
    again = accel.check(make, INPUTS, cassette=tape)
    assert again, str(again)
    assert again.cassette is not None and again.cassette.recorded == 0
    assert again.counts["retired"] > 0 or make is programs.opinions


def test_answers_that_are_replayed_are_those_recorded(tmp_path: Path) -> None:
    tape = tmp_path / "answers.jsonl"
    seen: list[str] = []
    graph = programs.opinions()
    for _ in range(2):
        result = accel.check(graph, INPUTS[:1], rounds=2, cassette=tape)
        assert result, str(result)
        lines = [json.loads(line) for line in tape.read_text().splitlines()[1:]]
        seen.append(json.dumps(lines))
    votes = [line["result"]["answers"][0]["said"]["content"] for line in lines]
    assert len(set(votes)) == 6, "three opinions and three votes, all different samples"
    assert seen[0] == seen[1]
    beside = [vote for vote, line in zip(votes, lines, strict=True) if line.get("beside")]
    assert len(beside) == 2 and all(vote.startswith("<Vote") for vote in beside), "all but the first of the votes"


def test_messages_are_given_as_the_framework_takes_them() -> None:
    inputs = [{"messages": [["user", "hello"]]}, {"messages": [{"role": "user", "content": "good day"}]}]
    result = accel.check(programs.chatting, inputs, rounds=2)
    assert result, str(result)


def test_chains_are_checked_too() -> None:
    result = accel.check(programs.chain, INPUTS, rounds=2)
    assert result, str(result)


def test_a_saved_program_that_pauses_runs_on_threads_of_its_own() -> None:
    graph = programs.asking()
    config = {"configurable": {"user": "ada"}}
    result = accel.check(graph, INPUTS, rounds=2, config=config)
    assert result, str(result)
    threads = [saved.config["configurable"]["thread_id"] for saved in graph.checkpointer.list(None)]
    assert len(set(threads)) == 12, "six runs of each arm"
    with program_of(graph, config=config) as program:
        told = program.run(program.obj, INPUTS[0])
    assert told["__interrupt__"][0].value == "<Ask of apples and pears for ada>"


@pytest.mark.parametrize(
    ("inputs", "remedy"),
    [
        (INPUTS, "`accel report` with the same inputs says of every line why"),
        (INPUTS[:1] * 2, "give two different inputs at least"),
    ],
    ids=["different inputs", "one input"],
)
def test_what_was_not_called_early_says_where_to_look(inputs: list[Any], remedy: str) -> None:
    (note,) = accel.check(programs.asking(), inputs, rounds=1).notes
    assert note.startswith(f"nothing was called early in these runs: {remedy}")


def test_an_error_of_the_program_is_compared_as_a_result_is() -> None:
    inputs = [*INPUTS[:2], {"question": "something fragile"}]
    result = accel.check(programs.graph, inputs)
    assert result, str(result)
    assert result.raised == 4 and "no answer to" in str(result)


def test_a_program_that_only_raises_has_not_been_checked() -> None:
    result = accel.check(programs.graph, [{"question": "fragile"}], rounds=1)
    assert not result
    assert (result.verdict, result.exit_code) == ("raised", 2)


def test_no_secret_reaches_the_cassette_and_only_its_owner_reads_it(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("SOME_API_KEY", "Apples-and-Pears-7")
    tape = tmp_path / "answers.jsonl"
    inputs = [{"question": "where is Apples-and-Pears-7?"}, *INPUTS]
    result = accel.check(programs.leaking, inputs, rounds=2, cassette=tape)
    assert result, str(result)
    written = tape.read_text()
    assert programs.KEY not in written and "Apples-and-Pears-7" not in written
    assert written.count("[redacted]") >= 3
    assert stat.S_IMODE(tape.stat().st_mode) == 0o600


def test_what_the_unmodified_program_never_asked_is_not_asked_for_money(tmp_path: Path) -> None:
    """Of an accelerated program that asks something else, the check says so and makes no live call."""
    model = programs.Oracle(samples=True)
    graph = programs.wrong(model)
    tape = tmp_path / "answers.jsonl"
    result = accel.check(graph, INPUTS, cassette=tape)
    assert result.verdict == "different" and model.tally.count == 6
    paths = {found.difference.path.partition(".messages")[0] for found in result.found}
    assert paths == {"calls.Oracle.chat"}, str(result)
    assert any("0 notes" in found.difference.accelerated for found in result.found)


def test_a_program_that_keeps_something_is_made_anew_for_each_run() -> None:
    assert accel.check(programs.gathering, INPUTS, rounds=1).verdict == "varying"
    result = accel.check(programs.gathering, INPUTS, fresh=True)
    assert result, str(result)
    assert result.counts["retired"] > 0, "what was learnt is handed on"
    with pytest.raises(ConfigurationError, match="no function that makes one"):
        accel.check(programs.gathering(), INPUTS, fresh=True)


def test_a_cassette_needs_a_folder_that_is_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="can't be written"):
        accel.check(programs.graph, INPUTS, cassette=tmp_path / "nowhere" / "answers.jsonl")


def test_what_two_processes_recorded_is_one_cassette(tmp_path: Path) -> None:
    """Both began the file, and both asked the same."""
    tape = tmp_path / "answers.jsonl"
    assert accel.check(programs.sampled, INPUTS, cassette=tape)
    tape.write_text(tape.read_text() * 2)
    result = accel.check(programs.sampled, INPUTS, cassette=tape)
    assert result and result.cassette is not None and result.cassette.recorded == 0


def test_a_broken_cassette_is_named_with_its_line(tmp_path: Path) -> None:
    tape = tmp_path / "answers.jsonl"
    tape.write_text('{"accel_cassette": 1}\n{"component": 3}\n')
    with pytest.raises(ConfigurationError, match=r"answers.jsonl, line 2"):
        accel.check(programs.graph, INPUTS, cassette=tape)


def test_the_result_as_json_has_one_shape(tmp_path: Path) -> None:
    results = [
        accel.check(programs.graph, INPUTS, rounds=1, cassette=tmp_path / "answers.jsonl"),
        accel.check(programs.wrong, INPUTS),
    ]
    told = [json.loads(json.dumps(result.as_dict())) for result in results]
    assert told[0].keys() == told[1].keys()
    assert [each["equal"] for each in told] == [True, False]
    assert told[0]["cassette"] == {"file": str(tmp_path / "answers.jsonl"), "recorded": 9, "replayed": 18}
    assert told[1]["differences"][0].keys() == {
        "input", "round", "way", "path", "unmodified", "accelerated", "varies",
    }  # fmt: skip
    assert set(told[0]["calls"]) == {"demanded", "issued", "retired", "wasted", "fed"}


def test_a_program_of_coroutines_inside_a_loop_says_what_to_do() -> None:
    async def inside() -> CheckResult:
        return accel.check(asyncio.run, INPUTS) if False else accel.check(programs.awaited, INPUTS)

    with pytest.raises(ConfigurationError, match="to_thread"):
        asyncio.run(inside())


async def test_from_inside_a_loop_a_thread_checks_it() -> None:
    result = await asyncio.to_thread(accel.check, programs.awaited, INPUTS, rounds=1)
    assert result.verdict == "varying"  # a sampled model: but it ran


def test_nothing_is_watched_after_a_check() -> None:
    from accel.parts.methods import patches

    accel.check(programs.graph, INPUTS, rounds=1)
    assert patches.tap is None


def test_wrong_options_say_what_is_known() -> None:
    with pytest.raises(ConfigurationError, match="egres"):
        accel.check(programs.graph, INPUTS, egres="inputs")
    with pytest.raises(ConfigurationError, match="no inputs"):
        accel.check(programs.graph, [])
