"""Scores texts by how relevant they are to a query. Concurrent calls share batches, capped by tokens."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel.engine import DEMAND, Priority
from accel.engine.batching import tokens_of
from accel.engine.profile import Profile
from accel.engine.slots import Room
from accel.errors import EngineClosed, EngineStartError, InvalidRequest, MissingExtra, RequestError
from accel_local.models import DEFAULT_EMBEDDING
from accel_local.profiles import recall, remember
from accel_local.threads import Worker
from accel_sentence_transformers.batches import Batches
from accel_sentence_transformers.engine import load_embedding_model, local_folder

QUERY_WORDS = 4
"""Words of the query when measuring: part of every pair for a cross-encoder, a text beside the others else."""


@dataclass(frozen=True, slots=True)
class RerankConfig:
    """Equal configs share one engine. No reranker weights on the package index: the default is the embedding model as a
    stand-in."""

    model: str = DEFAULT_EMBEDDING
    """A cross-encoder (folder or hub name) scores query and text together. Any other model of sentence-transformers
    embeds both, and the score is their cosine."""
    device: str | None = None
    """"cpu" or "cuda". Left out: what there is."""
    batch_tokens: int = 2048
    """Most tokens in one batch, padding included."""

    @property
    def label(self) -> str:
        return f"reranking with {self.model}"

    def create(self) -> "SentenceTransformersReranker":
        return SentenceTransformersReranker(self)


class SentenceTransformersReranker:
    """The items of its batches are (query, text) for a cross-encoder, and (text,) for an embedding model."""

    def __init__(self, config: RerankConfig) -> None:
        self._config = config
        self._model: Any = None
        self._crosses = False
        self._batches: Batches[tuple[str, ...], Any] | None = None
        self._profile: Profile | None = None

    async def start(self) -> None:
        worker = Worker("accel-rerank")
        try:
            await worker.do(self._load)
        except BaseException:
            worker.stop()
            raise
        compute = self._score if self._crosses else self._embed
        self._batches = Batches(
            worker,
            compute,
            batch_tokens=self._config.batch_tokens,
            failure="Reranking failed",
            profile=self.known_profile,
        )

    def _load(self) -> None:
        self._crosses = _is_cross_encoder(self._config.model)
        if self._crosses:
            self._model = _load_cross_encoder(self._config.model, self._config.device)
        else:
            self._model = load_embedding_model(self._config.model, self._config.device)

    async def close(self) -> None:
        batches, self._batches = self._batches, None
        if batches is not None:
            batches.close(RequestError(f"{self._config.label} was closed."))
            self._model = None

    @property
    def room(self) -> Room | None:
        return self._running().room

    async def rerank(
        self, query: str, texts: Sequence[str], *, priority: Priority = DEMAND
    ) -> list[float | RequestError]:
        batches = self._running()
        if not texts:
            return []
        if not isinstance(query, str):
            return [InvalidRequest(f"A query is text, not {type(query).__name__}.")] * len(texts)
        if self._crosses:
            return await batches.serve([self._item(query, text) for text in texts], priority)
        asked, *found = await batches.serve([self._item(query), *map(self._item, texts)], priority)
        if isinstance(asked, RequestError):
            return [asked] * len(texts)
        return [vector if isinstance(vector, RequestError) else float(asked @ vector) for vector in found]

    def _running(self) -> Batches[tuple[str, ...], Any]:
        if self._batches is None:
            raise EngineClosed(f"{self._config.label} is not running.")
        return self._batches

    def _item(self, *texts: str) -> tuple[tuple[str, ...], int] | RequestError:
        for text in texts:
            if not isinstance(text, str):
                return InvalidRequest(f"Only text can be ranked, not {type(text).__name__}.")
        limit = getattr(self._model, "max_seq_length", None) or 512
        return texts, min(limit, sum(map(tokens_of, texts)))

    def _score(self, pairs: list[tuple[str, ...]]) -> list[float]:
        return [float(score) for score in self._model.predict(pairs, batch_size=len(pairs), show_progress_bar=False)]

    def _embed(self, items: list[tuple[str, ...]]) -> list[Any]:
        """Vectors of length one, whose products are cosines."""
        texts = [text for (text,) in items]
        return list(
            self._model.encode(texts, batch_size=len(texts), show_progress_bar=False, normalize_embeddings=True)
        )

    @property
    def known_profile(self) -> Profile | None:
        return self._profile or recall(self._config.label)

    async def profile(self) -> Profile:
        if self._profile is None:
            table = await self._running().measure(self._measured)
            most = self._config.batch_tokens
            self._profile = Profile(engine="reranking", batches=table, batch_tokens=most, source="measured")
            remember(self._config.label, self._profile)
            self._running().size_by(self._profile)
        return self._profile

    def _measured(self, texts: list[str]) -> list[tuple[str, ...]]:
        """A batch as one call with these texts makes it; a pair has the tokens of its text."""
        split = [text.split(" ", QUERY_WORDS) for text in texts]
        if self._crosses:
            return [(" ".join(words[:QUERY_WORDS]), words[-1]) for words in split]
        return [(" ".join(split[0][:QUERY_WORDS]),), *((text,) for text in texts)]


def _is_cross_encoder(name: str) -> bool:
    """By what the model's files say: loaded as a cross-encoder, any other model gets a head of random weights."""
    folder = local_folder(name)
    try:
        from sentence_transformers.util import load_file_path
        from transformers import AutoConfig
    except ImportError as error:
        raise MissingExtra("The reranking engine", "st", error.name or "") from error
    try:
        described = load_file_path(folder, "config_sentence_transformers.json")
        kind = json.loads(Path(described).read_text(encoding="utf-8")).get("model_type") if described else None
        if kind is not None:
            return bool(kind == "CrossEncoder")
        if load_file_path(folder, "modules.json"):
            return False
        architectures = AutoConfig.from_pretrained(folder).architectures or ()
    except (OSError, ValueError) as error:
        raise _cannot_load(name, error) from error
    return any(architecture.endswith("ForSequenceClassification") for architecture in architectures)


def _load_cross_encoder(name: str, device: str | None) -> Any:
    from sentence_transformers import CrossEncoder

    try:
        model = CrossEncoder(local_folder(name), device=device)
    except (OSError, ValueError, RuntimeError) as error:
        raise _cannot_load(name, error) from error
    if model.num_labels != 1:
        raise EngineStartError(
            f"{name!r} sorts texts into {model.num_labels} classes instead of scoring them.",
            "give a cross-encoder with one label",
        )
    return model


def _cannot_load(name: str, error: Exception) -> EngineStartError:
    return EngineStartError(
        f"sentence-transformers could not load {name!r}: {error}",
        "give the folder of a cross-encoder or of a sentence-transformers model",
    )
