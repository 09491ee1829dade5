"""`python -m bench topology`: engines that know runs and depths against engines that don't, under a mixed load.

Several programs arrive at random on the same simulated engines, in virtual time: as Ayo deploys them (section 7.1), two
instances of the language model and one of everything else; each request keeps to one instance. Every arm gets the same
requests at the same moments. Arms differ in what engines know (`accel.engine.batching`):

- blind: first come, first served, in batches as large as the engine is efficient with (what Ayo calls TO).
- per invocation: first come, first served, and the texts of one call are a batch of their own (what Ayo calls PO).
- demands first: what programs wait for before early work.
- topology-aware: the runs that began first first, of each the deepest (algorithm 2), demands before early work.

and in the programs: accelerated, or as written (`speculate="off"`: engines are told which run a call is of and how
deep, and nothing is done early).
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import accel
import accel_local
from accel.engine.profile import Profile
from accel.errors import AccelError
from accel.reports.limits.costs import Costs
from accel_langgraph import AccelChatModel, AccelEmbeddings, AccelReranker, AccelVectorStore
from accel_sim import SimEmbeddingConfig, SimLLMConfig, SimRerankConfig, SimStoreConfig, profile_of, virtual
from accel_sim.llm import SimLLM
from bench.engines import KINDS, SIM_DIMENSION
from bench.machine import machine_name
from bench.measure import WARM, Request
from bench.measure import Arm as Program
from bench.recorder import recorder
from corpus.papers import APPS, Parts, Sizes, data
from corpus.papers.text import passages

BLIND, PER_INVOCATION, DEMANDS_FIRST, TOPOLOGY = "blind", "per invocation", "demands first", "topology-aware"
AS_WRITTEN, ACCELERATED = "as written", "accelerated"
MIXES = ("naive_rag,advanced_rag", "naive_rag,advanced_rag,factool")
"""Ayo's co-located programs (section 7.2), and the same with a program of another shape."""
SHARES = (0.4, 0.6, 0.8, 1.0, 1.2)
"""Offered load, as shares of saturation: the rate at which the busiest engine would never be idle, working in batches
as large as it is efficient with. The work of a request is that of the programs as written, all at once."""
ALONE = 3
"""Requests of each program that are also served one at a time, on idle engines."""
console = Console(width=None if sys.stdout.isatty() else 140)


@dataclass(frozen=True)
class Arm:
    batching: str
    program: str

    def __str__(self) -> str:
        return f"{self.program}, {self.batching}"


def arms() -> list[Arm]:
    """Without early work all calls are demands: "demands first" would be "blind"."""
    found = [Arm(batching, AS_WRITTEN) for batching in (BLIND, PER_INVOCATION, TOPOLOGY)]
    return found + [Arm(batching, ACCELERATED) for batching in (BLIND, PER_INVOCATION, DEMANDS_FIRST, TOPOLOGY)]


@dataclass(frozen=True)
class Engines:
    """What all arms run on. profile: a published one by model size, or a file."""

    profile: str = "7b"
    models: int = 2
    sizes: Sizes = Sizes()

    def parts(self, arm: Arm, data_sets: data.DataSets) -> list[Parts]:
        """For each instance of the model; all else is shared."""
        profiles = {kind: profile_of(self.profile, kind) for kind in KINDS}
        batching = BLIND if arm.batching == PER_INVOCATION else arm.batching

        def batches(kind: str) -> Profile:
            return replace(profiles[kind], batch_tokens=0) if arm.batching == PER_INVOCATION else profiles[kind]

        embeddings = AccelEmbeddings(engine=SimEmbeddingConfig(batches("embedding"), SIM_DIMENSION, batching=batching))
        reranker = AccelReranker(engine=SimRerankConfig(batches("reranking"), batching=batching))
        collection = SimStoreConfig(str(arm), SIM_DIMENSION, profiles["searching"])
        store = AccelVectorStore(embeddings, str(arm), dimension=SIM_DIMENSION, engine=collection)
        found = []
        for number in range(self.models):
            config = SimLLMConfig(self.profile, name=f"{arm} {number}", batching=batching)
            llm = AccelChatModel(model=f"simulated {self.profile}", engine=config)
            found.append(Parts(llm, llm, embeddings, store, reranker, self.sizes, passages(data_sets, self.sizes)))
        return found


