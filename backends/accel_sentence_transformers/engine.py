"""Embeds texts with a sentence-transformers model. Concurrent calls share batches, capped by tokens."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel.engine import DEMAND, Priority, Vector
from accel.engine.batching import tokens_of
from accel.engine.profile import Profile
from accel.engine.slots import Room
from accel.errors import EngineClosed, EngineStartError, InvalidRequest, MissingExtra, RequestError
from accel_local.models import DEFAULT_EMBEDDING, model_path
from accel_local.profiles import recall, remember
from accel_local.threads import Worker
from accel_sentence_transformers.batches import Batches


@dataclass(frozen=True, slots=True)
class SentenceTransformersConfig:
    """Equal configs share one engine."""

    model: str = DEFAULT_EMBEDDING
    """A folder of sentence-transformers, a prepared model's name, or a hub name."""
    device: str | None = None
    """"cpu" or "cuda". Left out: what there is."""
    batch_tokens: int = 2048
    """Most tokens in one batch, padding included; larger batches on CPU only add waiting time."""
    together: bool = True
    """Whether texts share a batch at all; if not, a vector is independent, to the last bit, of what is embedded beside
    it (float32 sums depend on the batch)."""

    @property
    def label(self) -> str:
        return f"sentence-transformers with {self.model}"

    def create(self) -> "SentenceTransformersEngine":
        return SentenceTransformersEngine(self)


class SentenceTransformersEngine:
    def __init__(self, config: SentenceTransformersConfig) -> None:
        self._config = config
        self._model: Any = None
        self._dimension = 0
        self._batches: Batches[str, Vector] | None = None
        self._profile: Profile | None = None

    async def start(self) -> None:
        worker = Worker("accel-embed")
        try:
            await worker.do(self._load)
        except BaseException:
            worker.stop()
            raise
        self._batches = Batches(
            worker,
            self._encode,
            batch_tokens=self._config.batch_tokens,
            failure="Embedding failed",
            together=self._config.together,
            profile=self.known_profile,
        )

    def _load(self) -> None:
        model = load_embedding_model(self._config.model, self._config.device)
        self._dimension = len(model.encode(["dimension"], show_progress_bar=False)[0])
        self._model = model

    async def close(self) -> None:
        batches, self._batches = self._batches, None
        if batches is not None:
            batches.close(RequestError(f"{self._config.label} was closed."))
            self._model = None

    @property
    def room(self) -> Room | None:
        return self._running().room

    @property
    def dimension(self) -> int:
        return self._dimension

    async def embed(self, texts: Sequence[str], *, priority: Priority = DEMAND) -> list[Vector | RequestError]:
        return await self._running().serve([self._item(text) for text in texts], priority)

    def _running(self) -> Batches[str, Vector]:
        if self._batches is None:
            raise EngineClosed(f"{self._config.label} is not running.")
        return self._batches

    def _item(self, text: str) -> tuple[str, int] | RequestError:
        if not isinstance(text, str):
            return InvalidRequest(f"Only text can be embedded, not {type(text).__name__}.")
        return text, min(self._model.max_seq_length or 512, tokens_of(text))

    def _encode(self, texts: list[str]) -> list[Vector]:
        rows = self._model.encode(texts, batch_size=len(texts), show_progress_bar=False, convert_to_numpy=True)
        return [row.tolist() for row in rows]

    @property
    def known_profile(self) -> Profile | None:
        return self._profile or recall(self._config.label)

    async def profile(self) -> Profile:
        if self._profile is None:
            table = await self._running().measure(list)
            most = self._config.batch_tokens
            self._profile = Profile(engine="embedding", batches=table, batch_tokens=most, source="measured")
            remember(self._config.label, self._profile)
            self._running().size_by(self._profile)
        return self._profile


def load_embedding_model(name: str, device: str | None) -> Any:
    """A SentenceTransformer ready to encode. Raises ModelNotFound, MissingExtra or EngineStartError."""
    folder = local_folder(name)
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtra("The embedding engine", "st", error.name or "") from error
    try:
        model = SentenceTransformer(folder, device=device)
    except (OSError, ValueError, RuntimeError) as error:
        raise EngineStartError(
            f"sentence-transformers could not load {name!r}: {error}",
            "give the folder of a sentence-transformers model",
        ) from error
    model.eval()
    return model


def local_folder(name: str) -> str:
    """The folder of a model, for which no hub is asked anything; or the hub name it is."""
    folder = model_path(name)
    if Path(folder).is_dir():
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    return folder
