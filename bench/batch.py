"""`python -m bench batch`: programs that are given many inputs at once, by LangGraph and accelerated.

Each program (`corpus.batches`) is asked the same inputs in all arms, one arm after the other in one process, on
simulated engines in virtual time; a repetition draws other inputs. The accelerated arms call nothing but `ainvoke` and
`abatch`. Prefix caches are emptied between arms, and all outputs are compared.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

import accel
from accel.process import clock
from bench import batch_vllm
from bench.batch_report import (
    ABLATIONS,
    ACCEL_BATCH,
    ACCEL_IN_TURN,
    AMPLE,
    IN_TURN,
    LANGGRAPH_BATCH,
    LEARNT_BATCH,
    TIGHT,
    document,
)
from bench.batch_work import Work
from bench.engines import Engines, simulated
from bench.machine import machine_name
from bench.measure import plain
from bench.sections import command_of
from corpus.batches import PROGRAMS
from corpus.papers import data

DOCUMENT = Path(__file__).parent / "BATCH.md"
READ = "## What they say"
"""Of the document, written by hand and kept."""
ENGINES = ("simulated", "vllm")
AT_ONCE = (8, 32, 128)
REPLICAS = (1, 2, 4)
KV_TOKENS = {TIGHT: 16_384, AMPLE: 262_144}
INPUTS, MOST_CALLS = 64, 720
REPETITIONS = 3
LEARNT_FROM = 3
"""Other inputs that the last arm's program has answered before."""


