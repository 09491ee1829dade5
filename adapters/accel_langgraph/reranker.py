"""A LangChain document compressor that keeps the most relevant documents, by a model in this process."""

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict, Field

import accel_local
from accel.engine import EngineConfig, RerankEngine, priority, unwrap
from accel.engine.profile import Profile
from accel.errors import RequestError
from accel_local.models import DEFAULT_EMBEDDING
from accel_sentence_transformers import RerankConfig


class AccelReranker(BaseDocumentCompressor):
    """Instances with equal engine settings share one engine. May be called from any threads and loops at once.

    Gives copies of the `top_n` best documents, best first, equally good ones in the order given, each with its
    `relevance_score` in the metadata: higher is more relevant. Calls no callbacks.
    """

    __accel__: ClassVar[dict[str, Any]] = {"local": True, "concurrency": 4096, "pure": True}
    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = DEFAULT_EMBEDDING
    device: str | None = None
    batch_tokens: int = 2048
    top_n: int = Field(default=3, ge=1)
    engine: Any = None
    """The config of another engine (`accel.engine.EngineConfig`); None: sentence-transformers by the fields above."""

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        accel_local.prepare()

    @property
    def engine_config(self) -> EngineConfig[RerankEngine]:
        return self.engine or RerankConfig(model=self.model, device=self.device, batch_tokens=self.batch_tokens)

    def accel_profiles(self) -> list[Profile]:
        """What is known about the speed of its engine."""
        found = accel_local.known_profile(self.engine_config)
        return [found] if found is not None else []

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        engine = accel_local.engine(self.engine_config)
        scores = accel_local.run(engine.rerank(query, _texts(documents), priority=priority.get()))
        return self._best(documents, scores)

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        engine = await accel_local.aengine(self.engine_config)
        scores = await accel_local.arun(engine.rerank(query, _texts(documents), priority=priority.get()))
        return self._best(documents, scores)

    def _best(self, documents: Sequence[Document], scores: Sequence[float | RequestError]) -> list[Document]:
        scored = [(unwrap(score), document) for score, document in zip(scores, documents, strict=True)]
        best = sorted(scored, key=lambda pair: -pair[0])  # stable: ties stay in order
        return [_with_score(document, score) for score, document in best[: self.top_n]]


def _texts(documents: Sequence[Document]) -> list[str]:
    return [document.page_content for document in documents]


def _with_score(document: Document, score: float) -> Document:
    metadata = {**copy.deepcopy(document.metadata), "relevance_score": score}
    return document.model_copy(update={"metadata": metadata})
