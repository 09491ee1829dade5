"""The conformance suite through Ray: simulated engines, alone and as replicas; and what only a host has to do."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import accel_local
from accel.backend import Backend
from accel.engine import CancelToken, EmbeddingEngine, LLMEngine, Priority, RerankEngine, Sampling, VectorStore
from accel.engine import cancel_token as token_of_caller
from accel.engine.conformance import (
    EMBEDDING_CHECKS,
    LLM_CHECKS,
    QUESTION,
    RERANK_CHECKS,
    VECTOR_STORE_CHECKS,
    EmbeddingCheck,
    LLMCheck,
    RerankCheck,
    VectorStoreCheck,
    answer,
    name,
)
from accel.errors import CallCancelled, InvalidRequest
from backends.tests.ray_cluster.conftest import EMBEDDING, RERANKING, STORE, end_actors, profile_file, sim_llm

pytestmark = pytest.mark.engines

NAMESPACE = "conformance"
ENDLESS = Sampling(max_tokens=2000, ignore_end=True)


@pytest.fixture(scope="module")
def patient_profile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of a model whose endless answers are under way for minutes, however slow the machine is."""
    return profile_file(tmp_path_factory.mktemp("profiles") / "patient.json", token_s=0.05)


@pytest.fixture(scope="module")
def served(ray_up: None, fast_profile: str, patient_profile: str) -> Iterator[str]:
    """A model alone, one of two replicas, one that takes its time, and the rest."""
    model = {"kind": "sim_llm", "model": fast_profile, "options": {"max_model_len": 2048}}
    two = {**model, "options": {"max_model_len": 2048, "name": "two"}, "replicas": 2}
    patient = {"kind": "sim_llm", "model": patient_profile, "options": {"max_model_len": 2048, "name": "patient"}}
    others = {
        f"the-{kind}": {"kind": f"sim_{kind}", "model": fast_profile} for kind in ("embedding", "rerank", "store")
    }
    engines = {"alone": model, "two": two, "patient": patient, **others}
    with Backend.ray(config={"namespace": NAMESPACE, "engines": engines}):
        yield fast_profile
    end_actors(NAMESPACE)


@pytest.mark.parametrize("engine_name", ["", "two"], ids=["alone", "two replicas"])
@pytest.mark.parametrize("check", LLM_CHECKS, ids=name)
def test_llm(check: LLMCheck, engine_name: str, served: str) -> None:
    engine = accel_local.engine(sim_llm(served, name=engine_name))
    assert isinstance(engine, LLMEngine)
    accel_local.run(check(engine))


@pytest.mark.parametrize("check", EMBEDDING_CHECKS, ids=name)
def test_embedding(check: EmbeddingCheck, served: str) -> None:
    engine = accel_local.engine(EMBEDDING)
    assert isinstance(engine, EmbeddingEngine) and engine.dimension == 64
    accel_local.run(check(engine))


@pytest.mark.parametrize("check", RERANK_CHECKS, ids=name)
def test_reranking(check: RerankCheck, served: str) -> None:
    engine = accel_local.engine(RERANKING)
    assert isinstance(engine, RerankEngine)
    accel_local.run(check(engine))


@pytest.mark.parametrize("check", VECTOR_STORE_CHECKS, ids=name)
def test_store(check: VectorStoreCheck, served: str) -> None:
    engine = accel_local.engine(STORE)
    assert isinstance(engine, VectorStore)
    accel_local.run(check(engine))


# --- what crosses


def llm(served: str) -> Any:
    return accel_local.engine(sim_llm(served))


def described(actor: str) -> dict[str, Any]:
    import ray

    found: dict[str, Any] = ray.get(ray.get_actor(actor, namespace=NAMESPACE).describe.remote())
    return found


async def idle(actor: str) -> None:
    """Waits until the actor has no request; the test's time limit ends it otherwise."""
    import ray

    handle = ray.get_actor(actor, namespace=NAMESPACE)
    while (await handle.describe.remote())["requests"]:
        continue


def test_answers_are_those_of_an_engine_in_this_process(served: str) -> None:
    prompts = [f"List three facts about {word}." for word in ("cats", "tax law", "the sea")]

    def answers() -> list[str]:
        engine = llm(served)
        return [accel_local.run(answer(engine, prompt, Sampling(max_tokens=40)))[0] for prompt in prompts]

    remote = answers()
    with Backend.local():
        assert answers() == remote
    vectors = accel_local.run(accel_local.engine(EMBEDDING).embed(prompts))
    with Backend.local():
        assert accel_local.run(accel_local.engine(EMBEDDING).embed(prompts)) == vectors


