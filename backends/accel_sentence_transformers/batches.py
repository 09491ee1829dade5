"""Requests to a model wait, and are computed in batches, capped by tokens, on one thread."""

import asyncio
import itertools
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from accel.engine import Priority
from accel.engine.batching import Waiting, token_capped
from accel.engine.profile import Profile
from accel.engine.slots import Room, room_for_batches
from accel.errors import RequestError
from accel_local.threads import Worker

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(slots=True)
class _Item(Generic[Item, Result]):
    """One item of one call."""

    item: Item
    tokens: int
    future: "asyncio.Future[Result | RequestError]"


class Batches(Generic[Item, Result]):
    """Concurrent calls share batches. Lives on one loop; what is computed is never entered by two threads.

    compute: the results of one batch, in order; runs on `worker`, which stops when this closes. batch_tokens: most
    tokens in one batch, padding included. together: whether items share a batch at all.
    failure: how the message of an item's error begins. profile: what is known of the engine, to size batches by.
    """

    def __init__(
        self,
        worker: Worker,
        compute: Callable[[list[Item]], Sequence[Result]],
        *,
        batch_tokens: int,
        failure: str,
        together: bool = True,
        profile: Profile | None = None,
    ) -> None:
        self._worker = worker
        self._compute = compute
        self._batch_tokens = self._most_tokens = batch_tokens
        self._failure = failure
        self._together = together
        self._waiting: Waiting[_Item[Item, Result]] = Waiting()
        self._busy = False
        self._closed = False
        if profile is not None:
            self.size_by(profile)

    def size_by(self, profile: Profile) -> None:
        """From now on batches are no larger than the engine needs to be efficient."""
        self._most_tokens = min(self._batch_tokens, profile.efficient_batch_tokens)

    @property
    def room(self) -> Room | None:
        return room_for_batches(self._most_tokens)

    async def serve(
        self, items: Sequence[tuple[Item, int] | RequestError], priority: Priority
    ) -> list[Result | RequestError]:
        """One result or error per item, in order. An item comes with its tokens; an error stands for a refused one."""
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Result | RequestError]] = [loop.create_future() for _ in items]
        waiting = []
        for item, future in zip(items, futures, strict=True):
            if isinstance(item, RequestError):
                future.set_result(item)
            else:
                waiting.append(_Item(*item, future))
        self._waiting.add(waiting, priority)
        self._next_batch()
        try:
            return [await future for future in futures]
        finally:
            for future in futures:  # cancelled: what has not been computed yet is skipped
                future.cancel()

    def close(self, error: RequestError) -> None:
        """What waits ends with this error. A second close does nothing."""
        if self._closed:
            return
        self._closed = True
        for waiting in self._waiting:
            if not waiting.future.done():
                waiting.future.set_result(error)
        self._waiting.clear()
        self._worker.stop()
        # Blocking, on purpose: a thread that interpreter exit finds inside torch aborts the process.
        self._worker.ended(LAST_BATCH_S)

    def _next_batch(self) -> None:
        """Hand the worker its next batch, unless it is busy; while it is, calls gather into the next one."""
        if self._busy or self._closed:
            return
        self._waiting.drop(lambda waiting: waiting.future.done())
        most_tokens = self._most_tokens if self._together else 0
        batch = self._waiting.take(token_capped(most_tokens, lambda waiting: waiting.tokens))
        if batch:
            self._busy = True
            task = asyncio.ensure_future(self._run(batch))
            task.add_done_callback(lambda _: self._next_batch())

    async def _run(self, batch: list[_Item[Item, Result]]) -> None:
        try:
            results: list[Result | RequestError] = list(await self._at_once([waiting.item for waiting in batch]))
        except Exception as error:  # noqa: BLE001  a failure of these requests, not of the engine
            results = [RequestError(f"{self._failure}: {error}")] * len(batch)
            if len(batch) > 1:
                results = [await self._alone(waiting.item) for waiting in batch]  # find out whose fault it was
        finally:
            self._busy = False
        for waiting, result in zip(batch, results, strict=True):
            if not waiting.future.done():
                waiting.future.set_result(result)

    async def _alone(self, item: Item) -> Result | RequestError:
        try:
            return (await self._at_once([item]))[0]
        except Exception as error:  # noqa: BLE001  as above
            return RequestError(f"{self._failure}: {error}")

    async def _at_once(self, items: list[Item]) -> Sequence[Result]:
        return await self._worker.do(lambda: self._compute(items))

    async def measure(self, items: Callable[[list[str]], list[Item]]) -> tuple[tuple[int, int, float], ...]:
        """(texts, tokens of each, s) of single batches, on an idle engine; takes some seconds.

        `items` makes a batch out of texts. The queue is not asked: it rounds tokens up, and would split large batches.
        """
        dice = random.Random(0)
        table = []
        for tokens, texts in itertools.product(MEASURED_TOKENS, MEASURED_TEXTS if self._together else (1,)):
            if tokens * texts > max(self._batch_tokens, MEASURED_TOKENS[-1]):
                continue
            times = []
            for _ in range(3):
                batch = items([" ".join(dice.choices(WORDS, k=tokens)) for _ in range(texts)])
                began = time.perf_counter()
                await self._at_once(batch)
                times.append(time.perf_counter() - began)
            table.append((texts, tokens, statistics.median(times)))
        return tuple(table)


LAST_BATCH_S = 10.0
"""How long closing waits for the batch that is being computed."""
MEASURED_TOKENS = (16, 64, 224)
MEASURED_TEXTS = (1, 4, 8, 16, 32)
WORDS = ("river", "stone", "engine", "light", "paper", "garden", "winter", "music", "city", "window")  # a token each
