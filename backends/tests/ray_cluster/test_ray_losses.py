"""Actors that are killed: what happens to the calls they served. Nothing hangs, and nothing wrong is answered."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import accel_local
from accel.backend import Backend
from accel.engine import Delta, Priority, Record, Sampling, unwrap
from accel.engine.conformance import EAST, QUESTION, RECORDS, answer
from accel.errors import EngineClosed, RequestError
from accel_local.replicas import EngineLost
from backends.tests.ray_cluster.conftest import EMBEDDING, STORE, sim_llm

pytestmark = [pytest.mark.engines, pytest.mark.timeout(240)]

ROUNDS, MODELS = 5, 4
"""Of kills, and models killed together: twenty in all."""
GREEDY = Sampling(max_tokens=60, ignore_end=True)
LONG = Sampling(max_tokens=400, ignore_end=True)
"""Still under way when its beginning has been seen, however slow the machine is: it takes seconds."""
SAMPLED = Sampling(max_tokens=400, ignore_end=True, temperature=1.0, seed=5)
EARLY = 2


def actor(name: str, namespace: str) -> Any:
    import ray

    return ray.get_actor(name, namespace=namespace)


def described(name: str, namespace: str) -> dict[str, Any]:
    import ray

    found: dict[str, Any] = ray.get(actor(name, namespace).describe.options(max_task_retries=-1).remote())
    return found


def kill(name: str, namespace: str) -> int:
    pid: int = described(name, namespace)["pid"]
    os.kill(pid, signal.SIGKILL)
    return pid


@pytest.fixture
def served(namespace: str, slow_profile: str, narrow_profile: str) -> Iterator[str]:
    """Some models, one of two replicas, and others, on a namespace of its own."""
    options = {"max_model_len": 2048}
    engines: dict[str, Any] = {
        "llm": {"kind": "sim_llm", "model": slow_profile, "options": options},
        **{
            f"m{n}": {"kind": "sim_llm", "model": slow_profile, "options": {**options, "name": f"m{n}"}}
            for n in range(MODELS)
        },
        "two": {"kind": "sim_llm", "model": narrow_profile, "options": {**options, "name": "two"}, "replicas": 2},
        "embedding": {"kind": "sim_embedding", "model": slow_profile},
        "records": {"kind": "sim_store", "model": slow_profile},
    }
    with Backend.ray(config={"namespace": namespace, "engines": engines}):
        yield namespace


async def outcome(engine: Any, sampling: Sampling, priority: int, began: asyncio.Event) -> tuple[str, Exception | None]:
    """The text that came, and the error that ended it."""
    text: list[str] = []
    try:
        async for delta in engine.generate(QUESTION, sampling, priority=Priority(priority)):
            text.append(delta.text)
            began.set()
    except (EngineClosed, RequestError) as error:
        return "".join(text), error
    return "".join(text), None


def test_twenty_kills_in_the_middle_of_streams(served: str, slow_profile: str) -> None:
    """Each time a demanded greedy answer goes on, a sampled one fails with our own error, early work vanishes."""
    models = {f"m{n}:0": accel_local.engine(sim_llm(slow_profile, name=f"m{n}")) for n in range(MODELS)}
    first = next(iter(models.values()))
    greedy = accel_local.run(answer(first, QUESTION, LONG))[0]
    sampled = accel_local.run(answer(first, QUESTION, SAMPLED))[0]
    assert greedy and sampled

    async def once(name: str, engine: Any) -> list[tuple[str, Exception | None]]:
        wanted = [(LONG, 0), (SAMPLED, 0), (LONG, EARLY)]
        began = [asyncio.Event() for _ in wanted]
        asked = [
            asyncio.create_task(outcome(engine, sampling, priority, own))
            for (sampling, priority), own in zip(wanted, began, strict=True)
        ]
        await asyncio.gather(*(own.wait() for own in began))
        assert not any(task.done() for task in asked)
        await asyncio.to_thread(kill, name, served)
        return await asyncio.gather(*asked)

    async def all_at_once() -> list[list[tuple[str, Exception | None]]]:
        return await asyncio.gather(*(once(name, engine) for name, engine in models.items()))

    pids = set()
    lost = 0
    for _ in range(ROUNDS):
        for (text, error), (part, failed), (early, vanished) in accel_local.run(all_at_once()):
            assert (text, error) == (greedy, None)
            # What had its last word before the kill is whole; what hadn't fails, as a demand or as early work does.
            assert sampled.startswith(part) and (failed is None) == (part == sampled)
            assert failed is None or (isinstance(failed, EngineClosed) and "sampled" in failed.what and failed.remedy)
            assert greedy.startswith(early) and (vanished is None) == (early == greedy)
            assert vanished is None or isinstance(vanished, EngineLost)
            lost += (failed is not None) + (vanished is not None)
        for name in models:
            while (now := described(name, served))["requests"]:
                continue  # its last answer is being put away
            pids.add(now["pid"])
    assert len(pids) == ROUNDS * MODELS and lost > 0
    assert accel_local.run(answer(first, QUESTION, SAMPLED))[0] == sampled


def test_a_lost_replica_s_work_goes_to_the_other(served: str, narrow_profile: str) -> None:
    """So does what waits in line for both."""
    engine: Any = accel_local.engine(sim_llm(narrow_profile, name="two"))
    prompts = [f"Question {n}." for n in range(8)]
    expected = [accel_local.run(answer(engine, prompt, GREEDY))[0] for prompt in prompts]

    async def main() -> list[str]:
        began = asyncio.Event()

        async def ask(prompt: str) -> str:
            text = []
            async for delta in engine.generate(prompt, GREEDY):
                text.append(delta.text)
                began.set()
            return "".join(text)

        asked = [asyncio.create_task(ask(prompt)) for prompt in prompts]
        await began.wait()
        assert len(engine._entrance.waiting)
        await asyncio.to_thread(kill, "two:1", served)
        return await asyncio.gather(*asked)

    assert accel_local.run(main()) == expected


def test_embeddings_are_asked_again(served: str) -> None:
    engine = accel_local.engine(EMBEDDING)
    expected = accel_local.run(engine.embed(["a cat", "tax law"]))
    kill("embedding:0", served)
    assert accel_local.run(engine.embed(["a cat", "tax law"])) == expected
    kill("embedding:0", served)
    with pytest.raises(EngineLost):
        accel_local.run(engine.embed(["a cat"], priority=Priority(EARLY)))


def test_records_that_were_lost_are_never_passed_off_as_an_empty_store(served: str) -> None:
    store = accel_local.engine(STORE)
    accel_local.run(store.ingest(RECORDS))
    assert accel_local.run(store.count()) == len(RECORDS)
    kill("records:0", served)
    for _ in range(2):
        with pytest.raises(EngineClosed, match="records it held in memory are lost") as caught:
            accel_local.run(store.search([EAST], 1))
        assert not isinstance(caught.value, EngineLost) and caught.value.remedy
        described("records:0", served)  # waits until the actor is back
    with pytest.raises(EngineClosed, match="are lost"):
        accel_local.run(store.ingest([Record("x", "x", EAST)]))
    with Backend.ray(namespace=served):  # a program that begins anew finds an empty store, as it should
        again = accel_local.engine(STORE)
        assert accel_local.run(again.count()) == 0
        accel_local.run(again.ingest(RECORDS))
        assert unwrap(accel_local.run(again.search([EAST], 1))[0])[0].id == "e"


def test_a_program_that_was_taken_for_gone_is_heard_again(served: str, slow_profile: str) -> None:
    """Its actor has given its requests up, as it does after a minute of silence."""
    import ray

    engine = accel_local.engine(sim_llm(slow_profile))
    expected = accel_local.run(answer(engine, QUESTION, LONG))[0]
    source: Any = accel_local.host.source()
    text = []
    for delta in accel_local.stream(engine.generate(QUESTION, LONG)):
        if not text:
            ray.get(actor("llm:0", served).release.remote(source._session.client))
        text.append(delta.text)
    assert "".join(text) == expected
    assert described("llm:0", served)["clients"] == 1


def test_calls_from_many_threads_survive_a_loss(served: str, slow_profile: str) -> None:
    """Encoding blocks its thread; while the actor is being restarted Ray asks it again."""
    engine = accel_local.engine(sim_llm(slow_profile))
    expected = accel_local.run(answer(engine, QUESTION, GREEDY))[0]
    results: list[str] = []

    def program() -> None:
        for _ in range(3):
            prompt = engine.encode(QUESTION)
            results.append("".join(delta.text for delta in accel_local.stream(engine.generate(prompt, GREEDY))))

    threads = [threading.Thread(target=program) for _ in range(4)]
    for thread in threads:
        thread.start()
    kill("llm:0", served)
    for thread in threads:
        thread.join()
    assert results == [expected] * 12


def test_ids_of_a_lost_engine_are_not_understood_as_others(served: str, slow_profile: str) -> None:
    """A simulated model gives its ids out as it meets words: bare ids mean nothing to its successor."""
    engine = accel_local.engine(sim_llm(slow_profile))
    ids = list(engine.encode(QUESTION))
    expected = accel_local.run(answer(engine, QUESTION, GREEDY))[0]
    assert accel_local.run(answer(engine, ids, GREEDY))[0] == expected
    prefix = list(engine.encode_prefix([{"role": "user", "content": "word " * 60}]))
    assert accel_local.run(engine.prefill(prefix)) > 0
    kill("llm:0", served)
    described("llm:0", served)
    with pytest.raises(EngineClosed, match="token ids"):
        accel_local.run(answer(engine, ids, GREEDY))
    assert accel_local.run(answer(engine, engine.encode(QUESTION), GREEDY))[0] == expected
    assert accel_local.run(answer(engine, QUESTION, GREEDY))[0] == expected


def test_an_engine_that_breaks_in_its_actor_is_started_anew(namespace: str) -> None:
    """As when vLLM's own processes die and its actor lives on."""
    from backends.tests.ray_cluster.small_engines import BreakingConfig

    with Backend.ray(namespace=namespace):
        engine: Any = accel_local.engine(BreakingConfig())
        first, second = [accel_local.run(engine.embed(["pid"]))[0] for _ in range(2)]
        assert first == second
        accel_local.run(engine.embed(["break next time"]))
        (third,) = accel_local.run(engine.embed(["pid"]))
        assert third[0] == first[0] and third[1] == first[1] + 1, "the same process, another engine"


def test_a_backend_that_is_taken_down_is_an_error_and_one_that_comes_back_serves(
    served: str, slow_profile: str
) -> None:
    import ray

    engine = accel_local.engine(sim_llm(slow_profile))
    expected: tuple[str, list[Delta]] = accel_local.run(answer(engine, QUESTION, GREEDY))
    ray.kill(actor("llm:0", served), no_restart=True)
    with pytest.raises(EngineClosed, match="has been ended") as caught:
        accel_local.run(answer(engine, QUESTION, GREEDY))
    assert "accel up" in caught.value.remedy
    from accel_ray.cluster import Cluster
    from accel_ray.config import LocalRay
    from accel_ray.wire import ActorSpec

    Cluster(None, served, LocalRay()).start(ActorSpec("llm", 0, sim_llm(slow_profile)))
    assert accel_local.run(answer(engine, QUESTION, GREEDY))[0] == expected[0]