def test_profiles_cross_and_are_not_this_machine_s(served: str) -> None:
    config = sim_llm(served)
    measured = accel_local.run(llm(served).profile())
    assert measured.slots == 16 and llm(served).known_profile == measured == accel_local.known_profile(config)
    assert accel_local.known_profile(sim_llm(served, seed=99)) is None


def test_a_request_given_up_is_given_up_by_its_actor(served: str, patient_profile: str) -> None:
    """However it is given up: the task cancelled, the stream closed, the token cancelled."""
    engine: Any = accel_local.engine(sim_llm(patient_profile, name="patient"))

    async def cancelled() -> None:
        began = asyncio.Event()

        async def work() -> None:
            async for _ in engine.generate(QUESTION, ENDLESS):
                began.set()

        task = asyncio.create_task(work())
        await began.wait()
        assert (await asyncio.to_thread(described, "patient:0"))["requests"] == 1
        task.cancel()
        await asyncio.wait([task])

    accel_local.run(cancelled())
    accel_local.run(idle("patient:0"))
    for _ in accel_local.stream(engine.generate(QUESTION, ENDLESS)):
        break
    accel_local.run(idle("patient:0"))
    token = CancelToken()
    reset = token_of_caller.set(token)
    try:
        with pytest.raises(CallCancelled):
            for _ in accel_local.stream(engine.generate(QUESTION, ENDLESS)):
                token.cancel()
    finally:
        token_of_caller.reset(reset)
    accel_local.run(idle("patient:0"))


def test_an_early_call_that_becomes_a_demand_is_raised_in_its_actor(served: str, patient_profile: str) -> None:
    """Early work fills the places that it may; another early call gets one as soon as the program waits for it."""
    engine: Any = accel_local.engine(sim_llm(patient_profile, name="patient"))
    early_places = 12  # of 16

    async def main() -> None:
        started = [asyncio.Event() for _ in range(early_places)]

        async def endless(own: asyncio.Event) -> None:
            async for _ in engine.generate(QUESTION, ENDLESS, priority=Priority(2)):
                own.set()

        busy = [asyncio.create_task(endless(own)) for own in started]
        await asyncio.gather(*(own.wait() for own in started))
        priority = Priority(1)
        waiting = asyncio.create_task(answer(engine, QUESTION, Sampling(max_tokens=3), priority))
        while (await asyncio.to_thread(described, "patient:0"))["requests"] <= early_places:
            continue
        assert not waiting.done()
        priority.raise_to_demand()
        assert (await waiting)[0]
        assert not any(task.done() for task in busy), "they must have been in the way"
        for task in busy:
            task.cancel()
        await asyncio.wait(busy)

    accel_local.run(main())
    accel_local.run(idle("patient:0"))


def test_replicas_share_the_work_and_sessions_stay(served: str) -> None:
    engine: Any = accel_local.engine(sim_llm(served, name="two"))

    async def main() -> list[int]:
        await asyncio.gather(*(answer(engine, f"Question {n}.", Sampling(max_tokens=30)) for n in range(8)))
        session = [{"role": "user", "content": "The beginning of a long session. " * 20}]
        cached = []
        for turn in range(4):
            text, deltas = await answer(engine, session, Sampling(max_tokens=8))
            cached.append(deltas[-1].usage.cached_tokens)
            session += [{"role": "assistant", "content": text}, {"role": "user", "content": f"And {turn}?"}]
        return cached

    first, *later = accel_local.run(main())
    assert all(tokens > first for tokens in later), "each turn finds the last one's prompt in the cache"
    for actor in ("two:0", "two:1"):
        accel_local.run(idle(actor))  # an actor puts its last answer away when that has been sent


def test_what_can_not_be_sent_is_an_error_of_its_request(served: str) -> None:
    import threading

    store = accel_local.engine(STORE)
    with pytest.raises(InvalidRequest, match="can't be sent to the backend"):
        accel_local.run(store.count(where={"x": threading.Lock()}))
    assert accel_local.run(store.count()) >= 0
