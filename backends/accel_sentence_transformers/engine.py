"""Embeds texts with a sentence-transformers model. Concurrent calls share batches, capped by tokens."""

import asyncio
import heapq
import itertools
import os
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accel.engine import Vector
from accel.errors import EngineClosed, EngineStartError, InvalidRequest, MissingExtra, RequestError
from accel.profile import Profile
from accel_local.models import DEFAULT_EMBEDDING, model_path
from accel_local.threads import Worker


@dataclass(frozen=True, slots=True)
class SentenceTransformersConfig:
    """Equal configs share one engine.

    device: "cpu", "cuda" or None for what there is. batch_tokens: most tokens in one batch, padding included; larger
    batches on CPU only add waiting time. together: whether texts share a batch at all; False makes a vector
    independent, to the last bit, of what is embedded beside it (float32 sums depend on the batch).
    """

    model: str = DEFAULT_EMBEDDING
    device: str | None = None
    batch_tokens: int = 2048
    together: bool = True

    @property
    def label(self) -> str:
        return f"sentence-transformers with {self.model}"

    def create(self) -> "SentenceTransformersEngine":
        return SentenceTransformersEngine(self)


@dataclass(order=True, slots=True)
class _Waiting:
    """One text of one call, ordered by priority, then arrival."""

    priority: int
    arrival: int
    text: str = field(compare=False)
    tokens: int = field(compare=False)
    future: "asyncio.Future[Vector | RequestError]" = field(compare=False)


class SentenceTransformersEngine:
    def __init__(self, config: SentenceTransformersConfig) -> None:
        self._config = config
        self._model: Any = None
        self._dimension = 0
        self._waiting: list[_Waiting] = []
        self._arrivals = itertools.count()
        self._worker: Worker | None = None
        self._busy = False
        self._profile: Profile | None = None

    async def start(self) -> None:
        self._worker = Worker("accel-embed")
        try:
            await self._worker.do(self._load)
        except BaseException:
            self._worker.stop()
            self._worker = None
            raise

    def _load(self) -> None:
        folder = model_path(self._config.model)
        if Path(folder).is_dir():
            os.environ.setdefault("HF_HUB_OFFLINE", "1")
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise MissingExtra("The embedding engine", "st", error.name or "") from error
        try:
            model = SentenceTransformer(folder, device=self._config.device)
        except (OSError, ValueError, RuntimeError) as error:
            raise EngineStartError(
                f"sentence-transformers could not load {self._config.model!r}: {error}",
                "give the folder of a sentence-transformers model",
            ) from error
        model.eval()
        self._dimension = len(model.encode(["dimension"], show_progress_bar=False)[0])
        self._model = model

    async def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is None:
            return
        worker.stop()
        for item in self._waiting:
            if not item.future.done():
                item.future.set_result(RequestError(f"{self._config.label} was closed."))
        self._waiting.clear()
        self._model = None

    @property
    def dimension(self) -> int:
        return self._dimension

    async def embed(self, texts: Sequence[str], *, priority: int = 0) -> list[Vector | RequestError]:
        if self._worker is None:
            raise EngineClosed(f"{self._config.label} is not running.")
        items = [self._enqueue(text, priority) for text in texts]
        self._next_batch()
        try:
            return [await item.future for item in items]
        finally:
            for item in items:  # cancelled: what has not been computed yet is skipped
                item.future.cancel()

    def _enqueue(self, text: str, priority: int) -> _Waiting:
        future: asyncio.Future[Vector | RequestError] = asyncio.get_running_loop().create_future()
        item = _Waiting(priority, next(self._arrivals), text, 0, future)
        if not isinstance(text, str):
            future.set_result(InvalidRequest(f"Only text can be embedded, not {type(text).__name__}."))
            return item
        limit = self._model.max_seq_length or 512
        # Never an underestimate by much: English has about four characters per token.
        item.tokens = min(limit, len(text) // 3 + 2)
        heapq.heappush(self._waiting, item)
        return item

    def _next_batch(self) -> None:
        """Hand the worker its next batch, unless it is busy; while it is, calls gather into the next one."""
        if self._busy or self._worker is None:
            return
        batch: list[_Waiting] = []
        longest = 0
        while self._waiting:
            item = self._waiting[0]
            if item.future.done():
                heapq.heappop(self._waiting)
                continue
            longest = max(longest, item.tokens)
            if batch and (not self._config.together or longest * (len(batch) + 1) > self._config.batch_tokens):
                break
            batch.append(heapq.heappop(self._waiting))
        if batch:
            self._busy = True
            task = asyncio.ensure_future(self._serve(self._worker, batch))
            task.add_done_callback(lambda _: self._next_batch())

    async def _serve(self, worker: Worker, batch: list[_Waiting]) -> None:
        try:
            vectors = await worker.do(lambda: self._encode([item.text for item in batch]))
            results: list[Vector | RequestError] = list(vectors)
        except Exception as error:  # noqa: BLE001  a failure of these requests, not of the engine
            results = [RequestError(f"Embedding failed: {error}")] * len(batch)
            if len(batch) > 1:
                results = [await self._alone(worker, item.text) for item in batch]  # find out whose fault it was
        finally:
            self._busy = False
        for item, result in zip(batch, results, strict=True):
            if not item.future.done():
                item.future.set_result(result)

    async def _alone(self, worker: Worker, text: str) -> Vector | RequestError:
        try:
            return (await worker.do(lambda: self._encode([text])))[0]
        except Exception as error:  # noqa: BLE001  as above
            return RequestError(f"Embedding failed: {error}")

    def _encode(self, texts: list[str]) -> list[Vector]:
        rows = self._model.encode(texts, batch_size=len(texts), show_progress_bar=False, convert_to_numpy=True)
        return [row.tolist() for row in rows]

    @property
    def batch_tokens(self) -> int:
        return self._config.batch_tokens

    async def profile(self) -> Profile:
        if self._profile is None:
            self._profile = await measure_profile(self)
        return self._profile


PROFILE_TOKENS = (16, 64, 224)
PROFILE_BATCHES = (1, 4, 8, 16, 32)


async def measure_profile(engine: SentenceTransformersEngine) -> Profile:
    """Seconds to embed n texts of about so many tokens at once, on an idle engine. Takes some seconds."""
    dice = random.Random(0)
    words = ("river", "stone", "engine", "light", "paper", "garden", "winter", "music", "city", "window")
    table = []
    most = engine.batch_tokens
    for tokens, batch in itertools.product(PROFILE_TOKENS, PROFILE_BATCHES):
        if tokens * batch > max(most, PROFILE_TOKENS[-1]):
            continue
        times = []
        for _ in range(3):
            texts = [" ".join(dice.choices(words, k=tokens)) for _ in range(batch)]
            began = time.perf_counter()
            await engine.embed(texts)
            times.append(time.perf_counter() - began)
        table.append((batch, tokens, statistics.median(times)))
    return Profile(engine="embedding", batches=tuple(table), batch_tokens=most, source="measured")
