"""LangChain embeddings served by a model in this process (`accel_local` with `accel_sentence_transformers`)."""

from typing import Any, ClassVar

from langchain_core.embeddings import Embeddings
from pydantic import BaseModel, ConfigDict

import accel_local
from accel.engine import EmbeddingEngine, EngineConfig, priority, unwrap
from accel.engine.profile import Profile
from accel_local.models import DEFAULT_EMBEDDING
from accel_sentence_transformers import SentenceTransformersConfig


class AccelEmbeddings(BaseModel, Embeddings):
    """Instances with equal settings share one engine. All methods may be called from any threads and loops at once."""

    __accel__: ClassVar[dict[str, Any]] = {"local": True, "concurrency": 4096, "pure": True, "elementwise": True}
    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = DEFAULT_EMBEDDING
    device: str | None = None
    batch_tokens: int = 2048
    together: bool = True
    engine: Any = None
    """The config of another engine (`accel.engine.EngineConfig`); None: sentence-transformers by the fields above."""

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        accel_local.prepare()

    @property
    def engine_config(self) -> EngineConfig[EmbeddingEngine]:
        return self.engine or SentenceTransformersConfig(
            model=self.model, device=self.device, batch_tokens=self.batch_tokens, together=self.together
        )

    def accel_profiles(self) -> list[Profile]:
        """What is known about the speed of its engine."""
        found = accel_local.known_profile(self.engine_config)
        return [found] if found is not None else []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        engine = accel_local.engine(self.engine_config)
        vectors = accel_local.run(engine.embed(texts, priority=priority.get()))
        return [list(unwrap(vector)) for vector in vectors]

    def embed_query(self, text: str) -> list[float]:
        engine = accel_local.engine(self.engine_config)
        return list(unwrap(accel_local.run(engine.embed([text], priority=priority.get()))[0]))

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        engine = await accel_local.aengine(self.engine_config)
        vectors = await accel_local.arun(engine.embed(texts, priority=priority.get()))
        return [list(unwrap(vector)) for vector in vectors]

    async def aembed_query(self, text: str) -> list[float]:
        engine = await accel_local.aengine(self.engine_config)
        return list(unwrap((await accel_local.arun(engine.embed([text], priority=priority.get())))[0]))
