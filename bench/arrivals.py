"""`python -m bench arrivals`: programs whose requests arrive at random, on engines with more or less KV cache.

Requests arrive as a Poisson process, the same in all arms, at simulated engines in virtual time. Arms differ in what
engines know (`accel.engine.batching`): first come, first served; everything; everything but one policy. Answers are
compared with those of the unmodified program on an engine that has room for everything.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.progress import track

import accel
from accel.process import clock
from bench.arrivals_report import ALL, FIRST_COME, LANGGRAPH, WITHOUT_ADMISSION, WITHOUT_DEADLINES, document
from bench.batch_work import Work
from bench.engines import Engines, simulated
from bench.machine import machine_name
from bench.measure import plain
from bench.pictures import quantile
from corpus.arrivals import PROGRAMS
from corpus.papers import data

DOCUMENT = Path(__file__).parent / "ARRIVALS.md"
READ = "## What they say"
"""Of the document, written by hand and kept."""
SLOTS = 64
KV_SHARES = (0.5, 1.0, 2.0, 4.0)
SATURATED = 1.5
LOADS = (0.5, 1.0, 1.5)
WITHIN = (2.0, 4.0, 8.0)
"""A deadline is one of these times what a request takes alone, each as often as the others."""
MOST_CALLS = 1024
ALONE = 6
"""Requests that are served one at a time, too."""
LEARNT_FROM = 3
POLICIES = {
    LANGGRAPH: "blind",
    FIRST_COME: "blind",
    ALL: "topology-aware",
    WITHOUT_ADMISSION: "topology-aware, without admission",
    WITHOUT_DEADLINES: "topology-aware, without deadlines",
}


@dataclass(frozen=True)
class Cell:
    """What one process measures. kv: of the working set; load: of the most that the engine could do."""

    program: str
    kv: float = 0.5
    load: float = SATURATED
    deadlines: bool = False
    seed: int = 0
    requests: int = 128
    profile: str = "7b"

    @property
    def count(self) -> int:
        """Requests, as long as they are not too many calls."""
        return max(1, min(self.requests, MOST_CALLS // PROGRAMS[self.program].CALLS))

    @property
    def arms(self) -> tuple[str, ...]:
        return tuple(arm for arm in POLICIES if self.deadlines or arm != WITHOUT_DEADLINES)


@dataclass
class Alone:
    """What is known of the requests before any arm: on the unmodified program, and an engine with room for all."""

    answers: list[Any]
    mean_s: float
    """What one takes by itself."""
    context: float
    """Tokens of the longest call with its answer, in the mean."""
    least_s: float
    """What the engine has to work for all of them, at the very least."""


async def alone(cell: Cell, engines: Engines, data_sets: data.DataSets) -> Alone:
    graph = await _built(cell, engines, data_sets)
    values, work = _inputs(cell, data_sets)[0], Work()
    took, each = [], [Work() for _ in values]
    for value in values[:ALONE]:
        began_s = clock.now_s()
        await graph.ainvoke(value)
        took.append(clock.now_s() - began_s)
    asked = (graph.ainvoke(value, {"callbacks": [work, one]}) for value, one in zip(values, each, strict=True))
    answers = [plain(answer) for answer in await asyncio.gather(*asked)]
    least_s = work.least_s(engines.profiles["llm"], 1)
    return Alone(answers, fmean(took), fmean(one.longest for one in each), least_s)


async def served(cell: Cell, engines: Engines, data_sets: data.DataSets, arm: str, held: Alone) -> dict[str, Any]:
    graph = await _built(cell, engines, data_sets)
    values, others = _inputs(cell, data_sets)
    if arm != LANGGRAPH:
        graph = accel.accelerate(graph)
        for value in others:
            await graph.ainvoke(value)
            accel.settle()
    await engines.forget_prefixes()
    before, began_s = asdict(await engines.served()), clock.now_s()
    dice, gap_s = random.Random(cell.seed), held.least_s / cell.count / cell.load

    async def ask(value: Any, after_s: float, within_s: float) -> tuple[Any, float, bool]:
        await asyncio.sleep(after_s)
        config = {"metadata": {"accel_deadline_s": within_s}} if cell.deadlines else {}
        answer = plain(await graph.ainvoke(value, config))
        took_s = clock.now_s() - began_s - after_s
        return answer, took_s, took_s <= within_s

    asked, after_s = [], 0.0
    for value in values:
        after_s += dice.expovariate(1 / gap_s)
        asked.append(ask(value, after_s, dice.choice(WITHIN) * held.mean_s))
    answers, took, met = zip(*await asyncio.gather(*asked), strict=True)
    seconds = clock.now_s() - began_s
    work = {name: value - before[name] for name, value in asdict(await engines.served()).items()}
    return {
        **asdict(cell), "requests": cell.count, "arm": arm, "seconds": seconds, "throughput": cell.count / seconds,
        "mean_s": fmean(took), "p95_s": quantile(took, 0.95), "met": sum(met), "goodput": sum(met) / seconds,
        "served": work, "different": sum(one != other for one, other in zip(answers, held.answers, strict=True)),
        "alone_s": held.mean_s, "least_s": held.least_s, "context": held.context,
    }  # fmt: skip


async def _built(cell: Cell, engines: Engines, data_sets: data.DataSets) -> Any:
    program, parts = PROGRAMS[cell.program], engines.parts("arrivals")
    await program.prepare(parts, data_sets)
    return program.build(parts)


def _inputs(cell: Cell, data_sets: data.DataSets) -> tuple[list[Any], list[Any]]:
    """Those that are measured, and others that the program has answered before."""
    values = PROGRAMS[cell.program].inputs(data_sets, cell.count + LEARNT_FROM, cell.seed)
    return values[: cell.count], values[cell.count :]


def measured(cell: Cell, data_sets: data.DataSets | None = None) -> list[dict[str, Any]]:
    given = data_sets or data.load()
    ample = simulated(cell.profile)
    held = ample.run(lambda: alone(cell, ample, given))
    found = []
    for arm in cell.arms:
        kv_tokens = int(cell.kv * SLOTS * held.context)
        engines = simulated(cell.profile, kv_tokens=kv_tokens, batching=POLICIES[arm])
        found.append(engines.run(lambda: served(cell, engines, given, arm, held)))  # noqa: B023
    return found


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split(",")))


def cells(options: argparse.Namespace) -> list[Cell]:
    about = {"requests": options.requests, "profile": options.profile}
    found = []
    for seed, name in product(range(options.seeds), options.programs.split(",")):
        found += [Cell(name, kv, seed=seed, **about) for kv in options.kv]
        found += [Cell(name, min(options.kv), load, True, seed, **about) for load in options.loads]
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench arrivals", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", default=",".join(PROGRAMS), help="of these, with commas between")
    parser.add_argument("--requests", type=int, default=Cell.requests, help=f"fewer above {MOST_CALLS} calls")
    parser.add_argument("--kv", type=_numbers, default=KV_SHARES, help="KV caches, of the working set")
    parser.add_argument("--loads", type=_numbers, default=LOADS, help="with deadlines, in the smallest KV cache")
    parser.add_argument("--seeds", type=int, default=3, help="with other inputs and arrivals each")
    parser.add_argument("--profile", default=Cell.profile, help="7b, 13b, 30b, or a file of profiles")
    parser.add_argument("--jobs", type=int, default=1, help="processes; virtual time is the same in any number")
    parser.add_argument("--out", type=Path, default=Path("bench-out/arrivals"), help="folder for the raw records")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.programs.split(",") if name not in PROGRAMS]:
        parser.error(f"{unknown[0]!r} is not known; there are {', '.join(PROGRAMS)}")
    console = Console(width=None if sys.stdout.isatty() else 160)
    try:
        data.load()
    except ValueError as error:
        console.print(f"[red]{error}[/red]")
        return 2
    chosen = cells(options)
    options.out.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    with (
        (options.out / "arrivals.jsonl").open("w", encoding="utf-8") as file,
        ProcessPoolExecutor(options.jobs, get_context("spawn"), max_tasks_per_child=1) as pool,
    ):
        for records in track(pool.map(measured, chosen), "measuring", len(chosen), console=console, transient=True):
            file.writelines(json.dumps(one) + "\n" for one in records)
            file.flush()
            found += records
    command = " ".join(["python -m bench arrivals", *(each for each in arguments if each != "--write")])
    shown = document(found, machine_name(), command)
    console.print(shown, markup=False, highlight=False, soft_wrap=True)
    if options.write:
        before = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.is_file() else ""
        _, heading, kept = before.partition(READ)
        DOCUMENT.write_text(f"{shown}\n\n{heading}{kept}".rstrip() + "\n", encoding="utf-8")
    return 1 if any(one["different"] for one in found) else 0