@dataclass
class Figures:
    """What an engine did: the seconds in which it worked, those that the same takes in the best batches, and those that
    calls stood in line, together."""

    busy_s: float = 0.0
    work_s: float = 0.0
    waited_s: float = 0.0

    def __sub__(self, other: Figures) -> Figures:
        return Figures(self.busy_s - other.busy_s, self.work_s - other.work_s, self.waited_s - other.waited_s)


@dataclass
class Load:
    """Requests as they arrived, `rate` a second, or all at once (None); and by engine what it did meanwhile."""

    mix: str
    arm: Arm
    rate: float | None
    requests: list[Request]
    figures: dict[str, Figures] = field(default_factory=dict)

    @property
    def seconds(self) -> list[float]:
        return [request.seconds for request in self.requests]

    @property
    def took_s(self) -> float:
        return max(r.ended_s for r in self.requests) - min(r.began_s for r in self.requests)


@dataclass
class Measured:
    alone: list[Request]
    loads: list[Load]


def measured(
    mix: str,
    arm: Arm,
    engines: Engines,
    data_sets: data.DataSets,
    count: int,
    seed: int,
    rates: Sequence[float | None],
    tick: Callable[[], None] = lambda: None,
) -> Measured:
    """One arm: programs are learnt, then served alone, then under every load."""
    return virtual.run(lambda: _Server(mix, arm, engines, data_sets, count, seed).measured(rates, tick))


class _Server:
    def __init__(self, mix: str, arm: Arm, engines: Engines, data_sets: data.DataSets, count: int, seed: int) -> None:
        self._mix, self._arm, self._seed, self._count = mix, arm, seed, count
        self._apps = mix.split(",")
        self._parts = engines.parts(arm, data_sets)
        self._data_sets = data_sets
        dice = random.Random(seed)
        self._order = [dice.choice(self._apps) for _ in range(count)]
        needed = {app: WARM + max(ALONE, self._order.count(app)) for app in self._apps}
        self._values = {app: APPS[app].inputs(data_sets, needed[app], seed) for app in self._apps}

    async def measured(self, rates: Sequence[float | None], tick: Callable[[], None]) -> Measured:
        self._programs = [await self._learnt(parts) for parts in self._parts]
        found = Measured(await self._alone(), [])
        tick()
        for rate in rates:
            found.loads.append(await self._load(rate))
            tick()
        return found

    async def _learnt(self, parts: Parts) -> dict[str, Program]:
        programs = {}
        for app in self._apps:
            await APPS[app].prepare(parts, self._data_sets)
            graph = APPS[app].build(parts)
            graph = recorder(graph) if self._arm.program == AS_WRITTEN else accel.accelerate(graph, speculate="certain")
            programs[app] = Program(str(self._arm), graph)
            for number in range(WARM):
                await programs[app].ask(app, number, self._values[app][number])
                accel.settle()
        return programs

    async def _alone(self) -> list[Request]:
        found = []
        for app, number in product(self._apps, range(WARM, WARM + ALONE)):
            await self._forget_prefixes()
            found.append(await self._programs[0][app].ask(app, number, self._values[app][number]))
            accel.settle()
        return found

    async def _load(self, rate: float | None) -> Load:
        await self._forget_prefixes()
        before = await self._figures()
        dice = random.Random(self._seed)
        numbers = dict.fromkeys(self._apps, WARM)
        tasks = []
        for place, app in enumerate(self._order):
            program, number = self._programs[place % len(self._programs)][app], numbers[app]
            numbers[app] += 1
            tasks.append(asyncio.create_task(program.ask(app, number, self._values[app][number])))
            await asyncio.sleep(dice.expovariate(rate) if rate else 0)
        load = Load(self._mix, self._arm, rate, await asyncio.gather(*tasks))
        accel.settle()
        load.figures = {name: figures - before[name] for name, figures in (await self._figures()).items()}
        return load

    async def _engines(self) -> dict[str, Any]:
        first = self._parts[0]
        configs: dict[str, Any] = {
            f"model {number}": parts.llm.engine_config  # type: ignore[attr-defined]
            for number, parts in enumerate(self._parts)
        }
        configs["embedding"] = first.embeddings.engine_config  # type: ignore[attr-defined]
        configs["reranking"] = first.reranker.engine_config  # type: ignore[attr-defined]
        return {name: await accel_local.aengine(config) for name, config in configs.items()}

    async def _forget_prefixes(self) -> None:
        for engine in (await self._engines()).values():
            if hasattr(engine, "reset_prefix_cache"):
                await engine.reset_prefix_cache()

    async def _figures(self) -> dict[str, Figures]:
        return {name: _figures(engine) for name, engine in (await self._engines()).items()}


