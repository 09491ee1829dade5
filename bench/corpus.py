"""`python -m bench corpus`: many small programs, unmodified and accelerated, and what Accel sees through in each.

The programs are those of `corpus.small` and `corpus.applications`. Programs of coroutines run on simulated engines in
virtual time, others in real time of which the waiting for engines is skipped (`accel_sim.skipping`): there what the
program and Accel do themselves counts. All inputs differ. The first `WARM` requests are reported one by one, then the
last `STEADY`: what a program shows rarely (the branches of a router) is known by then. A second process repeats a
request with the plans that the first one saved.

A call is *predictable* if its input is complete well before the program makes the call, in the best schedule we know
(`accel.reports.limits.limit`): by a millisecond of virtual time, or ten of real time, in which frameworks take a few
between any two nodes. Raw records go to a file, which keeps those of other programs that were measured on this machine;
`--write` makes `bench/CORPUS.md` of all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

import accel
import accel_local
from accel.learn.check import ties
from accel.process import clock
from accel.reports.limits.limit import Limit, best_of, latencies
from accel.reports.limits.workload import Workload
from accel.run.gains.worth import tokens_of
from accel.run.plans.plan import Plan
from accel.run.settings import Counts
from accel.text.values import freeze
from accel.trace.flow import events_of
from accel.trace.record import Trace
from accel.trace.sites import where
from bench.engines import Engines, simulated
from bench.machine import machine_name
from bench.measure import ACCELERATED, UNMODIFIED, CallsSeen, plain
from bench.recorder import recorder
from bench.sections import table
from corpus import Program, names, programs

DOCUMENT = Path(__file__).parent / "CORPUS.md"
WARM = 3
REQUESTS = 11
STEADY = 4
SOONER_S = {"virtual": 0.001, "skipped": 0.01}
GOALS = {"retired": 0.9, "share": 0.9, "ratio": 0.98, "waste": 0.02}


@dataclass
class Request:
    """One input in both arms. Seconds are of the engines' clock."""

    number: int
    seconds: dict[str, float] = field(default_factory=dict)
    equal: bool = True
    limit_s: float = 0.0
    predictable: int = 0
    retired: int = 0
    """Of the predictable calls, those that were answered by early ones."""
    tokens: int = 0
    wasted_tokens: int = 0
    missed: list[str] = field(default_factory=list)
    """The other predictable calls: where they are made, and what the plan says of them."""
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        return self.seconds[UNMODIFIED] / self.seconds[ACCELERATED]


def engines_for(program: Program) -> Engines:
    return simulated("7b", "virtual" if program.awaited else "skipped")


