"""Runs a random program plain and accelerated, and says where they differ.

python -m compat_tests.differential 1234             # one program: its text, and a smaller one that differs, too
python -m compat_tests.differential 0:2000 --step 2  # many: one line of JSON with the counts
"""

from __future__ import annotations

import argparse
import dataclasses
import faulthandler
import gc
import json
import logging
import math
import random
import re
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any, Protocol

from accel.api import _scopes
from accel.learn import view
from accel.run.gains import hopes
from accel.run.gains.pace import load
from accel.run.plans.saved import save
from compat_tests.arms import Arm, Outcome, Runners
from compat_tests.checks import Egress, calls_differ, foreign_in_plans, other_keys, strangers
from compat_tests.fakes import register_fakes
from compat_tests.prelude import PRELUDE
from compat_tests.probe import early_threads
from compat_tests.programs import Program, Request, generate
from compat_tests.watch import Watch

UNBOUND = re.compile("NameError|UnboundLocalError")
"""What a program raises of which a block is missing that another one needs."""

OWN_ERRORS = {"ModelError", "ValueError", "UnboundLocalError", "OutputParserException"}
"""What programs raise of themselves."""
COUNTED = ("demanded", "issued", "retired", "wasted", "cut", "forks")
session_counts: Counter[str] = Counter()
"""Of all programs that this test session ran; `conftest.py` prints them."""


class Accelerator(Protocol):
    """What is tested: `accel`, or a stand-in for it."""

    def accelerate(self, graph: Any, **options: Any) -> Any: ...

    def settle(self, timeout_s: float = 30.0) -> Any: ...


@dataclass
class Verdict:
    differences: list[str]
    disclosures: list[str]
    demanded: int = 0
    issued: int = 0
    retired: int = 0
    wasted: int = 0
    cut: int = 0
    """Runs that were cut off."""
    forks: int = 0


def check(program: Program, accelerator: Accelerator) -> Verdict:
    """Runs the requests in both arms; the accelerated one first, so that the plain one can replay its samples."""
    rng = random.Random(program.seed)
    options: dict[str, Any] = {"egress": "inputs"} if rng.random() < (0.7 if "gated" in program.uses else 0.2) else {}
    if rng.random() < 0.2:
        options["speculate"] = "likely"
    # In half of the programs every call takes a moment, so that early calls get somewhere before they are demanded.
    fast_probe = Watch(program.seed, delay_share=1.0 if program.seed % 4 < 2 else 0.1)
    slow_probe = Watch(program.seed + 1, delay_share=0.0)

    def wrap(graph: Any, tenant: str) -> Any:
        scope = {"plan_scope": f"tenant {tenant} of program {program.seed}"} if tenant else {}
        return accelerator.accelerate(graph, **options, **scope)

    fast = Arm(program, fast_probe, wrap)
    slow = Arm(program, slow_probe, lambda graph, tenant: graph)
    complaints: list[str] = []
    all_held = ""
    changed: set[str] = set()
    verdict = Verdict([], [])
    overlap = not program.keeps_state and len(program.requests) > 3 and rng.random() < 0.25
    numbered = list(enumerate(program.requests))
    groups = [numbered[i : i + 1] for i in range(len(numbered) - 2 * overlap)] + ([numbered[-2:]] if overlap else [])
    egress = Egress(program, relaxed="egress" in options)

    with complaining(complaints), Runners(program.is_async, complaints) as runners:
        for group in groups:
            held = repr([fast.parts.stored(), fast.around.stored()])
            fast_outcomes = runners.run(fast, group)
            slow_probe.replay = replay_of(fast)
            slow_outcomes = [runners.run(slow, [one])[0] for one in group]
            cut_off = runs_cut_off(program, group, slow_outcomes)
            verdict.differences += compare(cut_off, group, fast, slow, fast_outcomes, slow_outcomes)
            if cut_off:  # the program itself may have got further than plain
                slow_probe.reached += [one for one in fast_probe.reached if not one.call.early]
            verdict.disclosures += egress.disclosures(fast_probe, slow_probe)
            held += repr([fast.parts.stored(), fast.around.stored()])
            verdict.disclosures += strangers(program, fast_probe, slow_probe, held)
            before, changed = changed, changed | rekeyed(slow)
            verdict.disclosures += other_keys(fast_probe, slow_probe, changed, before)
            all_held += held
            verdict.cut += sum(request.cut not in ("", "fork") for _, request in group)
            verdict.forks += sum(bool(outcome.in_child) for outcome in fast_outcomes)
            fast.around.asked |= {(call.component, call.text) for _, call in slow_probe.reached}
            fast.forget()
            slow.forget()
            if rng.random() < 0.7 or group[0][0] == 0:
                accelerator.settle()
            if verdict.differences or verdict.disclosures:
                break
        for arm in (fast, slow):
            runners.close_kept(arm)
    if any(count > 1 for count in Counter(fast.sample_ids).values()):
        verdict.differences.append(f"a sample was used twice: {fast.sample_ids}")
    verdict.differences += fast_probe.violations + slow_probe.violations + complaints
    if all(hasattr(graph, "report") for graph in fast.graphs.values()):
        accelerator.settle()
        verdict.disclosures += foreign_in_plans(fast.graphs, saved_plan, all_held)
        for report in (graph.report() for graph in fast.graphs.values()):
            for name in ("demanded", "issued", "retired", "wasted"):
                setattr(verdict, name, getattr(verdict, name) + getattr(report, name))
    _scopes.clear()  # plans of tenants live as long as the process: these tenants won't come back
    if verdict.retired > verdict.demanded:
        verdict.differences.append(f"the report's counts contradict each other: {verdict}")
    return verdict


