"""`python -m bench overhead`: the processor time that Accel adds to a call of an ordinary program.

Real graphs, chat models, embeddings, retrievers and a query engine, whose leaves answer by a function of their input.
Blocks of the same runs go to the unmodified and the accelerated program in turns; what a block took more, by its calls,
is what Accel adds to one. Each row is a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

import accel
from accel.run.gains.pace import load
from bench.machine import machine_name
from bench.pictures import ACCELERATED, UNMODIFIED
from bench.sections import command_of, table
from bench.verdicts import Several
from corpus import served
from corpus.components import sequence
from corpus.loops import ITEMS, LOOPS
from corpus.served import ASYNC, STYLES, questions

DOCUMENT = Path(__file__).parent / "OVERHEAD.md"
OUTSIDE, BESIDE, RECORDED, WATCHED, EARLY = "no run", "another run", "recorded", "watched", "early"
MODES = {
    OUTSIDE: "the unmodified program, in a process where something was accelerated",
    BESIDE: "the same, while another accelerated run is open",
    RECORDED: "an accelerated run that is only recorded (`speculate=\"off\"`)",
    WATCHED: "an accelerated run whose components nobody vouches for",
    EARLY: "an accelerated run with early calls, which it follows",
}  # fmt: skip
GOALS_MS = {OUTSIDE: 0.001, RECORDED: 0.15, WATCHED: 0.15, EARLY: 0.4}
ROUNDS = 7
RUNS = 12
"""Of a block."""
OFTENER = 3
"""Times as many blocks outside of runs, each by its median run: there is little to see among what a machine does."""
LEARNT_FROM = 12
"""Runs before anything is measured."""
SCALE = 0.02
"""Of what components wait where early calls are to have time to be early: 0.4 to 6 ms."""


@dataclass(frozen=True)
class Row:
    """What one process measures."""

    program: str
    style: str
    mode: str
    rounds: int = ROUNDS
    runs: int = RUNS

    @property
    def name(self) -> str:
        return f"{self.program}, {self.style}, {self.mode}"


def rows(programs: Sequence[str], styles: Sequence[str], modes: Sequence[str]) -> list[tuple[str, str, str]]:
    """Loops in every mode; other programs in those for which their components need not be others."""
    return [
        (program, style, mode)
        for mode in MODES
        for program in programs
        for style in styles
        if mode in modes and (program in LOOPS or mode != WATCHED)
    ]


def known() -> list[str]:
    """The names of all programs."""
    return [*LOOPS, *served.MODULES]


def measured(row: Row) -> dict[str, Any]:
    """Seconds of the processor for each block of both arms, and what the accelerated runs counted."""
    program: Any = LOOPS.get(row.program) or served.program(row.program)
    options = {"vouched": False} if row.mode == WATCHED else {}
    build = partial(program.build, row.style, SCALE if row.mode == EARLY else 0.0, **options)
    with asyncio.Runner() as runner:

        def ask(app: Any, question: str, **options: int) -> None:
            if row.style == ASYNC:
                runner.run(program.aask(app, question, **options))
            else:
                program.ask(app, question, **options)

        return (_outside if row.mode in (OUTSIDE, BESIDE) else _inside)(row, build, ask)


Ask = Callable[..., None]
"""A run of a program, with this question; of a loop, with so many `items`."""
ONE_ITEM = "one item"
"""Runs of loops with a single item, which show what belongs to a run itself: their seconds have this in their names."""


def _inside(row: Row, build: Callable[[], Any], ask: Ask) -> dict[str, Any]:
    """`lessons_s`: what was learnt from the accelerated runs of a block, as if somebody waited for it."""
    plain = build()
    calls = _calls(plain, ask)
    fast = accel.accelerate(plain, speculate="off" if row.mode == RECORDED else "certain")
    for question in questions(LEARNT_FROM, "learnt from"):
        fast.plan.pace.news()
        ask(fast, question)
        accel.settle()
    demanded = retired = 0
    blocks = []
    for number in range(row.rounds):
        block: defaultdict[str, float] = defaultdict(float)
        gc.collect()
        for at, question in enumerate(questions(row.runs, f"round {number}")):
            arms = ((UNMODIFIED, plain), (ACCELERATED, fast))
            for arm, app in arms[:: 1 if at % 2 else -1]:
                fast.plan.pace.news()  # one at rest would not be followed, and cost nothing
                block[arm] += _worked_s(partial(ask, app, question))
                block["lessons_s"] += _worked_s(accel.settle)
            counts = fast.plan.history[-1]
            demanded, retired = demanded + counts.demanded, retired + counts.retired
            for arm, app in arms[:: 1 if at % 2 else -1] if row.program in LOOPS else ():
                fast.plan.pace.news()
                block[f"{arm}, {ONE_ITEM}"] += _worked_s(partial(ask, app, question, items=1))
                accel.settle()
        blocks.append(block)
    return {"calls": calls, "early": retired / demanded, "blocks": blocks}


def _outside(row: Row, build: Callable[[], Any], ask: Ask) -> dict[str, Any]:
    plain = build()
    calls = _calls(plain, ask)
    blocks = []
    for number in range(OFTENER * row.rounds):
        block = {}
        for arm in (UNMODIFIED, ACCELERATED)[:: 1 if number % 2 else -1]:
            if arm == UNMODIFIED:
                accel.uninstall()
            else:
                accel.accelerate(plain)
            with _another_run() if arm == ACCELERATED and row.mode == BESIDE else _nothing():
                ask(plain, "what a class needs after it has changed")
                gc.collect()
                asked = questions(row.runs, f"round {number}")
                block[arm] = row.runs * median(_worked_s(partial(ask, plain, question)) for question in asked)
        blocks.append(block)
    return {"calls": calls, "early": 0.0, "blocks": blocks}


def _calls(plain: Any, ask: Ask) -> int:
    """How many calls of leaf methods a run makes, those inside others with them."""
    recorded = accel.accelerate(plain, speculate="off")
    ask(recorded, "How many calls?")
    accel.settle()
    return int(recorded.plan.total.demanded)


def _worked_s(work: Callable[[], Any]) -> float:
    """Of the processor, in all threads."""
    began = time.process_time()
    work()
    return time.process_time() - began


@contextmanager
def _nothing() -> Generator[None, None, None]:
    yield


@contextmanager
def _another_run() -> Generator[None, None, None]:
    """An accelerated run of another program is open meanwhile, and does nothing."""
    entered, over = threading.Event(), threading.Event()

    def wait(state: dict[str, Any]) -> dict[str, Any]:
        entered.set()
        over.wait()
        return {}

    graph = accel.accelerate(sequence(dict, wait))
    thread = threading.Thread(target=graph.invoke, args=({},), name="another run")
    thread.start()
    entered.wait()
    if not load.runs:
        raise RuntimeError("the other run is not followed")
    try:
        yield
    finally:
        over.set()
        thread.join()


def alone(row: Row) -> dict[str, Any]:
    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
        found = fresh.submit(measured, row).result()
    return {"program": row.program, "style": row.style, "mode": row.mode, "runs": row.runs, **found}


# --- the table


def per_call_ms(record: dict[str, Any], what: Callable[[dict[str, float]], float]) -> Several:
    """A figure of each block, by its calls."""
    calls = record["calls"] * record["runs"]
    return Several(tuple(what(block) * 1e3 / calls for block in record["blocks"]))


def added_ms(record: dict[str, Any]) -> Several:
    return per_call_ms(record, lambda block: block[ACCELERATED] - block[UNMODIFIED])


def of_call_and_run_ms(record: dict[str, Any]) -> tuple[float, float] | None:
    """What a further call of a run adds, and what the run itself does; None where runs are of one length."""
    if f"{UNMODIFIED}, {ONE_ITEM}" not in record["blocks"][0]:
        return None
    few, many = record["calls"] / ITEMS, record["calls"]
    long_ms, short_ms = (
        median(block[ACCELERATED + what] - block[UNMODIFIED + what] for block in record["blocks"])
        * 1e3
        / record["runs"]
        for what in ("", f", {ONE_ITEM}")
    )
    of_call = (long_ms - short_ms) / (many - few)
    return of_call, short_ms - of_call * few


def reached(record: dict[str, Any]) -> bool:
    """As it is printed."""
    goal = GOALS_MS.get(record["mode"])
    return goal is None or round(added_ms(record).middle, 3) <= goal


HEAD = ["program", "style", "calls", "early", "unmodified", "added", "goal", "a call", "a run", "lessons"]


def _cells(record: dict[str, Any]) -> list[str]:
    goal = GOALS_MS.get(record["mode"])
    split, inside = of_call_and_run_ms(record), "lessons_s" in record["blocks"][0]
    return [
        record["program"],
        record["style"],
        f"{record['calls']:.0f}",
        f"{record['early']:.0%}",
        per_call_ms(record, lambda block: block[UNMODIFIED]).text(".3f", " ms"),
        added_ms(record).text("+.3f", " ms"),
        "-" if goal is None else f"{goal} ms{'' if reached(record) else ', missed'}",
        *([f"{part:+.3f} ms" for part in split] if split is not None else ["-", "-"]),
        per_call_ms(record, lambda block: block["lessons_s"]).text(".3f", " ms") if inside else "-",
    ]


def document(found: Sequence[dict[str, Any]], machine: str, command: str) -> str:
    """A table for each mode, and how to read them."""
    parts = [
        "# What Accel adds to a call",
        f"Processor time, of all threads of a process; {machine}. The programs are those of `corpus/loops.py` (a node "
        "that makes one call after the other) and of `corpus/served`; their components answer by a function of what "
        "they are asked, at once, or in 0.4 to 6 ms where calls are to be early. *calls*: of leaf methods, in a run; "
        "some are inside others. *early*: of those that the accelerated program makes, the ones that an early call "
        "answered. *unmodified*: what a call takes without Accel, with its part of the framework's work. *added*: what "
        "it takes more, with its part of the run's begin and end. Medians of blocks of the same runs that take turns, "
        "with their range. *a call*, *a run*: of loops, what of that a further call adds, and what the run does. "
        "Early calls wait together, and wake their loop together, which saves some of what a loop takes without them. "
        "*lessons*: of the learner's thread after the runs, which has 1 % of the time where nobody waits for it; not "
        "part of *added*.",
        f"```\n{command}\n```",
    ]
    for mode, about in MODES.items():
        records = [record for record in found if record["mode"] == mode]
        if records:
            parts += [f"## {mode.capitalize()}", f"{about[0].upper()}{about[1:]}.", table(HEAD, map(_cells, records))]
            if mode in GOALS_MS:
                parts.append(f"{sum(map(reached, records))} of {len(records)} rows reach the goal.")
    return "\n\n".join(parts)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench overhead", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", default=",".join(known()), help="of these, with commas between")
    parser.add_argument("--styles", default=",".join(STYLES), help="of these, with commas between")
    parser.add_argument("--modes", default=",".join(MODES), help="of these, with commas between")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="blocks of each arm")
    parser.add_argument("--runs", type=int, default=RUNS, help="of a block")
    parser.add_argument("--out", type=Path, default=Path("bench-out/overhead"), help="folder for the raw records")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    options = parser.parse_args(arguments)
    wanted = [text.split(",") for text in (options.programs, options.styles, options.modes)]
    for names, given in zip((known(), STYLES, MODES), wanted, strict=True):
        if unknown := [name for name in given if name not in names]:
            parser.error(f"{unknown[0]!r} is not known; there are {', '.join(names)}")
    console = Console(width=None if sys.stdout.isatty() else 140)
    options.out.mkdir(parents=True, exist_ok=True)
    found = []
    with (options.out / "overhead.jsonl").open("w", encoding="utf-8") as file:
        for program, style, mode in rows(*wanted):
            row = Row(program, style, mode, options.rounds, options.runs)
            with console.status(row.name):
                found.append(alone(row))
            file.write(json.dumps(found[-1]) + "\n")
            file.flush()
    command = command_of("overhead", arguments)
    shown = document(found, machine_name(), command)
    console.print(shown, markup=False, highlight=False, soft_wrap=True)
    if options.write:
        DOCUMENT.write_text(shown + "\n", encoding="utf-8")
    return 0
