"""One public program in a process of its own: unmodified and accelerated in turns, then with what the report advises.

Prints nothing of the program; the record is JSON.
"""

from __future__ import annotations

import ast
import asyncio
import faulthandler
import io
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, field, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import accel
from accel.graph.ops import OPS
from accel.graph.rules import UNLEARNT
from accel.learn.check import ties
from accel.parts.components import function_of
from accel.process import clock
from accel.reports.limits.limit import best_of, latencies
from accel.reports.limits.workload import Unbatched
from accel.reports.rows import MAX_CALLS, why
from accel.run.gains.soonest import Best
from accel.run.gains.worth import tokens_of
from accel.run.plans.plan import Plan
from accel.run.settings import Counts, Settings
from accel.text.values import freeze
from accel.trace.flow import WHOLE, events_of
from accel.trace.record import CallRecord, Trace
from accel.trace.sites import where
from bench.measure import ACCELERATED, UNMODIFIED
from bench.recorder import recorder
from bench.strangers.programs import SUBJECTS, Loader, Stranger
from bench.strangers.services import WAITS_S, Services, set_pace
from bench.strangers.transports import install

WARM = 3
STEADY = 4
REQUESTS = WARM + STEADY
SETTINGS = {"egress", "speculate"}
"""Options that the report may name and that promise nothing of the program's nodes or tenants."""
FOR_WORK_S, FOR_WAITS_S = 190.0, 2_000.0
"""So long, and so much longer at the usual pace: then it says where all threads are, and ends."""
SOONER_S = 0.01
"""A call is predictable if its input is complete so much before the program makes it."""
DEFAULT, ADVISED = "default", "advised"
CLIENTS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("langchain_openai", "ChatOpenAI", {"model": "gpt-4o"}),
    ("langchain_anthropic", "ChatAnthropic", {"model": "claude"}),
)
_VOLATILE = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?|\b\d\d:\d\d:\d\d(\.\d+)?\b|0x[0-9a-f]{6,}"
    r"|\b[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\b"
)
"""What no two runs share: times, addresses of objects, made-up ids."""


class RemoteWork(Unbatched):
    """What a run asks of services that answer everyone at once."""

    def _known_s(self, number: int, share: float, start: Sequence[float], over: Sequence[float]) -> float:
        """When that share of an answer is known if somebody reads it as it comes: only `unbounded_s` asks."""
        call = self.events[number].call
        if call is None or share >= WHOLE or OPS[call.op].engine != "llm":
            return over[number]
        took_s = over[number] - start[number]
        first_s = min(took_s, WAITS_S["first token"] + call.tokens[0] * WAITS_S["prompt token"])
        return start[number] + first_s + share * (took_s - first_s)


@dataclass
class Request:
    number: int
    seconds: dict[str, float] = field(default_factory=dict)
    processor_s: dict[str, float] = field(default_factory=dict)
    equal: bool = True
    different: str = ""
    varies: bool = False
    """The unmodified program answers differently, too, if it is asked again."""
    asked_all: bool = True
    """Whether the services were asked all that the unmodified program asked them."""
    calls: int = 0
    tokens: int = 0
    limit_s: float = 0.0
    streamed_s: float = 0.0
    """The limit if every answer were read as it comes."""
    predictable: int = 0
    early: int = 0
    """Of the predictable calls, those that an early one answered."""
    counts: dict[str, int] = field(default_factory=dict)
    said: dict[str, float] = field(default_factory=dict)
    """What the report promised for each line, of this request as the last one,"""
    said_together_s: float = 0.0
    """and for all of them."""
    held: list[dict[str, Any]] = field(default_factory=list)
    """The other predictable calls: rule, sentence, where, operation, and by how many seconds they could be sooner."""


