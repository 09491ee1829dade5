"""Topology-aware against blind batching, on a small mixed load: answers, direction, and requests alone."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest

from accel.engine.profile import Profile, ProfileFile
from accel_sim import profile_of
from bench import topology
from bench.topology import ACCELERATED, AS_WRITTEN, BLIND, TOPOLOGY, Arm, Engines, Measured
from corpus.papers import SMALL, data

MIX = "naive_rag,advanced_rag"


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Engines:
    """A slow embedding model, so that a made-up corpus makes a queue."""
    path: Path = tmp_path_factory.mktemp("topology") / "profile.json"
    profiles = {kind: profile_of("7b", kind) for kind in ("llm", "reranking", "searching")}
    profiles["embedding"] = Profile("embedding", batches=((1, 100, 0.45), (4, 100, 1.35)), batch_tokens=400)
    ProfileFile(profiles).save(path)
    return Engines(str(path), models=2, sizes=replace(SMALL, chunk_words=20, overlap_words=5))


@pytest.fixture(scope="module")
def found(engines: Engines) -> dict[Arm, Measured]:
    data_sets = data.sample()
    arms = [Arm(batching, program) for program in (AS_WRITTEN, ACCELERATED) for batching in (BLIND, TOPOLOGY)]
    return {arm: topology.measured(MIX, arm, engines, data_sets, 12, 0, [0.1, None]) for arm in arms}


def test_answers_are_the_same_whatever_goes_first(found: dict[Arm, Measured]) -> None:
    equal, said = topology.verdict(found)
    assert equal and "equal" in said
    base = next(iter(found.values()))
    assert [len(load.requests) for load in base.loads] == [12, 12]
    assert {request.app for request in base.loads[0].requests} == set(MIX.split(","))
    base.loads[0].requests[3].output["answer"] += "!"
    assert not topology.verdict(found)[0]
    base.loads[0].requests[3].output["answer"] = base.loads[0].requests[3].output["answer"].removesuffix("!")


@pytest.mark.parametrize("program", [AS_WRITTEN, ACCELERATED])
def test_knowing_runs_helps_where_calls_queue_and_never_hurts_a_request_alone(
    found: dict[Arm, Measured], program: str
) -> None:
    aware, blind = found[Arm(TOPOLOGY, program)], found[Arm(BLIND, program)]
    assert topology.worst_alone(aware.alone, blind.alone) <= 1.0001
    assert topology.change(aware.loads[1], blind.loads[1]) < 0
    assert aware.loads[1].figures["embedding"].waited_s > 0


def test_a_program_that_comes_back_to_a_busy_engine_gains_most(found: dict[Arm, Measured]) -> None:
    aware, blind = found[Arm(TOPOLOGY, AS_WRITTEN)], found[Arm(BLIND, AS_WRITTEN)]
    assert topology.change(aware.loads[1], blind.loads[1]) < -0.15


def test_saturation_is_that_of_the_busiest_engine(found: dict[Arm, Measured]) -> None:
    burst = found[Arm(BLIND, AS_WRITTEN)].loads[1]
    rate = topology.saturation(burst)
    assert rate == pytest.approx(12 / burst.figures["embedding"].work_s)
    assert set(burst.figures) == {"model 0", "model 1", "embedding", "reranking"}
    assert all(figures.work_s / burst.took_s <= 1 for figures in burst.figures.values())


def test_records_hold_every_request_and_every_output_once(
    found: dict[Arm, Measured], engines: Engines, tmp_path: Path
) -> None:
    options = argparse.Namespace(profile=engines.profile, models=2, seed=0)
    path = tmp_path / "records.json"
    path.write_text(json.dumps(topology.as_json({MIX: found}, options)))
    raw = json.loads(path.read_text())
    (mix,) = raw["mixes"]
    assert mix["mix"] == MIX.split(",") and len(mix["arms"]) == 4
    seen = {
        request["output"]
        for arm in mix["arms"]
        for requests in (arm["alone"], *(load["requests"] for load in arm["loads"]))
        for request in requests
    }
    assert seen == set(raw["outputs"])
    assert len(seen) == len({(r.app, r.number) for one in found.values() for load in one.loads for r in load.requests})


def test_bad_options_say_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in ((["--mix", "naive_rag,nothing"], "there are naive_rag"), (["--models", "0"], "at least 1")):
        with pytest.raises(SystemExit):
            topology.main(arguments)
        assert said in capsys.readouterr().err
