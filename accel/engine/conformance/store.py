"""What every vector store must do: each check gets an empty collection of dimension 3."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from ...errors import RequestError
from ..protocols import (
    Record,
    VectorStore,
    unwrap,
)

VectorStoreCheck = Callable[[VectorStore], Coroutine[Any, Any, None]]

EAST, NORTH, UP = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
RECORDS = (
    Record("e", "east", EAST, {"kind": "plain", "n": 1}),
    Record("n", "north", NORTH, {"kind": "plain", "n": 2, "deep": {"x": [1, 2]}}),
    Record("u", "up", UP, {"kind": "odd"}),
    Record("ne", "north-east", (1.0, 1.0, 0.0)),
)


async def _filled(store: VectorStore) -> None:
    await store.delete()
    await store.ingest(RECORDS)


async def finds_the_nearest(store: VectorStore) -> None:
    await _filled(store)
    results = await store.search([(1.0, 0.1, 0.0), UP], 2)
    first, second = unwrap(results[0]), unwrap(results[1])
    assert [hit.id for hit in first] == ["e", "ne"] and second[0].id == "u"
    assert first[0].text == "east" and first[0].metadata == {"kind": "plain", "n": 1}
    assert abs(second[0].score - 1.0) < 1e-6 and first[0].score > first[1].score
    assert len(unwrap((await store.search([EAST], 50))[0])) == 4


async def ties_go_by_id(store: VectorStore) -> None:
    await store.delete()
    await store.ingest([Record(id, id, EAST) for id in ("c", "a", "b")])
    assert [hit.id for hit in unwrap((await store.search([EAST], 3))[0])] == ["a", "b", "c"]


async def filters_by_metadata(store: VectorStore) -> None:
    await _filled(store)
    hits = unwrap((await store.search([EAST], 4, where={"kind": "plain"}))[0])
    assert [hit.id for hit in hits] == ["e", "n"]
    assert [hit.id for hit in unwrap((await store.search([EAST], 4, where={"deep": {"x": [2]}}))[0])] == ["n"]
    assert await store.count(where={"kind": "plain"}) == 2


async def replaces_and_deletes(store: VectorStore) -> None:
    await _filled(store)
    await store.ingest([Record("e", "east again", UP, {"kind": "odd"})])
    assert await store.count() == 4
    assert [record.text for record in await store.get(["u", "missing", "e"])] == ["up", "east again"]
    assert await store.delete(["e", "missing"]) == 1
    assert await store.delete(where={"kind": "odd"}) == 1
    assert await store.delete() == 2 and await store.count() == 0


async def wrong_vectors_fail_alone(store: VectorStore) -> None:
    await _filled(store)
    good, bad = await store.search([EAST, (1.0,)], 1)
    assert unwrap(good)[0].id == "e" and isinstance(bad, RequestError)
    assert isinstance((await store.search([EAST], 0))[0], RequestError)
    with contextlib.suppress(RequestError):
        await store.ingest([Record("x", "fits", EAST), Record("y", "does not", (1.0,))])
        raise AssertionError("a vector of the wrong dimension was taken")
    assert await store.count() == 4, "an ingest that fails must leave nothing"


async def odd_texts_survive(store: VectorStore) -> None:
    await store.delete()
    text = "quote ' double \" backslash \\ percent %s newline \n tab \t 東京 🙂"
    await store.ingest([Record(text, text, EAST, {text: text})])
    assert await store.get([text]) == [Record(text, text, list(EAST), {text: text})]
    assert unwrap((await store.search([EAST], 1, where={text: text}))[0])[0].text == text


async def many_at_once(store: VectorStore) -> None:
    await _filled(store)
    results = await asyncio.gather(*(store.search([EAST], 1) for _ in range(40)))
    assert {unwrap(result[0])[0].id for result in results} == {"e"}


VECTOR_STORE_CHECKS: tuple[VectorStoreCheck, ...] = (
    finds_the_nearest,
    ties_go_by_id,
    filters_by_metadata,
    replaces_and_deletes,
    wrong_vectors_fail_alone,
    odd_texts_survive,
    many_at_once,
)
