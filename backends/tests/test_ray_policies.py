"""What the Ray host decides without Ray: when tokens are sent, what is given up, what fits, and who serves."""

import asyncio
import contextlib
import math
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from accel.backend import BackendError
from accel.engine import Delta, Priority, Sampling, Session
from accel.engine.profile import Profile
from accel.errors import (
    AccelError,
    CallCancelled,
    ConfigurationError,
    EngineClosed,
    EngineStartError,
    InvalidRequest,
    MissingExtra,
    NotEnoughMemory,
)
from accel_local.replicas import EngineLost
from accel_pgvector import PgVectorConfig
from accel_sentence_transformers import SentenceTransformersConfig
from accel_sim import SimLLMConfig, SimStoreConfig, virtual
from accel_vllm import VLLMConfig

pytest.importorskip("pydantic", reason="the extra ray is not installed")

from accel_ray.actor import LEASE_S, EngineActor
from accel_ray.config import EngineSpec
from accel_ray.flush import Flush, Outgoing
from accel_ray.kinds import lasting, private, served_as
from accel_ray.placement import Node, check_fit
from accel_ray.proxies import RemoteLLM
from accel_ray.requests import Leases, Requests, Sessions
from accel_ray.routes import route
from accel_ray.wire import ActorSpec, Call, Failure, Opened, Private, Reply


def token(n: int) -> Delta:
    return Delta(f"{n} ", 1)


LAST = Delta("", 0, "stop")


# --- token streams


def test_the_first_token_goes_at_once_and_later_ones_together() -> None:
    flush = Flush(0.05)
    assert flush.due_s() == math.inf and flush.take(0.0) == []
    flush.add(token(1))
    assert flush.take(10.0) == [token(1)]
    flush.add(token(2))
    flush.add(token(3))
    assert flush.due_s() == pytest.approx(10.05)
    assert flush.take(10.049) == []
    assert flush.take(10.05) == [token(2), token(3)]
    assert flush.due_s() == math.inf


def test_after_a_pause_a_token_goes_at_once() -> None:
    flush = Flush(0.05)
    flush.add(token(1))
    flush.take(10.0)
    flush.add(token(2))
    assert flush.take(11.0) == [token(2)]


def test_the_last_token_waits_for_nothing() -> None:
    flush = Flush(0.05)
    flush.add(token(1))
    flush.take(10.0)
    flush.add(token(2))
    flush.add(LAST)
    assert flush.take(10.001) == [token(2), LAST]


def test_a_stream_in_virtual_time() -> None:
    """Tokens every 20 ms: the first at once, then two or three every 50 ms, the end with the last one."""

    async def deltas() -> AsyncGenerator[Delta, None]:
        for n in range(8):
            await asyncio.sleep(0.02)
            yield token(n)
        yield LAST

    sent: list[tuple[float, int]] = []

    async def main() -> None:
        async for batch in Outgoing(deltas(), Flush(0.05)).batches():
            sent.append((round(asyncio.get_running_loop().time(), 3), len(batch)))

    virtual.run(main)
    assert sent == [(0.02, 1), (0.07, 2), (0.12, 3), (0.16, 3)]


async def test_a_source_that_fails_does_so_after_what_it_gave() -> None:
    async def deltas() -> AsyncGenerator[Delta, None]:
        yield token(1)
        yield token(2)
        raise EngineClosed("gone")

    got: list[Delta] = []
    with pytest.raises(EngineClosed, match="gone"):
        async for batch in Outgoing(deltas(), Flush(1000.0)).batches():
            got += batch
    assert got == [token(1), token(2)]


