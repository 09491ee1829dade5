"""Many requests at once in one process, on one event loop or on threads, and what they cost it."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from bench.pictures import quantile
from corpus.served import Program

ARRIVAL_S = 0.001
"""Between the first requests, one for each place: no server gets all of them in one moment."""
STEP_S = 0.005
"""Between two looks at how late the event loop is."""
CALIBRATION_S = 0.3


@dataclass
class Block:
    """Some requests. `worked_s`: of all threads."""

    answers: list[Any]
    took_s: list[float]
    wall_s: float = 0.0
    worked_s: float = 0.0
    lag_s: float = 0.0
    """The most that a task woke up too late."""

    def figures(self) -> dict[str, Any]:
        return {
            "requests": len(self.answers),
            "wall_s": self.wall_s,
            "worked_s": self.worked_s,
            "p50_s": quantile(self.took_s, 0.5),
            "p95_s": quantile(self.took_s, 0.95),
            "lag_s": self.lag_s,
        }


@dataclass
class Clock:
    """Time on the clock, processor time and lag of a block. `look_s`: of the processor, for one look at the lag."""

    look_s: float
    lags: list[float] = field(default_factory=list)
    began: float = 0.0
    worked: float = 0.0

    def start(self) -> None:
        gc.collect()
        self.began, self.worked = time.perf_counter(), time.process_time()

    def stop(self, block: Block) -> None:
        """Lessons that wait for spare time go on waiting, as they would in a server."""
        block.wall_s = time.perf_counter() - self.began
        block.worked_s = time.process_time() - self.worked - self.look_s * len(self.lags)
        block.lag_s = max(self.lags, default=0.0)


async def watch(lags: list[float], stop: threading.Event | None = None) -> None:
    """How late a loop wakes up, until it is cancelled or told to stop."""
    while stop is None or not stop.is_set():
        due = time.perf_counter() + STEP_S
        await asyncio.sleep(STEP_S)
        lags.append(time.perf_counter() - due)


async def aload(program: Program, app: Any, questions: Sequence[str], at_once: int, look_s: float) -> Block:
    """Requests on the running loop."""
    block, clock, numbers = _empty(questions), Clock(look_s), count()

    async def place(number: int) -> None:
        await asyncio.sleep(number * ARRIVAL_S)
        while (asked := next(numbers)) < len(questions):
            with _timed(block, asked):
                block.answers[asked] = await program.aask(app, questions[asked])

    clock.start()
    watching = asyncio.create_task(watch(clock.lags))
    await asyncio.gather(*map(place, range(at_once)))
    clock.stop(block)
    watching.cancel()
    return block


def load(
    program: Program, app: Any, questions: Sequence[str], at_once: int, look_s: float, pool: ThreadPoolExecutor
) -> Block:
    """Requests on as many threads of the pool."""
    block, clock, numbers = _empty(questions), Clock(look_s), count()

    def place(number: int) -> None:
        time.sleep(number * ARRIVAL_S)
        while (asked := next(numbers)) < len(questions):
            with _timed(block, asked):
                block.answers[asked] = program.ask(app, questions[asked])

    with _watched_thread(clock.lags):
        clock.start()
        for done in [pool.submit(place, number) for number in range(at_once)]:
            done.result()
        clock.stop(block)
    return block


@contextmanager
def _timed(block: Block, asked: int) -> Generator[None, None, None]:
    began = time.perf_counter()
    try:
        yield
    except Exception as error:  # noqa: BLE001 - an answer that differs
        block.answers[asked] = repr(error)
    block.took_s[asked] = time.perf_counter() - began


def _empty(questions: Sequence[str]) -> Block:
    return Block([None] * len(questions), [0.0] * len(questions))


@contextmanager
def _watched_thread(lags: list[float]) -> Generator[None, None, None]:
    """A loop on a thread of its own, which stands for everything else that the process has to do."""
    stop = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(watch(lags, stop)), name="watch")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def look_s() -> float:
    """Of the processor, for one look at the lag of an idle loop."""
    lags: list[float] = []
    worked = time.process_time()
    with _watched_thread(lags):
        time.sleep(CALIBRATION_S)
    return (time.process_time() - worked) / max(1, len(lags))
