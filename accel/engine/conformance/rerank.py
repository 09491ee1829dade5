"""What every reranking engine must do."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from ...errors import RequestError
from ..protocols import (
    DEMAND,
    Priority,
    RerankEngine,
    unwrap,
)
from .samples import FOX

RerankCheck = Callable[[RerankEngine], Coroutine[Any, Any, None]]

WISH = "How do I bake bread?"
ABOUT_BREAD = "To bake bread, knead flour, water and yeast, let the dough rise and bake it in a hot oven."
ABOUT_OTHERS = ("Income tax is due at the end of May.", "The locomotive needs a new boiler.", FOX)


async def scores(engine: RerankEngine, query: str, texts: Sequence[str], priority: Priority = DEMAND) -> list[float]:
    return [unwrap(score) for score in await engine.rerank(query, texts, priority=priority)]


async def ranks_by_relevance(engine: RerankEngine) -> None:
    relevant, *others = await scores(engine, WISH, [ABOUT_BREAD, *ABOUT_OTHERS])
    assert relevant > max(others)


async def keeps_the_order_of_the_texts(engine: RerankEngine) -> None:
    texts = [ABOUT_BREAD, "", *ABOUT_OTHERS, FOX * 5, "a line\nand another"]
    forwards, backwards = await scores(engine, WISH, texts), await scores(engine, WISH, texts[::-1])
    assert len(forwards) == len(texts)
    assert _near(forwards, backwards[::-1])


async def scores_each_text_by_itself(engine: RerankEngine) -> None:
    texts = ["short", FOX * 5, "", ABOUT_BREAD, "short"]
    alone = [(await scores(engine, WISH, [text]))[0] for text in texts]
    assert _near(await scores(engine, WISH, texts), alone)
    assert await engine.rerank(WISH, []) == []


async def a_bad_text_is_not_ranked(engine: RerankEngine) -> None:
    bad: Any = 5
    first, failure, last = await engine.rerank(WISH, [FOX, bad, FOX])
    assert isinstance(failure, RequestError)
    assert _near([unwrap(first)], [unwrap(last)])


async def a_bad_query_fails_alone(engine: RerankEngine) -> None:
    bad: Any = None
    failed, good = await asyncio.gather(engine.rerank(bad, [FOX, FOX]), engine.rerank(WISH, [FOX]))
    assert len(failed) == 2 and all(isinstance(score, RequestError) for score in failed)
    assert math.isfinite(unwrap(good[0]))


async def concurrent_rankings_keep_apart(engine: RerankEngine) -> None:
    queries = [WISH, "When is tax due?", "What does the fox do?"] * 4
    texts = [ABOUT_BREAD, *ABOUT_OTHERS]
    together = await asyncio.gather(*(scores(engine, query, texts, Priority(n % 3)) for n, query in enumerate(queries)))
    for query, found in zip(queries, together, strict=True):
        assert _near(found, await scores(engine, query, texts))


async def a_cancelled_ranking_leaves_the_others(engine: RerankEngine) -> None:
    kept = asyncio.create_task(engine.rerank(WISH, [FOX] * 4))
    dropped = asyncio.create_task(engine.rerank(WISH, [FOX] * 4))
    await asyncio.sleep(0)
    dropped.cancel()
    assert all(math.isfinite(unwrap(score)) for score in await kept)
    await asyncio.wait([dropped])
    assert dropped.cancelled()


def _near(left: Sequence[float], right: Sequence[float]) -> bool:
    return all(abs(a - b) < 1e-3 for a, b in zip(left, right, strict=True))


RERANK_CHECKS: tuple[RerankCheck, ...] = (
    ranks_by_relevance,
    keeps_the_order_of_the_texts,
    scores_each_text_by_itself,
    a_bad_text_is_not_ranked,
    a_bad_query_fails_alone,
    concurrent_rankings_keep_apart,
    a_cancelled_ranking_leaves_the_others,
)