class Arms:
    """A program in its arms, each with components of its own."""

    def __init__(self, program: Program, engines: Engines) -> None:
        self.program, self.engines = program, engines
        self.turns: list[Trace] = []
        """What was followed of the last request: a run, or several that pauses part."""
        self._asked = 0
        self._fewest: dict[int, Mapping[str, int]] = {}
        """By part of a request and call site, how many calls every run has made."""

    async def graph(self, arm: str) -> Any:
        parts = self.engines.parts(f"{self.program.name} {arm}")
        if documents := list(self.program.documents):
            await parts.store.aadd_texts(documents, ids=[str(number) for number in range(len(documents))])
        return self.program.build(parts)

    async def ask(self, graph: Any, number: int) -> tuple[float, Any, list[str]]:
        """Seconds, output and calls of one request."""
        await self.engines.forget_prefixes()
        seen = CallsSeen()
        self._asked += 1
        config: dict[str, Any] = {"callbacks": [seen]}
        if graph.checkpointer:  # each request is a thread
            config["configurable"] = {"thread_id": str(self._asked)}
        seconds, outputs = 0.0, []
        self.turns = []
        for value in self.program.turns(number):
            began = clock.now_s()
            if self.program.awaited:
                outputs.append(await graph.ainvoke(value, config))
            else:
                outputs.append(await asyncio.to_thread(graph.invoke, value, config))
            seconds += clock.now_s() - began
            accel.settle() if self.engines.clock == "virtual" else await asyncio.to_thread(accel.settle)
            if (plan := getattr(graph, "plan", None)) is not None and plan.last is not None:
                self.turns.append(plan.last)
        return seconds, plain(outputs), sorted(seen.calls)

    async def requests(self, fast: Any, numbers: Sequence[int]) -> list[Request]:
        """These inputs, unmodified and in the accelerated graph, each judged by a recorded run."""
        slow = await self.graph(UNMODIFIED)
        recorded = recorder(await self.graph("recorded"))
        found = []
        for number in numbers:
            request, turns = await self.compare(slow, fast, number)
            await self.ask(recorded, number)
            for part, (one, other) in enumerate(zip(self.turns, turns, strict=True)):
                self.judge(request, part, one, other, fast)
            found.append(request)
        return found

    async def compare(self, slow: Any, fast: Any, number: int) -> tuple[Request, list[Trace]]:
        """With what was followed of the accelerated one."""
        request, turns = Request(number), list[Trace]()
        told = {}
        for name, graph in ((UNMODIFIED, slow), (ACCELERATED, fast))[:: 1 if number % 2 else -1]:
            request.seconds[name], *told[name] = await self.ask(graph, number)
            turns = self.turns or turns
        request.equal = told[UNMODIFIED] == told[ACCELERATED]
        request.counts = asdict(sum(list(fast.plan.history)[-len(turns) :], Counts()))
        request.tokens = sum(tokens_of(call) for turn in turns for call in turn.calls)
        request.wasted_tokens = request.counts["wasted_tokens"]
        return request, turns

    def judge(self, request: Request, part: int, recorded: Trace, followed: Trace, fast: Any) -> None:
        """What could have been early, what was, and the limit, of a request or of a part of one."""
        counts = Counter(call.site for call in recorded.calls)
        before = self._fewest.get(part, counts)
        fewest = self._fewest[part] = {site: min(before.get(site, 0), counts[site]) for site in {**before, **counts}}
        known = ties(fast.plan.learnt, recorded, fewest)
        runs = Workload(
            events_of(recorded, fast.plan.topology, known.deciding, known.using),
            self.engines.profiles,
            {},
            latencies([recorded]),
        )
        found: Limit = best_of(runs)
        request.limit_s += found.makespan_s
        least_s = SOONER_S[self.engines.clock]
        sooner = [placed.call for placed in found.schedule if placed.sooner_s > least_s]
        could = Counter((call.site, freeze(call.input)) for call in sooner)
        did = Counter((call.site, freeze(call.input)) for call in followed.calls if call.retired)
        request.predictable += could.total()
        request.retired += (could & did).total()
        request.missed += [_why(fast.plan, site) for site, _ in (could - did).elements()]

    async def measured(self, plan: Path, count: int = REQUESTS) -> list[Request]:
        """So many requests of both arms; the plan that was learnt is saved."""
        fast = accel.accelerate(await self.graph(ACCELERATED))
        found = await self.requests(fast, range(count))
        fast.save_plan(plan)
        return found

    async def from_plan(self, plan: Path) -> list[Request]:
        """One request with a plan that another process has learnt."""
        return await self.requests(accel.accelerate(await self.graph(ACCELERATED), plan=str(plan)), [REQUESTS])


def _why(plan: Plan, site: str) -> str:
    said = set()
    for node in plan.graph.by_site.get(site, ()):
        new = plan.standing(node).since == plan.runs
        other = "learnt from this very run" if new else "issued, but not what was asked for"
        said.add(str(plan.reasons.get(node.name) or node.evidence.reason or other))
    within = site.split("|", 1)[0] or "no node"
    return f"`{within}` ({where(site)}): {', '.join(sorted(said)) or 'not seen before'}"


def run(wanted: Sequence[Program], plans: Path, saved: bool, console: Console) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for program in wanted:
        engines = engines_for(program)
        arms = Arms(program, engines)
        plan = plans / f"{program.name}.json"
        measure = arms.from_plan if saved else arms.measured
        began = time.perf_counter()
        requests = engines.run(partial(measure, plan))
        accel_local.shutdown()
        found[program.name] = [asdict(request) for request in requests]
        last = requests[-1]
        verdict = "equal" if all(one.equal for one in requests) else "DIFFERENT"
        console.print(
            f"{program.name:28} {last.ratio:5.2f}x  limit {last.seconds[UNMODIFIED] / last.limit_s:5.2f}x  retired "
            f"{last.retired} of {last.predictable}  {verdict}  ({time.perf_counter() - began:.0f} s)", highlight=False,
        )  # fmt: skip
        for why, count in Counter(why for request in requests[-STEADY:] for why in request.missed).most_common():
            console.print(f"    not early: {count} of {why}", highlight=False, markup=False)
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench corpus", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", default="", help="which, by name (default: all)")
    parser.add_argument("--out", type=Path, default=Path("bench-out/corpus"), help="folder for raw records and plans")
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOCUMENT.name}")
    parser.add_argument("--saved", action="store_true", help="repeat one request with the plans in the folder")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 120)
    try:
        wanted = programs([name for name in options.programs.split(",") if name])
    except ValueError as error:
        parser.error(str(error))
    plans = options.out / "plans"
    plans.mkdir(parents=True, exist_ok=True)
    found = run(wanted, plans, options.saved, console)
    record = keep(options.out / ("saved.json" if options.saved else "corpus.json"), found)
    if options.saved:
        return 0
    again = [sys.executable, "-m", "bench", "corpus", "--saved", "--out", str(options.out)]
    again += ["--programs", ",".join(program.name for program in wanted)]
    subprocess.run(again, check=True, stdout=subprocess.DEVNULL)
    saved = json.loads((options.out / "saved.json").read_text(encoding="utf-8"))
    shown = report(record, saved, {program.name: program for program in programs(list(record["programs"]))})
    console.print(shown, markup=False, highlight=False, soft_wrap=True)
    if options.write:
        before, _, _ = DOCUMENT.read_text(encoding="utf-8").partition("<!-- table -->")
        DOCUMENT.write_text(f"{before}<!-- table -->\n{shown}\n", encoding="utf-8")
    return 0 if all(one["equal"] for every in found.values() for one in every) else 1


