"""Adding texts to a store in stages: each micro-batch is taken in while the next is embedded (pass `stage`).

The program sees one addition: the same ids in the same order, visible all together at the end or not at all, and the
error it would have seen. If embedding fails, that is the error, of the first text that has one. If taking in fails, the
rest is embedded all the same, and then everything is ingested in one go, which fails or succeeds as it would have.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

import accel_local
from accel.engine import CancelToken, Record, StagedVectorStore, Vector, VectorStore, cancel_token
from accel.errors import AccelError
from accel.process.threads import spawn
from accel.run.issued.stages import micro_batches

CHARS_PER_TOKEN = 4
"""Of English text. Engines count exactly; here it decides only how many texts go together."""

Span = tuple[int, int]
"""Positions of texts: the first, and the first beyond."""


class _GivenUp(AccelError):
    """Says to the store's side that no more will come; nobody else sees it."""


@dataclass(frozen=True, slots=True)
class Stages:
    """spans: two or more. under_way: calls of the embedding at a time."""

    spans: Sequence[Span]
    under_way: int


def stages(texts: Sequence[Any], embedding: Any) -> Stages | None:
    """How the addition that is running goes in stages; None: in one."""
    wanted = micro_batches(embedding)
    if wanted is None or not all(isinstance(text, str) for text in texts):
        return None
    found = spans(texts, wanted.tokens)
    return Stages(found, wanted.under_way) if len(found) > 1 else None


def spans(texts: Sequence[str], tokens: int) -> list[Span]:
    """Texts that follow each other, in batches of about so many tokens, each padded to the longest of its batch."""
    found: list[Span] = []
    start = longest = 0
    for position, text in enumerate(texts):
        own = len(text) // CHARS_PER_TOKEN + 1
        longest = max(longest, own)
        if position > start and longest * (position + 1 - start) > tokens:
            found.append((start, position))
            start, longest = position, own
    return [*found, (start, len(texts))] if len(texts) > start else found


class _Made:
    """Batches of records on their way: made on the program's side, taken in on the engines' loop."""

    def __init__(self, count: int) -> None:
        self._batches: list[Future[list[Record]]] = [Future() for _ in range(count)]

    def put(self, position: int, records: list[Record]) -> None:
        self._batches[position].set_result(records)

    def give_up(self) -> None:
        for batch in self._batches:
            if not batch.done():
                batch.set_exception(_GivenUp("The texts could not be embedded."))

    def all(self) -> list[Record]:
        return [record for batch in self._batches for record in batch.result()]

    async def __aiter__(self) -> AsyncIterator[list[Record]]:
        for batch in self._batches:
            yield await asyncio.wrap_future(batch)


async def _take_in(store: VectorStore, made: _Made) -> bool:
    """On the engines' loop; False if this store takes only whole additions."""
    if not isinstance(store, StagedVectorStore):
        return False
    await store.ingest_batches(made)
    return True


def add(
    texts: Sequence[Span], embed: Callable[[Span], list[Record]], store: Callable[[Vector], VectorStore]
) -> list[str]:
    """Embeds on this thread, in order, while another waits for the store. `store`: by a vector it shall hold."""
    made = _Made(len(texts))
    taken_in: Future[bool] = Future()
    token = CancelToken()

    def take_in(first: Vector) -> None:
        cancel_token.set(token)
        try:
            taken_in.set_result(accel_local.run(_take_in(store(first), made)))
        except BaseException as error:  # noqa: BLE001 - what it means is decided where it is looked at
            taken_in.set_exception(error)

    begun = False
    try:
        for position, span in enumerate(texts):
            records = embed(span)
            made.put(position, records)
            if not begun:
                spawn(partial(contextvars.Context().run, take_in, records[0].vector))
                begun = True
        complete = taken_in.exception() is None and taken_in.result()
    except BaseException:
        made.give_up()
        token.cancel()
        if begun:
            taken_in.exception()  # nothing is left running
        raise
    records = made.all()
    if not complete:
        accel_local.run(store(records[0].vector).ingest(records))
    return [record.id for record in records]


async def aadd(
    texts: Sequence[Span],
    embed: Callable[[Span], Coroutine[Any, Any, list[Record]]],
    store: Callable[[Vector], Awaitable[VectorStore]],
    under_way: int,
) -> list[str]:
    """As `add`, with so many calls of `embed` at a time, whose results are taken in in order."""
    made = _Made(len(texts))
    tasks: list[asyncio.Task[Any]] = []
    taken_in: asyncio.Task[bool] | None = None

    async def take_in(first: Vector) -> bool:
        return await accel_local.arun(_take_in(await store(first), made))

    try:
        for position in range(len(texts)):
            while len(tasks) < min(len(texts), position + under_way):
                tasks.append(asyncio.create_task(embed(texts[len(tasks)])))
            records = await tasks[position]
            made.put(position, records)
            if taken_in is None:
                taken_in = asyncio.create_task(take_in(records[0].vector))
        assert taken_in is not None
        await asyncio.wait([taken_in])
        complete = not taken_in.cancelled() and taken_in.exception() is None and taken_in.result()
    except BaseException:
        made.give_up()
        running = [task for task in (*tasks, taken_in) if task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)  # nothing is left running
        raise
    records = made.all()
    if not complete:
        engine = await store(records[0].vector)
        await accel_local.arun(engine.ingest(records))
    return [record.id for record in records]
