"""`python -m examples.serving.load fastapi`: a server, unmodified and accelerated, under the same load of real clients.

Each arm is a server of its own, on one model server. Blocks of the same requests go to the two in turn, and every ratio
compares the two blocks of a pair. Exit code 1 if an answer differs, a request fails, or a server does not end when it
is told to.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from .kinds import KINDS, Kind, Request, Start, Talk
from .processes import GRACE_S, Process, model_server

UNMODIFIED, ACCELERATED = "unmodified", "accelerated"
BOTH: tuple[str, ...] = (UNMODIFIED, ACCELERATED)
LONGEST_S = 60.0
"""A request that takes longer is a fault: all of them take about two seconds."""
FIRST = 12
"""Requests to each server before anything is measured."""


@dataclass
class Block:
    """Some requests to one server. `worked_s`: processor time of the server since its last block."""

    arm: str
    answers: list[Any] = field(default_factory=list)
    took_s: list[float] = field(default_factory=list)
    wall_s: float = 0.0
    worked_s: float = 0.0

    def share_s(self, share: float) -> float:
        """The time that this share of the requests stays below."""
        return sorted(self.took_s)[min(int(share * len(self.took_s)), len(self.took_s) - 1)]

    def figures(self) -> dict[str, float]:
        n = len(self.took_s)
        return {
            "per second": n / self.wall_s,
            "p50": 1000 * self.share_s(0.5),
            "p95": 1000 * self.share_s(0.95),
            "processor": 1000 * self.worked_s / n,
        }


FIGURES = {
    "per second": ("{:.1f}", True),
    "p50": ("{:.0f} ms", False),
    "p95": ("{:.0f} ms", False),
    "processor": ("{:.1f} ms", True),
}
"""How each is shown, and whether its ratio is accelerated by unmodified: of latencies it is the other way round, so
that more is better in all but the processor's."""
Pair = dict[str, Block]


def client(url: str, timeout_s: float | None = None) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, timeout=timeout_s, limits=httpx.Limits(max_connections=None))


async def put_under(server: str, arm: str, kind: Kind, talks: Sequence[Talk], at_once: int) -> Block:
    """`at_once` clients, each of which goes on with the next talk when it has ended one."""
    found: list[list[tuple[Any, float]]] = [[] for _ in talks]
    coming = iter(range(len(talks)))
    async with client(server, LONGEST_S) as http:

        async def one() -> None:
            for number in coming:
                for request in talks[number]:
                    began = time.perf_counter()
                    answer = await _answer(http, kind, request)
                    found[number].append((answer, time.perf_counter() - began))

        began = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(at_once)))
        wall_s = time.perf_counter() - began
    all_of_them = [answered for talk in found for answered in talk]
    return Block(arm, [answer for answer, _ in all_of_them], [took_s for _, took_s in all_of_them], wall_s)


async def _answer(http: httpx.AsyncClient, kind: Kind, request: Request) -> Any:
    try:
        response = await http.post(request.path, json=request.body)
    except httpx.HTTPError as error:
        return Fault(f"{type(error).__name__}: {error}")
    if response.status_code != 200:
        return Fault(f"status {response.status_code}: {response.text[:200]}")
    return kind.answer(response.text)


@dataclass(frozen=True)
class Fault:
    text: str


def wrong(pair: Pair) -> Iterator[str]:
    """A line for each request that failed in an arm, or was answered otherwise."""
    for plain, fast in zip(pair[UNMODIFIED].answers, pair[ACCELERATED].answers, strict=True):
        if isinstance(plain, Fault) or plain != fast:
            yield f"unmodified: {plain}; accelerated: {fast}"


class Arms:
    """The two servers. What a server works between two of its blocks counts for the second one."""

    def __init__(self, kind: Kind, servers: dict[str, Process]) -> None:
        self.kind, self.servers = kind, servers
        self._worked_s: dict[str, float] = {}

    def pair(self, number: int, n: int, at_once: int, seed: str) -> Pair:
        """The same requests to both, by turns to either one first."""
        talks = self.kind.talks(n, f"{seed} {at_once} {number}")
        blocks = {}
        for arm, server in sorted(self.servers.items(), reverse=number % 2 == 1):
            blocks[arm] = asyncio.run(put_under(server.url, arm, self.kind, talks, at_once))
            blocks[arm].worked_s = self.worked_s(arm)
        return blocks

    def worked_s(self, arm: str) -> float:
        """Since the last time."""
        before, self._worked_s[arm] = self._worked_s.get(arm, 0.0), self.servers[arm].worked_s()
        return self._worked_s[arm] - before

    def reported(self) -> dict[str, Any]:
        """What Accel says of one worker."""
        told: dict[str, Any] = httpx.get(f"{self.servers[ACCELERATED].url}/report", timeout=LONGEST_S).json()
        return told


