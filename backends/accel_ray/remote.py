"""An engine in an actor as a program sees it: the engine protocols, forwarded. Lives on the host's loop.

A call whose actor is lost raises EngineLost, and meanwhile the actor comes back: Ray restarts its process, this opens
the engine in it again. What to do about the call is decided in `accel_local.replicas`.
"""

import asyncio
import itertools
import logging
import math
import threading
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar
from weakref import WeakSet

import ray

from accel import engine
from accel.engine import (
    DEMAND,
    Delta,
    EngineConfig,
    Priority,
)
from accel.errors import AccelError, EngineClosed, EngineStartError, InvalidRequest, RequestError
from accel.process.clock import now_s
from accel_local.replicas import EngineLost
from accel_local.threads import Worker
from accel_ray.cluster import Cluster, describe
from accel_ray.wire import ActorSpec, Call, Opened, Reply

log = logging.getLogger("accel.ray")

T = TypeVar("T")

BEAT_S = 10.0
"""How often a program says that it is there; a fraction of the actors' lease."""
LOOK_S = 3.0
"""How often somebody who waits for an actor looks whether its Ray is still there."""
GONE_S = 15.0
"""A Ray that can't be reached for so long is gone; Ray itself waits a minute, and then ends the process."""
PLACED_S = 120.0
"""How long an actor may take to get its process."""
REOPENINGS = 3
LOST = (
    ray.exceptions.RayActorError,
    ray.exceptions.WorkerCrashedError,
    ray.exceptions.NodeDiedError,
    ray.exceptions.ObjectLostError,
    ray.exceptions.LocalRayletDiedError,
)


class Session:
    """A program at a backend."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.client = uuid.uuid4().hex
        self.gone: EngineClosed | None = None
        """Why nothing can be asked any more: without a Ray, Ray's calls would start one."""
        self.asking = threading.RLock()
        """Held by other threads than the loop's while they ask something, and by who changes `gone`."""
        self._missed_s = math.inf
        """Since when the Ray can't be reached."""
        self._numbers = itertools.count()
        self._seen: dict[str, Replica] = {}
        self._waiting: set[asyncio.Future[Any]] = set()
        self._beating: asyncio.Task[None] | None = None

    def new_id(self) -> str:
        return f"{self.client}-{next(self._numbers)}"

    def check(self) -> None:
        """Raises EngineClosed if the backend is gone."""
        if self.gone is not None:
            raise EngineClosed(self.gone.what, self.gone.remedy)

    def watch(self, replica: "Replica") -> None:
        """From now on tell its actor that we are there."""
        self._seen[replica.actor.name] = replica
        if self._beating is None or self._beating.done():
            self._beating = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        while self.gone is None:
            # Who can't be told now is told next time; calls find out what is wrong.
            await asyncio.gather(*(replica.beat() for replica in self._seen.values()), return_exceptions=True)
            await asyncio.sleep(BEAT_S)
            await self.look()

    async def look(self) -> None:
        """If the Ray isn't there any more, leave it before it ends this process."""
        if self.gone is None and self.missing(await blocking(self.cluster.reachable)):
            with self.asking:
                self.gone = self.cluster.gone()
            log.warning("%s", self.gone.what)
            for waiting in list(self._waiting):
                waiting.cancel()
            await blocking(self.cluster.disconnect)

    def missing(self, reachable: bool) -> bool:
        """Whether the Ray counts as gone, now that it was or wasn't reachable."""
        with self.asking:
            self._missed_s = math.inf if reachable else min(self._missed_s, now_s())
            return now_s() - self._missed_s >= GONE_S

    async def reply(self, asked: Any) -> Any:
        """What a reference gives. Raises EngineClosed if the Ray goes meanwhile."""
        waiting = asyncio.ensure_future(asked)
        self._waiting.add(waiting)
        try:
            return await waiting
        except asyncio.CancelledError:
            self.check()
            raise
        finally:
            self._waiting.discard(waiting)

    async def patiently(self, reference: Any, timeout_s: float) -> Any:
        """What a reference gives. Raises TimeoutError, or EngineClosed if the Ray is gone."""
        waiting = asyncio.ensure_future(reference)
        loop = asyncio.get_running_loop()
        until_s = loop.time() + timeout_s
        try:
            while loop.time() < until_s:
                done, _ = await asyncio.wait([waiting], timeout=LOOK_S)
                if done:
                    return waiting.result()
                await self.look()
                self.check()
            raise TimeoutError
        finally:
            waiting.cancel()

    def leave(self, timeout_s: float) -> None:
        """What is our own at the actors is closed. Blocks; not on the loop."""
        with self.asking:
            gone, self.gone = self.gone, self.gone or EngineClosed("The engines were shut down.")
        if gone is not None:
            return
        leaving = []
        for replica in self._seen.values():
            with suppress(ray.exceptions.RayError):
                leaving.append(replica.handle.release.remote(self.client))
        if leaving:
            ray.wait(leaving, num_returns=len(leaving), timeout=timeout_s)


