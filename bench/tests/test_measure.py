"""The benchmark's measurements, on simulated engines and a made-up corpus."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import measure
from bench.engines import simulated
from bench.measure import ACCELERATED, BY_HAND, OFF, UNMODIFIED, Measured
from corpus.papers import APPS, data

ROOT = Path(__file__).resolve().parents[2]


def measured(name: str, requests: int = 1, arms: list[str] | None = None) -> Measured:
    engines = simulated("7b")
    wanted = arms or measure.names(False)
    data_sets = data.sample()
    return engines.run(lambda: measure.one_at_a_time(APPS[name], engines, data_sets, requests, 0, wanted, lambda: None))


def of(found: Measured, arm: str) -> dict[int, measure.Request]:
    return {request.number: request for request in found.requests if request.arm == arm}


@pytest.mark.parametrize("name", [name for name in APPS if name != "chat"])
def test_every_arm_gives_the_unmodified_answers(name: str) -> None:
    arms = [UNMODIFIED, BY_HAND, ACCELERATED]
    if name == "factool":
        arms = measure.names(passes_off=True)
    requests = {"reflect": 0}.get(name, 1)
    found = measured(name, requests, arms)
    plain = of(found, UNMODIFIED)
    assert len(plain) == measure.WARM + requests
    for request in found.requests:
        assert measure.same_output(request, plain[request.number]), request.arm
        assert measure.same_calls(request, plain[request.number]), request.arm
    fast = of(found, ACCELERATED)
    assert sum(request.counts["wasted"] for request in fast.values()) <= 2
    last = max(plain)
    assert fast[last].counts["retired"] > 0
    if found.limits:
        # The limit knows what prompts share by characters, the engine by blocks of tokens.
        assert found.limits[last].lower_bound_s <= fast[last].seconds * 1.005


def test_a_nested_fan_out_comes_near_its_limit_and_every_pass_has_its_part() -> None:
    found = measured("factool", 1, measure.names(passes_off=True))
    last = max(found.limits)
    seconds = {request.arm: request.seconds for request in found.requests if request.number == last}
    assert seconds[ACCELERATED] < seconds[BY_HAND] < seconds[UNMODIFIED]
    assert 0.9 <= found.limits[last].makespan_s / seconds[ACCELERATED] <= 1.001
    for name in ("pmap", "prune", "decode"):
        assert seconds[OFF + name] > 1.02 * seconds[ACCELERATED], name
    assert all(seconds[arm] >= 0.999 * seconds[ACCELERATED] for arm in seconds)


def test_under_load_no_arm_is_slower_when_all_requests_come_at_once() -> None:
    engines = simulated("7b")
    loads = engines.run(
        lambda: measure.under_load(APPS["naive_rag"], engines, data.sample(), 5, 0, [None, 0.2], lambda: None)
    )
    plain = {load.rate: load for load in loads if load.arm == UNMODIFIED}
    for load in loads:
        assert [r.output for r in load.requests] == [r.output for r in plain[load.rate].requests]
        assert load.throughput >= 0.999 * plain[load.rate].throughput


SCRIPT = """
import hashlib, json
from bench.tests.test_measure import records
print(hashlib.sha256(json.dumps(records(), sort_keys=True).encode()).hexdigest())
"""


def records() -> Any:
    found = measured("crag")
    return [[r.arm, r.number, r.began_s.hex(), r.ended_s.hex(), r.output, r.calls, r.counts] for r in found.requests]


def test_virtual_time_repeats_bit_by_bit_whatever_the_hash_seed() -> None:
    def digest(hash_seed: str) -> str:
        env = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run(
            [sys.executable, "-c", SCRIPT], env=env, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()

    here = hashlib.sha256(json.dumps(records(), sort_keys=True).encode()).hexdigest()
    assert digest("1") == digest("2") == here
