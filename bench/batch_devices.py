"""`python -m bench devices`: batches of programs that use two models, on devices that hold one at a time."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from functools import partial

from rich.console import Console

import accel
from accel_sim import Group
from bench.batch import AT_ONCE, INPUTS, KV_TOKENS, LEARNT_FROM, Cell, asked, at_once, built, in_turn, numbers
from bench.batch_report import AMPLE
from bench.engines import Engines, simulated
from bench.sections import table
from corpus.batches import PROGRAMS
from corpus.papers import data

TWO_MODELS = ("W3-two-critics", "W5-two-voters")
SWITCH_S = (5, 30)
HEAD = ["program", "devices", "a switch takes", "LangGraph's batch", "learnt, not placed", "learnt, placed", "outputs"]


async def seconds(cell: Cell, engines: Engines, data_sets: data.DataSets) -> list[tuple[float, int]]:
    """Of LangGraph's batch at its best, and of the learnt one; and how many answers are others."""
    values = PROGRAMS[cell.program].inputs(data_sets, cell.count + LEARNT_FROM, 0)
    values, others = values[: cell.count], values[cell.count :]
    unmodified = await built(cell, engines, data_sets, "unmodified")
    fast = accel.accelerate(await built(cell, engines, data_sets, "learnt"))
    await in_turn(fast)(others)
    ways = [("batch", most, at_once(unmodified, most)) for most in AT_ONCE] + [("learnt", 0, fast.abatch)]
    found, _ = await asked(cell, engines, values, ways, [])
    *batches, learnt = ((one["seconds"], one["different"]) for one in found)
    return [min(batches), learnt]


def measured(program: str, devices: int, switch_s: int, inputs: int, data_sets: data.DataSets) -> list[str]:
    cell = Cell(program, devices, AMPLE, inputs=inputs)
    by_places = []
    for places in (False, True):
        group = Group(count=devices, switch_s=switch_s, places=places)
        engines = simulated(kv_tokens=KV_TOKENS[AMPLE], models=2, devices=group)
        by_places.append(engines.run(partial(seconds, cell, engines, data_sets)))
    ((batch_s, _), (apart_s, one)), (_, (placed_s, two)) = by_places
    return [
        program, str(devices), f"{switch_s} s", f"{batch_s:.1f} s", f"{batch_s / apart_s:.2f}x",
        f"{batch_s / placed_s:.2f}x", "equal" if one == two == 0 else "DIFFER",
    ]  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench devices", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--devices", type=numbers, default=(1, 2), help="how many (default 1,2)")
    parser.add_argument("--switch", type=numbers, default=SWITCH_S, help="seconds to change a device's model")
    parser.add_argument("--inputs", type=int, default=INPUTS, help="at once")
    options = parser.parse_args(arguments)
    console = Console(width=160)
    try:
        data_sets = data.load()
    except ValueError as error:
        console.print(f"[red]{error}[/red]")
        return 2
    rows = [
        measured(*cell, options.inputs, data_sets)
        for cell in itertools.product(TWO_MODELS, options.devices, options.switch)
    ]
    console.print(table(HEAD, rows), markup=False, highlight=False, soft_wrap=True)
    return 1 if any(row[-1] != "equal" for row in rows) else 0
