"""What every embedding engine must do."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any

from ...errors import RequestError
from ..protocols import (
    EmbeddingEngine,
    Priority,
    Vector,
    unwrap,
)
from .samples import FOX

EmbeddingCheck = Callable[[EmbeddingEngine], Coroutine[Any, Any, None]]


def cosine(left: Vector, right: Vector) -> float:
    dot = sum(a * b for a, b in zip(left, right, strict=True))
    return dot / math.sqrt(sum(a * a for a in left) * sum(b * b for b in right))


async def embeds_by_meaning(engine: EmbeddingEngine) -> None:
    cat, kitten, tax = [unwrap(vector) for vector in await engine.embed(["a cat", "a small kitten", "tax law"])]
    assert len(cat) == engine.dimension
    assert cosine(cat, kitten) > cosine(cat, tax)


async def embeds_each_text_by_itself(engine: EmbeddingEngine) -> None:
    texts = ["short", FOX * 5, "", "a line\nand another", "short"]
    together = [unwrap(vector) for vector in await engine.embed(texts)]
    alone = [unwrap((await engine.embed([text]))[0]) for text in texts]
    for one, other in zip(together, alone, strict=True):
        assert cosine(one, other) > 0.999999
    assert await engine.embed([]) == []


async def a_bad_text_fails_alone(engine: EmbeddingEngine) -> None:
    bad: Any = 5
    first, failure, last = await engine.embed(["good", bad, "good"])
    assert isinstance(failure, RequestError)
    assert cosine(unwrap(first), unwrap(last)) > 0.999999


async def concurrent_embeddings_keep_order(engine: EmbeddingEngine) -> None:
    texts = [f"the number {n}" for n in range(40)]
    results = await asyncio.gather(*(engine.embed([text], priority=Priority(n % 3)) for n, text in enumerate(texts)))
    expected = await engine.embed(texts)
    for (vector,), other in zip(results, expected, strict=True):
        assert cosine(unwrap(vector), unwrap(other)) > 0.999999


async def a_cancelled_embedding_leaves_the_others(engine: EmbeddingEngine) -> None:
    kept = asyncio.create_task(engine.embed([FOX] * 4))
    dropped = asyncio.create_task(engine.embed([FOX] * 4))
    await asyncio.sleep(0)
    dropped.cancel()
    assert len(await kept) == 4
    await asyncio.wait([dropped])
    assert dropped.cancelled()


EMBEDDING_CHECKS: tuple[EmbeddingCheck, ...] = (
    embeds_by_meaning,
    embeds_each_text_by_itself,
    a_bad_text_fails_alone,
    concurrent_embeddings_keep_order,
    a_cancelled_embedding_leaves_the_others,
)
