"""Components that answer by a function of their input, and say that they were called."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict

from corpus.papers import Parts, Sizes
from corpus.papers.data import DataSets
from corpus.papers.text import passages

Style = Literal["obedient", "denying", "silent"]


@dataclass
class Calls:
    """How many of each kind; how many model calls there were at once, at most; the caps on their outputs."""

    count: Counter[str] = field(default_factory=Counter)
    caps: list[Any] = field(default_factory=list)
    going: int = 0
    peak: int = 0


class FakeChat(BaseChatModel):
    """Obedient: lines and yes or no as the prompt asks. Denying: the same, but always no. Silent: empty answers."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name_of_calls: str
    calls: Calls
    style: Style = "obedient"

    @property
    def _llm_type(self) -> str:
        return "fake"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        raise AssertionError("the applications' nodes are asynchronous")

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.calls.count[self.name_of_calls] += 1
        self.calls.caps.append(kwargs.get("max_tokens"))
        self.calls.going += 1
        self.calls.peak = max(self.calls.peak, self.calls.going)
        for _ in range(5):  # lets whatever runs beside this call begin
            await asyncio.sleep(0)
        self.calls.going -= 1
        answer = "" if self.style == "silent" else _follow(str(messages[-1].content), self.style)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])


def _follow(prompt: str, style: Style) -> str:
    number = _digest(prompt)
    if "yes or no" in prompt:
        return "Yes." if style == "obedient" and number % 3 == 0 else "No."
    if asked := re.search(r"Write (?:the )?(\d+) .*one per line", prompt):
        return "\n".join(f"- line {line} of {number % 9973}" for line in range(int(asked[1])))
    return f"Answer {number % 9973} to {len(prompt)} characters."


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


class FakeEmbeddings(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """How often the words fall into each of 64 drawers."""
        found = Counter(_digest(word) % 64 for word in re.findall(r"\w+", text.lower()))
        return [float(found[drawer]) for drawer in range(64)]


class FakeStore(VectorStore):
    def __init__(self, embedding: Embeddings, calls: Calls) -> None:
        self._embedding = embedding
        self._calls = calls
        self.rows: dict[str, tuple[Document, list[float]]] = {}

    def add_texts(
        self, texts: Iterable[str], metadatas: list[dict[str, Any]] | None = None, **kwargs: Any
    ) -> list[str]:
        raise AssertionError("the applications' nodes are asynchronous")

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        self._calls.count["add"] += 1
        texts = list(texts)
        assert metadatas is not None and ids is not None
        vectors = await self._embedding.aembed_documents(texts)
        for text, metadata, name, vector in zip(texts, metadatas, ids, vectors, strict=True):
            self.rows[name] = Document(id=name, page_content=text, metadata=metadata), vector
        return ids

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        raise AssertionError("the applications' nodes are asynchronous")

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return await self.asimilarity_search_by_vector(await self._embedding.aembed_query(query), k, **kwargs)

    async def asimilarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        self._calls.count["search"] += 1
        wanted = kwargs["filter"].items()
        rows = [row for row in self.rows.values() if wanted <= row[0].metadata.items()]
        rows.sort(key=lambda row: -sum(a * b for a, b in zip(row[1], embedding, strict=True)))
        return [document for document, _ in rows[:k]]

    @classmethod
    def from_texts(cls, *args: Any, **kwargs: Any) -> FakeStore:
        raise NotImplementedError


class FakeReranker(BaseDocumentCompressor):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    calls: Calls

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        raise AssertionError("the applications' nodes are asynchronous")

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        self.calls.count["rerank"] += 1
        return sorted(documents, key=lambda document: _digest(query + document.page_content))[:5]


def fake_parts(data_sets: DataSets, sizes: Sizes, style: Style = "obedient") -> tuple[Parts, Calls, FakeStore]:
    calls = Calls()
    embeddings = FakeEmbeddings()
    store = FakeStore(embeddings, calls)
    parts = Parts(
        llm=FakeChat(name_of_calls="llm", calls=calls, style=style),
        light_llm=FakeChat(name_of_calls="light_llm", calls=calls, style=style),
        embeddings=embeddings,
        store=store,
        reranker=FakeReranker(calls=calls),
        sizes=sizes,
        passages=passages(data_sets, sizes),
    )
    return parts, calls, store
