"""Documents that are split and embedded, request after request, by a pipeline of LlamaIndex's."""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections import Counter
from typing import Any

from llama_index.core import Document
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceWindowNodeParser
from pydantic import PrivateAttr

import accel

WORDS = "tide moon reef coral ice glacier moraine river delta sand wind dune rain cloud storm lake".split()


BATCHES: Counter[tuple[str, ...]] = Counter()
LOCK = threading.Lock()


class Embedding(BaseEmbedding):  # type: ignore[misc]
    """Counts its batches, each of which takes a while."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        with LOCK:
            BATCHES[tuple(texts)] += 1
        time.sleep(0.01)
        return [[float(byte) for byte in hashlib.sha256(text.encode()).digest()[:8]] for text in texts]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class Changing(Embedding):
    """Is another one after each batch, by a setting that its calls go by, so that no early call of it may retire."""

    _last: list[str] = PrivateAttr(default_factory=list)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self._last = [*self._last, *texts][-4:]
        return super()._get_text_embeddings(texts)


def document(number: int) -> Document:
    chosen = random.Random(number)
    sentences = (" ".join(chosen.choices(WORDS, k=8)).capitalize() + "." for _ in range(12))
    return Document(id_=f"document {number}", text=" ".join(sentences))


def pipeline(embedding: Any) -> Any:
    splitter = SentenceWindowNodeParser.from_defaults(window_size=1)
    return accel.accelerate(IngestionPipeline(transformations=[splitter, embedding], disable_cache=True))


def ask(fast: Any, request: int) -> None:
    fast.run(documents=[document(6 * request + number) for number in range(6)])
    assert accel.settle()


def test_a_batch_that_is_announced_and_predicted_is_sent_once() -> None:
    """Whichever comes first: the loop of the framework's own says what it is going to send, and so do earlier runs."""
    BATCHES.clear()
    fast = pipeline(accel.register(Embedding(), pure=True, local=True, concurrency=4))
    for request in range(12):
        ask(fast, request)
    counts = fast.plan.total
    assert counts.issued == counts.retired > 0
    assert max(BATCHES.values()) == 1


def test_what_is_announced_in_vain_is_announced_no_more() -> None:
    fast = pipeline(accel.register(Changing(), pure=True, local=True, concurrency=4))
    ask(fast, 0)
    before = fast.plan.total
    assert before.wasted == before.issued > 0
    for request in range(1, 8):
        ask(fast, request)
    assert fast.plan.total.issued == before.issued
