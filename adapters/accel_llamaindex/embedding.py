"""LlamaIndex embeddings served by a model in this process (`accel_local` with `accel_sentence_transformers`)."""

from collections.abc import Sequence
from typing import Any, ClassVar

from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import ConfigDict, Field

import accel_local
from accel.engine import EmbeddingEngine, EngineConfig, priority, unwrap
from accel.engine.profile import Profile
from accel_local.models import DEFAULT_EMBEDDING
from accel_sentence_transformers import SentenceTransformersConfig

from .engine_field import EngineField


class AccelEmbedding(BaseEmbedding):
    """Instances with equal settings share one engine. All methods may be called from any threads and loops at once.

    Queries and texts are embedded alike. `embed_batch_size` texts are one call of the engine, which makes batches of
    its own out of what concurrent calls bring.
    """

    __accel__: ClassVar[dict[str, Any]] = {"local": True, "concurrency": 4096, "pure": True, "elementwise": True}
    model_config = ConfigDict(extra="forbid")

    model_name: str = DEFAULT_EMBEDDING
    embed_batch_size: int = Field(default=32, gt=0, le=2048)
    device: str | None = None
    batch_tokens: int = 2048
    together: bool = True
    engine: EngineField = None
    """The config of another engine (`accel.engine.EngineConfig`); None: sentence-transformers by the fields above."""

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        accel_local.prepare()

    @classmethod
    def class_name(cls) -> str:
        return "AccelEmbedding"

    @property
    def engine_config(self) -> EngineConfig[EmbeddingEngine]:
        return self.engine or SentenceTransformersConfig(
            model=self.model_name, device=self.device, batch_tokens=self.batch_tokens, together=self.together
        )

    def accel_profiles(self) -> list[Profile]:
        """What is known about the speed of its engine."""
        found = accel_local.known_profile(self.engine_config)
        return [found] if found is not None else []

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._embed([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return (await self._aembed([query]))[0]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._embed([text])[0]

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return (await self._aembed([text]))[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._embed(texts)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await self._aembed(texts)

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        engine = accel_local.engine(self.engine_config)
        vectors = accel_local.run(engine.embed(texts, priority=priority.get()))
        return [list(unwrap(vector)) for vector in vectors]

    async def _aembed(self, texts: Sequence[str]) -> list[list[float]]:
        engine = await accel_local.aengine(self.engine_config)
        vectors = await accel_local.arun(engine.embed(texts, priority=priority.get()))
        return [list(unwrap(vector)) for vector in vectors]
