"""Stores that take records in while more are being made: what they promise beside `accel.engine.conformance`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest

import accel_local
from accel.engine import Record, StagedVectorStore, VectorStore, unwrap
from accel.engine.profile import Profile
from accel.errors import InvalidRequest
from accel_sim import SimStoreConfig

EAST, NORTH = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
WAIT_S = 30.0


def batch(*ids: str, vector: Sequence[float] = EAST, text: str = "") -> list[Record]:
    return [Record(id, text or id, vector, {"n": 1}) for id in ids]


async def given(*batches: list[Record]) -> AsyncIterator[list[Record]]:
    for records in batches:
        yield records


async def seen(store: VectorStore) -> list[str]:
    return sorted(hit.id for hit in unwrap((await store.search([EAST], 100))[0]))


class Held:
    """Batches of which the second waits until it is let go."""

    def __init__(self, *batches: list[Record], error: Exception | None = None) -> None:
        self.batches, self.error = batches, error
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[list[Record]]:
        for number, records in enumerate(self.batches):
            if number == 1:
                self.reached.set()
                await self.go.wait()
            yield records
        if self.error is not None:
            raise self.error


async def all_batches_become_visible_together(store: StagedVectorStore) -> None:
    held = Held(batch("a", "b"), batch("c"))
    taking = asyncio.create_task(store.ingest_batches(held))
    await asyncio.wait_for(held.reached.wait(), WAIT_S)
    assert await seen(store) == ["old"] and await store.count() == 1 and await store.get(["a"]) == []
    held.go.set()
    await taking
    assert await seen(store) == ["a", "b", "c", "old"]


async def a_later_batch_replaces_what_an_earlier_one_said(store: StagedVectorStore) -> None:
    await store.ingest_batches(given(batch("a", "a", text="first"), batch("b"), batch("a", "old", text="last")))
    assert [record.text for record in await store.get(["a", "b", "old"])] == ["last", "b", "last"]
    assert await store.count() == 3


async def what_the_maker_raises_is_raised_and_nothing_stays(store: StagedVectorStore) -> None:
    held = Held(batch("a"), batch("b"), error=ZeroDivisionError("no more"))
    held.go.set()
    with pytest.raises(ZeroDivisionError, match="no more"):
        await store.ingest_batches(held)
    assert await seen(store) == ["old"]


async def a_wrong_vector_leaves_nothing(store: StagedVectorStore) -> None:
    with pytest.raises(InvalidRequest, match="takes vectors of 3 dimensions, not 1"):
        await store.ingest_batches(given(batch("a"), batch("b", vector=(1.0,))))
    assert await seen(store) == ["old"]


async def a_cancelled_one_leaves_nothing(store: StagedVectorStore) -> None:
    held = Held(batch("a"), batch("b"))
    taking = asyncio.create_task(store.ingest_batches(held))
    await asyncio.wait_for(held.reached.wait(), WAIT_S)
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    assert await seen(store) == ["old"]
    await store.ingest_batches(given(batch("a")))
    assert await seen(store) == ["a", "old"]


async def none_at_all_is_nothing(store: StagedVectorStore) -> None:
    await store.ingest_batches(given())
    assert await seen(store) == ["old"]


async def many_at_once_leave_room_for_searches(store: StagedVectorStore) -> None:
    many = [Held(batch(f"{n} a"), batch(f"{n} b")) for n in range(12)]
    taking = [asyncio.create_task(store.ingest_batches(held)) for held in many]
    await asyncio.wait_for(asyncio.gather(*(held.reached.wait() for held in many)), WAIT_S)
    assert await asyncio.wait_for(seen(store), WAIT_S) == ["old"]
    for held in many:
        held.go.set()
    await asyncio.gather(*taking)
    assert len(await seen(store)) == 25


async def two_that_replace_each_others_records_both_end(store: StagedVectorStore) -> None:
    """As with whole additions, one may be told that it is in the way of the other; nothing hangs, nothing is mixed."""
    ups, downs = Held(batch("a", text="up"), batch("b", text="up")), Held(
        batch("b", text="down"), batch("a", text="down")
    )  # fmt: skip
    taking = [asyncio.create_task(store.ingest_batches(held)) for held in (ups, downs)]
    await asyncio.wait_for(asyncio.gather(ups.reached.wait(), downs.reached.wait()), WAIT_S)
    ups.go.set()
    downs.go.set()
    results = await asyncio.wait_for(asyncio.gather(*taking, return_exceptions=True), WAIT_S)
    assert sum(result is None for result in results) >= 1
    assert len({record.text for record in await store.get(["a", "b"])}) == 1


Check = Callable[[Any], Awaitable[None]]
CHECKS: tuple[Check, ...] = (
    all_batches_become_visible_together,
    a_later_batch_replaces_what_an_earlier_one_said,
    what_the_maker_raises_is_raised_and_nothing_stays,
    a_wrong_vector_leaves_nothing,
    a_cancelled_one_leaves_nothing,
    none_at_all_is_nothing,
    many_at_once_leave_room_for_searches,
    two_that_replace_each_others_records_both_end,
)


async def _fresh(store: VectorStore, check: Check) -> None:
    assert isinstance(store, StagedVectorStore)
    await store.delete()
    await store.ingest(batch("old"))
    await check(store)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_simulated_store(check: Check) -> None:
    profile = Profile("searching", search=((1, 0.0001),))
    accel_local.run(_fresh(accel_local.engine(SimStoreConfig("staged", 3, profile)), check))


@pytest.mark.engines
@pytest.mark.timeout(120)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_pgvector(check: Check, store: VectorStore) -> None:
    accel_local.run(_fresh(store, check))
