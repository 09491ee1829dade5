"""`python -m compat_tests.soak --runs 20000`: every outcome as the plain program's, and nothing that grows.

`--only PROGRAM --runs N` repeats the first N runs of one program. Exit code 1 on any difference, hang or growth.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import gc
import math
import os
import sys
from dataclasses import dataclass, field
from typing import Any

import accel
from accel.run.gains import gained, hopes
from accel.run.gains.pace import load
from compat_tests.soak.soak_gauges import Sample, grown, sample, table
from compat_tests.soak.soak_programs import PROGRAMS, Program
from compat_tests.soak.soak_runs import Arms, Soak, arms_of

MOST_FAULTS = 10
"""After so many the rest would say little."""
SETTLE_S = 60.0
ENOUGH_RUNS = 100
"""Of each program, before what it keeps is judged."""


@dataclass
class Told:
    """What a soak has shown."""

    faults: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """Of the event loop: exceptions that nobody got."""
    samples: list[Sample] = field(default_factory=list)
    arms: list[Arms] = field(default_factory=list)
    stalls: int = 0

    def programs(self) -> str:
        lines = []
        for arms in self.arms:
            kinds = ", ".join(f"{kind} {n}" for kind, n in sorted(arms.outcomes.items()))
            lines.append(f"{arms.program.name:28} {arms.runs:5} runs; {_counts(arms)}\n    {kinds}")
        return "\n".join(lines)


def _counts(arms: Arms) -> str:
    if not hasattr(arms.fast, "report"):
        return "plain"
    both = arms.fast.report(), arms.rough.report()
    counts = {name: sum(getattr(told, name) for told in both) for name in ("demanded", "issued", "retired", "wasted")}
    return ", ".join(f"{n} {name}" for name, n in counts.items())


async def soak(programs: tuple[Program, ...], options: argparse.Namespace) -> Told:
    told = Told()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.complaints.append(_in_words(context)))
    # A stream that is collected while a thread is only just starting can hang the process on CPython 3.11, plain, too.
    gc.disable()
    told.arms = [arms_of(program, PROGRAMS.index(program), not options.unaccelerated) for program in programs]
    run = Soak(options.stalls)
    places = asyncio.Semaphore(options.at_once)

    async def one(arms: Arms) -> None:
        async with places:
            if arms.hangs or len(told.faults) >= MOST_FAULTS:
                return
            number = arms.runs + 1
            fault = await run.compare(arms, options.seed)
            if fault is not None:
                again = f"python -m compat_tests.soak --only {arms.program.name} --runs {number} --seed {options.seed}"
                told.faults.append(
                    f"{arms.program.name}, run {number}, seed {options.seed}: {fault}\n    again: {again}"
                )

    for first in range(0, options.runs, options.every):
        wanted = [told.arms[i % len(told.arms)] for i in range(first, min(first + options.every, options.runs))]
        await asyncio.gather(*map(one, wanted))
        await run.let_go()
        await asyncio.to_thread(accel.settle, SETTLE_S)
        told.samples.append(sample(first + len(wanted), run.stalls.threads))
        if len(told.faults) >= MOST_FAULTS:
            break
    told.stalls = run.stalls.begun
    run.stalls.end_all()
    await loop.shutdown_asyncgens()  # as `asyncio.run` does
    return told


def _in_words(context: dict[str, Any]) -> str:
    return f"{context['message']}: {context.get('exception')!r}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--every", type=int, default=500, help="runs between samples")
    parser.add_argument("--at-once", type=int, default=6)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--stalls", type=int, default=8, help="calls that stall for good, at most")
    parser.add_argument("--only", help="names of programs, with commas between them; without it, all")
    parser.add_argument("--resting", action="store_true", help="follow no more runs than pays; else all are followed")
    parser.add_argument("--unaccelerated", action="store_true", help="check the soak itself: both arms plain")
    options = parser.parse_args()
    faulthandler.enable()
    if not options.resting:
        # Components here take no time: there is nothing to gain.
        load.enabled, hopes.LEAST_S = False, math.inf
        gained.LEAST_PART = gained.ENOUGH_PART = -math.inf
    named = {program.name: program for program in PROGRAMS}
    wanted = options.only.split(",") if options.only else list(named)
    if unknown := [name for name in wanted if name not in named]:
        parser.error(f"unknown program {unknown[0]!r}; there are {', '.join(named)}")
    programs = tuple(named[name] for name in wanted)
    # Not `asyncio.run`: it waits for threads, also for those that hang.
    told = asyncio.new_event_loop().run_until_complete(soak(programs, options))
    enough = options.runs >= ENOUGH_RUNS * len(programs)
    faults = [*told.faults, *told.complaints[:MOST_FAULTS], *grown(told.samples, memory=enough)]
    _say(table(told.samples))
    _say(told.programs())
    for fault in faults:
        _say(f"FAULT {fault}")
    _say(f"{sum(arms.runs for arms in told.arms):,} runs, {told.stalls} stalled calls, {len(faults)} faults")
    return 1 if faults else 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    code = main()
    # What hangs is said above; it must not keep this process from saying so by its exit code.
    os._exit(code)
