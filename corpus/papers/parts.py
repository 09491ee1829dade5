"""What the programs are built from: components, and how long and how many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from langchain_core.documents import BaseDocumentCompressor
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.vectorstores import VectorStore
from langgraph.graph.state import CompiledStateGraph

from corpus.papers.data import DataSets

WORDS_PER_TOKEN = 0.78
"""Of English prose, for sizes that the papers give in tokens."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The defaults are those of the papers where they give one. Token counts are caps on a call's output."""

    answer_tokens: int = 256
    note_tokens: int = 128
    list_tokens: int = 96
    verdict_tokens: int = 64
    grade_tokens: int = 8
    chat_tokens: int = 512

    chunk_words: int = round(256 * WORDS_PER_TOKEN)
    overlap_words: int = round(30 * WORDS_PER_TOKEN)
    chunks: int = 48
    """A document is cut off after so many."""
    candidates: int = 16
    """Chunks found per query, to be reranked."""
    claims: int = 6
    claim_hits: int = 10
    """Passages found per query about a claim."""
    evidence: int = 3
    passages: int = 1000
    """How much of the corpus is searched."""


SMALL = Sizes(
    answer_tokens=150,
    note_tokens=64,
    list_tokens=48,
    verdict_tokens=32,
    grade_tokens=4,
    chat_tokens=300,
    chunk_words=80,
    overlap_words=10,
    chunks=20,
    candidates=8,
    claims=3,
    claim_hits=4,
    evidence=2,
    passages=300,
)
"""For a model of 135 million parameters on two CPU cores: 20 ms per decoded token, 1,000 prompt tokens a second."""


@dataclass(frozen=True, slots=True)
class Parts:
    llm: BaseChatModel
    light_llm: BaseChatModel
    embeddings: Embeddings
    """The store's own."""
    store: VectorStore
    """Its searches take `filter`, a dict that a document's metadata must contain; an id added again is replaced."""
    reranker: BaseDocumentCompressor
    """Keeps the best of the documents, best first."""
    sizes: Sizes
    passages: tuple[str, ...] = ()
    """What keyword search looks through: `corpus.papers.text.passages(data_sets, sizes)`."""


class Node(Protocol):
    """Of a graph."""

    async def __call__(self, state: Any) -> dict[str, Any]: ...


class App(Protocol):
    """A module of this package."""

    PAPER: str
    __name__: str

    def build(self, parts: Parts) -> CompiledStateGraph[Any, Any, Any, Any]: ...

    def build_by_hand(self, parts: Parts) -> CompiledStateGraph[Any, Any, Any, Any]: ...

    async def prepare(self, parts: Parts, data_sets: DataSets) -> None: ...

    def inputs(self, data_sets: DataSets, count: int, seed: int) -> list[dict[str, Any]]: ...
