"""Runs a random program plain and accelerated, and says where they differ.

python -m compat_tests.differential 1234             # one program: its text, and a smaller one that differs, too
python -m compat_tests.differential 0:2000 --step 2  # many: one line of JSON with the counts
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import faulthandler
import gc
import itertools
import json
import logging
import random
import re
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, Protocol

from accel_langgraph.testing.normal import plain
from compat_tests.answers import ModelError, sampled
from compat_tests.fakes import TENANT, Parts, register_fakes
from compat_tests.probe import Probe, early_threads, is_early
from compat_tests.programs import PRELUDE, Program, Request, generate

session_counts: Counter[str] = Counter()
"""Of all programs that this test session ran; `conftest.py` prints them."""


class Accelerator(Protocol):
    """What is tested: `accel`, or a stand-in for it."""

    def accelerate(self, graph: Any, **options: Any) -> Any: ...

    def settle(self, timeout_s: float = 30.0) -> Any: ...


@dataclass
class Outcome:
    """All that one run of a program did, as its user can see it."""

    result: Any
    raised: Any
    lines_raised_at: list[int]
    input_after: Any
    stored: Any


@dataclass(eq=False)
class Arm:
    """One copy of a program with components of its own."""

    program: Program
    probe: Probe
    wrap: Callable[[Any], Any]
    seen: dict[str, list[Any]] = field(default_factory=dict)
    effects: dict[str, list[Any]] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    sample_ids: list[str] = field(default_factory=list)
    sampled: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parts = Parts(self.probe)
        self.stumbled: set[str] = set()
        namespace = {
            **self.parts.namespace(),
            "seen": self.log_seen,
            "effect": self.log_effect,
            "stumble_once": self.stumble_once,
            "counter": itertools.count(),
        }
        self.graph = self.wrap(self.program.build(namespace))

    def log_seen(self, key: str, value: Any) -> Any:
        self.seen.setdefault(key, []).append(plain(value))
        self.order.append(key)
        sample = getattr(value, "response_metadata", {}).get("sample")
        if sample:
            self.sample_ids.append(value.id)
            self.sampled.append((sample[0], sample[1]))
            if sampled(sample[0], sample[1]) != value.content:
                self.probe.violations.append(f"not an answer to {sample[0]!r}: {value.content!r}")
        return value

    def log_effect(self, key: str, value: Any) -> None:
        if is_early():
            self.probe.violations.append(f"effect {value!r} of {key} in an early call")
        self.effects.setdefault(key, []).append(plain(value))
        self.order.append(key)

    def stumble_once(self, key: str) -> None:
        if key not in self.stumbled:
            self.stumbled.add(key)
            self.log_effect(key, "stumbled")
            raise ModelError("try again")

    def run(self, position: int, request: Request, runner: asyncio.Runner | None) -> Outcome:
        given = {
            "run": f"r{position}",
            "question": request.question,
            "items": list(request.items),
            "text": request.items[0] if request.items else "nothing",
        }
        config = {"configurable": {"user": request.user}}
        context = copy_context()
        context.run(TENANT.set, request.tenant)
        result, error = None, None
        try:
            if runner:
                result = runner.run(self.arun(given, config, request.mode), context=context)
            elif request.mode == "invoke":
                result = context.run(self.graph.invoke, given, config)
            else:
                result = context.run(lambda: list(self.graph.stream(given, config, stream_mode=request.mode)))
        except Exception as caught:  # noqa: BLE001 - whatever a program raises is compared
            error = caught
        if request.mode == "updates" and "concurrent" in self.program.uses and result:
            result.sort(key=repr)  # Nodes side by side finish in any order.
        frames = traceback.extract_tb(error.__traceback__) if error else []
        lines = [frame.lineno or 0 for frame in frames if frame.filename.startswith("/programs/")]
        return Outcome(plain(result), plain(error), lines, plain(given), self.parts.stored())

    async def arun(self, given: dict[str, Any], config: dict[str, Any], mode: str) -> Any:
        if mode == "invoke":
            return await self.graph.ainvoke(given, config)
        return [chunk async for chunk in self.graph.astream(given, config, stream_mode=mode)]


@dataclass
class Verdict:
    differences: list[str]
    demanded: int = 0
    issued: int = 0
    retired: int = 0
    wasted: int = 0


def check(program: Program, accelerator: Accelerator) -> Verdict:
    """Runs the requests in both arms; the accelerated one first, so that the plain one can replay its samples."""
    rng = random.Random(program.seed)
    options: dict[str, Any] = {"egress": "inputs"} if rng.random() < 0.2 else {}
    if rng.random() < 0.2:
        options["speculate"] = "likely"
    # In half of the programs every call takes a moment, so that early calls get somewhere before they are demanded.
    fast_probe = Probe(program.seed, delay_share=1.0 if program.seed % 4 < 2 else 0.1)
    slow_probe = Probe(program.seed + 1, delay_share=0.0)
    fast = Arm(program, fast_probe, lambda graph: accelerator.accelerate(graph, **options))
    slow = Arm(program, slow_probe, lambda graph: graph)
    differences: list[str] = []
    complaints: list[str] = []
    overlap = not program.keeps_state and len(program.requests) > 3 and rng.random() < 0.25
    numbered = list(enumerate(program.requests))
    groups = [numbered[i : i + 1] for i in range(len(numbered) - 2 * overlap)] + ([numbered[-2:]] if overlap else [])
    endpoint = Endpoint(program, relaxed="egress" in options)

    with complaining(complaints), Runners(program.is_async, complaints) as runners:
        for group in groups:
            fast_probe.calls.clear()
            slow_probe.calls.clear()
            fast_outcomes = runners.run(fast, group)
            slow_probe.replay = replay_of(fast)
            slow_outcomes = [runners.run(slow, [one])[0] for one in group]
            differences += compare(program, group, fast, slow, fast_outcomes, slow_outcomes)
            differences += endpoint.differences(fast_probe, slow_probe)
            if rng.random() < 0.7 or group[0][0] == 0:
                accelerator.settle()
            if differences:
                break
    if any(count > 1 for count in Counter(fast.sample_ids).values()):
        differences.append(f"a sample was used twice: {fast.sample_ids}")
    differences += fast_probe.violations + slow_probe.violations + complaints
    report = fast.graph.report() if hasattr(fast.graph, "report") else Verdict([])
    if report.retired > report.demanded:
        differences.append(f"the report's counts contradict each other: {report}")
    return Verdict(differences, report.demanded, report.issued, report.retired, report.wasted)


def replay_of(fast: Arm) -> dict[str, list[int]]:
    """The samples that the accelerated program was given since the last call, by prompt."""
    samples: dict[str, list[int]] = {}
    for text, variant in fast.sampled:
        samples.setdefault(text, []).append(variant)
    fast.sampled.clear()
    return samples


def compare(
    program: Program, group: list[tuple[int, Request]], fast: Arm, slow: Arm, got: list[Outcome], want: list[Outcome]
) -> list[str]:
    found = []
    for (position, request), fast_outcome, slow_outcome in zip(group, got, want, strict=True):
        for name in (entry.name for entry in dataclasses.fields(Outcome)):
            a, b = getattr(fast_outcome, name), getattr(slow_outcome, name)
            if a != b:
                found.append(f"run {position} {request}: {name}\n  accelerated: {a}\n  plain:       {b}")
    # Where nodes run side by side and one raises, how far its siblings got is a matter of time.
    raised = {f"r{position}" for (position, _), outcome in zip(group, want, strict=True) if outcome.raised is not None}
    cut_off = raised if "concurrent" in program.uses else set()
    for name in ("seen", "effects"):
        a, b = getattr(fast, name), getattr(slow, name)
        for key in sorted(a.keys() | b.keys()):
            left, right = a.get(key), b.get(key)
            if cut_off and key.partition("/")[0] in cut_off:
                shorter = min(len(left or ()), len(right or ()))
                left, right = (left or [])[:shorter], (right or [])[:shorter]
            if left != right:
                found.append(f"{name} at {key}\n  accelerated: {a.get(key)}\n  plain:       {b.get(key)}")
    if "concurrent" not in program.uses and len(group) == 1 and fast.order != slow.order:
        found.append(f"order of calls and effects\n  accelerated: {fast.order}\n  plain:       {slow.order}")
    for arm in (fast, slow):
        arm.order.clear()
        arm.seen.clear()
        arm.effects.clear()
    return found


class Endpoint:
    """What the remote endpoint was told. By default it learns nothing that plain doesn't tell it in this run.

    Words are compared, not prompts: a wrong guess may be sent if all in it is known there, or is the program's own
    text. What two earlier runs sent counts as the program's own.
    """

    def __init__(self, program: Program, *, relaxed: bool) -> None:
        self.relaxed = relaxed
        self.own_text = program.source.lower()
        self.earlier: list[str] = []

    def differences(self, fast: Probe, slow: Probe) -> list[str]:
        sent = {call.text for call in slow.calls if call.component == "remote"}
        answers = [call.answer or "" for probe in (fast, slow) for call in probe.calls if call.component == "remote"]
        known = "\n".join([*sent, *answers]).lower()
        before = self.earlier
        # A call that started as the last run ended may arrive now.
        haystack = "\n".join([self.own_text, known, *before[-1:]])
        found = []
        for call in list(fast.calls):
            if call.component != "remote" or call.text in sent or self.relaxed:
                continue
            for word in re.findall(r"[\w@.]+\w", call.text.lower()):
                if word not in haystack and sum(word in text for text in before) < 2:
                    found.append(f"the endpoint learnt {word!r} from {call.text!r}; plain sends {sorted(sent)}")
        self.earlier.append(known)
        return found


class Runners:
    """Runs requests one by one, or side by side in two threads; asynchronous programs in an event loop per thread."""

    def __init__(self, is_async: bool, complaints: list[str]) -> None:
        self.loops = [asyncio.Runner() for _ in range(2)] if is_async else []
        for runner in self.loops:
            runner.get_loop().set_exception_handler(lambda _, context: complaints.append(f"event loop: {context}"))

    def __enter__(self) -> Runners:
        return self

    def __exit__(self, *raised: object) -> None:
        for runner in self.loops:
            runner.close()

    def run(self, arm: Arm, group: list[tuple[int, Request]]) -> list[Outcome]:
        loops: list[asyncio.Runner | None] = [*self.loops] or [None, None]
        if len(group) == 1:
            return [arm.run(*group[0], loops[0])]
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda one, loop: arm.run(*one, loop), group, loops))


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
            if any(v.differences and "NameError" not in "".join(v.differences) for v in verdicts):
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
    import accel.run.threads

    draw = random.Random(0)

    def before_call() -> None:
        early_threads.add(threading.current_thread())
        if draw.random() < 0.3:
            time.sleep(draw.uniform(0.0, 0.001))

    register_fakes(accel.register)
    accel.run.threads.before_call = before_call
    return accel  # type: ignore[return-value]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seeds", help="one seed, or first:end")
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="compare plain with plain")
    parser.add_argument("--no-shrink", action="store_true")
    arguments = parser.parse_args()
    first, _, end = arguments.seeds.partition(":")
    warnings.simplefilter("error", RuntimeWarning)
    sys.setswitchinterval(0.0005)  # Threads change places often: more orders of events are seen.
    accelerator: Accelerator = Plain() if arguments.plain else with_chaos()
    counts: Counter[str] = Counter()
    for seed in range(int(first), int(end or int(first) + 1), arguments.step):
        faulthandler.dump_traceback_later(60, exit=True)
        program = generate(seed)
        verdict = check(program, accelerator)
        counts.update(programs=1, mismatches=bool(verdict.differences), **{program.is_async and "async" or "sync": 1})
        counts.update({name: getattr(verdict, name) for name in ("demanded", "issued", "retired", "wasted")})
        if verdict.differences or not end:
            faulthandler.dump_traceback_later(600, exit=True)
            if verdict.differences and not arguments.no_shrink and counts["mismatches"] <= 3:
                small = shrink(program, accelerator)
                again = next((v for v in (check(small, accelerator) for _ in range(9)) if v.differences), verdict)
                program, verdict = small, again
            differences = "\n".join(verdict.differences) or "no difference"
            requests = "\n".join(map(str, program.requests))
            sys.stdout.write(
                f"=== seed {seed}\n{program.source[len(PRELUDE) :]}\n{requests}\n{differences}\n"
                f"reproduce: python -m compat_tests.differential {seed}\n"
            )
    faulthandler.cancel_dump_traceback_later()
    sys.stdout.write(json.dumps(counts) + "\n")
    return bool(counts["mismatches"])


if __name__ == "__main__":
    sys.exit(main())