@pytest.mark.parametrize("by_consumer", [True, False])
async def test_giving_a_stream_up_closes_its_source(by_consumer: bool) -> None:
    closed = asyncio.Event()

    async def deltas() -> AsyncGenerator[Delta, None]:
        try:
            yield token(1)
            await asyncio.Event().wait()
        finally:
            closed.set()

    outgoing = Outgoing(deltas(), Flush(0.05))
    async with contextlib.aclosing(outgoing.batches()) as batches:
        assert await anext(batches) == [token(1)]
        if not by_consumer:
            outgoing.cancel()
            assert await anext(batches, None) is None
    assert closed.is_set()


# --- requests


def test_requests_are_aborted_and_raised_by_id() -> None:
    requests, cancelled, priority = Requests(), [], Priority(3)
    with requests.under_way("a", "me", priority, lambda: cancelled.append("a")):
        assert len(requests) == 1
        requests.raise_to_demand("a")
        assert priority.value == 0 and not cancelled
        requests.abort("a")
        requests.abort("a")
    assert cancelled == ["a"] and len(requests) == 0


def test_what_is_said_before_a_request_comes_holds_for_it() -> None:
    requests, cancelled, priority = Requests(), [], Priority(3)
    requests.abort("a")
    requests.raise_to_demand("b")
    with requests.under_way("a", "me", Priority(1), lambda: cancelled.append("a")):
        assert cancelled == ["a"]
    with requests.under_way("b", "me", priority, lambda: cancelled.append("b")):
        assert priority.value == 0 and cancelled == ["a"]
    with requests.under_way("a", "me", Priority(1), lambda: cancelled.append("again")):
        assert cancelled == ["a"], "it was said of one request"


def test_a_program_that_is_gone_loses_its_requests_only() -> None:
    requests, cancelled = Requests(), []
    leases = Leases(60.0)
    with (
        requests.under_way("a", "gone", Priority(), lambda: cancelled.append("a")),
        requests.under_way("b", "here", Priority(), lambda: cancelled.append("b")),
    ):
        leases.seen("gone", 0.0)
        leases.seen("here", 0.0)
        assert leases.expired(60.0) == []
        leases.seen("here", 60.0)
        assert leases.expired(61.0) == ["gone"]
        assert leases.expired(61.0) == [] and len(leases) == 1
        requests.abort_all_of("gone")
        assert cancelled == ["a"]


def test_a_priority_keeps_its_run_and_its_age_by_another_clock() -> None:
    call = Call("1", "me", VLLMConfig(), "embed", priority=Priority(2, "run", arrived_s=90.0, depth=5), sent_s=100.0)
    here = call.priority_here()
    assert (here.value, here.run, here.depth) == (2, "run", 5)
    later = call.priority_here()
    assert 0 <= later.arrived_s - here.arrived_s < 60, "ten seconds ago, by our clock"
    assert here is not call.priority


def test_a_run_is_one_session_at_an_actor_and_ends_with_it_or_with_its_program() -> None:
    sessions = Sessions()
    call = Call("1", "me", VLLMConfig(), "embed", priority=Priority(0, "run", session=Session("run", 90.0, "graph")))
    here = sessions.here("me", call.priority.session, 5.0)
    assert here is not None and (here.name, here.due_s, here.program) == ("run", 95.0, "graph")
    assert sessions.here("me", Session("run", 90.0), 5.5) is here, "another call of the same run"
    assert call.priority_here(here).session is here
    assert sessions.here("me", None, 5.0) is None and call.priority_here().session is None
    other = sessions.here("you", Session("yours"), 0.0)
    sessions.end("run")
    sessions.end("unknown")
    assert here.ended and other is not None and not other.ended
    sessions.end_all_of("you")
    assert other.ended and len(sessions) == 0