@contextmanager
def arms(kind: Kind, model: Process, workers: int = 1, python: str = sys.executable) -> Iterator[Arms]:
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        start = Start(model.url, False, workers, folder / "plan.json", python)

        def started(arm: str) -> Process:
            server = kind.start(replace(start, accelerated=arm == ACCELERATED))
            closing.callback(server.kill)
            return server

        with ThreadPoolExecutor() as pool:
            servers = dict(zip(BOTH, pool.map(started, BOTH), strict=True))
        yield Arms(kind, servers)


def shown(pairs: dict[int, list[Pair]]) -> Table:
    """By requests at once: medians of the pairs of blocks, and of their ratios, with the range."""
    table = Table("at once", "requests", "", *FIGURES)
    for at_once, found in pairs.items():
        n = len(found[0][UNMODIFIED].answers)
        figures = {arm: [pair[arm].figures() for pair in found] for arm in BOTH}
        for arm, of_arm in figures.items():
            cells = [form.format(median(one[name] for one in of_arm)) for name, (form, _) in FIGURES.items()]
            table.add_row(str(at_once), f"{len(found)} x {n}", arm, *cells)
        both = list(zip(figures[UNMODIFIED], figures[ACCELERATED], strict=True))
        table.add_row("", "", "ratio", *(_ratio(both, name, up) for name, (_, up) in FIGURES.items()), end_section=True)
    return table


def _ratio(both: Sequence[tuple[dict[str, float], dict[str, float]]], name: str, up: bool) -> str:
    ratios = [fast[name] / plain[name] if up else plain[name] / fast[name] for plain, fast in both]
    return f"{median(ratios):.2f}x" + (f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else "")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.serving.load", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("server", choices=KINDS)
    parser.add_argument("--at-once", default="1,16", help="clients at once, one load after the other (default 1,16)")
    parser.add_argument("--requests", type=int, default=96, help="of all blocks to an arm together (default 96)")
    parser.add_argument("--blocks", type=int, default=3, help="pairs of blocks (default 3)")
    parser.add_argument("--workers", type=int, default=1, help="processes of each server (default 1)")
    parser.add_argument("--python", default=sys.executable, help="of the environment that has the server")
    parser.add_argument("--seed", default="0", help="of the questions")
    parser.add_argument("--report", action="store_true", help="print Accel's report at the end")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 140)
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    console.print(f"{options.server}, {options.workers} workers; {os.cpu_count()} processors, load before: {load}")
    faults, pairs = list[str](), dict[int, list[Pair]]()
    with ExitStack() as closing:
        model = model_server()
        closing.callback(model.kill)
        both = closing.enter_context(arms(KINDS[options.server], model, options.workers, options.python))
        faults += wrong(both.pair(-1, max(FIRST, 4 * options.workers), 4, options.seed))
        for at_once in map(int, options.at_once.split(",")):
            n = max(1, options.requests // options.blocks)
            with console.status(f"{at_once} at once"):
                pairs[at_once] = [both.pair(number, n, at_once, options.seed) for number in range(options.blocks)]
            faults += [fault for pair in pairs[at_once] for fault in wrong(pair)]
        told = both.reported()
        for arm, server in both.servers.items():
            took_s = server.terminate(3 * GRACE_S)
            if took_s is None:
                faults.append(f"{arm}: SIGTERM did not end the server in {3 * GRACE_S} s; its grace is {GRACE_S} s")
            else:
                console.print(f"{arm}: SIGTERM ended the server in {took_s:.1f} s", highlight=False)
    console.print(shown(pairs))
    if options.report:
        console.print(told.pop("text", ""), markup=False, highlight=False)
    told.pop("text", None)
    console.print(f"one worker: {told}", highlight=False)
    for fault in faults[:20]:
        console.print(fault, markup=False, highlight=False)
    console.print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
