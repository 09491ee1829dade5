"""One copy of a random program, plain or accelerated, with components of its own: builds it, runs it, logs what it
does."""

from __future__ import annotations

import asyncio
import itertools
import traceback
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any

from langgraph.types import Command

from accel_langgraph.testing.normal import plain
from compat_tests.answers import ModelError, sampled
from compat_tests.fakes import OWNER, TENANT, Parts
from compat_tests.forked import in_child
from compat_tests.probe import is_early
from compat_tests.programs import Program, Request
from compat_tests.surroundings import CALLER, Caller, Surroundings
from compat_tests.watch import TURN, Turn, Watch

IN_CHILD = 100
"""Added to the position of a run that a child makes once more."""
MOST_ANSWERS = 8
"""To what one request asks."""
TURNS_TO_END = 10
"""Of the event loop: what was cancelled has ended by then, also where a task waits for another one to end."""


TIMED_OUT = "timed out"


@dataclass
class Outcome:
    """All that one run of a program did, as its user can see it."""

    result: Any
    raised: Any
    lines_raised_at: list[int]
    input_after: Any
    stored: Any
    tasks_left: int
    in_child: str = ""
    """What the same request gave in a forked child."""

    @property
    def timed_out(self) -> bool:
        return self.raised == TIMED_OUT


def run_here() -> str:
    """Under which name the program logs: no part of its input, and known in its nodes and branches."""
    turn = TURN.get()
    return "" if turn is None else f"r{turn.position}"


@dataclass(eq=False)
class Alarm:
    """Cancels a run once the program has got so many answers."""

    answers: int
    cancel: Callable[[], object]