class Arms:
    """The program's object, as it is and accelerated."""

    def __init__(self, stranger: Stranger, app: Any, services: Services, runner: asyncio.Runner) -> None:
        self.stranger, self.app, self.services, self.runner = stranger, app, services, runner
        self.turns: list[Trace] = []
        """What was followed of the last request: a run, or two that a pause parts."""
        self._seconds = self._worked_s = 0.0
        self._fewest: dict[int, Mapping[str, int]] = {}
        self._asked = 0

    def phase(self, options: Mapping[str, Any], log: list[str]) -> tuple[list[Request], Any]:
        fast = accel.accelerate(self.app, **options)
        recorded = recorder(self.app)
        self._fewest = {}
        found = []
        # What a program imports and connects with its first request is not Accel's.
        self.ask(self.app, self.stranger.value(SUBJECTS[-1]))
        for number in range(REQUESTS):
            request = Request(number)
            value_of = self.stranger.value
            told: dict[str, Any] = {}
            sent: dict[str, Counter[str]] = {}
            turns: list[Trace] = []
            for arm, app in ((UNMODIFIED, self.app), (ACCELERATED, fast))[:: 1 if number % 2 else -1]:
                self.services.taken()
                request.seconds[arm], request.processor_s[arm], told[arm] = self.ask(
                    app, value_of(SUBJECTS[number % len(SUBJECTS)])
                )
                sent[arm] = self.services.taken()
                turns = self.turns if app is fast else turns
            request.equal = told[UNMODIFIED] == told[ACCELERATED]
            if not request.equal:
                request.different = difference(told[UNMODIFIED], told[ACCELERATED])
                *_, again = self.ask(self.app, value_of(SUBJECTS[number % len(SUBJECTS)]))
                request.varies = again != told[UNMODIFIED]
            missing = sorted(set(sent[UNMODIFIED]) - set(sent[ACCELERATED]))
            request.asked_all = not missing
            if missing:
                log.append(f"request {number + 1}: not asked for when accelerated: {', '.join(missing)[:200]}")
            if turns:  # else it was at rest
                request.counts = asdict(sum(list(fast.plan.history)[-len(turns) :], Counts()))
                request.tokens = sum(tokens_of(call) for turn in turns for call in turn.calls)
            if number >= WARM:
                self.ask(recorded, value_of(SUBJECTS[number % len(SUBJECTS)]))
                report = fast.report()
                request.said = {each.line: each.gain_s for each in report.declarations}
                request.said_together_s = report.advice.gain_s
                self.judge(request, turns, fast.plan, fast._accel.settings)
            found.append(request)
            raised = told[UNMODIFIED][0] == "raised" and told[UNMODIFIED] or None
            if raised:
                log.append(f"request {number + 1}: the unmodified program raised: {raised}")
        return found, fast

    def ask(self, app: Any, value: Any) -> tuple[float, float, Any]:
        """Seconds, seconds of the processor without what the services took, and what came of it: of both turns, if the
        program pauses for a person."""
        self._asked += 1
        config = {"recursion_limit": 60, **self.stranger.config}
        if getattr(app, "checkpointer", None):
            config["configurable"] = {"thread_id": f"thread {self._asked}", **config.get("configurable", {})}
        self.turns, self._seconds, self._worked_s = [], 0.0, 0.0
        try:
            output = self._turn(app, value, config)
            if self.stranger.approves is not None:
                self.stranger.approves(app, config)
                output = self._turn(app, None, config)
            told = ["answered", plain(output)]
        except Exception as error:  # noqa: BLE001 - whatever a public program raises
            told = ["raised", type(error).__name__, _VOLATILE.sub("", str(error))[:500]]
        return self._seconds, self._worked_s, told

    def _turn(self, app: Any, value: Any, config: Mapping[str, Any]) -> Any:
        ask = self.stranger.ask or (_query if self.stranger.framework == "LlamaIndex" else _invoke)
        plan = getattr(app, "plan", None)
        followed = plan.runs if plan is not None else 0
        served_s = self.services.worked_s
        began, worked = clock.now_s(), time.process_time()
        try:
            if self.stranger.awaited:
                return self.runner.run(_awaited(ask, app, value, config))
            return ask(app, value, config)
        finally:
            self._seconds += clock.now_s() - began
            self._worked_s += time.process_time() - worked - (self.services.worked_s - served_s)
            accel.settle()
            if plan is not None and plan.runs > followed and plan.last is not None:
                self.turns.append(plan.last)

    def judge(self, request: Request, followed: Sequence[Trace], plan: Plan, settings: Settings) -> None:
        """What could have been early, what was, and the limit: of all turns of the request, each with a schedule of its
        own."""
        request.calls = sum(len(turn.calls) for turn in self.turns)
        last = plan.last
        if last is None or not all(turn.completed and 0 < len(turn.calls) <= MAX_CALLS for turn in self.turns):
            return
        early = Counter(_key(call) for turn in followed for call in turn.calls if call.retired)
        for number, recorded in enumerate(self.turns):
            counts = Counter(call.site for call in recorded.calls)
            before = self._fewest.get(number, counts)
            fewest = {site: min(before.get(site, 0), counts[site]) for site in {**before, **counts}}
            self._fewest[number] = fewest
            known = ties(plan.learnt, recorded, fewest)
            events = events_of(recorded, plan.topology, known.deciding, known.using)
            work = RemoteWork(events, {}, {}, latencies([recorded]))
            found = best_of(work)
            request.limit_s += found.makespan_s
            request.streamed_s += work.unbounded_s()
            sooner = [placed for placed in found.schedule if placed.sooner_s > SOONER_S and not placed.call.composite]
            request.predictable += len(sooner)
            for placed in sooner:
                key = _key(placed.call)
                if early[key]:
                    early[key] -= 1
                    request.early += 1
                else:
                    request.held.append(_held(plan, last, settings, placed.call, placed.sooner_s))


