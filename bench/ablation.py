"""`python -m bench ablation`: what each reading of the learner (`accel.learn.covers.readings`) is worth.

The corpus programs are recorded once. Then lessons from their first runs, with each reading switched off in turn, say
which calls of a later run they predict: all of it is computed from records, so that no clock and no noise counts.
`--tests` runs tests of the core without those readings that no program needs; `--write` makes `bench/ABLATION.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console

import accel_local
from accel.graph.ir import Graph
from accel.learn.check import followed
from accel.learn.covers.foreign import Wording
from accel.learn.covers.readings import ALL, READINGS, Readings, without
from accel.learn.lessons import extend, lesson
from accel.text.extract import EXTRACTORS
from accel.text.functions import FUNCTIONS, OF_FRAMEWORKS
from accel.trace.record import CallRecord, Trace
from bench.corpus import Arms, engines_for
from bench.recorder import recorder
from bench.sections import table
from corpus import programs

DOCUMENT = Path(__file__).parent / "ABLATION.md"
PLUGIN = "bench.ablated"
TESTS = ("accel/tests", "adapters/tests")
SELECTED = "test_core_learn or test_core_cover or test_extract_learnt or test_decisions or test_conversations"
LESSONS = (2, 3, 6)
"""Runs that are learnt from: the next one is judged."""


@dataclass(frozen=True)
class Score:
    """Of all judged runs of a program."""

    predicted: int = 0
    """Calls that verified nodes predict."""
    early: int = 0
    """Of these, calls before which another call ended after their inputs were known."""
    within: int = 0
    """Calls of loops that are predicted inside the first run, once two iterations are over."""
    vain: int = 0
    """Calls that are predicted, and that no run made."""

    def __add__(self, other: Score) -> Score:
        return Score(*(mine + others for mine, others in zip(self.all, other.all, strict=True)))

    @property
    def all(self) -> tuple[int, ...]:
        return self.predicted, self.early, self.within, self.vain


@dataclass
class Recorded:
    traces: Sequence[Trace]
    program: Wording
    learnt: str = ""
    """The graphs of all lessons with all readings."""

    def score(self, readings: Readings) -> Score:
        score = Score(within=within(self.traces[0], readings))
        for runs in LESSONS:
            graph = lesson(self.traces[:runs], self.program, readings).graph
            score += judged(graph, self.traces[runs])
            self.learnt += str(graph) if readings == ALL else ""
        return score

    def uses(self, reading: str) -> bool:
        """Whether anything can change without it: an extractor or function of which nothing was made is not missed."""
        names = OF_FRAMEWORKS if reading == "framework" else [reading] if reading in {**EXTRACTORS, **FUNCTIONS} else []
        return not names or any(f"|{name}" in self.learnt for name in names)


def judged(graph: Graph, trace: Trace) -> Score:
    view, fits = followed(graph, trace)
    ends = sorted(call.end for call in trace.calls if call.end is not None)
    score = Score()
    for node, fit in fits:
        if node.evidence.confidence != "verified":
            continue
        refs = list(node.refs())
        early = 0
        for call, binding in zip(fit.calls, fit.places, strict=True):
            known = max((view.known_at(ref, binding) for ref in refs), default=0)
            early += bisect_left(ends, call.start) > bisect_left(ends, known + 1)
        score += Score(len(fit.calls), early, 0, fit.predicted - len(fit.calls) if fit.decided else 0)
    return score


def within(trace: Trace, readings: Readings) -> int:
    """Calls of the first run that loops seen in it predict, site by site."""
    found = 0
    by_site: dict[str, list[CallRecord]] = {}
    for call in trace.calls:
        by_site.setdefault(call.site, []).append(call)
    for site, calls in by_site.items():
        if len(calls) > 2 and calls[1].end is not None:
            graph = extend(Graph(), until(trace, calls[1].end), site, readings)
            view, fits = followed(graph, trace)
            found += sum(max(0, len(fit.calls) - 2) for node, fit in fits if node.evidence.confidence == "looped")
    return found


def until(trace: Trace, moment: int) -> Trace:
    """The trace as it was then."""
    calls = [
        call if call.end is not None and call.end <= moment else replace(call, end=None, output=None)
        for call in trace.calls
        if call.start < moment
    ]
    visits = [
        visit if visit.end is not None and visit.end <= moment else replace(visit, end=None, left=None)
        for visit in trace.visits
        if visit.start < moment
    ]
    return replace(trace, calls=calls, visits=visits, completed=False)


async def record(arms: Arms) -> Recorded:
    fast = recorder(await arms.graph("recorded"))
    traces = []
    for number in range(max(LESSONS) + 1):
        await arms.ask(fast, number)
        traces.append(fast.plan.last)
    return Recorded(traces, fast.plan.program)


_recorded: dict[str, Recorded] = {}
"""By program; processes that are forked share it."""


def _scores(reading: str) -> dict[str, Score]:
    """Of every program that may use the reading, without it."""
    readings = without(reading)
    return {name: recorded.score(readings) for name, recorded in _recorded.items() if recorded.uses(reading)}


def failing(reading: str) -> list[str]:
    """The tests that fail without a reading."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        PLUGIN,
        "-p",
        "no:cacheprovider",
        "-rf",
        "--no-header",
        "--tb=no",
    ]
    ran = subprocess.run(
        [*command, *TESTS, "-k", SELECTED, "-m", "not engines and not long"],
        capture_output=True, text=True, env={**os.environ, "ACCEL_WITHOUT": reading}, check=False,
    )  # fmt: skip
    return re.findall(r"^FAILED (\S+(?: \S+)*?)(?: - .*)?$", ran.stdout, re.MULTILINE)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench ablation", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", default="", help="which, by name (default: all)")
    parser.add_argument("--readings", default="", help="which, by name (default: all)")
    parser.add_argument("--tests", action="store_true", help="tests without what no program needs; minutes more")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--out", type=Path, default=Path("bench-out/ablation.json"), help="file for the raw figures")
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOCUMENT.name}")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 160)
    for program in programs([name for name in options.programs.split(",") if name]):
        engines = engines_for(program)
        _recorded[program.name] = engines.run(partial(record, Arms(program, engines)))
        accel_local.shutdown()
    wanted = [name for name in options.readings.split(",") if name] or [reading.name for reading in READINGS]
    all_on = {name: recorded.score(ALL) for name, recorded in _recorded.items()}
    with ProcessPoolExecutor(options.jobs, get_context("fork")) as pool:
        scores = {"": all_on} | {
            name: all_on | found for name, found in zip(wanted, pool.map(_scores, wanted), strict=True)
        }
        idle = [name for name in wanted if not any(_lost(all_on[p], found) > 0 for p, found in scores[name].items())]
        tests = dict(zip(idle, pool.map(failing, idle), strict=True)) if options.tests else {}
    figures = {
        "scores": {
            name: {program: asdict(score) for program, score in found.items()} for name, found in scores.items()
        },
        "tests": tests,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    shown = report(figures)
    console.print(shown, markup=False, highlight=False, soft_wrap=True)
    if options.write:
        before, _, _ = DOCUMENT.read_text(encoding="utf-8").partition("<!-- table -->")
        DOCUMENT.write_text(f"{before}<!-- table -->\n{shown}\n", encoding="utf-8")
    return 0


def report(figures: Mapping[str, Any]) -> str:
    """A row for every reading; what nothing needs comes last."""
    scores = {name: {p: Score(**one) for p, one in found.items()} for name, found in figures["scores"].items()}
    all_on = scores.pop("")
    rows = []
    for reading in READINGS:
        if reading.name not in scores:
            continue
        lost = {program: _lost(all_on[program], score) for program, score in scores[reading.name].items()}
        fewer = [(program, n) for program, n in sorted(lost.items(), key=lambda item: -item[1]) if n > 0]
        more = [(program, -n) for program, n in lost.items() if n < 0]
        tests = figures["tests"].get(reading.name)
        rows.append([
            reading.name, reading.says,
            ", ".join(f"{program} {n}" for program, n in fewer) or "none",
            ", ".join(f"{program} {n}" for program, n in more) or "none",
            "not asked: programs do" if tests is None else f"{len(tests)}: {_named(tests)}" if tests else "none",
        ])  # fmt: skip
    total = sum(all_on.values(), Score())
    told = (
        f"With all readings, of {len(all_on)} programs: {total.predicted} calls predicted, {total.early} of them "
        f"early, {total.within} more inside first runs, {total.vain} predicted in vain."
    )
    head = ["reading", "what is read so", "programs that lose calls", "programs that win calls", "tests that need it"]
    return f"{told}\n\n{table(head, rows)}"


def _lost(before: Score, after: Score) -> int:
    """Calls that are no longer predicted, or no longer early, or that are predicted in vain."""
    losses = [b - a for b, a in zip(before.all[:3], after.all[:3], strict=True)] + [after.vain - before.vain]
    return max(losses) if any(n > 0 for n in losses) else min(losses)


def _named(tests: Sequence[str]) -> str:
    names = list(dict.fromkeys(re.sub(r"\[.*", "", test.rsplit("::", 1)[-1]) for test in tests))
    return ", ".join(f"`{name}`" for name in names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")
