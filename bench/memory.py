"""`python -m bench memory`: what a learnt plan keeps in memory, what a run takes at its peak, and whether that grows.

The programs are a dozen small ones and public applications on simulated engines, and those of servers, which run often
enough to see. Every figure is that of an accelerated object over the unmodified one's, with the same runs; what a
process keeps once, whatever it accelerates, is taken up by an object before. Each program has a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import tracemalloc
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

import accel
import accel_local
from bench.corpus import Arms, engines_for
from bench.machine import machine_name
from bench.pictures import ACCELERATED, UNMODIFIED
from bench.sections import command_of, table
from corpus import names, programs, served
from corpus.loops import LOOPS
from corpus.served import ASYNC, questions

DOCUMENT = Path(__file__).parent / "MEMORY.md"
TELLING = (
    "book_outline", "chat_turns", "code_review", "debate", "hotel_reviews", "map_reduce_summary", "rag_fusion",
    "react_loop", "gpt_researcher", "open_deep_research", "research_assistant", "storm",
)  # fmt: skip
LEARNT_FROM, PEAKS = 8, 4
"""Runs that a plan is learnt from, and those after them of which the peak is taken."""
SETTLED_AFTER = 300
"""Runs, before growth is looked at: counts of the last 256 are kept."""
RUNS = 1_000
FLAT_BYTES = 16
"""A run may leave so much behind for good, which is what lists round up to."""
SCALE = 0.002
"""Of what the components of servers and loops wait."""


@dataclass(frozen=True)
class Subject:
    """A program. `build(arm)`: with components of its own; `ask(app, number)`: a run with an input of its own."""

    build: Callable[[str], Awaitable[Any]]
    ask: Callable[[Any, int], Awaitable[Any]]
    settle: Callable[[], Awaitable[Any]]


async def _settled() -> None:
    await asyncio.to_thread(accel.settle)


def of_server(name: str) -> Subject:
    """A program of servers, or a loop, with awaited nodes."""
    program: Any = LOOPS.get(name) or served.program(name)
    asked = questions(LEARNT_FROM + PEAKS + SETTLED_AFTER + RUNS, "memory")

    async def build(arm: str) -> Any:
        return program.build(ASYNC, SCALE)

    return Subject(build, lambda app, number: program.aask(app, asked[number % len(asked)]), _settled)


def of_corpus(arms: Arms) -> Subject:
    """A small program or a public application on simulated engines."""
    inputs, virtual = arms.program.inputs, arms.engines.clock == "virtual"

    async def ask(app: Any, number: int) -> None:
        value = inputs[number % len(inputs)]
        if arms.program.awaited:
            await app.ainvoke(value)
        else:
            await asyncio.to_thread(app.invoke, value)

    async def settle() -> None:
        await arms.engines.forget_prefixes()
        if virtual:
            accel.settle()
        else:
            await _settled()

    return Subject(arms.graph, ask, settle)


async def measured(subject: Subject, runs: int) -> dict[str, Any]:
    """Bytes, by arm: what is kept after the first runs, the peaks of some more, and what `runs` more left behind.
    `saved`: of the plan's file."""
    tracemalloc.start()
    found: dict[str, Any] = {"kept": {}, "peaks": {}, "left": {}}
    for arm in (UNMODIFIED, ACCELERATED):
        await _several(subject, _made(arm, await subject.build(f"{arm}, first")), range(LEARNT_FROM))
    for arm in (UNMODIFIED, ACCELERATED):
        plain = await subject.build(arm)
        before = _held()
        app = _made(arm, plain)
        await _several(subject, app, range(LEARNT_FROM))
        found["kept"][arm] = _held() - before
        found["peaks"][arm] = [await _peak(subject, app, LEARNT_FROM + number) for number in range(PEAKS)]
        if arm == ACCELERATED:
            found["saved"], found["calls"] = _saved(app), app.plan.history[-1].demanded
        if runs:
            start = LEARNT_FROM + PEAKS
            await _several(subject, app, range(start, start + SETTLED_AFTER))
            before = _held()
            await _several(subject, app, range(start + SETTLED_AFTER, start + SETTLED_AFTER + runs))
            found["left"][arm] = (_held() - before) / runs
    tracemalloc.stop()
    return found


def _made(arm: str, plain: Any) -> Any:
    return accel.accelerate(plain) if arm == ACCELERATED else plain


async def _several(subject: Subject, app: Any, numbers: Sequence[int]) -> None:
    for number in numbers:
        await _once(subject, app, number)
        await subject.settle()


async def _once(subject: Subject, app: Any, number: int) -> None:
    if hasattr(app, "plan"):
        app.plan.pace.news()  # one at rest would not be followed
    await subject.ask(app, number)


async def _peak(subject: Subject, app: Any, number: int) -> int:
    """How much more there was at a time in a run than before it."""
    before = _held()
    tracemalloc.reset_peak()
    await _once(subject, app, number)
    peak = tracemalloc.get_traced_memory()[1]
    await subject.settle()
    return peak - before


