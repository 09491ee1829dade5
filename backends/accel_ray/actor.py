"""The actor that serves an engine: an in-process host in a process of its own, and what programs may ask of it.

A plain class, which `accel_ray.backend` makes an actor of. It keeps nothing that can't be made again but the records of
stores: an actor that was killed starts its engine anew with the first request that reaches it.
"""

import asyncio
import contextlib
import os
import socket
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Sequence
from typing import Any

import psutil

from accel.engine import (
    ChatMessage,
    Delta,
    EmbeddingEngine,
    Engine,
    EngineConfig,
    LLMEngine,
    Priority,
    Prompt,
    RerankEngine,
    VectorStore,
)
from accel.errors import AccelError, CallCancelled, ConfigurationError, EngineClosed, RequestError
from accel.process.clock import now_s
from accel_local.host import IN_PROCESS, Host
from accel_local.processes import sweep
from accel_local.replicas import EngineLost
from accel_ray.encoding import probe
from accel_ray.flush import Flush, Outgoing
from accel_ray.requests import Leases, Requests, Sessions
from accel_ray.wire import ActorSpec, Call, Failure, Family, Opened, Private, Reply, packed, version

LEASE_S = 60.0
"""A program that isn't heard of for so long is gone: its requests are given up, what is its own is closed."""
PRIORITIZED = ("embed", "rerank", "search", "prefill")
PLAIN = ("ingest", "get", "delete", "count", "create_index", "profile", "reset_prefix_cache")