def test_an_actor_lets_go_of_programs_that_fall_silent() -> None:
    """In virtual time: what was theirs alone is closed, what they asked for is given up; others notice nothing."""
    spec = ActorSpec("llm", 0, SimLLMConfig(max_model_len=64_000))
    endless = ("The sea is", Sampling(max_tokens=60_000, ignore_end=True))

    async def main() -> None:
        actor = EngineActor(spec)
        own = {client: Private(SimLLMConfig(name="own"), client) for client in ("silent", "here")}
        for client, config in own.items():
            (await actor.open(config, client)).result()
            (await actor.open(spec.config, client)).result()

        async def ask(client: str) -> list[Reply]:
            return [reply async for reply in actor.stream(Call(client, client, spec.config, "generate", endless))]

        asked = {client: asyncio.create_task(ask(client)) for client in own}
        for _ in range(9):
            await asyncio.sleep(LEASE_S / 6)
            await actor.beat("here")
        assert asked["silent"].done() and not asked["here"].done()
        said = await actor.describe()
        assert (said["engines"], said["requests"], said["clients"]) == (2, 1, 1)
        await actor.release("here")
        assert all(reply.value[-1].finish_reason is None for reply in await asked["here"])
        said = await actor.describe()
        assert (said["engines"], said["clients"]) == (1, 0)
        await actor.close()
        refused = await actor.serve(Call("x", "here", spec.config, "profile"))
        assert isinstance(refused.value, Failure) and refused.value.kind == "EngineClosed"

    virtual.run(main)


