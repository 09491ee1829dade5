"""Random programs: accelerated and plain runs are equal in all that a user can see, and in what leaves the building.

ACCEL_PROPERTY_PROGRAMS=20000 runs more of them, ACCEL_PROPERTY_WORKERS=1 on one core, ACCEL_PROPERTY_FIRST_SEED others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from compat_tests.differential import session_counts

PROGRAMS = int(os.environ.get("ACCEL_PROPERTY_PROGRAMS", "200"))
FIRST_SEED = int(os.environ.get("ACCEL_PROPERTY_FIRST_SEED", "0"))
WORKERS = int(os.environ.get("ACCEL_PROPERTY_WORKERS", "0")) or max(1, min(8, os.cpu_count() or 1))
SLICE = 1000
"""Programs per process: what a process keeps of programs that are over doesn't add up."""
TIMEOUT_S = 240 + 2 * PROGRAMS
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ISSUING = 0.3
"""The share of programs in which something must be early."""
SUMMARY = (
    "{programs:,} programs ({share:.0%} of them issue something), {demanded:,} calls, {issued:,} issued early, "
    "{retired:,} retired, {cut:,} runs cut off, {forks:,} once more in a forked child, "
    "{mismatches:,} mismatches, {disclosures:,} disclosures"
)


@pytest.mark.timeout(TIMEOUT_S + 30)
def test_accelerated_programs_equal_plain_ones() -> None:
    slices: list[tuple[int, int, int]] = []
    for first in range(FIRST_SEED, FIRST_SEED + PROGRAMS, SLICE * WORKERS):
        end = min(first + SLICE * WORKERS, FIRST_SEED + PROGRAMS)
        slices += [(first + worker, end, WORKERS) for worker in range(min(WORKERS, end - first))]
    workers: list[subprocess.Popen[str]] = []

    def run(part: tuple[int, int, int]) -> tuple[int, str]:
        first, end, step = part
        command = [sys.executable, "-m", "compat_tests.differential", f"{first}:{end}", "--step", str(step)]
        worker = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        workers.append(worker)
        output, _ = worker.communicate(timeout=TIMEOUT_S)
        return worker.returncode, output

    try:
        with ThreadPoolExecutor(WORKERS) as pool:
            done = list(pool.map(run, slices))
    finally:
        for worker in workers:
            worker.kill()
    problems = []
    for status, output in done:
        last = output.rstrip().rsplit("\n", 1)[-1]
        if last.startswith("{"):
            session_counts.update(json.loads(last))
        if status != 0:
            problems.append(output)
    names = ("programs", "demanded", "issued", "retired", "cut", "forks", "mismatches", "disclosures")
    share = session_counts["issuing"] / PROGRAMS
    sys.stdout.write(SUMMARY.format(share=share, **{name: session_counts[name] for name in names}) + "\n")
    assert not problems, "\n".join(problems)
    assert session_counts["programs"] == PROGRAMS
    assert session_counts["retired"] > PROGRAMS // 4, f"too little was early to show anything: {session_counts}"
    assert share >= ISSUING or PROGRAMS < 100, f"too few programs issue anything: {share:.0%}"