def _held() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _saved(app: Any) -> int:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "plan.json"
        app.save_plan(str(file))
        return file.stat().st_size


def alone(name: str, runs: int) -> dict[str, Any]:
    """In this process, for one program."""
    if name in names():
        (program,) = programs([name])
        engines = engines_for(program)
        subject = of_corpus(Arms(program, engines))
        try:
            return {"program": name, **engines.run(lambda: measured(subject, 0))}
        finally:
            accel_local.shutdown()
    return {"program": name, **asyncio.run(measured(of_server(name), runs))}


# --- the table


@dataclass(frozen=True)
class Figures:
    """What acceleration adds, in bytes. `left`: of a run, for good; None where there were not so many runs."""

    kept: float
    peak: float
    highest: float
    left: float | None


def figures(record: dict[str, Any]) -> Figures:
    def more(what: str) -> float:
        return float(record[what][ACCELERATED] - record[what][UNMODIFIED])

    peaks = [after - before for before, after in zip(*(record["peaks"][arm] for arm in ARMS), strict=True)]
    return Figures(more("kept"), median(peaks), max(peaks), more("left") if record["left"] else None)


ARMS = (UNMODIFIED, ACCELERATED)
HEAD = ["program", "calls", "plan", "saved", "unmodified run", "accelerated run adds", "most", "left by a run"]


def _cells(record: dict[str, Any]) -> list[str]:
    found = figures(record)
    return [
        record["program"],
        str(record["calls"]),
        _kb(found.kept),
        _kb(record["saved"]),
        _kb(median(record["peaks"][UNMODIFIED])),
        _kb(found.peak),
        _kb(found.highest),
        "-" if found.left is None else f"{found.left:.0f} bytes{'' if found.left <= FLAT_BYTES else ', GROWS'}",
    ]


def _kb(size: float) -> str:
    return f"{size / 1024:,.0f} KB"


def document(found: Sequence[dict[str, Any]], machine: str, runs: int, command: str) -> str:
    every = [figures(record) for record in found]
    left = [one.left for one in every if one.left is not None]
    parts = [
        "# What plans and runs keep in memory",
        f"What Python has allocated (`tracemalloc`), with acceleration over what it is without; {machine}. *calls*: of "
        f"the last run. *plan*: what is kept for an accelerated object after {LEARNT_FROM} runs, with the runs that it "
        "is learnt from. *saved*: the size of its file. *unmodified run*: the most that there is at a time in a run, "
        "over what was there before; *accelerated run adds*, *most*: how much more that is when it is accelerated, at "
        f"the median of {PEAKS} runs and at most. *left by a run*: what a run leaves behind for good, by {runs:,} runs "
        f"after the first {SETTLED_AFTER}; at most {FLAT_BYTES} bytes is flat. What lessons keep for the whole "
        "process is bounded by its entries, and may still be filling then. Every run is followed, and has another "
        "input.",
        f"```\n{command}\n```",
        f"Of {len(found)} programs, a plan takes {_kb(median(one.kept for one in every))} at the median and "
        f"{_kb(max(one.kept for one in every))} at most, a run {_kb(median(one.peak for one in every))} at the median "
        f"and {_kb(max(one.highest for one in every))} at most; "
        f"{sum(one <= FLAT_BYTES for one in left)} of {len(left)} are flat.",
        table(HEAD, map(_cells, found)),
    ]
    return "\n\n".join(parts)


def main(arguments: Sequence[str]) -> int:
    usual = [*TELLING, *served.MODULES]
    parser = argparse.ArgumentParser(prog="python -m bench memory", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", default=",".join(usual), help="of these, or of the others of the corpus")
    parser.add_argument(
        "--runs", type=int, default=RUNS, help="of servers' programs and loops, to see whether they grow"
    )
    parser.add_argument("--out", type=Path, default=Path("bench-out/memory"), help="folder for the raw records")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    options = parser.parse_args(arguments)
    wanted, known = options.programs.split(","), [*names(), *LOOPS, *served.MODULES]
    if unknown := [name for name in wanted if name not in known]:
        parser.error(f"{unknown[0]!r} is not known; there are {', '.join(known)}")
    console = Console(width=None if sys.stdout.isatty() else 140)
    options.out.mkdir(parents=True, exist_ok=True)
    found = []
    with (options.out / "memory.jsonl").open("w", encoding="utf-8") as file:
        for name in wanted:
            with console.status(name), ProcessPoolExecutor(1, get_context("spawn")) as fresh:
                found.append(fresh.submit(alone, name, options.runs).result())
            file.write(json.dumps(found[-1]) + "\n")
            file.flush()
    command = command_of("memory", arguments)
    shown = document(found, machine_name(), options.runs, command)
    console.print(shown, markup=False, highlight=False, soft_wrap=True)
    if options.write:
        DOCUMENT.write_text(shown + "\n", encoding="utf-8")
    return 0
