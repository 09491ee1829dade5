"""Fake embeddings, stores and retrievers that behave like real ones; see `fakes`."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from pydantic import PrivateAttr

from compat_tests.answers import digest
from compat_tests.probe import Probe


class FakeEmbeddings(Embeddings):
    """Declared: local, elementwise."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe

    def _vector(self, text: str) -> list[float]:
        draw = random.Random(digest(text))
        return [draw.random() for _ in range(4)]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        with self.probe.within("embed", "\n".join(texts), exclusive=False):
            time.sleep(self.probe.delay_s())
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        with self.probe.within("embed", text, exclusive=False):
            time.sleep(self.probe.delay_s())
        return self._vector(text)


class FakeStore(VectorStore):
    """In-memory store; declared, but not to be read-only.

    `rows` may change behind its back: `rows[...] = ...` is another process writing.
    """

    def __init__(self, probe: Probe, name: str = "store", embedding: Embeddings | None = None) -> None:
        self.probe = probe
        self.name = name
        self.embedding = embedding
        self.rows: dict[str, str] = {}

    @property
    def embeddings(self) -> Embeddings | None:
        return self.embedding

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        texts = list(texts)
        ids = ids or [f"{digest(text) % 10**8:08d}" for text in texts]
        with self.probe.within(self.name, f"add {texts}", orderly=True):
            if self.embedding:
                self.embedding.embed_documents(texts)
            self.rows.update(zip(ids, texts, strict=True))
        return ids

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        with self.probe.within(self.name, f"delete {ids}", orderly=True):
            for row in ids if ids is not None else list(self.rows):
                self.rows.pop(row, None)
        return True

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        with self.probe.within(self.name, query):
            time.sleep(self.probe.delay_s())
            if self.embedding:
                self.embedding.embed_query(query)
            return nearest(query, self.rows_for(query), k)

    def rows_for(self, query: str) -> dict[str, str]:
        return self.rows

    @classmethod
    def from_texts(
        cls, texts: list[str], embedding: Embeddings, metadatas: list[dict[str, Any]] | None = None, **kwargs: Any
    ) -> FakeStore:
        store = cls(Probe(0), embedding=embedding)
        store.add_texts(texts, metadatas)
        return store


class ReadonlyStore(FakeStore):
    """Declared readonly: nobody writes while programs run."""


class Vault(ReadonlyStore):
    """A tenant's records. No two requests find the same text: then two runs would show it as the program's own."""

    def rows_for(self, query: str) -> dict[str, str]:
        return {row: text.replace("?", str(digest(query, row) % 10_000)) for row, text in self.rows.items()}


def nearest(query: str, rows: dict[str, str], k: int) -> list[Document]:
    wanted = set(query.lower().split())

    def score(row: str) -> tuple[int, int]:
        return (-len(wanted & set(rows[row].lower().split())), digest(query, row))

    return [Document(rows[row], id=row, metadata={"row": row}) for row in sorted(rows, key=score)[:k]]


class KeywordRetriever(BaseRetriever):
    """A custom retriever over rows that the program may change; declared, but not to be read-only."""

    rows: dict[str, str]
    k: int = 2
    _probe: Probe = PrivateAttr()

    def __init__(self, probe: Probe, **fields: Any) -> None:
        super().__init__(**fields)
        self._probe = probe

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        with self._probe.within("retriever", query):
            time.sleep(self._probe.delay_s())
        return nearest(query, self.rows, self.k)


class RewritingRetriever(KeywordRetriever):
    """A composite: asks a model before it searches. Nobody vouches for it: only the model's call may be early."""

    model: BaseChatModel

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        with self._probe.within("rewriter", query, vouched=False, exclusive=False):
            rewritten = self.model.invoke(f"Rewrite the query {query}").content
        return nearest(str(rewritten), self.rows, self.k)