class EngineActor:
    def __init__(self, spec: ActorSpec) -> None:
        self._spec = spec
        self._since_s = time.time()
        self._host: Host | None = None
        self._instances: dict[EngineConfig[Any], tuple[Engine, str]] = {}
        self._requests = Requests()
        self._sessions = Sessions()
        self._leases = Leases(LEASE_S)
        self._watching: asyncio.Task[None] | None = None
        self._closing = False
        _take_all_threads(spec.num_cpus)
        sweep()  # what the engine of a killed predecessor left

    # Life

    async def describe(self) -> dict[str, Any]:
        package, protocol = version()
        return {
            "package": package,
            "protocol": protocol,
            "spec": packed(self._spec),
            "engine": self._spec.engine,
            "replica": self._spec.replica,
            "label": self._spec.config.label,
            "pid": os.getpid(),
            "node": socket.gethostname(),
            "gpus": os.environ.get("CUDA_VISIBLE_DEVICES", "") if self._spec.num_gpus else "",
            "up_s": time.time() - self._since_s,
            "engines": len(self._instances),
            "requests": len(self._requests),
            "clients": len(self._leases),
        }

    async def open(self, config: EngineConfig[Any], client: str) -> Reply:
        """Start the engine, if need be; for a program that will be heard of, or for none ("")."""
        if client:
            self._heard(client)
        return await self._reply(self._open(config))

    async def _open(self, config: EngineConfig[Any]) -> Opened:
        engine = await self._engine(config)
        instance = self._instances[config][1]
        family, room = _family(engine), getattr(engine, "room", None)
        if isinstance(engine, LLMEngine) and family == "llm":
            return Opened(
                instance,
                family,
                engine.known_profile,
                max_prompt_tokens=engine.max_prompt_tokens,
                cache_block_tokens=engine.cache_block_tokens,
                probes=probe(engine),
                room=room,
            )
        dimension = getattr(engine, "dimension", 0)
        return Opened(instance, family, engine.known_profile, dimension=dimension, room=room)

    async def beat(self, client: str) -> int:
        """A program says that it is there; is told how many requests the actor has."""
        self._heard(client)
        return len(self._requests)

    def _heard(self, client: str) -> None:
        self._leases.seen(client, now_s())
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())

    async def release(self, client: str) -> None:
        """A program leaves."""
        self._leases.forget(client)
        await self._let_go(client)

    async def close(self) -> None:
        """Close the engines; the actor is of no use any more."""
        self._closing = True
        if self._host is not None:
            await self._host.close()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LEASE_S / 4)
            for client in self._leases.expired(now_s()):
                await self._let_go(client)

    async def _let_go(self, client: str) -> None:
        self._requests.abort_all_of(client)
        self._sessions.end_all_of(client)
        for config in list(self._instances):
            if isinstance(config, Private) and config.client == client:
                await self._close_engine(config)

    # Requests

    async def serve(self, call: Call) -> Reply:
        """One call of an engine's method."""
        priority = self._priority_of(call)
        work = asyncio.create_task(self._perform(call, priority))
        with self._requests.under_way(call.id, call.client, priority, work.cancel):
            return await self._reply(_unless_cancelled(work))

    async def stream(self, call: Call) -> AsyncGenerator[Reply, None]:
        """A call of `generate`: a list of deltas in every reply."""
        priority = self._priority_of(call)
        outgoing = Outgoing(self._deltas(call, priority), Flush())
        with self._requests.under_way(call.id, call.client, priority, outgoing.cancel):
            async with contextlib.aclosing(outgoing.batches()) as batches:
                while (reply := await self._reply(anext(batches, None))).value is not None:
                    yield reply

    def _priority_of(self, call: Call) -> Priority:
        return call.priority_here(self._sessions.here(call.client, call.priority.session, now_s() - call.sent_s))

    async def end_session(self, name: str) -> None:
        """A run of a program is over."""
        self._sessions.end(name)

    async def abort(self, id: str) -> None:
        self._requests.abort(id)

    async def raise_to_demand(self, id: str) -> None:
        self._requests.raise_to_demand(id)

    async def encode(self, config: EngineConfig[Any], prompt: Prompt) -> Reply:
        return await self._reply(self._encode(config, prompt))

    async def encode_prefix(self, config: EngineConfig[Any], messages: Sequence[ChatMessage]) -> Reply:
        return await self._reply(self._encode(config, messages, prefix=True))

    async def _encode(self, config: EngineConfig[Any], prompt: Any, *, prefix: bool = False) -> list[int]:
        engine: Any = await self._engine(config)
        ids: list[int] = engine.encode_prefix(prompt) if prefix else engine.encode(prompt)
        return ids

    async def _deltas(self, call: Call, priority: Priority) -> AsyncGenerator[Delta, None]:
        async with (
            self._asked(call) as engine,
            contextlib.aclosing(engine.generate(*call.args, priority=priority)) as deltas,
        ):
            async for delta in deltas:
                yield delta

    async def _perform(self, call: Call, priority: Priority) -> Any:
        async with self._asked(call) as engine:
            if call.method not in (*PRIORITIZED, *PLAIN) or not hasattr(engine, call.method):
                raise ConfigurationError(f"{call.config.label} has no method {call.method!r}.")
            args, options = call.args, dict(call.options)
            if call.method in PRIORITIZED:
                options["priority"] = priority
            if "messages" in options:  # a prompt's beginning, from one to whom our ids mean nothing
                args = (engine.encode_prefix(options.pop("messages")),)
            return await getattr(engine, call.method)(*args, **options)

    # Engines

    async def _engine(self, config: EngineConfig[Any]) -> Engine:
        if self._host is None:
            self._host = Host(IN_PROCESS, asyncio.get_running_loop())
        engine: Engine = await self._host.engine(config)
        if config not in self._instances or self._instances[config][0] is not engine:
            self._instances[config] = engine, uuid.uuid4().hex
        return engine

    @contextlib.asynccontextmanager
    async def _asked(self, call: Call) -> AsyncGenerator[Any, None]:
        """The engine that a call is for. One that breaks is closed, and the next call starts another."""
        held = self._instances.get(call.config)
        if call.instance and (held is None or held[1] != call.instance):
            raise EngineLost(f"{call.config.label} has been started anew.")
        engine = await self._engine(call.config)
        try:
            yield engine
        except EngineLost:
            raise
        except EngineClosed as error:
            if self._closing:
                raise
            if call.config in self._instances and self._instances[call.config][0] is engine:
                await self._close_engine(call.config)
            raise EngineLost(error.what, error.remedy) from error

    async def _close_engine(self, config: EngineConfig[Any]) -> None:
        self._instances.pop(config, None)
        if self._host is not None:
            await self._host.close_engine(config)

    async def _reply(self, work: Awaitable[Any]) -> Reply:
        """What it gives, or why it fails."""
        try:
            value = await work
        except AccelError as error:
            value = Failure.of(error)
        except Exception as error:  # noqa: BLE001  whatever an engine raises must not look like the end of the actor
            value = Failure.of(RequestError(f"The engine failed: {type(error).__name__}: {error}"))
        return Reply(value, len(self._requests))


async def _unless_cancelled(work: "asyncio.Task[Any]") -> Any:
    try:
        return await work
    except asyncio.CancelledError:
        if work.cancelled():
            raise CallCancelled from None
        work.cancel()
        raise


def _family(engine: Engine) -> Family:
    if isinstance(engine, LLMEngine):
        return "llm"
    if isinstance(engine, EmbeddingEngine):
        return "embedding"
    if isinstance(engine, RerankEngine):
        return "reranking"
    if isinstance(engine, VectorStore):
        return "store"
    raise ConfigurationError(
        f"{type(engine).__name__} is no engine that can be served.", "implement a protocol of accel.engine"
    )


def _take_all_threads(num_cpus: float) -> None:
    """Ray limits an actor that reserves no CPUs to one thread. Unless somebody asked for that, engines take as many as
    they would without Ray: they are as fast then, and sum in the same order."""
    if num_cpus >= 1 or "OMP_NUM_THREADS" not in os.environ:
        return
    raylet = psutil.Process().parent()
    if raylet is not None and "OMP_NUM_THREADS" not in raylet.environ():
        del os.environ["OMP_NUM_THREADS"]