def rekeyed(arm: Arm) -> set[str]:
    """Components to which the program has given another key."""
    models = (arm.parts.remote, arm.parts.abroad)
    return {model.name_in_log for model in models if model.api_key != type(model)(arm.probe).api_key}


def saved_plan(graph: Any) -> str:
    with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
        save(graph.plan, file.name)  # also where there is nothing to save, of which users are told
        return file.read()


def replay_of(fast: Arm) -> dict[str, list[int]]:
    """The samples that the accelerated program was given since the last call, by prompt."""
    samples: dict[str, list[int]] = {}
    for text, variant in fast.sampled:
        samples.setdefault(text, []).append(variant)
    fast.sampled.clear()
    return samples


def runs_cut_off(program: Program, group: list[tuple[int, Request]], want: list[Outcome]) -> set[str]:
    """Runs of which it is a matter of time how far they get: cancelled ones, and those where nodes run side by side and
    one raises."""
    timely = "concurrent" in program.uses
    return {
        f"r{position}"
        for (position, request), outcome in zip(group, want, strict=True)
        if (timely and (outcome.raised is not None or request.cut not in ("", "fork")))
        or request.cut.startswith(("cancel", "timeout"))
    }


def how_it_ended(outcome: Outcome) -> Outcome:
    """Of a run that may have been timed out: it was, it ended, or it raised what programs raise."""
    usual = outcome.timed_out or outcome.raised is None or outcome.raised[0] in OWN_ERRORS
    return Outcome(None, None if usual else outcome.raised, [], None, None, outcome.tasks_left)


def compare(
    cut_off: set[str], group: list[tuple[int, Request]], fast: Arm, slow: Arm, got: list[Outcome], want: list[Outcome]
) -> list[str]:
    found = []
    for (position, request), fast_outcome, slow_outcome in zip(group, got, want, strict=True):
        if request.cut.startswith("timeout") and (fast_outcome.timed_out or slow_outcome.timed_out):
            # How far it got by then is a matter of time; what else it may raise, and that nothing is left, isn't.
            fast_outcome, slow_outcome = how_it_ended(fast_outcome), how_it_ended(slow_outcome)
        for name in (entry.name for entry in dataclasses.fields(Outcome)):
            a, b = getattr(fast_outcome, name), getattr(slow_outcome, name)
            if name == "in_child" and len(group) > 1:
                continue  # plain runs are one by one: only they fork
            if "siblings" in fast.program.uses and a and b and name in ("raised", "lines_raised_at"):
                continue  # where several nodes raise, the first one is a matter of time
            if a != b:
                found.append(f"run {position} {request}: {name}\n  accelerated: {a}\n  plain:       {b}")
    for name in ("seen", "effects"):
        a, b = getattr(fast, name), getattr(slow, name)
        for key in sorted(a.keys() | b.keys()):
            left, right = a.get(key), b.get(key)
            if cut_off and key.partition("/")[0] in cut_off:
                shorter = min(len(left or ()), len(right or ()))
                left, right = (left or [])[:shorter], (right or [])[:shorter]
            if left != right:
                found.append(f"{name} at {key}\n  accelerated: {a.get(key)}\n  plain:       {b.get(key)}")
    timely = "concurrent" in fast.program.uses
    if not timely and len(group) == 1 and not cut_off and fast.order != slow.order:
        found.append(f"order of calls and effects\n  accelerated: {fast.order}\n  plain:       {slow.order}")
    if not cut_off:
        found += calls_differ(fast.probe, slow.probe, slow.turns, fast.around)
    for unused in (*fast.probe.limits.values(), *slow.probe.limits.values()):
        unused.clear()
    return found


