import json
from dataclasses import asdict
from pathlib import Path

import pytest

import accel_local
from accel.engine import EmbeddingEngine, LLMEngine, RerankEngine, VectorStore
from accel.engine.conformance import (
    EMBEDDING_CHECKS,
    LLM_CHECKS,
    RERANK_CHECKS,
    VECTOR_STORE_CHECKS,
    EmbeddingCheck,
    LLMCheck,
    RerankCheck,
    VectorStoreCheck,
    name,
    ranks_by_relevance,
)
from accel_sentence_transformers import RerankConfig

pytestmark = [pytest.mark.engines, pytest.mark.timeout(180)]


@pytest.mark.parametrize("check", LLM_CHECKS, ids=name)
def test_vllm(check: LLMCheck, llm: LLMEngine) -> None:
    assert isinstance(llm, LLMEngine)
    accel_local.run(check(llm))


@pytest.mark.parametrize("check", EMBEDDING_CHECKS, ids=name)
def test_sentence_transformers(check: EmbeddingCheck, embedding: EmbeddingEngine) -> None:
    assert isinstance(embedding, EmbeddingEngine)
    accel_local.run(check(embedding))


@pytest.mark.parametrize("check", RERANK_CHECKS, ids=name)
def test_reranking(check: RerankCheck, reranking: RerankEngine) -> None:
    assert isinstance(reranking, RerankEngine)
    accel_local.run(check(reranking))


@pytest.mark.parametrize("check", [check for check in RERANK_CHECKS if check is not ranks_by_relevance], ids=name)
def test_reranking_with_a_cross_encoder(check: RerankCheck, cross_encoder: Path) -> None:
    accel_local.run(check(accel_local.engine(RerankConfig(str(cross_encoder)))))


def test_reranking_scores_a_pair_as_its_cross_encoder_does(cross_encoder: Path) -> None:
    from sentence_transformers import CrossEncoder

    engine = accel_local.engine(RerankConfig(str(cross_encoder)))
    texts = ["bread is baked", "trains run late", ""]
    plain = CrossEncoder(str(cross_encoder)).predict([("how to bake", text) for text in texts])
    assert accel_local.run(engine.rerank("how to bake", texts)) == pytest.approx(list(plain), abs=1e-5)
    assert len(set(plain)) == 3


def test_reranking_profiles_are_single_batches(reranking: RerankEngine, cross_encoder: Path) -> None:
    for engine in (reranking, accel_local.engine(RerankConfig(str(cross_encoder)))):
        measured = accel_local.run(engine.profile())
        assert measured.engine == "reranking" and measured.efficient_batch_tokens <= measured.batch_tokens == 2048
        assert accel_local.run(engine.profile()) is measured


@pytest.mark.parametrize("check", VECTOR_STORE_CHECKS, ids=name)
def test_pgvector(check: VectorStoreCheck, store: VectorStore) -> None:
    assert isinstance(store, VectorStore)
    accel_local.run(check(store))


def test_profiles_are_curves_that_json_takes(llm: LLMEngine, embedding: EmbeddingEngine, store: VectorStore) -> None:
    measured = accel_local.run(llm.profile())
    assert [batch for batch, _ in measured.decode] == [1, 2, 4, 8, 16]
    assert all(seconds > 0 for _, seconds in (*measured.prefill, *measured.decode))
    assert accel_local.run(llm.profile()) is measured
    assert accel_local.run(embedding.profile()).batches
    assert accel_local.run(store.profile()).search
    assert json.loads(json.dumps(asdict(measured)))["decode"]