@dataclass(frozen=True)
class Cell:
    """What one process measures."""

    program: str
    replicas: int
    kv: str
    repetition: int = 0
    inputs: int | None = None
    profile: str = "7b"
    at_once: tuple[int, ...] = AT_ONCE

    @property
    def count(self) -> int:
        """Inputs: as many as are asked for, or so many as are not too many calls."""
        return self.inputs or max(1, min(INPUTS, MOST_CALLS // PROGRAMS[self.program].CALLS))


Way = Callable[[list[Any]], Awaitable[list[Any]]]
Measured = tuple[list[dict[str, Any]], list[Any]]
"""Records, and the answers that all arms have to give."""


def in_turn(graph: Any, *watching: Work) -> Way:
    async def ask(values: list[Any]) -> list[Any]:
        answers = []
        for value in values:
            answers.append(await graph.ainvoke(value, {"callbacks": list(watching)}))
            accel.settle()  # learning is off the hot path: it has the time between requests
        return answers

    return ask


def at_once(graph: Any, most: int) -> Way:
    return lambda values: graph.abatch(values, {"max_concurrency": most})


async def arms(cell: Cell, engines: Engines, data_sets: data.DataSets) -> Measured:
    """A record for each arm; every accelerated one begins knowing nothing, but for the last."""
    program = PROGRAMS[cell.program]
    values = program.inputs(data_sets, cell.count + LEARNT_FROM, cell.repetition)
    values, others = values[: cell.count], values[cell.count :]

    async def made(arm: str) -> Any:
        return await built(cell, engines, data_sets, arm)

    async def accelerated(arm: str) -> Any:
        return accel.accelerate(await made(arm))

    unmodified = await made("unmodified")
    learnt = await accelerated(LEARNT_BATCH)
    await in_turn(learnt)(others)
    work = Work()
    ways: list[tuple[str, int, Way]] = [(IN_TURN, 1, in_turn(unmodified, work))]
    ways += [(LANGGRAPH_BATCH, most, at_once(unmodified, most)) for most in cell.at_once]
    ways += [
        (ACCEL_IN_TURN, 1, in_turn(await accelerated(ACCEL_IN_TURN))),
        (ACCEL_BATCH, 0, (await accelerated(ACCEL_BATCH)).abatch),
        (LEARNT_BATCH, 0, learnt.abatch),
    ]
    found, expected = await asked(cell, engines, values, ways, [])
    least_s = work.least_s(engines.profiles["llm"], cell.replicas, KV_TOKENS[cell.kv])
    about = {"least_s": least_s, "calls": work.calls, "equal_calls": work.equal_calls}
    return [{**one, **about} for one in found], expected


async def ablated(
    cell: Cell, engines: Engines, data_sets: data.DataSets, arm: str, expected: list[Any]
) -> list[dict[str, Any]]:
    """The learnt batch on engines that lack one policy, or have another."""
    values = PROGRAMS[cell.program].inputs(data_sets, cell.count + LEARNT_FROM, cell.repetition)
    fast = accel.accelerate(await built(cell, engines, data_sets, arm))
    await in_turn(fast)(values[cell.count :])
    return (await asked(cell, engines, values[: cell.count], [(arm, 0, fast.abatch)], expected))[0]


async def built(cell: Cell, engines: Engines, data_sets: data.DataSets, arm: str) -> Any:
    program, parts = PROGRAMS[cell.program], engines.parts(arm)
    await program.prepare(parts, data_sets)
    return program.build(parts)


async def asked(
    cell: Cell, engines: Engines, values: list[Any], ways: Sequence[tuple[str, int, Way]], expected: list[Any]
) -> Measured:
    found: list[dict[str, Any]] = []
    for arm, most, ask in ways:
        await engines.forget_prefixes()
        gc.collect()
        before, began_s, worked_s = await engines.served(), clock.now_s(), time.process_time()
        answers = [plain(answer) for answer in await ask(values)]
        served = asdict(await engines.served())
        expected = expected or answers
        found.append({
            **asdict(cell), "inputs": cell.count, "arm": arm, "most": most,
            "seconds": clock.now_s() - began_s, "worked_s": time.process_time() - worked_s,
            "served": {name: served[name] - value for name, value in asdict(before).items()},
            "different": sum(one != other for one, other in zip(answers, expected, strict=True)),
        })  # fmt: skip
        accel.settle()
    return found, expected


def measured(cell: Cell, data_sets: data.DataSets | None = None) -> list[dict[str, Any]]:
    held = data_sets or data.load()
    make = partial(simulated, cell.profile, kv_tokens=KV_TOKENS[cell.kv], replicas=cell.replicas, models=2)
    engines = make()
    found, expected = engines.run(lambda: arms(cell, engines, held))
    for arm, policy in ABLATIONS.items():
        if cell.kv != TIGHT or (cell.replicas == 1 and "one_line" in policy):
            continue
        others = make(**policy)
        about = {name: found[0][name] for name in ("least_s", "calls", "equal_calls")}
        found += [{**one, **about} for one in others.run(lambda: ablated(cell, others, held, arm, expected))]  # noqa: B023
    return found


def numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench batch", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--engines", choices=ENGINES, default=ENGINES[0], help="vllm: in real time, with its defaults")
    parser.add_argument("--programs", help=f"of {', '.join(PROGRAMS)}, with commas between")
    parser.add_argument("--inputs", type=int, help=f"at once (default {INPUTS}, or {MOST_CALLS} calls)")
    parser.add_argument("--replicas", type=numbers, default=REPLICAS, help="of each model (default 1,2,4)")
    parser.add_argument("--kv", default=",".join(KV_TOKENS), help="of these, with commas between: KV caches")
    parser.add_argument("--at-once", type=numbers, default=AT_ONCE, help="LangGraph's max_concurrency: the best counts")
    parser.add_argument("--repetitions", type=int, help="with other inputs each; on vLLM rounds (default 3, 2)")
    parser.add_argument("--profile", default=Cell.profile, help="7b, 13b, 30b, or a file of profiles")
    parser.add_argument("--jobs", type=int, default=1, help="processes; virtual time is the same in any number")
    parser.add_argument("--out", type=Path, default=Path("bench-out/batch"), help="folder for the raw records")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    options = parser.parse_args(arguments)
    is_simulated = options.engines == ENGINES[0]
    options.inputs = options.inputs or (None if is_simulated else batch_vllm.INPUTS)
    options.repetitions = options.repetitions or (REPETITIONS if is_simulated else batch_vllm.ROUNDS)
    programs = options.programs or ",".join(PROGRAMS if is_simulated else batch_vllm.PROGRAMS_HERE)
    names, kv = programs.split(","), options.kv.split(",")
    for known, given in ((PROGRAMS, names), (KV_TOKENS, kv)):
        if unknown := [name for name in given if name not in known]:
            parser.error(f"{unknown[0]!r} is not known; there are {', '.join(known)}")
    console = Console(width=None if sys.stdout.isatty() else 160)
    try:
        data.load()
    except ValueError as error:
        console.print(f"[red]{error}[/red]")
        return 2
    command = command_of("batch", arguments)
    if not is_simulated:
        status, shown = batch_vllm.run(options, names, command, console)
        console.print(shown, markup=False, highlight=False, soft_wrap=True)
        if options.write:
            before = DOCUMENT.read_text(encoding="utf-8")
            DOCUMENT.write_text(batch_vllm.placed(before, shown, READ), encoding="utf-8")
        return status
    cells = [
        Cell(name, replicas, room, repetition, options.inputs, options.profile, options.at_once)
        for name, replicas, room, repetition in itertools.product(
            names, options.replicas, kv, range(options.repetitions)
        )
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    with (
        (options.out / "batch.jsonl").open("w", encoding="utf-8") as file,
        ProcessPoolExecutor(options.jobs, get_context("spawn"), max_tasks_per_child=1) as pool,
    ):
        for records in track(pool.map(measured, cells), "measuring", len(cells), console=console, transient=True):
            file.writelines(json.dumps(one) + "\n" for one in records)
            file.flush()
            found += records
    shown = document(found, machine_name(), command, KV_TOKENS)
    console.print(shown, markup=False, highlight=False, soft_wrap=True)
    if options.write:
        before = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.is_file() else ""
        DOCUMENT.write_text(f"{shown}\n\n{batch_vllm.kept(before, READ)}".rstrip() + "\n", encoding="utf-8")
    return 1 if any(one["different"] for one in found) else 0