async def blocking(work: Callable[[], T]) -> T:
    """Ray's own calls, which block, beside the loop."""
    worker = Worker("accel-ray")
    try:
        return await worker.do(work)
    finally:
        worker.stop()


class Replica:
    """One actor and the engine in it."""

    def __init__(self, session: Session, actor: ActorSpec, config: EngineConfig[Any], handle: Any) -> None:
        self.session = session
        self.actor = actor
        self.config = config
        self.handle = handle
        self.opened: Opened
        self.load = 0.0
        """Requests of others; infinite while it is being restarted."""
        self.forgetful = False
        """A store whose records end with the actor's process."""
        self._own = 0
        self._told: WeakSet[engine.Session] = WeakSet()
        """Runs of whose end the actor will be told."""
        self._recovering: asyncio.Task[None] | None = None
        self.on_back: Callable[[], None] = _nobody
        self._gone: EngineClosed | None = None

    # Life

    async def open(self) -> None:
        """Raises what starting the engine raises, or BackendError."""
        try:
            await self._greet()
            self.opened = await self._open()
        except LOST as error:
            raise EngineStartError(
                f"{self.config.label}: its actor {self.actor.name!r} died while it started: {_said(error)}",
                "it may need more memory than there is, or Accel may not be installed there; Ray's logs say more "
                "(session_latest/logs)",
            ) from error
        self.session.watch(self)

    async def _greet(self) -> None:
        cluster = self.session.cluster
        try:
            asked = describe(self.handle, self.actor.name, cluster.namespace)
            described = await self.session.patiently(asked, PLACED_S)
        except TimeoutError as error:
            raise EngineStartError(
                f"Ray gave actor {self.actor.name!r} no process within {PLACED_S:.0f} s.",
                "it wants what others hold, probably: `ray status` says what is free, num_gpus and num_cpus what it "
                "wants",
            ) from error
        cluster.checked(described)

    async def _open(self) -> Opened:
        opening = self.handle.open.remote(self.config, self.session.client)
        reply: Reply = await self.session.patiently(opening, math.inf)
        opened: Opened = reply.result()
        return opened

    async def beat(self) -> None:
        """Say that we are there; raises what goes wrong with it."""
        if self.session.gone is None:
            self._heard(await asyncio.wait_for(self.handle.beat.remote(self.session.client), BEAT_S))

    # Calls

    async def call(
        self, method: str, *args: Any, priority: Priority = DEMAND, pinned: bool = False, **options: Any
    ) -> Any:
        """Forward one call. Raises EngineLost if the actor is lost; `pinned`: only the engine as it was opened may
        answer. Cancelling aborts it there."""
        await self._back()
        call = self._call(method, args, options, priority, pinned)
        forget = priority.on_raise(partial(self._tell, "raise_to_demand", call.id))
        over = False
        self._own += 1
        try:
            reply = await self.session.reply(self._submitted(lambda: self.handle.serve.remote(call)))
            over = True
            return self._result(reply)
        except ray.exceptions.RayError as error:
            over = True
            raise self._failed(error, pinned) from error
        except EngineLost as lost:
            raise self._lost(lost.what, pinned) from lost
        finally:
            self._own -= 1
            forget()
            if not over:
                self._tell("abort", call.id)

    async def stream(
        self, *args: Any, priority: Priority = DEMAND, pinned: bool = False
    ) -> AsyncGenerator[list[Delta], None]:
        """As `call`, for `generate`."""
        await self._back()
        call = self._call("generate", args, {}, priority, pinned)
        forget = priority.on_raise(partial(self._tell, "raise_to_demand", call.id))
        over = False
        self._own += 1
        try:
            replies = self._submitted(lambda: self.handle.stream.options(num_returns="streaming").remote(call))
            while not over:
                deltas: list[Delta] = self._result(await self.session.reply(_next(replies)))
                over = deltas[-1].finish_reason is not None
                yield deltas
        except StopAsyncIteration as ended:
            over = True
            raise self._lost(f"{self.config.label} gave the request up.", pinned) from ended
        except ray.exceptions.RayError as error:
            over = True
            raise self._failed(error, pinned) from error
        except EngineLost as lost:
            over = True
            raise self._lost(lost.what, pinned) from lost
        finally:
            self._own -= 1
            forget()
            if not over:
                self._tell("abort", call.id)

    def ask(self, method: str, *args: Any) -> Any:
        """A short call that blocks; from any thread. Ray repeats it while the actor is being restarted."""
        try:
            with self.session.asking:
                self.session.check()
                reference = getattr(self.handle, method).options(max_task_retries=-1).remote(self.config, *args)
            ready: list[Any] = []
            while not ready:
                ready, _ = ray.wait([reference], timeout=LOOK_S)
                if not ready and self.session.missing(self.session.cluster.reachable()):
                    raise self.session.cluster.gone()
            reply: Reply = ray.get(reference)
        except ray.exceptions.RayError as error:
            raise EngineClosed(f"{self.config.label} is gone: {_said(error)}", _COME_BACK) from error
        return reply.result()

    def _call(
        self, method: str, args: tuple[Any, ...], options: dict[str, Any], priority: Priority, pinned: bool
    ) -> Call:
        instance = self.opened.instance if pinned or self.forgetful else ""
        run = priority.session
        if run is not None and run not in self._told:
            self._told.add(run)
            run.on_end(partial(self._tell, "end_session", run.name))
        session = self.session
        return Call(session.new_id(), session.client, self.config, method, args, options, priority, instance)

    def _submitted(self, submit: Callable[[], Any]) -> Any:
        try:
            return submit()
        except TypeError as error:  # how Ray says that it can't pickle something
            raise InvalidRequest(f"The request can't be sent to the backend: {error}", "send plain data") from error

    def _tell(self, method: str, id: str) -> None:
        """Say something about a request; from any thread. If the actor is lost, so is the request."""
        with self.session.asking, suppress(ray.exceptions.RayError):
            if self.session.gone is None:
                getattr(self.handle, method).remote(id)

    def _result(self, reply: Reply) -> Any:
        self._heard(reply.load)
        return reply.result()

    def _heard(self, total: int) -> None:
        if self._recovering is None:
            self.load = max(0, total - self._own)

    # Losses

    def _failed(self, error: Exception, pinned: bool) -> AccelError:
        if isinstance(error, LOST):
            return self._lost(f"{self.config.label}: its actor {self.actor.name!r} was lost: {_said(error)}", pinned)
        if isinstance(error, ray.exceptions.RayTaskError):
            return RequestError(f"{self.config.label}: actor {self.actor.name!r} could not take it: {_said(error)}")
        return EngineClosed(f"{self.config.label} can't be reached: {_said(error)}", _COME_BACK)

    def _lost(self, what: str, pinned: bool) -> EngineClosed:
        """What the call raises; meanwhile the engine is opened again."""
        if self._recovering is None and self._gone is None:
            self.load = math.inf
            self._recovering = asyncio.create_task(self._recover())
            self._recovering.add_done_callback(_seen)
        if self.forgetful:
            self._gone = self._gone or EngineClosed(
                f"{what} The records it held in memory are lost with it.",
                "fill it again from a new program, or use a store that lasts (pgvector)",
            )
            return self._gone
        if pinned:
            return EngineClosed(what, "make the call again, with token ids that the engine gives you now")
        return EngineLost(what)

    async def _back(self) -> None:
        if self._recovering is not None:
            await asyncio.shield(self._recovering)
        self.session.check()
        if self._gone is not None:
            raise EngineClosed(self._gone.what, self._gone.remedy)

    async def _recover(self) -> None:
        try:
            for _ in range(REOPENINGS):
                try:
                    await self._find()
                    self.opened = await self._open()
                    log.info("%s is back", self.config.label)
                    return
                except LOST as error:
                    last = error
            raise EngineClosed(f"{self.config.label} doesn't come back: {_said(last)}", _COME_BACK) from last
        finally:
            self._recovering = None
            self.load = 0.0
            self.on_back()

    async def _find(self) -> None:
        """Wait for the actor; if it is gone for good, look for its successor."""
        try:
            await self._greet()
        except ray.exceptions.ActorDiedError:
            cluster = self.session.cluster
            found = await blocking(lambda: cluster.handle(self.actor.name))
            if found is None:
                raise EngineClosed(
                    f"{self.config.label} is gone: its actor {self.actor.name!r} has been ended.", _COME_BACK
                ) from None
            self.handle = found
            await self._greet()


_COME_BACK = "`accel status` says what is up; `accel up` starts a backend again"


async def _next(replies: Any) -> Reply:
    reply: Reply = await (await anext(replies))
    return reply


def _seen(task: "asyncio.Task[None]") -> None:
    """Those who wait for it get its error; nobody may wait."""
    if not task.cancelled():
        task.exception()


def _nobody() -> None:
    """Wants to know."""


def _said(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else f"{text[:297]}..."
