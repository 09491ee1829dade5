import json
from dataclasses import asdict

import pytest

import accel_local
from accel.conformance import (
    EMBEDDING_CHECKS,
    LLM_CHECKS,
    VECTOR_STORE_CHECKS,
    EmbeddingCheck,
    LLMCheck,
    VectorStoreCheck,
    name,
)
from accel.engine import EmbeddingEngine, LLMEngine, VectorStore

pytestmark = [pytest.mark.engines, pytest.mark.timeout(180)]


@pytest.mark.parametrize("check", LLM_CHECKS, ids=name)
def test_vllm(check: LLMCheck, llm: LLMEngine) -> None:
    assert isinstance(llm, LLMEngine)
    accel_local.run(check(llm))


@pytest.mark.parametrize("check", EMBEDDING_CHECKS, ids=name)
def test_sentence_transformers(check: EmbeddingCheck, embedding: EmbeddingEngine) -> None:
    assert isinstance(embedding, EmbeddingEngine)
    accel_local.run(check(embedding))


@pytest.mark.parametrize("check", VECTOR_STORE_CHECKS, ids=name)
def test_pgvector(check: VectorStoreCheck, store: VectorStore) -> None:
    assert isinstance(store, VectorStore)
    accel_local.run(check(store))


def test_profiles_are_curves_that_json_takes(llm: LLMEngine, embedding: EmbeddingEngine, store: VectorStore) -> None:
    measured = accel_local.run(llm.profile())
    assert [batch for batch, _ in measured.decode] == [1, 2, 4, 8, 16]
    assert all(seconds > 0 for _, seconds in (*measured.prefill, *measured.decode))
    assert accel_local.run(llm.profile()) is measured
    assert accel_local.run(embedding.profile()).embed
    assert accel_local.run(store.profile()).search
    assert json.loads(json.dumps(asdict(measured)))["decode"]