def _figures(engine: Any) -> Figures:
    if not isinstance(engine, SimLLM):
        return Figures(engine.busy_s, engine.busy_s, engine.waited_s)
    costs, served = Costs(engine.known_profile), engine.served
    prompt_s = costs.prompt_s(0, costs.batch_tokens) / costs.batch_tokens
    work_s = served.prompt_tokens * prompt_s + served.output_tokens * costs.token_s()
    return Figures(served.busy_s, work_s, engine.waited_s)


# --- what was found


def change(load: Load, other: Load) -> float:
    """Of the mean latency, against another arm's: -0.15 is 15 % less."""
    return fmean(load.seconds) / fmean(other.seconds) - 1


def saturation(load: Load) -> float:
    """Requests per second; see SHARES."""
    work_s: dict[str, list[float]] = {}
    for name, figures in load.figures.items():
        work_s.setdefault(name.partition(" ")[0], []).append(figures.work_s)
    return len(load.requests) / max(fmean(instances) for instances in work_s.values())


def same_answers(requests: Sequence[Request], others: Sequence[Request]) -> bool:
    return [(r.app, r.number, r.output) for r in requests] == [(r.app, r.number, r.output) for r in others]


def worst_alone(requests: Sequence[Request], others: Sequence[Request]) -> float:
    """The largest ratio of a request's seconds to the other arm's."""
    return max(one.seconds / other.seconds for one, other in zip(requests, others, strict=True))


def mix_measured(
    mix: str, options: argparse.Namespace, data_sets: data.DataSets, tick: Callable[[], None]
) -> dict[Arm, Measured]:
    engines = Engines(options.profile, options.models)
    common = (engines, data_sets, options.requests, options.seed)
    burst = measured(mix, Arm(BLIND, AS_WRITTEN), *common, [None], tick)
    rates = [round(share * saturation(burst.loads[0]), 4) for share in SHARES]
    return {arm: measured(mix, arm, *common, [*rates, None], tick) for arm in arms()}


def table(mix: str, found: dict[Arm, Measured]) -> Table:
    rows = Table(title=f"{mix.replace(',', ' + ')}: mean latency in s, and against blind batching")
    rows.add_column("program, batching")
    rows.add_column("alone", justify="right")
    base = next(iter(found.values()))
    for load in base.loads:
        rows.add_column(f"{load.rate:.2f}/s" if load.rate else "all at once", justify="right")
    for arm, one in found.items():
        blind = found[Arm(BLIND, arm.program)]
        cells = [f"{fmean(load.seconds):.1f} {change(load, other):+.1%}" for load, other in _pairs(one, blind)]
        rows.add_row(
            str(arm), f"{fmean(r.seconds for r in one.alone):.2f}", *cells, end_section=arm.batching == TOPOLOGY
        )
    rows.add_row("busiest engine, at its best", "", *map(_busiest, base.loads))
    return rows


def _busiest(load: Load) -> str:
    share, name = max((figures.work_s / load.took_s, name) for name, figures in load.figures.items())
    return f"{name} {share:.0%}"