def keep(file: Path, found: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Put the records of these programs into the file, which keeps those of others if they are of this machine."""
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    machine = machine_name()
    kept = before["programs"] if before.get("machine") == machine else {}
    merged = {**kept, **found}
    record = {"machine": machine, "programs": {name: merged[name] for name in names() if name in merged}}
    file.write_text(json.dumps(record), encoding="utf-8")
    return record


# --- the table


def report(record: Mapping[str, Any], saved: Mapping[str, Any], known: Mapping[str, Program]) -> str:
    """The small programs, then the public applications, then what falls short and why."""
    rows: list[list[str]] = []
    applications: list[list[str]] = []
    short: list[str] = []
    met = 0
    for name, raw in record["programs"].items():
        requests = [Request(**one) for one in raw]
        again = [Request(**one) for one in saved["programs"].get(name, [])]
        late = requests[-STEADY:]
        retired, predictable = sum(r.retired for r in late), sum(r.predictable for r in late)
        figures = {
            "retired": retired / predictable if predictable else 1.0,
            "share": median(r.limit_s / r.seconds[ACCELERATED] for r in late),
            "ratio": min(r.ratio for r in requests[1:]),
            "waste": sum(r.wasted_tokens for r in late) / max(1, sum(r.tokens for r in late)),
        }
        misses = [
            what
            for what, goal in GOALS.items()
            if (figures[what] > goal if what == "waste" else round(figures[what], 2) < goal)
        ]
        met += not misses
        if misses:
            short.append(f"- `{name}`: {', '.join(misses)}. {_why_not(requests, misses)}")
        (applications if name in known and known[name].source else rows).append(
            [
                name,
                known[name].about if name in known else "",
                *(f"{request.ratio:.2f}x" for request in requests[:WARM]),
                f"{median(r.ratio for r in late):.2f}x",
                f"{median(r.seconds[UNMODIFIED] / r.limit_s for r in late):.2f}x",
                f"{figures['share']:.2f}",
                f"{retired} of {predictable}",
                f"{figures['waste']:.1%}",
                f"{again[0].ratio:.2f}x, {again[0].retired} of {again[0].predictable}" if again else "-",
                f"{sum(r.equal for r in (*requests, *again))} of {len(requests) + len(again)}",
                ", ".join(misses) or "met",
            ]
        )
    head = [
        "program", "what it is", "request 1", "2", "3", "steady", "limit", "share of limit", "retired early",
        "waste", "saved plan, new process", "equal", "goals missed",
    ]  # fmt: skip
    told = [f"{met} of {len(record['programs'])} programs meet all goals; {record['machine']}.", table(head, rows)]
    if applications:
        sources = [f"- `{name}`: {program.source}" for name, program in known.items() if program.source]
        told += ["## Public applications", table(head, applications), "\n".join(sources)]
    if short:
        told += ["## What falls short", "\n".join(short)]
    return "\n\n".join(told)


def _why_not(requests: Sequence[Request], misses: Sequence[str]) -> str:
    """The slowest request, if that was too slow; where predictable calls of the steady requests were not early, and
    what the plan said of them."""
    told = []
    if "ratio" in misses:
        slow = min(requests[1:], key=lambda request: request.ratio)
        issued, wasted = slow.counts.get("issued", 0), slow.counts.get("wasted", 0)
        told.append(f"Request {slow.number + 1}: {slow.ratio:.2f}x, {wasted} of {issued} early calls in vain.")
    missed = Counter(why for request in requests[-STEADY:] for why in request.missed)
    if missed:
        told.append(f"Not early: {'; '.join(f'{count} calls of {why}' for why, count in missed.most_common(3))}.")
    return " ".join(told) or "Every predictable call was early."
