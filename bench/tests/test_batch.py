"""The programs that are given many inputs at once, and `python -m bench batch`; nothing is said of times."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, LLMResult

import accel
from accel.engine.profile import Profile, ProfileFile
from accel.process import clock
from accel_sim.published import LLMS, OTHERS
from bench import batch, batch_devices
from bench.__main__ import main
from bench.batch_report import (
    ABLATIONS,
    ACCEL_BATCH,
    ACCEL_IN_TURN,
    IN_TURN,
    LANGGRAPH_BATCH,
    LEARNT_BATCH,
    TIGHT,
    document,
    rows,
)
from bench.batch_work import Work
from bench.engines import simulated
from bench.measure import CallsSeen, plain
from corpus.batches import PROGRAMS, trading
from corpus.papers import SMALL, data

DATA_SETS = data.sample()
INPUTS = 2
KV_TOKENS = 4096


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_batch_answers_as_one_input_after_the_other_and_accelerated_alike(name: str) -> None:
    program = PROGRAMS[name]
    engines = simulated("7b", sizes=SMALL, kv_tokens=KV_TOKENS, replicas=2, models=2)

    async def run() -> None:
        parts = engines.parts("batch")
        await program.prepare(parts, DATA_SETS)
        graph = program.build(parts)
        values = program.inputs(DATA_SETS, INPUTS, 3)
        given = json.dumps(values)
        seen = CallsSeen()
        in_turn = [plain(await graph.ainvoke(value, {"callbacks": [seen]})) for value in values]
        assert [call.startswith('["chat model"') for call in seen.calls].count(True) == INPUTS * program.CALLS
        fast = accel.accelerate(graph)
        fast_seen = CallsSeen()
        fast_in_turn = [plain(await fast.ainvoke(value, {"callbacks": [fast_seen]})) for value in values]
        assert fast_in_turn == in_turn
        assert sorted(fast_seen.calls) == sorted(seen.calls)
        assert [plain(answer) for answer in await graph.abatch(values)] == in_turn
        assert [plain(answer) for answer in await fast.abatch(values)] == in_turn
        assert json.dumps(values) == given
        assert in_turn[0] != in_turn[1]

    engines.run(run)


@pytest.mark.parametrize("name", PROGRAMS)
def test_inputs_are_different_and_depend_on_the_seed_only(name: str) -> None:
    inputs = PROGRAMS[name].inputs
    first = inputs(DATA_SETS, 3, 1)
    assert first == inputs(DATA_SETS, 3, 1)
    assert any(first != inputs(DATA_SETS, 3, seed) for seed in range(2, 8))
    assert len({json.dumps(one) for one in first}) == 3
    with pytest.raises(ValueError, match="1000 different inputs|1001 different inputs"):
        inputs(DATA_SETS, 1000, 1)


def test_every_program_says_what_it_does_and_where_it_is_from() -> None:
    for name, program in PROGRAMS.items():
        about = (program.__doc__ or "").partition("\n")[0]
        assert "calls" in about or "call" in about, name
        assert program.PAPER and "\n" not in program.PAPER, name
    assert trading.CALLS == 88
    assert len(trading.MARKET) + len(trading.COMPANY) + len(trading.DEBATERS) + 1 + len(trading.OFFICERS) + 1 == 19


def test_questions_about_one_document_begin_alike_and_come_in_any_order() -> None:
    values = PROGRAMS["map-reduce"].inputs(DATA_SETS, 6, 0)
    texts = [value["document"] for value in values]
    assert 1 < len(set(texts)) < len(texts)
    assert texts != sorted(texts, key=texts.index)


# --- the benchmark


def records(program: str = "debate", repetition: int = 0, replicas: int = 1) -> list[dict[str, Any]]:
    cell = batch.Cell(program, replicas, TIGHT, repetition, inputs=3, at_once=(1, 8))
    return batch.measured(cell, DATA_SETS)


def test_every_arm_is_asked_the_same_and_served_by_the_same_engines() -> None:
    found = records("W5-two-voters", replicas=2)
    assert "as they come" in ABLATIONS, "an arm that one replica has no use for"
    assert [one["arm"] for one in found] == [
        IN_TURN, LANGGRAPH_BATCH, LANGGRAPH_BATCH, ACCEL_IN_TURN, ACCEL_BATCH, LEARNT_BATCH, *ABLATIONS
    ]  # fmt: skip
    assert [one["most"] for one in found if one["arm"] == LANGGRAPH_BATCH] == [1, 8]
    assert all(one["different"] == 0 and one["seconds"] > 0 and one["inputs"] == 3 for one in found)
    assert {one["calls"] for one in found} == {3 * 5} and {one["equal_calls"] for one in found} == {0}
    assert all(0 < one["least_s"] < one["seconds"] for one in found)
    assert len({one["served"]["output_tokens"] for one in found if one["arm"] in (IN_TURN, LANGGRAPH_BATCH)}) == 1
    again = records("W5-two-voters", replicas=2)
    assert [one["seconds"] for one in again] == [one["seconds"] for one in found], "virtual time repeats"


def test_more_calls_than_are_worth_it_are_fewer_inputs() -> None:
    assert batch.Cell("trading", 1, TIGHT).count == batch.MOST_CALLS // 88
    assert batch.Cell("W2-critique", 1, TIGHT).count == 64


def test_the_least_work_counts_equal_calls_and_beginnings_once() -> None:
    program = PROGRAMS["trading"]
    engines = simulated("7b", sizes=SMALL)

    async def run() -> tuple[Work, Work]:
        graph = program.build(engines.parts("work"))
        one, two = program.inputs(DATA_SETS, 2, 0)
        alone, both = Work(), Work()
        await graph.ainvoke(one, {"callbacks": [alone]})
        for value in (one, two):
            await graph.ainvoke(value, {"callbacks": [both]})
        return alone, both

    alone, both = engines.run(run)
    assert (alone.calls, both.calls) == (88, 176)
    assert both.equal_calls - 2 * alone.equal_calls == len(trading.MARKET) * trading.REPORTS
    profile = engines.profiles["llm"]
    assert alone.least_s(profile, 1) < both.least_s(profile, 1) < 2 * alone.least_s(profile, 1)


def call(work: Work, run: UUID, prompt: str, tokens: int, began_s: float, ended_s: float) -> None:
    """As LangChain reports it."""
    with clock.replaced(iter((began_s, ended_s)).__next__):
        id = uuid4()
        work.on_chat_model_start({}, [[HumanMessage(prompt)]], run_id=id, parent_run_id=run)
        usage: Any = {"input_tokens": 0, "output_tokens": tokens, "total_tokens": tokens}
        message = AIMessage("", usage_metadata=usage, response_metadata={"model_name": "m"})
        work.on_llm_end(LLMResult(generations=[[ChatGeneration(message=message)]]), run_id=id)


LIMITED = Profile("llm", prefill=((16, 0.16), (1600, 16.0)), decode=((1, 0.1), (9, 0.18)), slots=8, block_tokens=16)
"""A step takes 0.09 s and 0.01 s for each request that decodes in it; prefill is 0.01 s a token, and no more."""


def test_the_limit_knows_slots_caches_and_how_many_calls_the_runs_make_at_once() -> None:
    """Sixteen chains of two calls, each of which writes 101 tokens."""
    work = Work()
    for number in range(16):
        run = uuid4()
        call(work, run, f"{number} first", 101, 0.0, 1.0)
        call(work, run, f"{number} second", 101, 1.0, 2.0)
    prompts = [ids for (_, ids) in {(c.model, c.prompt) for c in work._asked.values()}]
    prompt_s = sum(map(len, prompts)) * 0.01
    steps = 2 * 16 * 100
    assert work.least_s(LIMITED, 1) == pytest.approx(prompt_s + steps / 8 * 0.17), "as many as there are slots"
    blocks = -(-(len(prompts[0]) + 101) // 16)
    assert work.least_s(LIMITED, 1, kv_tokens=4 * 16 * blocks) == pytest.approx(prompt_s + steps / 4 * 0.13)
    four = work.least_s(LIMITED, 4)
    assert four == pytest.approx(steps * 0.13 / 16, rel=0.1), "four chains to a replica, one call of each at a time"
    assert work.least_s(LIMITED, 100) >= 2 * 101 * 0.1 - 1e-9, "no run ends sooner than it would alone"


def test_the_document_compares_with_langgraph_at_its_best_and_says_what_differs() -> None:
    found = records() + records(repetition=1)
    (row,) = rows(found, TIGHT)
    for drawn in row.drawn:
        assert drawn.best["seconds"] == min(one["seconds"] for one in drawn.batches)
        assert drawn.against_best(ACCEL_BATCH) * drawn.by_arm[ACCEL_BATCH]["seconds"] == pytest.approx(
            drawn.best["seconds"]
        )
    shown = document(found, "a machine", "a command", batch.KV_TOKENS)
    assert "| debate | 3 x 10 | 1 |" in shown and "16,384 tokens" in shown and "DIFFER" not in shown
    found[-1]["different"] = 2
    assert "2 DIFFER" in document(found, "a machine", "a command", batch.KV_TOKENS)


def test_what_is_unknown_or_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["batch", "--programs=chess", f"--out={tmp_path}"])
    assert "'chess' is not known" in capsys.readouterr().err
    monkeypatch.delenv(data.FOLDER_VARIABLE, raising=False)
    assert main(["batch", "--programs=debate", f"--out={tmp_path}"]) == 2
    assert "GSM8K" in capsys.readouterr().out


def test_programs_of_two_models_answer_the_same_on_one_device() -> None:
    program, devices, switch, *_, outputs = batch_devices.measured("W5-two-voters", 1, 1, INPUTS, DATA_SETS)
    assert (program, devices, switch, outputs) == ("W5-two-voters", "1", "1 s", "equal")


def test_a_learnt_batch_leaves_no_second_model_without_work(tmp_path: Path) -> None:
    """More judges than slots: served operator by operator, the batch took 1.07 times as long as LangGraph's."""
    path = tmp_path / "profile.json"
    ProfileFile({"llm": replace(LLMS["7b"], slots=8), **OTHERS}).save(path)
    program, engines = PROGRAMS["W5-two-voters"], simulated(str(path), sizes=SMALL, models=2)
    inputs = program.inputs(DATA_SETS, 12, 1)

    async def seconds(graph: Any) -> tuple[float, list[Any]]:
        await engines.forget_prefixes()
        began_s = clock.now_s()
        answers = [plain(answer) for answer in await graph.abatch(inputs[:9])]
        return clock.now_s() - began_s, answers

    async def run() -> None:
        graph = program.build(engines.parts("batch"))
        fast = accel.accelerate(program.build(engines.parts("batch")))
        await batch.in_turn(fast)(inputs[9:])
        (plainly_s, expected), (learnt_s, answers) = await seconds(graph), await seconds(fast)
        assert answers == expected
        assert learnt_s < 1.02 * plainly_s

    engines.run(run)