def _pairs(one: Measured, other: Measured) -> list[tuple[Load, Load]]:
    return list(zip(one.loads, other.loads, strict=True))


def verdict(found: dict[Arm, Measured]) -> tuple[bool, str]:
    base = next(iter(found.values()))
    equal = all(
        same_answers(one.alone, base.alone)
        and all(same_answers(load.requests, other.requests) for load, other in _pairs(one, base))
        for one in found.values()
    )
    worst = max(
        worst_alone(found[Arm(TOPOLOGY, program)].alone, found[Arm(BLIND, program)].alone)
        for program in (AS_WRITTEN, ACCELERATED)
    )
    said = "answers are equal" if equal else "[red]answers DIFFER[/red]"
    return equal, f"{said}; alone, topology-aware takes at most {worst:.4f} of blind batching's time"


# --- the command


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench topology", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mix", action="append", help=f"programs that arrive together (default: {'; '.join(MIXES)})")
    parser.add_argument("--profile", default="7b", help="7b, 13b, 30b, or a file of profiles")
    parser.add_argument("--models", type=int, default=2, help="instances of the language model")
    parser.add_argument("--requests", type=int, default=100, help="per load")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("bench-out/topology"), help="folder for raw records")
    options = parser.parse_args(arguments)
    mixes = options.mix or list(MIXES)
    unknown = [app for mix in mixes for app in mix.split(",") if app not in APPS]
    if unknown:
        parser.error(f"there is no application {unknown[0]!r}; there are {', '.join(APPS)}")
    if options.models < 1 or options.requests < 1:
        parser.error("--models and --requests are at least 1")
    try:
        return run(mixes, options)
    except (AccelError, ValueError) as error:
        console.print(f"[red]{error}[/red]")
        return 2
    except KeyboardInterrupt:
        console.print("stopped; nothing was written")
        return 130


def run(mixes: Sequence[str], options: argparse.Namespace) -> int:
    data_sets = data.load()
    began = time.perf_counter()
    found = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        for mix in mixes:
            bar = progress.add_task(mix, total=2 + len(arms()) * (2 + len(SHARES)))
            found[mix] = mix_measured(mix, options, data_sets, lambda bar=bar: progress.advance(bar))  # type: ignore[misc]
            progress.remove_task(bar)
            console.print(table(mix, found[mix]), verdict(found[mix])[1], "", sep="\n")
    options.out.mkdir(parents=True, exist_ok=True)
    record = options.out / "topology.json"
    circumstances = {"machine": machine_name(), "took_s": round(time.perf_counter() - began, 1)}
    record.write_text(json.dumps({**circumstances, **as_json(found, options)}), encoding="utf-8")
    console.print(f"raw records are in {record}")
    return 0 if all(verdict(one)[0] for one in found.values()) else 1


def as_json(found: dict[str, dict[Arm, Measured]], options: argparse.Namespace) -> dict[str, Any]:
    """Outputs are kept once, by their digests."""
    outputs: dict[str, Any] = {}

    def request(one: Request) -> dict[str, Any]:
        text = json.dumps(one.output, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        outputs[digest] = one.output
        return {
            "app": one.app, "number": one.number, "began_s": one.began_s, "ended_s": one.ended_s, "output": digest,
            "counts": one.counts,
        }  # fmt: skip

    mixes = [
        {
            "mix": mix.split(","),
            "arms": [
                {
                    "batching": arm.batching,
                    "program": arm.program,
                    "alone": [request(r) for r in one.alone],
                    "loads": [
                        {
                            "rate": load.rate,
                            "requests": [request(r) for r in load.requests],
                            "engines": {name: asdict(figures) for name, figures in load.figures.items()},
                        }
                        for load in one.loads
                    ],
                }
                for arm, one in arms_found.items()
            ],
        }
        for mix, arms_found in found.items()
    ]
    return {
        "profile": options.profile,
        "models": options.models,
        "seed": options.seed,
        "profiles": {kind: asdict(profile_of(options.profile, kind)) for kind in KINDS},
        "mixes": mixes,
        "outputs": outputs,
    }
