"""`python -m compat_tests.server --at-once 1,20,60,200 --requests 240`: plain and accelerated under the same load.

Exit code 1 if a request never ended, failed, or got another answer than from the plain graph, or if the server did not
end when it was told to.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import httpx

from compat_tests.server.load import LEAST_BOUND_S, Outcome, end_under_load, put_under, requests, wrong
from compat_tests.server.processes import both
from examples.serving.processes import GRACE_S, Process


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at-once", default="1,20,60,200", help="how many requests at once, one load after the other")
    parser.add_argument("--requests", type=int, default=240, help="in each load (of one at a time, at most 12)")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--report", action="store_true", help="print Accel's report at the end")
    options = parser.parse_args()
    faults: list[str] = []
    with both() as (model, application):
        for at_once in map(int, options.at_once.split(",")):
            n = min(options.requests, 12) if at_once == 1 else options.requests
            faults += run_load(model, application, at_once, n, options.seed)
        told = reported(application)
        _say(f"accelerated: {told['counts']}")
        if options.report:
            _say("\n".join(told["text"].values()))
        faults += end(application, "fast")
    with both() as (model, application):
        faults += end(application, "plain")
    for fault in faults[:20]:
        _say(fault)
    _say(f"{len(faults)} faults")
    return 1 if faults else 0


def run_load(model: Process, application: Process, at_once: int, n: int, seed: str) -> list[str]:
    """Plain and accelerated under the same load, told in a line; what was wrong."""
    asked = requests(n, f"{seed}-{at_once}")
    plain = asyncio.run(put_under(application.url, model.url, "plain", asked, at_once))
    bound_s = LEAST_BOUND_S + 2 * plain.took_s
    fast = asyncio.run(put_under(application.url, model.url, "fast", asked, at_once, bound_s))
    _say("\n".join(_lines(n, plain, fast)))
    return wrong(asked, plain, fast)


def reported(application: Process) -> dict[str, Any]:
    """What Accel says of the accelerated graphs: counts and text, by graph."""
    told: dict[str, Any] = httpx.get(f"{application.url}/report", timeout=LEAST_BOUND_S).json()
    return told


def _lines(n: int, plain: Outcome, fast: Outcome) -> Iterator[str]:
    for outcome in (plain, fast):
        yield (
            f"{outcome.at_once:4} at once, {outcome.arm:5}: {outcome.answered:3} of {n} answered, "
            f"{outcome.answers.count('cancelled'):2} cancelled, {outcome.answers.count('never ended'):2} never ended; "
            f"{outcome.took_s:6.1f} s, {outcome.per_second:5.1f} a second; model served {outcome.served}"
        )
    yield f"{plain.at_once:4} at once: throughput accelerated / plain {fast.per_second / plain.per_second:.2f}"


def end(application: Process, arm: str) -> list[str]:
    took_s = end_under_load(application, arm)
    if took_s is None:
        return [f"{arm}: SIGTERM did not end the application server in {3 * GRACE_S} s, its grace is {GRACE_S} s"]
    _say(f"{arm}: SIGTERM ended the application server in {took_s:.1f} s (grace {GRACE_S} s)")
    return []


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
