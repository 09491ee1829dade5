"""What it costs to choose the next call, by how many wait: processor time per call that is taken.

`python -m bench queue`. Runs of mixed programs wait, one call of each or several; whenever one is taken, its run asks
for the next. Nothing is computed, and no time passes but that of the scheduler. An exponent of 1 is a cost in
proportion to the number of calls.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path

from rich.console import Console

from accel.engine import Priority, Session
from accel.engine.admission import Admission, Need
from accel.engine.batching import LOOKED_AT, Waiting
from accel.engine.replicas import Prefixes, choose
from accel.process import clock
from bench.machine import machine_name
from bench.pictures import exponent
from bench.sections import table

DOCUMENT = Path(__file__).parent / "QUEUE.md"
SIZES = (100, 1_000, 10_000)
DECISIONS = 4_000
SLOW_S = 4.0
"""Processor time after which no more decisions are measured."""
PROGRAMS: tuple[Sequence[tuple[int, int]], ...] = (
    ((0, 2), (0, 1), (0, 0)),
    ((0, 3), (1, 2), (1, 1), (0, 0)),
    ((0, 4), (0, 1), (0, 1), (0, 1), (0, 0)),
    ((0, 1), (1, 0), (0, 7), (1, 6)),
)
"""Chains, some of whose calls are early, and a fan-out: value and depth of each call, over and over."""
REPLICAS, BLOCK, BLOCKS, DOCUMENTS = 8, 16, 16, 32
AT_ONCE, ANSWER_BLOCKS = 32, 4
"""Calls that an engine with a bounded KV cache serves at a time, and what an answer takes of it."""
Prompt = tuple[int, ...]


def prompts(dice: random.Random) -> Iterator[Prompt]:
    """Half of each is a document's, of which there are a few; as blocks."""
    for number in range(10**9):
        document = dice.randrange(DOCUMENTS)
        yield tuple(hash((document if n < BLOCKS // 2 else -number, n)) for n in range(BLOCKS))


def decisions(size: int, batch: bool, reuse: bool, admits: bool = False, within_s: float = math.inf) -> float:
    """Processor time per call taken, while so many wait. `admits`: the KV cache has room for few of the runs;
    `within_s`: their deadline, or a little later."""
    dice, cache = random.Random(size), Prefixes(BLOCK)
    asked = prompts(dice)
    waiting: Waiting[tuple[int, Prompt]] = Waiting()
    if reuse:
        waiting.caches(cache, lambda entry: entry[1])
    if admits:
        waiting.admit(Admission(AT_ONCE * BLOCKS, lambda entry: Need(entry[1], ANSWER_BLOCKS)))
    left = [cycle(PROGRAMS[run % len(PROGRAMS)]) for run in range(size)]
    due_s = clock.now_s() + within_s
    sessions = [Session(f"run {run}", due_s + dice.random()) for run in range(size)]
    running: deque[tuple[int, Prompt]] = deque()

    def add(run: int) -> None:
        value, depth = next(left[run])
        name, arrived_s = ("batch", 0.0) if batch else (f"run {run}", float(run))
        waiting.add([(run, next(asked))], Priority(value, name, arrived_s, depth, batch, sessions[run]))

    for run in range(size):
        add(run)

    def one() -> None:
        room = [True]
        for run, prompt in waiting.take(lambda _: bool(room) and room.pop()):
            cache.note(prompt)
            running.append((run, prompt))
            add(run)
        if len(running) > AT_ONCE or room:
            waiting.ended(running.popleft())

    return _each(one)


def choices(size: int) -> float:
    """Processor time per call that goes to one of several engines, while they have so many."""
    dice, asked = random.Random(size), prompts(random.Random(size))
    engines = [Prefixes(BLOCK) for _ in range(REPLICAS)]
    loads = [size // REPLICAS] * REPLICAS

    def one() -> None:
        prompt = next(asked)
        chosen = choose(loads, [engine.reuse(prompt).found * BLOCK for engine in engines])
        engines[chosen].note(prompt)
        loads[chosen] += 1
        loads[dice.choice([n for n in range(REPLICAS) if loads[n]])] -= 1

    return _each(one)


def _each(work: Callable[[], None]) -> float:
    work()
    began = time.process_time()
    done = 0
    while done < DECISIONS and time.process_time() - began <= SLOW_S:
        work()
        done += 1
    return (time.process_time() - began) / done


MEASURED: dict[str, Callable[[int], float]] = {
    "runs": lambda size: decisions(size, batch=False, reuse=True),
    "a batch, on an engine that doesn't tell of its cache": lambda size: decisions(size, batch=True, reuse=False),
    "a batch, by what is in the cache": lambda size: decisions(size, batch=True, reuse=True),
    "a batch, on an engine that admits runs": lambda size: decisions(size, batch=True, reuse=True, admits=True),
    "runs that are admitted to the KV cache": lambda size: decisions(size, batch=False, reuse=True, admits=True),
    "runs with a deadline": lambda size: decisions(size, batch=False, reuse=True, within_s=600.0),
    f"one of {REPLICAS} engines": choices,
}


def shown(found: dict[str, dict[int, float]], machine: str) -> str:
    rows = [
        [
            name,
            *(f"{taken * 1e6:,.0f} µs" for taken in each.values()),
            f"{exponent({size: size * taken for size, taken in each.items()}):.2f}",
        ]
        for name, each in found.items()
    ]
    head = ["waiting", *(f"{size:,}" for size in SIZES), "exponent"]
    return (
        "# Calls that wait\n\nProcessor time to choose the next call, by how many wait: of runs of mixed programs, of "
        "runs of one batch, and the engine for a call while so many are served. Prompts of "
        f"{BLOCKS} blocks, half of which one of {DOCUMENTS} documents fills. Where runs are admitted, the KV cache has "
        f"room for the prompts of {AT_ONCE}, and which of the others comes next is found by looking at the first "
        f"{LOOKED_AT}. The "
        f"exponent is that of choosing all of them: 1 is a cost in proportion to their number. {machine}.\n\n"
        f"```\npython -m bench queue\n```\n\n{table(head, rows)}\n"
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench queue", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench-out/queue"), help="folder for the raw times")
    parser.add_argument("--write", action="store_true", help="write bench/QUEUE.md")
    options = parser.parse_args(arguments)
    found = {name: {size: measure(size) for size in SIZES} for name, measure in MEASURED.items()}
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "queue.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    text = shown(found, machine_name())
    Console(width=160, markup=False).print(text)
    if options.write:
        DOCUMENT.write_text(text, encoding="utf-8")
    return 0