class complaining(logging.Handler):
    """Collects what is only mentioned on stderr: exceptions in threads and destructors, coroutines never awaited, and
    errors that the accelerator logs (defects of its own, which it keeps from the program)."""

    def __init__(self, complaints: list[str]) -> None:
        super().__init__(logging.ERROR)
        self.complaints = complaints

    def emit(self, record: logging.LogRecord) -> None:
        where = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
        self.complaints.append(f"log: {record.getMessage()}\n{where}")

    def __enter__(self) -> None:
        logging.getLogger("accel").addHandler(self)
        self.hooks = threading.excepthook, sys.unraisablehook
        threading.excepthook = lambda args: self.complaints.append(f"thread: {args.exc_value!r}")
        sys.unraisablehook = lambda args: self.complaints.append(f"unraisable: {args.exc_value!r} {args.object!r}")

    def __exit__(self, *raised: object) -> None:
        gc.collect(0)
        logging.getLogger("accel").removeHandler(self)
        threading.excepthook, sys.unraisablehook = self.hooks


def shrink(program: Program, accelerator: Accelerator, attempts: int = 3, within_s: float = 40.0) -> Program:
    """Drops blocks and requests while the arms still differ (a race may need several attempts to show)."""
    smaller, until = True, time.monotonic() + within_s
    while smaller:
        smaller = False
        for candidate in program.smaller():
            if time.monotonic() > until:
                break
            verdicts = (check(candidate, accelerator) for _ in range(attempts))
            if any((v.differences or v.disclosures) and not UNBOUND.search("".join(v.differences)) for v in verdicts):
                program, smaller = candidate, True
                break
    return program


class Plain:
    """Accelerates nothing: the arms must be equal, or the programs aren't deterministic."""

    def accelerate(self, graph: Any, **options: Any) -> Any:
        return graph

    def settle(self, timeout_s: float = 30.0) -> None:
        pass


def with_chaos() -> Accelerator:
    """The accelerator itself, with tiny random delays before early calls, so that completions come in any order."""
    import accel
    import accel.process.threads

    draw = random.Random(0)

    def before_call() -> None:
        early_threads.add(threading.current_thread())
        if draw.random() < 0.3:
            time.sleep(draw.uniform(0.0, 0.001))

    register_fakes(accel.register)
    accel.process.threads.before_call = before_call
    return accel  # type: ignore[return-value]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seeds", help="one seed, or first:end")
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="compare plain with plain")
    parser.add_argument("--no-shrink", action="store_true")
    arguments = parser.parse_args()
    load.enabled = False  # the machine may be busy with something else
    view.AT_ONCE_S = -1.0  # components here take no time: everything would follow at once, and nothing would be early
    first, _, end = arguments.seeds.partition(":")
    warnings.simplefilter("error", RuntimeWarning)
    sys.setswitchinterval(0.0005)  # Threads change places often: more orders of events are seen.
    accelerator: Accelerator = Plain() if arguments.plain else with_chaos()
    counts: Counter[str] = Counter()
    for seed in range(int(first), int(end or int(first) + 1), arguments.step):
        faulthandler.dump_traceback_later(60, exit=True)
        # Likewise: every program would rest. One in ten may, so that runs are also met that nobody follows.
        hopes.LEAST_S = 0.0 if seed % 10 == 7 else math.inf
        program = generate(seed)
        verdict = check(program, accelerator)
        wrong = bool(verdict.differences or verdict.disclosures)
        counts.update(programs=1, **{program.is_async and "async" or "sync": 1})
        counts.update(mismatches=bool(verdict.differences), disclosures=bool(verdict.disclosures))
        counts.update(issuing=bool(verdict.issued))
        counts.update({name: getattr(verdict, name) for name in COUNTED})
        if wrong or not end:
            faulthandler.dump_traceback_later(600, exit=True)
            if wrong and not arguments.no_shrink and counts["mismatches"] + counts["disclosures"] <= 3:
                small = shrink(program, accelerator)
                again = (check(small, accelerator) for _ in range(9))
                program, verdict = small, next((v for v in again if v.differences or v.disclosures), verdict)
            found = "\n".join([*verdict.differences, *(f"disclosed: {text}" for text in verdict.disclosures)])
            requests = "\n".join(map(str, [program.setting, *program.requests]))
            sys.stdout.write(
                f"=== seed {seed}\n{program.source[len(PRELUDE) :]}\n{requests}\n{found or 'no difference'}\n"
                f"reproduce: python -m compat_tests.differential {seed}\n"
            )
    faulthandler.cancel_dump_traceback_later()
    sys.stdout.write(json.dumps(counts) + "\n")
    return bool(counts["mismatches"] + counts["disclosures"])


if __name__ == "__main__":
    sys.exit(main())