@dataclass(eq=False)
class Arm:
    """`wrap` makes the object that is called, of a graph and the tenant whose it is (empty: everybody's)."""

    program: Program
    probe: Watch
    wrap: Callable[[Any, str], Any]
    seen: dict[str, list[Any]] = field(default_factory=dict)
    effects: dict[str, list[Any]] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    sample_ids: list[str] = field(default_factory=list)
    sampled: list[tuple[str, int]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    """Of the runs since `forget`."""
    kept: list[Any] = field(default_factory=list)
    """Streams that nobody reads any more."""

    def __post_init__(self) -> None:
        self.parts = Parts(self.probe)
        self.around = Surroundings(self.program.setting, self.parts, self.probe)
        self.stumbled: set[str] = set()
        self.alarms: dict[str, Alarm] = {}
        self.together = False
        """Whether two requests run side by side."""
        counter = itertools.count()
        self.built: dict[str, Any] = {}
        for tenant in self.around.tenants or [""]:
            namespace = {
                **self.parts.namespace(),
                **self.around.namespace(tenant),
                "seen": self.log_seen,
                "effect": self.log_effect,
                "stumble_once": self.stumble_once,
                "counter": counter,
                "run_here": run_here,
            }
            self.built[tenant] = self.program.build(namespace)
        self.graphs = {tenant: self.wrap(graph, tenant) for tenant, graph in self.built.items()}

    def graph_for(self, tenant: str) -> Any:
        tenant = tenant if self.program.setting.scoped else ""
        if self.program.setting.tenancy == "fresh":
            self.graphs[tenant] = self.wrap(self.built[tenant], tenant)
        return self.graphs[tenant]

    def forget(self) -> None:
        self.probe.forget()
        for log in (self.turns, self.order, self.seen, self.effects):
            log.clear()

    def log_seen(self, key: str, value: Any) -> Any:
        self.seen.setdefault(key, []).append(plain(value))
        self.order.append(key)
        sample = getattr(value, "response_metadata", {}).get("sample")
        if sample:
            self.sample_ids.append(value.id)
            self.sampled.append((sample[0], sample[1]))
            if sampled(sample[0], sample[1]) != value.content:
                self.probe.violations.append(f"not an answer to {sample[0]!r}: {value.content!r}")
        alarm = self.alarms.get(key.partition("/")[0])
        if alarm is not None:
            alarm.answers -= 1
            if alarm.answers == 0:
                alarm.cancel()
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
        """Of a request that forks, also what a child makes of it."""
        outcome = self.run_once(position, request, runner)
        if request.cut == "fork" and not self.together:
            outcome.in_child = in_child(lambda: self.told_by_child(position, request), self.probe.lock)
        return outcome

    def told_by_child(self, position: int, request: Request) -> str:
        outcome = self.run_once(position + IN_CHILD, request, None)
        return repr([outcome.result, outcome.raised, outcome.stored])

    def run_once(self, position: int, request: Request, runner: asyncio.Runner | None) -> Outcome:
        given: dict[str, Any] = {
            "question": request.question,
            "items": list(request.items),
            "text": request.items[0] if request.items else f"nothing but {request.question}",
        }
        if self.program.setting.numbered:
            given["number"] = f"request-{position}"
        config: dict[str, Any] = {"configurable": {"user": request.user, "tenant": request.tenant}}
        if self.program.setting.pauses:
            config["configurable"]["thread_id"] = f"thread {position}"
        context = copy_context()
        context.run(TENANT.set, request.tenant)
        context.run(OWNER.set, request.tenant)
        caller = Caller(f"zq{request.tenant}0t", request.request_id)
        if self.program.setting.callers == "variable":
            context.run(CALLER.set, caller)
        options: dict[str, Any] = {"context": caller} if self.program.setting.callers == "runtime" else {}
        if self.program.setting.pauses and "changes" in self.program.uses:
            options["durability"] = "sync"  # written later, a checkpoint may have what the next node has changed
        call = Calling(self, self.graph_for(request.tenant), config, request, f"r{position}", options)
        results: list[Any] = []
        error: BaseException | None = None
        answers = (Command(resume=f"granted {position}.{number}") for number in range(MOST_ANSWERS))
        for number, value in enumerate(itertools.chain([given], answers)):
            turn = Turn(request.tenant, position, number)
            self.turns.append(turn)
            context.run(TURN.set, turn)
            try:
                if runner:
                    results.append(run_to_the_end(runner, call.awaited(value), context))
                else:
                    results.append(context.run(call.sync, value))
            except (Exception, asyncio.CancelledError) as caught:  # noqa: BLE001 - whatever it raises is compared
                error = caught
            stopped = request.cut not in ("", "fork")
            if error is not None or stopped or not request.resumes or not call.paused():
                break
        # Of streams that are kept, early coroutines stand still with their loop.
        stand_still = runner is not None and bool(self.kept)
        if request.cut not in ("", "fork") and not stand_still and not self.probe.idle():
            self.probe.violations.append("a component is still busy long after its run was cut off")
        for result in results:
            if request.mode == "updates" and "concurrent" in self.program.uses and isinstance(result, list):
                result.sort(key=repr)  # Nodes side by side finish in any order.
        cancelled = isinstance(error, asyncio.CancelledError)
        frames = traceback.extract_tb(error.__traceback__) if error and not cancelled else []
        lines = [frame.lineno or 0 for frame in frames if frame.filename.startswith("/programs/")]
        raised = "cancelled" if cancelled else TIMED_OUT if type(error) is TimeoutError else plain(error)
        stored = {**self.parts.stored(), **self.around.stored()}
        return Outcome(plain(results), raised, lines, plain(given), stored, call.tasks_left)


def run_to_the_end(runner: asyncio.Runner, coroutine: Coroutine[Any, Any, Any], context: Context) -> Any:
    """Also of threads that run synchronous nodes: one that has failed leaves its siblings' running."""
    with ThreadPoolExecutor() as threads:
        runner.get_loop().set_default_executor(threads)
        return runner.run(coroutine, context=context)


@dataclass(eq=False)
class Calling:
    """Calls a program as a request says, perhaps not to the end."""

    arm: Arm
    graph: Any
    config: dict[str, Any]
    request: Request
    run: str
    options: dict[str, Any]
    tasks_left: int = 0

    def paused(self) -> bool:
        return self.arm.program.setting.pauses and bool(self.graph.get_state(self.config).interrupts)

    def sync(self, value: Any) -> Any:
        if self.request.mode == "invoke":
            return self.graph.invoke(value, self.config, **self.options)
        stream = self.graph.stream(value, self.config, stream_mode=self.request.mode, **self.options)
        chunks: list[Any] = []
        for chunk in stream:
            chunks.append(chunk)
            if self.request.cut == f"close {len(chunks)}":
                stream.close()
                break
            if self.request.cut == f"keep {len(chunks)}":
                self.arm.kept.append(stream)
                break
        return chunks

    async def awaited(self, value: Any) -> Any:
        how, _, after = self.request.cut.partition(" ")
        try:
            if how == "timeout":
                return await asyncio.wait_for(self.coroutine(value), int(after) / 1000)
            if how != "cancel":
                return await self.coroutine(value)
            task = asyncio.create_task(self.coroutine(value))
            loop = asyncio.get_running_loop()
            # Not at once: the program goes on to its next call, and is cancelled in the middle of that.
            cancel = lambda: loop.call_soon_threadsafe(task.cancel)  # noqa: E731
            self.arm.alarms[self.run] = Alarm(int(after), cancel)
            try:
                return await task
            finally:
                del self.arm.alarms[self.run]
        finally:
            for _ in range(TURNS_TO_END):
                await asyncio.sleep(0)
            if not self.arm.kept:  # their runs go on
                self.tasks_left += len(asyncio.all_tasks()) - 1

    async def coroutine(self, value: Any) -> Any:
        if self.request.mode == "invoke":
            return await self.graph.ainvoke(value, self.config, **self.options)
        stream = self.graph.astream(value, self.config, stream_mode=self.request.mode, **self.options)
        chunks: list[Any] = []
        async for chunk in stream:
            chunks.append(chunk)
            if self.request.cut == f"close {len(chunks)}":
                await stream.aclose()
                break
            if self.request.cut == f"keep {len(chunks)}":
                self.arm.kept.append(stream)
                break
        return chunks


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

    def close_kept(self, arm: Arm) -> None:
        """Streams that the program has kept, in the loop that they belong to."""
        for stream in arm.kept:
            if self.loops:
                run_to_the_end(self.loops[0], stream.aclose(), copy_context())
            else:
                stream.close()
        arm.kept.clear()

    def run(self, arm: Arm, group: list[tuple[int, Request]]) -> list[Outcome]:
        loops: list[asyncio.Runner | None] = [*self.loops] or [None, None]
        arm.together = len(group) > 1
        with arm.around.entered():
            if len(group) == 1:
                return [arm.run(*group[0], loops[0])]
            with ThreadPoolExecutor(2) as pool:
                return list(pool.map(lambda one, loop: arm.run(*one, loop), group, loops))
