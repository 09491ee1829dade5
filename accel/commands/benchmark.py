"""How much faster a program is accelerated: unmodified and accelerated in pairs, on the user's own inputs.

    print(accel.bench(graph, inputs, concurrency=16))
    print(accel.bench("app.py:graph", inputs, concurrency=(1, 16), cassette="answers.jsonl"))

Each pair asks both arms the same, one right after the other, and every other pair begins with the other arm: what
changes on the machine meanwhile changes both.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from pathlib import Path
from statistics import median
from typing import Any

from ..api import accelerate, settle
from ..errors import ConfigurationError
from ..learn.check import ties
from ..process.clock import now_s
from ..reports.limits.limit import best_of, latencies
from ..reports.limits.workload import Unbatched
from ..reports.rows import MAX_CALLS
from ..run.settings import Counts
from ..trace.flow import events_of
from .cassette import Cassette
from .check import Progress
from .compare import error_in_words
from .config import accelerate_options
from .figures import BenchResult, Level, Pair, Ran
from .findings import ACCELERATED, UNMODIFIED
from .inputs import counted, listed
from .programs import Program, program_of
from .tapping import Tapping

ROUNDS, WARM = 5, 2
COUNTED = ("demanded", "issued", "retired", "wasted", "wasted_s", "wasted_tokens")


def bench(
    program: Any,
    inputs: Iterable[Any],
    *,
    rounds: int = ROUNDS,
    warm: int = WARM,
    concurrency: int | Sequence[int] = 1,
    cassette: str | Path | None = None,
    config: Mapping[str, Any] | None = None,
    awaited: bool | None = None,
    progress: Progress = lambda done, total, text: None,
    **options: Any,
) -> BenchResult:
    """Measure a program on these inputs, unmodified and accelerated. It runs with its effects.

    `rounds`: pairs for each input; of more than one run at a time, bursts of twice as many (of every input at least
    once). `warm`: rounds before that, from which Accel learns. `concurrency`: how many runs go on at a time, or several
    such numbers, measured one after the other. `cassette`: a file with the answers of models and services
    (`accel.commands.cassette`), replayed as fast as they were; those that it has not are recorded first, and early
    calls that it has no answer for cost nothing. The rest as of `accel.check`.

    Raises ConfigurationError.
    """
    asked = listed(inputs, "bench")
    with program_of(program, awaited=awaited, config=config) as opened:
        found = accelerate_options(None, options)
        return run_bench(opened, asked, rounds, warm, concurrency, cassette, progress, found)


def run_bench(
    program: Program,
    inputs: list[Any],
    rounds: int,
    warm: int,
    concurrency: int | Sequence[int],
    cassette: str | Path | None,
    progress: Progress,
    options: Mapping[str, Any],
) -> BenchResult:
    """The same of a program that is open."""
    if not inputs:
        raise ConfigurationError("There are no inputs.", "Give what the program is asked, two different ones at least.")
    counted("rounds", rounds, "Give how many pairs of runs each input gets.")
    counted("warm", warm, "Give how many rounds Accel learns from before that.", least=0)
    tape = Cassette(Path(cassette)) if cassette is not None else None
    made = _Bench(program, inputs, rounds, warm, _levels(concurrency), tape, options, progress)
    with ExitStack() as around:
        if tape is not None:
            around.enter_context(made.tap.within())
        return made.run()


def _levels(concurrency: Any) -> list[int]:
    """How many runs at a time, the fewest first. Raises ConfigurationError."""
    remedy = "Give how many runs go on at a time, or several such numbers: concurrency=(1, 16)."
    levels = concurrency if isinstance(concurrency, Iterable) and not isinstance(concurrency, str) else (concurrency,)
    found = sorted({counted("concurrency", level, remedy) for level in levels})
    if not found:
        raise ConfigurationError(f"concurrency={concurrency!r} is no number.", remedy)
    return found


class _Bench:
    def __init__(
        self,
        program: Program,
        inputs: list[Any],
        rounds: int,
        warm: int,
        levels: Sequence[int],
        cassette: Cassette | None,
        options: Mapping[str, Any],
        progress: Progress,
    ) -> None:
        self.program, self.inputs, self.rounds, self.warm, self.levels = program, inputs, rounds, warm, levels
        self.cassette = cassette
        self.tap = Tapping(program.kind, cassette, wait=lambda took_s: took_s, exact=False)
        self.fast = program.accelerated(**options)
        self.result = BenchResult(program.name, len(inputs), rounds, replayed=cassette is not None)
        steps = 2 * warm + sum(rounds * (1 if level > 1 else len(inputs)) for level in levels) + 1
        self._step, self._steps, self._progress = 0, steps, progress

    def run(self) -> BenchResult:
        self._record()
        for turn in range(self.warm):
            for accelerated in (False, True):
                self._tell(f"warming up, round {turn + 1}")
                for value in self.inputs:
                    self._one(value, accelerated)
        for concurrency in self.levels:
            self.result.levels.append(self._level(concurrency))
        self._tell("working out the limit")
        self._limits()
        self._progress(self._steps, self._steps, "")
        return self.result

    def _tell(self, text: str) -> None:
        self._progress(self._step, self._steps, text)
        self._step += 1

    def _record(self) -> None:
        """What the unmodified program asks of models and services, before anything is measured."""
        if self.cassette is None:
            return
        for value in self.inputs:
            for _ in range(2):  # once more if a class of components was first seen meanwhile
                before = self.tap.look()
                self._one(value, accelerated=False)
                if self.tap.look() == before:
                    break
        self.result.recorded = self.cassette.recorded

    # --- measuring

    def _level(self, concurrency: int) -> Level:
        level = Level(concurrency, requests=1 if concurrency == 1 else max(2 * concurrency, len(self.inputs)))
        before = self.fast.plan.total
        for number in range(self.rounds * (len(self.inputs) if concurrency == 1 else 1)):
            self._tell(f"{concurrency} at a time")
            ran: dict[bool, Ran | None] = {}
            for accelerated in (False, True)[:: 1 if number % 2 else -1]:
                if concurrency == 1:
                    ran[accelerated] = self._one(self.inputs[number % len(self.inputs)], accelerated, level)
                else:
                    ran[accelerated] = self._burst(level, accelerated)
            unmodified, fast = ran[False], ran[True]
            if unmodified is not None and fast is not None:
                level.pairs.append(Pair(number % len(self.inputs), unmodified, fast))
        level.counts = _since(before, self.fast.plan.total)
        if concurrency == 1:
            for place in range(len(self.inputs)):
                times = [pair.accelerated.seconds for pair in level.pairs if pair.input == place]
                if times:
                    self.result.accelerated_s[place] = median(times)
        return level

    def _one(self, value: Any, accelerated: bool, level: Level | None = None) -> Ran | None:
        """One run; None if it raised."""
        worked_s = time.process_time()
        took_s = self._timed(value, accelerated)
        settle()
        if took_s is None:
            return None
        if level is not None:
            level.latencies[ACCELERATED if accelerated else UNMODIFIED].append(took_s)
        return Ran(took_s, time.process_time() - worked_s)

    def _timed(self, value: Any, accelerated: bool) -> float | None:
        with self.tap.run(accelerated):
            began_s = now_s()
            try:
                self.program.run(self.fast if accelerated else self.program.obj, value)
            except Exception as error:  # noqa: BLE001  whatever the program raises is told
                self._failed(error)
                return None
            return now_s() - began_s

    def _burst(self, level: Level, accelerated: bool) -> Ran | None:
        """As many runs as a pair has, so many at a time; None if one of them raised."""
        values = [self.inputs[number % len(self.inputs)] for number in range(level.requests)]
        worked_s, began_s = time.process_time(), now_s()
        if self.program.awaited:
            took = self.program.together(lambda: self._side_by_side(values, accelerated, level.concurrency))
        else:
            with ThreadPoolExecutor(level.concurrency) as pool:
                begun = [pool.submit(copy_context().run, self._timed, value, accelerated) for value in values]
                took = [each.result() for each in begun]
        seconds = now_s() - began_s
        settle()
        found = [each for each in took if each is not None]
        if len(found) < len(values):
            return None
        level.latencies[ACCELERATED if accelerated else UNMODIFIED] += found
        return Ran(seconds, time.process_time() - worked_s)

    async def _side_by_side(self, values: list[Any], accelerated: bool, concurrency: int) -> list[float | None]:
        places = asyncio.Semaphore(concurrency)

        async def one(value: Any) -> float | None:
            async with places:
                with self.tap.run(accelerated):
                    began_s = now_s()
                    try:
                        await self.program.arun(self.fast if accelerated else self.program.obj, value)
                    except Exception as error:  # noqa: BLE001  as above
                        self._failed(error)
                        return None
                    return now_s() - began_s

        return list(await asyncio.gather(*(one(value) for value in values)))

    def _failed(self, error: Exception) -> None:
        self.result.failed += 1
        self.result.errors.add(error_in_words(type(error).__name__, str(error)))

    # --- the limit

    def _limits(self) -> None:
        """Of every input, by a run of which every call is recorded and none is early."""
        recorder = accelerate(self.program.obj, speculate="off")
        for place, value in enumerate(self.inputs):
            recorder.plan.pace.news()
            if self._one_of(recorder, value) is None:
                continue
            trace = recorder.plan.last
            if trace is None or not trace.completed or not 0 < len(trace.calls) <= MAX_CALLS:
                continue
            known = ties(self.fast.plan.learnt, trace)
            events = events_of(trace, self.fast.plan.topology, known.deciding, known.using)
            self.result.limits_s[place] = best_of(Unbatched(events, {}, {}, latencies([trace]))).makespan_s

    def _one_of(self, recorder: Any, value: Any) -> Any:
        with self.tap.run(accelerated=False):
            try:
                self.program.run(recorder, value)
            except Exception as error:  # noqa: BLE001  as above
                self._failed(error)
                return None
        settle()
        return recorder


def _since(before: Counts, now: Counts) -> dict[str, float]:
    return {name: getattr(now, name) - getattr(before, name) for name in COUNTED}
