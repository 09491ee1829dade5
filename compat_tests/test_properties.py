"""Random programs: accelerated and plain runs are equal in all that a user can see, and in what leaves the building."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from compat_tests import differential
from compat_tests.differential import session_counts
from compat_tests.probe import Call, Probe
from compat_tests.programs import generate

PROGRAMS = int(os.environ.get("ACCEL_PROPERTY_PROGRAMS", "2000"))
FIRST_SEED = int(os.environ.get("ACCEL_PROPERTY_FIRST_SEED", "0"))
WORKERS = max(1, min(8, os.cpu_count() or 1))
TIMEOUT_S = 120 + PROGRAMS


@pytest.mark.timeout(TIMEOUT_S + 30)
def test_accelerated_programs_equal_plain_ones() -> None:
    command = [sys.executable, "-m", "compat_tests.differential"]
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    workers = [
        subprocess.Popen(
            [*command, f"{FIRST_SEED + worker}:{FIRST_SEED + PROGRAMS}", "--step", str(WORKERS)],
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for worker in range(WORKERS)
    ]
    try:
        outputs = [worker.communicate(timeout=TIMEOUT_S)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    problems = []
    for worker, output in zip(workers, outputs, strict=True):
        last = output.rstrip().rsplit("\n", 1)[-1]
        if last.startswith("{"):
            session_counts.update(json.loads(last))
        if worker.returncode != 0:
            problems.append(output)
    assert not problems, "\n".join(problems)
    assert session_counts["programs"] == PROGRAMS
    assert session_counts["retired"] > PROGRAMS // 4, f"too little was early to show anything: {session_counts}"


def test_programs_are_deterministic() -> None:
    """Plain against plain: else the property above would compare accidents."""
    for seed in range(40):
        assert differential.check(generate(seed), differential.Plain()).differences == []


class RunsTwice(differential.Plain):
    """Wrong on purpose: runs the program once more, ahead of time."""

    def accelerate(self, graph: Any, **options: Any) -> Any:
        invoke = graph.invoke
        graph.invoke = lambda given, config: (
            invoke({**given, "items": list(given["items"])}, config),
            invoke(given, config),
        )[1]
        return graph


def test_the_comparison_notices_a_program_that_runs_twice() -> None:
    programs = [generate(seed) for seed in range(40)]
    found = [bool(differential.check(p, RunsTwice()).differences) for p in programs if not p.is_async]
    assert sum(found) > len(found) // 2


def test_the_comparison_notices_what_an_endpoint_learns() -> None:
    program, fast, slow = generate(0), Probe(0), Probe(0)
    fast.calls.append(Call("remote", "human: secret77", early=True, answer="willow"))
    assert "secret77" in "".join(differential.Endpoint(program, relaxed=False).differences(fast, slow))
    slow.calls.append(Call("remote", "human: tell me, secret77", early=False, answer="meadow"))
    assert differential.Endpoint(program, relaxed=False).differences(fast, slow) == []