async def test_a_program_knows_how_many_requests_an_actor_takes_at_a_time() -> None:
    """And sends a few more, so that its engine has something to begin with while a message is on its way."""
    config = SimLLMConfig(kv_tokens=2048, name="room")
    actor = EngineActor(ActorSpec("llm", 0, config))
    try:
        opened: Opened = (await actor.open(config, "")).result()
    finally:
        await actor.close()
    assert opened.room is not None and opened.room.kv_blocks == 2048 // opened.cache_block_tokens
    remote = RemoteLLM(cast(Any, SimpleNamespace(opened=opened)), None)
    assert remote.room == opened.room._replace(places=opened.room.places * 9 // 8)


async def test_an_actor_answers_only_as_the_engine_that_is_meant() -> None:
    config = SimStoreConfig("x", 3, Profile("searching", search=((1, 1e-5), (2, 1e-5))))
    actor = EngineActor(ActorSpec("records", 0, config))
    opened: Opened = (await actor.open(config, "me")).result()
    assert (opened.family, opened.instance != "") == ("store", True)
    assert (await actor.open(config, "you")).result() == opened
    counted = await actor.serve(Call("1", "me", config, "count", instance=opened.instance))
    assert counted.result() == 0
    with pytest.raises(EngineLost, match="started anew"):
        (await actor.serve(Call("2", "me", config, "count", instance="another"))).result()
    with pytest.raises(ConfigurationError, match="no method 'start'"):
        (await actor.serve(Call("3", "me", config, "start"))).result()
    await actor.abort("4")
    with pytest.raises(CallCancelled):
        (await actor.serve(Call("4", "me", config, "count"))).result()
    await actor.close()


@pytest.mark.parametrize(
    "error",
    [
        InvalidRequest("no", "so"),
        MissingExtra("This", "ray", "x"),
        CallCancelled(),
        NotEnoughMemory("small", "buy"),
        EngineLost("gone"),
        EngineClosed("closed"),
    ],
)
def test_errors_cross_as_they_are(error: AccelError) -> None:
    came = Failure.of(error).error()
    assert type(came) is type(error) and (came.what, came.remedy) == (error.what, error.remedy)


# --- placement


def actors(**gpus: float) -> list[ActorSpec]:
    return [ActorSpec(name, 0, VLLMConfig(), num_gpus=share, num_cpus=1) for name, share in gpus.items()]


def node(cpus: float, gpus: float) -> Node:
    return Node("n", cpus, gpus, cpus, gpus)


def test_fractions_share_a_gpu_but_do_not_span_two() -> None:
    check_fit(actors(a=0.5, b=0.5, c=1), [node(3, 2)])
    check_fit(actors(a=0.6, b=0.4, c=0.6, d=0.4), [node(4, 2)])
    with pytest.raises(EngineStartError, match="0 of 2 GPUs") as caught:
        check_fit(actors(a=0.6, b=0.6, c=0.6), [Node("n", 9, 0, 9, 2)])
    assert "num_gpus" in caught.value.remedy
    with pytest.raises(EngineStartError, match="'c' doesn't fit"):
        check_fit(actors(a=0.6, b=0.6, c=0.6), [node(9, 2)])


def test_an_engine_lies_on_one_node() -> None:
    check_fit(actors(a=2, b=1), [node(1, 1), node(1, 2)])
    with pytest.raises(EngineStartError, match="wants 2 GPU and 1 CPU; 2 of 2 GPUs and 2 of 2 CPUs .* 2 nodes"):
        check_fit(actors(a=2), [node(1, 1), node(1, 1)])
    with pytest.raises(EngineStartError, match="'b' doesn't fit"):
        check_fit(actors(a=1, b=0), [node(1, 1)])


# --- routes

DECLARED = (
    EngineSpec("llm", VLLMConfig(dtype="float32", max_num_seqs=64, gpu_memory_utilization=0.4), 2, num_gpus=0.5),
    EngineSpec("records", PgVectorConfig("any", 1, folder="/data", connections=3)),
)


def test_a_program_need_not_know_how_an_engine_is_deployed() -> None:
    found = route(VLLMConfig(dtype="float32"), DECLARED, "ns", 0)
    assert found.spec is DECLARED[0] and found.config == DECLARED[0].config


def test_a_store_serves_the_collection_that_is_asked_for() -> None:
    found = route(PgVectorConfig("mine", 384, folder="/data", temporary=True), DECLARED, "ns", 0)
    assert found.spec is DECLARED[1]
    assert found.config == PgVectorConfig("mine", 384, folder="/data", connections=3, temporary=True)
    assert private(found.config) and not lasting(found.config)
    assert lasting(PgVectorConfig("mine", 384)) and not private(PgVectorConfig("mine", 384))


def test_what_decides_the_answers_must_agree() -> None:
    with pytest.raises(BackendError, match="its llm has dtype='float32', the program asks for dtype='auto'"):
        route(VLLMConfig(), DECLARED, "ns", 0)
    with pytest.raises(BackendError, match="'ns' has no engine for sentence-transformers .*; it has llm .*, records"):
        route(SentenceTransformersConfig(), DECLARED, "ns", 0)
    with pytest.raises(BackendError, match="folder='/data', the program asks for folder=None") as caught:
        route(PgVectorConfig("mine", 384), DECLARED, "ns", 0)
    assert caught.value.remedy == "make them agree"
    assert served_as(VLLMConfig(), SentenceTransformersConfig()) is None


def test_where_nothing_is_declared_whatever_is_asked_for_gets_an_actor() -> None:
    asked = VLLMConfig(dtype="float32")
    found = route(asked, (), "ns", 0)
    assert found.config == asked and found.spec.replicas == 1 and found.spec.num_gpus == 0
    assert route(VLLMConfig(dtype="float32"), (), "ns", 0).spec == found.spec
    assert route(VLLMConfig(), (), "ns", 0).spec.name != found.spec.name
    assert route(asked, (), "ns", 4).spec.num_gpus == 1, "a language model takes a GPU where there are some"
    assert route(SentenceTransformersConfig(), (), "ns", 4).spec.num_gpus == 0
    secret = PgVectorConfig("x", 3, dsn="postgresql://me:secret@h/d")
    other = PgVectorConfig("x", 3, dsn="postgresql://me:other@h/d")
    assert route(secret, (), "ns", 0).spec.name != route(other, (), "ns", 0).spec.name
    assert "secret" not in route(secret, (), "ns", 0).spec.name
    # What others have had started so does not stand in for a declaration.
    assert route(SentenceTransformersConfig(), (found.spec,), "ns", 0).config == SentenceTransformersConfig()
