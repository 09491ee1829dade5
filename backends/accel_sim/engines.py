"""Simulated embedding, reranking and vector search: real results by simple means, in the time a profile says.

Vectors are hashed bags of words: texts that share words are near. All waiting is `asyncio.sleep` on the engine's loop.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import AsyncIterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.engine import DEMAND, Hit, Metadata, Priority, Record, Vector
from accel.engine import profile as profiles
from accel.engine.batching import batch_tokens, policy_named
from accel.engine.profile import Profile
from accel.engine.slots import Room, room_for_batches
from accel.errors import ConfigurationError, EngineClosed, InvalidRequest, RequestError

from .queues import Item, Queue

Floats = npt.NDArray[np.float64]

RERANK_DIMENSION = 64


def _check(profile: Profile, kind: str, dimension: int = 1) -> None:
    if profile.engine != kind:
        raise ConfigurationError(
            f"A profile of {profile.engine} can't drive an engine for {kind}.", f"give a profile of {kind}"
        )
    if dimension < 1:
        raise ConfigurationError(f"Vectors of {dimension} dimensions make no sense.", "give a positive dimension")


@dataclass(frozen=True, slots=True)
class SimEmbeddingConfig:
    """Equal configs share one engine."""

    profile: Profile
    """What times it takes; a backend.yaml says 7b, 13b, 30b (see `accel_sim.published`), or a file of profiles."""
    dimension: int = 64
    """Of its vectors."""
    seed: int = 0
    """Other seeds give other vectors, as other models do."""
    batching: str = "topology-aware"
    """A policy of `accel.engine.batching`."""

    def __post_init__(self) -> None:
        _check(self.profile, "embedding", self.dimension)
        policy_named(self.batching)

    @property
    def label(self) -> str:
        return f"simulated embedding ({self.profile.source or 'no source'})"

    def create(self) -> SimEmbedding:
        return SimEmbedding(self)


@dataclass(frozen=True, slots=True)
class SimRerankConfig:
    """Equal configs share one engine."""

    profile: Profile
    """What times it takes; a backend.yaml says 7b, 13b, 30b (see `accel_sim.published`), or a file of profiles."""
    batching: str = "topology-aware"
    """A policy of `accel.engine.batching`."""

    def __post_init__(self) -> None:
        _check(self.profile, "reranking")
        policy_named(self.batching)

    @property
    def label(self) -> str:
        return f"simulated reranking ({self.profile.source or 'no source'})"

    def create(self) -> SimReranker:
        return SimReranker(self)


@dataclass(frozen=True, slots=True)
class SimStoreConfig:
    """Equal configs share one store. It lives in memory and is empty at the start."""

    collection: str
    dimension: int
    profile: Profile
    """What times it takes; a backend.yaml says 7b, 13b, 30b (see `accel_sim.published`), or a file of profiles."""
    ingest_s: float = 0.0002
    """How long a record takes to store."""

    def __post_init__(self) -> None:
        _check(self.profile, "searching", self.dimension)

    @property
    def label(self) -> str:
        return f"simulated collection {self.collection!r}"

    def create(self) -> SimStore:
        return SimStore(self)


# --- texts as vectors

_PIECE = re.compile(r"\w{1,6}|[^\w\s]")
_WORD = re.compile(r"\w+")


def count_tokens(text: str) -> int:
    """As word pieces: one per six letters of a word, and one per other visible character."""
    return len(_PIECE.findall(text))


@lru_cache(maxsize=65_536)
def _word_vector(word: str, dimension: int, seed: int) -> Floats:
    """One byte of a hash per dimension, centred."""
    blocks = [
        hashlib.blake2b(f"{seed} {block} {word}".encode("utf-8", "surrogatepass")).digest()
        for block in range(-(-dimension // 64))
    ]
    vector = np.frombuffer(b"".join(blocks)[:dimension], dtype=np.uint8).astype(np.float64) - 127.5
    vector.flags.writeable = False
    return vector


@lru_cache(maxsize=4096)
def text_vector(text: str, dimension: int, seed: int) -> Floats:
    """Of length 1, read-only. What a text says twice counts a little more than what it says once."""
    counts = Counter(_WORD.findall(text.lower())) or Counter([""])
    vector = np.zeros(dimension)
    for word, times in counts.items():
        vector += math.sqrt(times) * _word_vector(word, dimension, seed)
    length = float(np.linalg.norm(vector))
    if length == 0:  # words that cancel out
        vector, length = np.ones(dimension), math.sqrt(dimension)
    vector /= length
    vector.flags.writeable = False
    return vector


def _tokens(text: Any, what: str) -> int | InvalidRequest:
    """Tokens of a text, or why it is none."""
    if not isinstance(text, str):
        return InvalidRequest(f"Only text can be {what}, not {type(text).__name__}.")
    return max(1, count_tokens(text))


class _Device:
    """What embedding and reranking share: one device that serves one batch after the other."""

    def __init__(self, profile: Profile, label: str, batching: str) -> None:
        self._label = label
        self._profile = profile
        self._policy = policy_named(batching)
        self._queue: Queue | None = None
        self.batches_served: list[int] = []
        self.busy_s = 0.0

    async def start(self) -> None:
        self._queue = Queue(self._batch_s, lanes=1, batch_tokens=batch_tokens(self._profile), policy=self._policy)

    async def close(self) -> None:
        queue, self._queue = self._queue, None
        if queue is not None:
            await queue.close(RequestError(f"The {self._label} was closed."))

    @property
    def room(self) -> Room | None:
        return room_for_batches(batch_tokens(self._profile))

    @property
    def known_profile(self) -> Profile:
        return self._profile

    async def profile(self) -> Profile:
        return self._profile

    async def _serve(self, tokens: Sequence[int | InvalidRequest], priority: Priority) -> list[RequestError | None]:
        """Wait until everything that has tokens is served; the errors of the rest, and of what was not."""
        if self._queue is None:
            raise EngineClosed(f"The {self._label} is not running.")
        waited = iter(await self._queue.wait([n for n in tokens if isinstance(n, int)], priority))
        return [next(waited) if isinstance(n, int) else n for n in tokens]

    def _batch_s(self, batch: Sequence[Item]) -> float:
        seconds = self._profile.batch_s(len(batch), max(item.tokens for item in batch))
        self.batches_served.append(len(batch))
        self.busy_s += seconds
        return seconds

    @property
    def waited_s(self) -> float:
        """Seconds that calls stood in line before their first batch began, together."""
        return self._queue.waiting.waited_s if self._queue is not None else 0.0


class SimEmbedding(_Device):
    """`batches_served`: the number of texts of every batch so far."""

    def __init__(self, config: SimEmbeddingConfig) -> None:
        super().__init__(config.profile, config.label, config.batching)
        self._config = config

    @property
    def dimension(self) -> int:
        return self._config.dimension

    async def embed(self, texts: Sequence[str], *, priority: Priority = DEMAND) -> list[Vector | RequestError]:
        errors = await self._serve([_tokens(text, "embedded") for text in texts], priority)
        return [error or self._vector(text) for text, error in zip(texts, errors, strict=True)]

    def _vector(self, text: str) -> Vector:
        vector: list[float] = text_vector(text, self._config.dimension, self._config.seed).tolist()
        return vector


class SimReranker(_Device):
    """`batches_served`: the number of texts of every batch so far."""

    def __init__(self, config: SimRerankConfig) -> None:
        super().__init__(config.profile, config.label, config.batching)

    async def rerank(
        self, query: str, texts: Sequence[str], *, priority: Priority = DEMAND
    ) -> list[float | RequestError]:
        of_query = _tokens(query, "reranked for")
        tokens: list[int | InvalidRequest] = []
        for text in texts:
            of_text = _tokens(text, "reranked")
            failed = next((n for n in (of_query, of_text) if isinstance(n, InvalidRequest)), None)
            tokens.append(failed or of_query + of_text)  # type: ignore[operator]  # a model reads both
        errors = await self._serve(tokens, priority)
        return [error or relevance(query, text) for text, error in zip(texts, errors, strict=True)]


def relevance(query: str, text: str) -> float:
    """How near a text is to a query, from -1 to 1; equally near texts differ by less than a millionth."""
    near = float(text_vector(query, RERANK_DIMENSION, 0) @ text_vector(text, RERANK_DIMENSION, 0))
    tie = hashlib.blake2b(f"{query}\0{text}".encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return near + int.from_bytes(tie, "big") / 2**32 * 1e-6


# --- the store


class SimStore:
    """Exact search over what is ingested. `searches_served`: the searches so far."""

    def __init__(self, config: SimStoreConfig) -> None:
        self._config = config
        self._records: dict[str, Record] = {}
        self._index: tuple[list[Record], Floats] | None = None  # made anew after a write
        self._queue: Queue | None = None
        self.searches_served = 0

    async def start(self) -> None:
        self._queue = Queue(self._search_s, lanes=self._config.profile.slots, batch_tokens=1)

    async def close(self) -> None:
        queue, self._queue = self._queue, None
        if queue is not None:
            await queue.close(RequestError(f"The {self._config.label} was closed."))
        self._records, self._index = {}, None

    @property
    def known_profile(self) -> Profile:
        return self._config.profile

    async def profile(self) -> Profile:
        return self._config.profile

    def _search_s(self, batch: Sequence[Item]) -> float:
        self.searches_served += len(batch)
        return profiles.at(self._config.profile.search, len(self._records))

    async def ingest(self, records: Sequence[Record]) -> None:
        """Raises InvalidRequest, and takes none of them, if one has a wrong vector or metadata that isn't JSON."""
        self._running()
        taken = {record.id: self._checked(record) for record in records}
        await self._write(records)
        self._show(taken)

    async def ingest_batches(self, batches: AsyncIterable[Sequence[Record]]) -> None:
        """As `ingest`, batch by batch; none of them shows before all are in."""
        taken: dict[str, Record] = {}
        async for records in batches:
            taken.update({record.id: self._checked(record) for record in records})
            await self._write(records)
        self._show(taken)

    async def _write(self, records: Sequence[Record]) -> None:
        self._running()
        await asyncio.sleep(len(records) * self._config.ingest_s)

    def _show(self, taken: Mapping[str, Record]) -> None:
        self._running()
        self._records.update(taken)
        self._index = None

    def _checked(self, record: Record) -> Record:
        vector = self._vector(record.vector)
        if isinstance(vector, InvalidRequest):
            raise vector
        try:
            metadata = json.loads(json.dumps(dict(record.metadata), allow_nan=False))
        except (TypeError, ValueError) as error:
            raise InvalidRequest(f"The metadata of record {record.id!r} is not JSON: {error}") from error
        return Record(record.id, record.text, vector.tolist(), metadata)

    def _vector(self, vector: Vector) -> Floats | InvalidRequest:
        try:
            numbers = np.asarray(vector, dtype=np.float64)
        except (TypeError, ValueError):
            return InvalidRequest("A vector consists of numbers.")
        if numbers.shape != (self._config.dimension,):
            return InvalidRequest(
                f"Collection {self._config.collection!r} takes vectors of {self._config.dimension} dimensions, not "
                f"{' x '.join(map(str, numbers.shape)) or 'a number'}.",
                "embed with the model the collection was filled with",
            )
        return numbers if np.isfinite(numbers).all() else InvalidRequest("A vector consists of finite numbers.")

    async def search(
        self, vectors: Sequence[Vector], k: int, *, where: Metadata | None = None, priority: Priority = DEMAND
    ) -> list[list[Hit] | RequestError]:
        queue = self._running()
        checked = [self._vector(vector) for vector in vectors]
        if k < 1:
            return [InvalidRequest(f"A search for {k} records makes no sense.", "give a positive k")] * len(checked)
        wanted = sum(not isinstance(vector, InvalidRequest) for vector in checked)
        waited = iter(await queue.wait([1] * wanted, priority))
        return [
            vector if isinstance(vector, InvalidRequest) else next(waited) or self._nearest(vector, k, where)
            for vector in checked
        ]

    def _nearest(self, vector: Floats, k: int, where: Metadata | None) -> list[Hit]:
        if self._index is None:
            by_id = sorted(self._records.values(), key=lambda record: record.id)
            self._index = by_id, _normed(np.array([r.vector for r in by_id]).reshape(-1, self._config.dimension))
        records, matrix = self._index
        # Rounded, because equal vectors may differ in the last bit; the sort is stable, and the records are by id.
        scores = np.round(matrix @ _normed(vector.reshape(1, -1))[0], 12)
        order = (int(row) for row in np.argsort(-scores, kind="stable"))
        rows = (row for row in order if where is None or contains(records[row].metadata, where))
        found = ((records[row], float(scores[row])) for row in itertools.islice(rows, k))
        return [Hit(record.id, record.text, copy.deepcopy(record.metadata), score) for record, score in found]

    async def get(self, ids: Sequence[str]) -> list[Record]:
        self._running()
        return [copy.deepcopy(self._records[id]) for id in ids if id in self._records]

    async def delete(self, ids: Sequence[str] | None = None, *, where: Metadata | None = None) -> int:
        self._running()
        chosen = self._records if ids is None else set(ids) & self._records.keys()
        gone = [id for id in chosen if where is None or contains(self._records[id].metadata, where)]
        for id in gone:
            del self._records[id]
        self._index = None
        return len(gone)

    async def count(self, *, where: Metadata | None = None) -> int:
        self._running()
        return sum(where is None or contains(record.metadata, where) for record in self._records.values())

    def _running(self) -> Queue:
        if self._queue is None:
            raise EngineClosed(f"The {self._config.label} is not open.")
        return self._queue


def _normed(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    lengths[lengths == 0] = 1.0
    normed: Floats = rows / lengths
    return normed


def contains(value: Any, wanted: Any) -> bool:
    """Whether one JSON value contains another, as Postgres' `@>` on jsonb: objects by key, arrays as sets of what
    they contain, all else by equality; true is not 1."""
    if isinstance(wanted, Mapping):
        return isinstance(value, Mapping) and all(key in value and contains(value[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list | tuple):
        return isinstance(value, list) and all(any(contains(one, other) for one in value) for other in wanted)
    return isinstance(value, bool) == isinstance(wanted, bool) and bool(value == wanted)
