"""Measures one application in all arms: one request at a time, and under load.

Every figure is made of raw records (`Request`): what an arm answered, which calls its program made as LangChain reports
them to anyone, and when it began and ended. Arms take turns request by request; prefix caches are emptied in between.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langgraph.types import Interrupt

import accel
from accel.graph.passes import PASSES, without
from accel.process import clock
from accel.reports.limits.limit import Limit, limit
from accel.run.plans.plan import Plan
from accel.run.settings import Counts
from accel.trace.record import Trace
from bench.engines import Engines
from bench.recorder import recorder
from corpus.papers import App
from corpus.papers.bm25 import BM25Retriever
from corpus.papers.text import passages

UNMODIFIED, BY_HAND, ACCELERATED, RECORDED = "unmodified", "by hand", "accelerated", "recorded"
OFF = "without "
# What a user of Accel would say about a class of their own that it can't know: keyword search in this process.
accel.register(BM25Retriever, local=True, concurrency=64, readonly=True)
WARM = 3
"""Requests from which programs are learnt; they are reported apart."""


@dataclass
class Request:
    """One request of one arm. Seconds are of the engines' clock."""

    app: str
    arm: str
    number: int
    began_s: float
    ended_s: float
    output: Any
    calls: list[str]
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return self.ended_s - self.began_s


@dataclass
class Load:
    """Requests that arrive at random (`rate` per second), or all at once (None)."""

    app: str
    arm: str
    rate: float | None
    requests: list[Request]

    @property
    def throughput(self) -> float:
        """Requests per second from the first arrival to the last answer."""
        began = min(request.began_s for request in self.requests)
        return len(self.requests) / (max(request.ended_s for request in self.requests) - began)


@dataclass
class Measured:
    """All about one application."""

    app: str
    paper: str
    requests: list[Request] = field(default_factory=list)
    loads: list[Load] = field(default_factory=list)
    limits: dict[int, Limit] = field(default_factory=dict)
    """By request number."""
    traces: dict[str, Trace] = field(default_factory=dict)
    """Of the last request: as recorded, and accelerated."""
    report: str = ""
    graph: str = ""


class CallsSeen(BaseCallbackHandler):
    """What the program asked its components, as LangChain reports it: independent of Accel."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        asked = [[message.type, message.text] for batch in messages for message in batch]
        options = kwargs.get("invocation_params") or {}
        self.calls.append(json.dumps(["chat model", asked, options], sort_keys=True, default=str))

    def on_retriever_start(self, serialized: dict[str, Any], query: str, *, run_id: UUID, **kwargs: Any) -> None:
        self.calls.append(json.dumps(["retriever", query]))


@dataclass
class Arm:
    name: str
    graph: Any

    @property
    def plan(self) -> Plan | None:
        return getattr(self.graph, "plan", None)

    async def ask(self, app: str, number: int, value: Any) -> Request:
        seen = CallsSeen()
        began = clock.now_s()
        output = await self.graph.ainvoke(value, {"callbacks": [seen]})
        request = Request(app, self.name, number, began, clock.now_s(), plain(output), seen.calls)
        plan = self.plan
        if plan is not None and plan.history:
            request.counts = asdict(plan.history[-1])
        return request


def names(passes_off: bool) -> list[str]:
    off = [OFF + step.__name__ for step in PASSES] if passes_off else []
    return [UNMODIFIED, BY_HAND, ACCELERATED, *off]


def name_of(app: App) -> str:
    return str(app.__name__).rpartition(".")[2]


async def arms_of(app: App, engines: Engines, data_sets: Any, wanted: list[str]) -> list[Arm]:
    """Each with its own components and store, and its own plan to learn."""
    arms = []
    for name in wanted:
        parts = engines.parts(f"{name_of(app)} {name}")
        parts = replace(parts, passages=passages(data_sets, parts.sizes))
        await app.prepare(parts, data_sets)
        graph = app.build_by_hand(parts) if name == BY_HAND else app.build(parts)
        if name == RECORDED:
            graph = recorder(graph)
        elif name == ACCELERATED:
            graph = accel.accelerate(graph)
        elif name.startswith(OFF):
            graph = accel.accelerate(graph, plan=Plan(without(name.removeprefix(OFF))))
        arms.append(Arm(name, graph))
    return arms


async def one_at_a_time(
    app: App, engines: Engines, data_sets: Any, count: int, seed: int, wanted: list[str], tick: Callable[[], None]
) -> Measured:
    """`count` requests after the ones learnt from, each in every arm before the next."""
    name = name_of(app)
    found = Measured(name, app.PAPER)
    arms = await arms_of(app, engines, data_sets, [*wanted, RECORDED])
    recorded: dict[int, Trace] = {}
    values = app.inputs(data_sets, WARM + count, seed)
    for number, value in enumerate(values):
        for turn in range(len(arms)):
            arm = arms[(number + turn) % len(arms)]
            if number < WARM and arm.name in (BY_HAND, RECORDED):
                continue  # they learn nothing
            await engines.forget_prefixes()
            request = await arm.ask(name, number, value)
            accel.settle()  # learning is off the hot path: it has the time between requests
            if arm.name == RECORDED:
                assert arm.plan is not None and arm.plan.last is not None
                recorded[number] = arm.plan.last
            else:
                found.requests.append(request)
            tick()
    fast = next((arm for arm in arms if arm.name == ACCELERATED), None)
    if recorded and fast is not None and fast.plan is not None:
        for number, trace in recorded.items():
            found.limits[number] = limit(trace, engines.profiles, topology=fast.plan.topology)
        assert fast.plan.last is not None
        found.traces = {"unmodified": recorded[max(recorded)], "accelerated": fast.plan.last}
        found.report, found.graph = str(fast.graph.report()), str(fast.plan.graph)
    return found


async def under_load(
    app: App, engines: Engines, data_sets: Any, count: int, seed: int, rates: list[float | None], tick: Any
) -> list[Load]:
    """The same arrivals for every arm, after the programs have been learnt; `rates`: arrivals per second."""
    name = name_of(app)
    loads = []
    arms = await arms_of(app, engines, data_sets, names(False))
    values = app.inputs(data_sets, WARM + count, seed)
    for arm in arms:
        for number, value in enumerate(values[:WARM]):
            await arm.ask(name, number, value)
            accel.settle()
    for rate in rates:
        for arm in arms:
            await engines.forget_prefixes()
            dice = random.Random(seed)
            tasks = []
            for number, value in enumerate(values[WARM:], WARM):
                tasks.append(asyncio.create_task(arm.ask(name, number, value)))
                await asyncio.sleep(dice.expovariate(rate) if rate else 0)
            loads.append(Load(name, arm.name, rate, await asyncio.gather(*tasks)))
            tick()
    return loads


# --- equality


def same_output(one: Request, other: Request) -> bool:
    return bool(one.output == other.output)


def same_calls(one: Request, other: Request) -> bool:
    """Whatever order: what a program does concurrently it may do in any."""
    return sorted(one.calls) == sorted(other.calls)


def plain(value: Any) -> Any:
    """A final state as JSON; ids that a store makes up are no part of it."""
    if isinstance(value, Document):
        return {"page_content": value.page_content, "metadata": plain(value.metadata)}
    if isinstance(value, BaseMessage):
        return {"type": value.type, "content": value.content}
    if isinstance(value, Interrupt):
        return plain(value.value)
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def total(requests: list[Request]) -> Counts:
    return sum((Counts(**request.counts) for request in requests if request.counts), Counts())