def _key(call: CallRecord) -> Any:
    return call.site, freeze(call.input)


def _held(plan: Plan, trace: Trace, settings: Settings, call: CallRecord, sooner_s: float) -> dict[str, Any]:
    """What the plan says of a call that was not early though it could have been."""
    reason = why(plan, trace, settings, call, sooner_s, Best(0.0, {}, {}))
    rule, said = str(reason) if reason.rule is UNLEARNT else reason.rule.name, str(reason)
    return {
        "rule": rule, "said": said[:400], "where": f"{call.site.split('|', 1)[0] or 'no node'} ({where(call.site)})",
        "op": call.op, "component": type(call.component).__name__, "sooner_s": sooner_s,
    }  # fmt: skip


# --- asking


def _invoke(app: Any, value: Any, config: Mapping[str, Any]) -> Any:
    return app.invoke(value, config)


def _query(app: Any, value: Any, config: Mapping[str, Any]) -> Any:
    return app.query(value)


async def _awaited(ask: Any, app: Any, value: Any, config: Mapping[str, Any]) -> Any:
    if ask is _invoke:
        return await app.ainvoke(value, config)
    if ask is _query:
        return await app.aquery(value)
    return await ask(app, value, config)


# --- what came of it


def plain(value: Any) -> Any:
    """As JSON, without what no two runs share."""
    from langchain_core.messages import BaseMessage

    if isinstance(value, BaseMessage):
        calls = getattr(value, "tool_calls", None) or []
        return [value.type, plain(value.content), [[call["name"], plain(call["args"])] for call in calls]]
    if hasattr(value, "source_nodes") and hasattr(value, "metadata"):
        return [_VOLATILE.sub("", str(value)), [[node.node.text, node.score] for node in value.source_nodes]]
    if hasattr(value, "node") and hasattr(value, "score"):
        return [value.node.get_content(), value.score]
    if hasattr(value, "model_dump"):
        return {key: plain(getattr(value, key)) for key in type(value).model_fields if key not in ("id", "id_")}
    if is_dataclass(value) and not isinstance(value, type):
        return {key: plain(item) for key, item in vars(value).items()}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = [plain(item) for item in value]
        return sorted(items, key=str) if isinstance(value, set | frozenset) else items
    if isinstance(value, bool | int | float) or value is None:
        return value
    return _VOLATILE.sub("", str(value))


def difference(one: Any, other: Any, path: str = "") -> str:
    """Where two plain values differ first."""
    if type(one) is type(other) and isinstance(one, dict):
        for key in {**one, **other}:
            if one.get(key) != other.get(key):
                return difference(one.get(key), other.get(key), f"{path}.{key}")
    if type(one) is type(other) and isinstance(one, list) and len(one) == len(other):
        for number, (a, b) in enumerate(zip(one, other, strict=True)):
            if a != b:
                return difference(a, b, f"{path}[{number}]")
    return f"{path}: {str(one)[:200]!r} / {str(other)[:200]!r}"


