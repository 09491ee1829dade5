"""Simulated embedding, reranking and search, and the order in which they serve."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from accel.engine import EmbeddingEngine, EngineConfig, Priority, Record, RerankEngine, VectorStore, unwrap
from accel.engine.conformance import (
    EMBEDDING_CHECKS,
    RERANK_CHECKS,
    VECTOR_STORE_CHECKS,
    EmbeddingCheck,
    RerankCheck,
    VectorStoreCheck,
    name,
)
from accel.engine.profile import Profile
from accel.errors import ConfigurationError, EngineClosed, InvalidRequest, RequestError
from accel_sim.engines import SimEmbeddingConfig, SimRerankConfig, SimStoreConfig, contains, count_tokens

BATCHES = ((1, 8, 1e-5), (8, 8, 4e-5))
EMBEDDING = SimEmbeddingConfig(Profile("embedding", batches=BATCHES, batch_tokens=64))
RERANKING = SimRerankConfig(Profile("reranking", batches=BATCHES, batch_tokens=64))
SEARCHING = Profile("searching", search=((10, 1e-5), (100, 2e-5)))
STORE = SimStoreConfig("conformance", 3, SEARCHING, ingest_s=1e-6)


@contextlib.asynccontextmanager
async def running(config: EngineConfig[Any]) -> AsyncIterator[Any]:
    engine = config.create()
    await engine.start()
    try:
        yield engine
    finally:
        await engine.close()


# --- engines


@pytest.mark.parametrize("check", EMBEDDING_CHECKS, ids=name)
async def test_embedding(check: EmbeddingCheck) -> None:
    async with running(EMBEDDING) as engine:
        assert isinstance(engine, EmbeddingEngine)
        await check(engine)


@pytest.mark.parametrize("check", RERANK_CHECKS, ids=name)
async def test_reranking(check: RerankCheck) -> None:
    async with running(RERANKING) as engine:
        assert isinstance(engine, RerankEngine)
        await check(engine)


@pytest.mark.parametrize("slots", [0, 2])
@pytest.mark.parametrize("check", VECTOR_STORE_CHECKS, ids=name)
async def test_store(check: VectorStoreCheck, slots: int) -> None:
    profile = Profile("searching", search=SEARCHING.search, slots=slots)
    async with running(SimStoreConfig("conformance", 3, profile, ingest_s=1e-6)) as engine:
        assert isinstance(engine, VectorStore)
        await check(engine)


async def test_reranking_prefers_shared_words_and_has_no_ties() -> None:
    texts = ["bread and butter", "tax law", "law of tax", "how to bake bread"]
    async with running(RERANKING) as engine:
        scores = [unwrap(score) for score in await engine.rerank("bake bread", texts)]
    assert max(scores) == scores[3] and min(scores[0], scores[3]) > max(scores[1], scores[2])
    assert len(set(scores)) == 4


async def test_reranking_counts_query_and_text_as_read_together() -> None:
    profile = Profile("reranking", batches=BATCHES, batch_tokens=8)
    async with running(SimRerankConfig(profile)) as engine:
        await engine.rerank("a b", ["c d"] * 4)  # 4 tokens each
        assert engine.batches_served == [2, 2]


async def test_profiles_and_labels() -> None:
    for config in (EMBEDDING, RERANKING, STORE):
        async with running(config) as engine:
            assert await engine.profile() is config.profile
        assert hash(config) and "simulated" in config.label
    with pytest.raises(ConfigurationError, match="embedding"):
        SimRerankConfig(EMBEDDING.profile)
    with pytest.raises(ConfigurationError, match="dimensions"):
        SimStoreConfig("x", 0, SEARCHING)


def test_tokens_are_pieces_of_words_and_punctuation() -> None:
    assert [count_tokens(text) for text in ("", "word", "longer word", "acknowledgement", "Why? (So.)")] == [
        0, 1, 2, 3, 6,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "wanted", "expected"),
    [
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": 2}}, True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": None}, {"a": None}, True),
        ({}, {"a": None}, False),
        ({"a": [1, {"b": 2, "c": 3}]}, {"a": [{"b": 2}]}, True),
        ({"a": [1, 2]}, {"a": [2, 2, 1]}, True),
        ({"a": [1, 2]}, {"a": 1}, False),  # but for the top level, a list contains lists only
        ({"a": [[1, 2]]}, {"a": [[1]]}, True),
        ({"a": [[1, 2]]}, {"a": [1]}, False),
        ({"a": "x"}, {}, True),
        ({"a": {}}, {"a": []}, False),
    ],
)
def test_metadata_is_contained_as_in_jsonb(value: Any, wanted: Any, expected: bool) -> None:
    assert contains(value, wanted) is expected


async def test_a_store_keeps_what_it_was_given() -> None:
    metadata = {"tags": ["a"]}
    async with running(STORE) as store:
        await store.ingest([Record("r", "text", (1, 0, 0), metadata)])
        metadata["tags"].append("b")
        (hit,) = unwrap((await store.search([(1, 0, 0)], 1))[0])
        hit.metadata["tags"].append("c")
        assert (await store.get(["r"]))[0].metadata == {"tags": ["a"]}
        for wrong in (Record("x", "", (float("nan"), 0, 0)), Record("x", "", (1, 0, 0), {"a": object()})):
            with pytest.raises(InvalidRequest):
                await store.ingest([Record("y", "", (1, 0, 0)), wrong])
        assert await store.count() == 1
        assert isinstance((await store.search([("a", 0, 0)], 1))[0], RequestError)


# --- order


async def in_order(*calls: Any) -> list[int]:
    """The calls by when they ended."""
    ended: list[int] = []

    async def watched(number: int, call: Any) -> None:
        await call
        ended.append(number)

    await asyncio.gather(*(watched(number, call) for number, call in enumerate(calls)))
    return ended


def embedding(batch_tokens: int) -> SimEmbeddingConfig:
    return SimEmbeddingConfig(Profile("embedding", batches=BATCHES, batch_tokens=batch_tokens))


async def test_lower_priorities_are_served_first() -> None:
    async with running(embedding(1)) as engine:
        ended = await in_order(*(engine.embed(["word"], priority=Priority(rank)) for rank in (5, 0, 5, 2, 0)))
        assert ended == [1, 4, 3, 0, 2]
        assert engine.batches_served == [1] * 5
    profile = Profile("searching", search=SEARCHING.search, slots=1)
    async with running(SimStoreConfig("x", 3, profile)) as store:
        assert await in_order(*(store.search([(1, 0, 0)], 1, priority=Priority(rank)) for rank in (3, 1, 2))) == [
            1,
            2,
            0,
        ]
        assert store.searches_served == 3


async def test_concurrent_calls_share_batches_up_to_their_tokens() -> None:
    for batch_tokens, batches in ((100, [6]), (12, [3, 3]), (4, [1] * 6), (2, [1] * 6)):
        async with running(embedding(batch_tokens)) as engine:
            await asyncio.gather(*(engine.embed(["one two three four"] * 2) for _ in range(3)))
            assert engine.batches_served == batches
    async with running(embedding(16)) as engine:
        await asyncio.gather(engine.embed(["a b c d e f g h"]), engine.embed(["a"] * 2))  # padded: 3 x 8
        assert engine.batches_served == [2, 1]


async def test_without_a_cap_a_call_is_a_batch() -> None:
    async with running(embedding(0)) as engine:
        await asyncio.gather(engine.embed(["a"] * 50), engine.embed([]), engine.embed(["b"] * 2))
        assert engine.batches_served == [50, 2]


async def test_what_is_cancelled_leaves_the_queue() -> None:
    async with running(embedding(0)) as engine:
        kept, dropped = (asyncio.create_task(engine.embed(["text"] * n)) for n in (2, 3))
        await asyncio.sleep(0)  # both calls are made; no batch has begun
        dropped.cancel()
        assert len(await kept) == 2
        assert len(await engine.embed(["text"] * 4)) == 4
        assert dropped.cancelled() and engine.batches_served == [2, 4]


@pytest.mark.parametrize("config", [embedding(1), RERANKING, STORE], ids=lambda config: config.label.split()[1])
async def test_closing_ends_what_waits_with_an_error(config: EngineConfig[Any]) -> None:
    engine = config.create()
    calls = {
        "SimEmbedding": lambda: engine.embed(["a", "b"]),
        "SimReranker": lambda: engine.rerank("q", ["a", "b"]),
        "SimStore": lambda: engine.search([(1, 0, 0)] * 2, 1),
    }
    call = calls[type(engine).__name__]
    with pytest.raises(EngineClosed):
        await call()
    await engine.start()
    waiting = asyncio.create_task(call())
    await asyncio.sleep(0)  # the call is made
    await engine.close()
    await engine.close()
    results = await waiting
    assert len(results) == 2 and all("closed" in str(result) for result in results)
    with pytest.raises(EngineClosed):
        await call()
