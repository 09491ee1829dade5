"""`python -m bench where`: which parts of Accel the processor time of a run with early calls goes to.

Programs of `corpus/served`, awaited, one run at a time, each of which is followed. First without a profiler: what a run
takes, unmodified and accelerated. Then with one, for shares: what a function takes itself is its module's, and what the
interpreter and its library take is the module's that called them.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

import accel
from bench.machine import machine_name
from bench.overhead import EARLY, GOALS_MS, LEARNT_FROM, SCALE
from bench.sections import command_of, table
from corpus import served
from corpus.served import ASYNC, questions

DOCUMENT = Path(__file__).parent / "WHERE.md"
RUNS = 100
ROOT = Path(accel.__file__).parent.parent
DEEPEST = 8
"""Callers that are asked whose work a function of the library does."""
SHOWN = 16
"""Modules in the document."""
OTHERS = "the program and its framework"
Function = tuple[str, int, str]
Stats = Mapping[Function, tuple[int, int, float, float, Mapping[Function, tuple[int, int, float, float]]]]


@dataclass(frozen=True)
class Spent:
    """Milliseconds of the processor per run, and shares of the profiled time by module."""

    program: str
    calls: int
    early: float
    unmodified_ms: float
    accelerated_ms: float
    shares: Mapping[str, float]

    @property
    def own(self) -> Mapping[str, float]:
        """Of Accel's time, by module, the largest first."""
        found = {module: share for module, share in self.shares.items() if module != OTHERS}
        whole = sum(found.values())
        return {module: share / whole for module, share in sorted(found.items(), key=lambda item: -item[1])}

    @property
    def at_goal(self) -> float:
        """Accelerated by unmodified if what Accel adds to a call were what its goal allows."""
        return 1.0 + self.calls * GOALS_MS[EARLY] / self.unmodified_ms


@cache
def module_of(file: str) -> str | None:
    """Accel's module that a file is; `OTHERS` for other installed code, None for the interpreter and its library."""
    path = Path(file)
    if path.is_relative_to(ROOT):
        parts = path.relative_to(ROOT).with_suffix("").parts
        return ".".join(parts[parts[0] == "adapters" :]) if parts[0] in ("accel", "adapters") else OTHERS
    return OTHERS if "site-packages" in path.parts or "asyncio" in path.parts else None


def shares(stats: Stats) -> dict[str, float]:
    """By module, the share of all time that its functions took, with what they had the interpreter do."""
    found: dict[str, float] = defaultdict(float)
    for function, (_, _, took_s, _, _) in stats.items():
        for module, share in _whose(stats, function, DEEPEST).items():
            found[module] += share * took_s
    whole = sum(found.values())
    return {module: took_s / whole for module, took_s in found.items()}


def _whose(stats: Stats, function: Function, deepest: int) -> dict[str, float]:
    """Shares of a function by the modules it works for."""
    module = module_of(function[0])
    callers = stats[function][4] if function in stats else {}
    took_s = {caller: took[3] for caller, took in callers.items() if caller != function}
    whole = sum(took_s.values())
    if module is not None or not deepest or not whole:
        return {module or OTHERS: 1.0}
    found: dict[str, float] = defaultdict(float)
    for caller, part_s in took_s.items():
        if part_s / whole > 0.01:  # the others are too many, and too little, to be asked one by one
            for name, share in _whose(stats, caller, deepest - 1).items():
                found[name] += share * part_s
    asked = sum(found.values())
    return {name: part / asked for name, part in found.items()}