# --- what the report advises


def _given(line: str) -> dict[str, Any] | None:
    """The options that a line gives `accelerate`, None if it is another one. Names in it stand for themselves."""
    call = ast.parse(line, mode="eval").body
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != "accel.accelerate":
        return None
    return {str(each.arg): _literal(each.value) for each in call.keywords}


def _literal(value: ast.expr) -> Any:
    return value.id if isinstance(value, ast.Name) else ast.literal_eval(value)


def advised(fast: Any, imported: Mapping[str, Any], log: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Declares what the report names; the options of `accelerate` that it names, and the lines that were followed.
    imported: what the program's own modules know by name."""
    report = fast.report()
    trace = fast.plan.last
    names = {**imported, **{type(c.component).__name__: type(c.component) for c in (trace.calls if trace else ())}}
    for use in trace.uses if trace else ():
        function = function_of(use.tool)
        made = function.__globals__ if function is not None else {}
        names |= {name: value for name, value in list(made.items()) if value is use.tool}
    options: dict[str, Any] = {}
    followed = []
    for line in dict.fromkeys(
        [*(each.line for each in report.declarations), *(each.line for each in report.undeclared)]
    ):
        log.append(line)
        try:
            given = _given(line)
            if given is None:
                exec(line, {"accel": accel, **names})  # noqa: S102 - the report's own line
            elif set(given) <= SETTINGS:
                options |= given
            else:
                log.append("left out: it promises something of the program that nobody has looked at")
                continue
            followed.append(line)
        except Exception as error:  # noqa: BLE001 - told
            log.append(f"that line raised {type(error).__name__}: {error}")
    return options, followed


def measured(stranger: Stranger, checkout: Path) -> dict[str, Any]:
    """The record of one program."""
    services = Services(stranger.manner)
    install(services)
    record: dict[str, Any] = {"name": stranger.name}
    with asyncio.Runner() as runner:
        loader = Loader(stranger, checkout, runner)
        record["left_out"] = loader.failed
        services.waits = False
        try:
            app = loader.program()
        except Exception as error:  # noqa: BLE001 - whatever a public program raises
            return {**record, "failed": f"not loaded: {type(error).__name__}: {error}"}
        services.waits = True
        _warm(services)
        arms = Arms(stranger, app, services, runner)
        log: list[str] = []
        record[DEFAULT], fast = _phase(arms, {}, log)
        record["report"], record["graph"] = str(fast.report()), str(fast.plan.graph)
        advice: list[str] = []
        options, record["followed"] = advised(fast, loader.imported(), advice)
        record["advice"] = advice
        if advice:
            record[ADVISED], fast = _phase(arms, options, log)
            record["advised_report"] = str(fast.report())
        record["log"] = log
    return record


def _warm(services: Services) -> None:
    """What clients import on their first use. The program's own clients are as new as its user's."""
    services.waits = False
    for module, name, options in CLIENTS:
        try:
            getattr(import_module(module), name)(**options).invoke("warming up")
        except ImportError:
            continue
    services.waits = True


def _phase(arms: Arms, options: Mapping[str, Any], log: list[str]) -> tuple[list[dict[str, Any]], Any]:
    requests, fast = arms.phase(options, log)
    return [asdict(request) for request in requests], fast


def main(arguments: Sequence[str]) -> int:
    """NAME CHECKOUT RECORD PACE: measures the program and writes the record."""
    from bench.strangers import stranger

    name, checkout, target, pace = arguments
    faulthandler.dump_traceback_later(FOR_WORK_S + FOR_WAITS_S * float(pace), exit=True, file=2)
    set_pace(float(pace))
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        record = measured(stranger(name), Path(checkout))
    Path(target).write_text(json.dumps(record, default=str), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.stdout.flush()
    status = main(sys.argv[1:])
    import os

    os._exit(status)  # threads that a program left behind hold nothing up
