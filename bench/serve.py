"""`python -m bench serve`: what acceleration costs and gains in a process that serves many requests at once.

Five programs on simulated engines that wait, by 1 to 256 requests at once, awaited and in threads. Blocks of the same
requests go to the unmodified and the accelerated program in turn; every figure compares the two blocks of a pair. Each
row is a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console

import accel
from accel.run.settings import Counts
from bench.load import Block, aload, load, look_s
from bench.machine import machine_name
from bench.pictures import ACCELERATED, UNMODIFIED
from bench.sections import command_of
from bench.verdicts import FIRST, STEADY, document
from corpus.served import ASYNC, MODULES, STYLES, Program, program, questions

DOCUMENT = Path(__file__).parent / "SERVE.md"
QUICKER = Path(__file__).parent / "SERVE_QUICKER.md"
"""Where engines wait less: the processor has less time for each call."""
AT_ONCE = (1, 16, 64, 256)
FIRST_REQUESTS = 100
WARM = 10
"""Requests of the unmodified program before anything is measured."""
ROUNDS = 2
"""Requests of a steady block, in multiples of those at once."""


@dataclass(frozen=True)
class Row:
    """What one process measures. `requests`: of a steady block, at least."""

    program: str
    style: str
    at_once: int
    requests: int = 20
    blocks: int = 2
    first: int = FIRST_REQUESTS
    scale: float = 1.0
    seed: str = "0"
    limit_s: float = 300.0

    @property
    def name(self) -> str:
        return f"{self.program}, {self.style}, {self.at_once} at once"


Load = Callable[[Any, Sequence[str]], Awaitable[Block]]


async def pairs(row: Row, build: Callable[[], Any], given: Load) -> list[dict[str, Any]]:
    """A record for each block: the first requests of a new accelerated program, then the steady ones."""
    plain = build()
    await given(plain, questions(max(WARM, min(row.at_once, row.first)), f"{row.seed} warm"))
    fast = accel.accelerate(plain)
    size = max(row.requests, ROUNDS * row.at_once)
    found = []
    for number in range(row.blocks + 1):
        phase = STEADY if number else FIRST
        asked = questions(size if number else row.first, f"{row.seed} {number}")
        arms = [(UNMODIFIED, plain), (ACCELERATED, fast)]
        blocks: dict[str, Block] = {}
        records: dict[str, dict[str, Any]] = {}
        for arm, app in arms[:: -1 if number % 2 else 1]:
            before = fast.plan.total
            blocks[arm] = await given(app, asked)
            records[arm] = {"phase": phase, "pair": number, "arm": arm, **blocks[arm].figures()}
            records[arm]["counts"] = _since(before, fast.plan.total)
        expected, answers = blocks[UNMODIFIED].answers, blocks[ACCELERATED].answers
        differing = [(one, other) for one, other in zip(expected, answers, strict=True) if one != other]
        records[ACCELERATED]["different"] = len(differing)
        records[ACCELERATED]["differing"] = [repr(pair) for pair in differing[:3]]
        found += [records[arm] for arm, _ in arms]
    return found


def _since(before: Counts, after: Counts) -> dict[str, float]:
    earlier, later = asdict(before), asdict(after)
    return {name: later[name] - earlier[name] for name in ("demanded", "issued", "retired", "wasted", "delayed_s")}


def measured(row: Row) -> list[dict[str, Any]]:
    """The records of one row."""
    served: Program = program(row.program)
    of_look = look_s()

    def build() -> Any:
        return served.build(row.style, row.scale)

    if row.style == ASYNC:
        return asyncio.run(pairs(row, build, lambda app, asked: aload(served, app, asked, row.at_once, of_look)))
    with ThreadPoolExecutor(row.at_once) as pool:

        async def in_threads(app: Any, asked: Sequence[str]) -> Block:
            return load(served, app, asked, row.at_once, of_look, pool)

        return asyncio.run(pairs(row, build, in_threads))


def alone(row: Row) -> list[dict[str, Any]]:
    """The same in a process that says where it stands, and ends, if it takes too long."""
    faulthandler.dump_traceback_later(row.limit_s, exit=True)
    try:
        return measured(row)
    finally:
        faulthandler.cancel_dump_traceback_later()


def records(row: Row) -> list[dict[str, Any]]:
    which = {"program": row.program, "style": row.style, "at_once": row.at_once}
    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
        try:
            return [{**which, **one} for one in fresh.submit(alone, row).result()]
        except BrokenProcessPool:
            return [{**which, "error": f"did not end within {row.limit_s:.0f} s, or broke"}]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench serve", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", default=",".join(MODULES), help="of these, with commas between")
    parser.add_argument("--styles", default=",".join(STYLES), help="of these, with commas between")
    parser.add_argument(
        "--at-once", type=_numbers, default=AT_ONCE, help="requests at once, with commas between (default 1,16,64,256)"
    )
    parser.add_argument(
        "--requests", type=int, default=Row.requests, help=f"of a block; {ROUNDS} times those at once if that is more"
    )
    parser.add_argument("--blocks", type=int, default=Row.blocks, help="pairs of blocks after the first requests")
    parser.add_argument("--first", type=int, default=FIRST_REQUESTS, help="requests of a new accelerated program")
    parser.add_argument(
        "--scale", type=float, default=Row.scale, help="of what the engines wait: 1 is 0.02 to 0.3 s a call"
    )
    parser.add_argument("--seed", default=Row.seed, help="of the questions")
    parser.add_argument("--limit-s", type=float, default=Row.limit_s, help="a row that takes longer is an error")
    parser.add_argument("--out", type=Path, default=Path("bench-out/serve"), help="folder for the raw records")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}, or {QUICKER.name}")
    options = parser.parse_args(arguments)
    for known, given in ((MODULES, options.programs), (STYLES, options.styles)):
        if unknown := [name for name in given.split(",") if name not in known]:
            parser.error(f"{unknown[0]!r} is not known; there are {', '.join(known)}")
    rows = [
        Row(name, style, at_once, options.requests, options.blocks, options.first, options.scale, options.seed,
            options.limit_s)
        for name in options.programs.split(",")
        for style in options.styles.split(",")
        for at_once in options.at_once
    ]  # fmt: skip
    console = Console(width=None if sys.stdout.isatty() else 140)
    options.out.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    with (options.out / "serve.jsonl").open("w", encoding="utf-8") as file:
        for row in rows:
            with console.status(row.name):
                made = records(row)
            file.writelines(json.dumps(one) + "\n" for one in made)
            file.flush()
            found += made
    command = command_of("serve", arguments)
    shown = document(found, machine_name(), options.scale, command)
    console.print(shown, markup=False, highlight=False, soft_wrap=True)
    if options.write:
        (DOCUMENT if options.scale >= Row.scale else QUICKER).write_text(shown + "\n", encoding="utf-8")
    return 1 if any(one.get("different") or "error" in one for one in found) else 0