def measured(name: str, runs: int) -> Spent:
    program = served.program(name)
    with asyncio.Runner() as runner:

        def ask(app: Any, question: str) -> None:
            runner.run(program.aask(app, question))

        plain = program.build(ASYNC, SCALE)
        fast = accel.accelerate(plain)

        def followed(question: str, given: Callable[[Any, str], None] = ask) -> None:
            fast.plan.pace.news()  # one at rest would not be followed
            given(fast, question)
            accel.settle()

        for question in questions(LEARNT_FROM, "learnt from"):
            followed(question)
        before = fast.plan.total
        took_s: dict[Any, list[float]] = {plain: [], fast: []}

        def timed(app: Any, question: str) -> None:
            began = time.process_time()
            ask(app, question)
            took_s[app].append(time.process_time() - began)

        for question in questions(runs, "timed"):
            timed(plain, question)
            followed(question, timed)
        counts = fast.plan.total
        demanded, retired = counts.demanded - before.demanded, counts.retired - before.retired
        profile = cProfile.Profile(time.thread_time)

        def profiled(app: Any, question: str) -> None:
            profile.enable()
            try:
                ask(app, question)
            finally:
                profile.disable()

        for question in questions(runs, "profiled"):
            followed(question, profiled)
    by_function = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    plain_ms, fast_ms = (1000 * median(took_s[app]) for app in (plain, fast))
    return Spent(name, round(demanded / runs), retired / demanded, plain_ms, fast_ms, shares(by_function))


def alone(name: str, runs: int) -> Spent:
    """In a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
        return fresh.submit(measured, name, runs).result()


def about(module: str) -> str:
    """The first sentence of a module's docstring."""
    text = " ".join((import_module(module).__doc__ or "").split())
    return text.partition(". ")[0].rstrip(".")


HEAD = ("program", "calls", "early", "unmodified", "accelerated", "ratio", "ratio if a call added the goal")


def document(found: Sequence[Spent], machine: str, command: str) -> str:
    goal = GOALS_MS[EARLY]
    rows = [
        [
            spent.program, str(spent.calls), f"{spent.early:.0%}", f"{spent.unmodified_ms:.2f} ms",
            f"{spent.accelerated_ms:.2f} ms", f"{spent.accelerated_ms / spent.unmodified_ms:.2f}x",
            f"{spent.at_goal:.2f}x",
        ]
        for spent in found
    ]  # fmt: skip
    mean = {
        module: sum(spent.own.get(module, 0.0) for spent in found) / len(found) for one in found for module in one.own
    }
    largest = sorted(mean, key=lambda module: -mean[module])[:SHOWN]
    modules = [[f"`{name}`", about(name), *(f"{spent.own.get(name, 0.0):.0%}" for spent in found)] for name in largest]
    rest = [f"{1 - sum(spent.own.get(name, 0.0) for name in largest):.0%}" for spent in found]
    return "\n\n".join([
        "# Where Accel's processor time goes",
        f"Runs that are followed, one at a time, on one event loop; {machine}. Components wait 0.4 to 6 ms, so that "
        "nearly all of the time is work. *ratio if a call added the goal*: what accelerated by unmodified would be if "
        f"each call of the run took {goal} ms more, which is the goal of [OVERHEAD.md](OVERHEAD.md): the less a "
        "framework takes for a call, the larger the ratio of what that allows.",
        f"```\n{command}\n```",
        table(HEAD, rows),
        "## By module",
        "Shares of Accel's own time under a profiler, with what the interpreter and its library do for a module; a "
        "profiler makes small functions look larger than they are. The rest is spread over the other modules.",
        table(["module", "what it does", *(spent.program for spent in found)], [*modules, ["others", "", *rest]]),
    ])  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench where", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", default=",".join(served.MODULES), help="of these, with commas between")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each program, timed and profiled")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    options = parser.parse_args(arguments)
    names = options.programs.split(",")
    if unknown := [name for name in names if name not in served.MODULES]:
        parser.error(f"{unknown[0]!r} is not known; there are {', '.join(served.MODULES)}")
    console = Console(width=None if sys.stdout.isatty() else 140)
    found = []
    for name in names:
        with console.status(name):
            found.append(alone(name, options.runs))
    command = command_of("where", arguments)
    shown = document(found, machine_name(), command)
    console.print(shown, markup=False, highlight=False, soft_wrap=True)
    if options.write:
        DOCUMENT.write_text(shown + "\n", encoding="utf-8")
    return 0
