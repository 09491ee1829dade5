"""What every engine must do: one suite for all of them, ours and anyone's.

Each check is a coroutine that takes a started engine, runs on that engine's loop and raises AssertionError:

    @pytest.mark.parametrize("check", LLM_CHECKS, ids=name)
    def test_my_engine(check, engine): run_on_my_loop(check(engine))
"""

import asyncio
import contextlib
import json
import math
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from accel.engine import (
    DEMAND,
    ChatMessage,
    Constraint,
    Delta,
    EmbeddingEngine,
    LLMEngine,
    Priority,
    Prompt,
    Record,
    RerankEngine,
    Sampling,
    Vector,
    VectorStore,
    unwrap,
)
from accel.errors import RequestError

LLMCheck = Callable[[LLMEngine], Coroutine[Any, Any, None]]
EmbeddingCheck = Callable[[EmbeddingEngine], Coroutine[Any, Any, None]]
VectorStoreCheck = Callable[[VectorStore], Coroutine[Any, Any, None]]
RerankCheck = Callable[[RerankEngine], Coroutine[Any, Any, None]]

QUESTION: Sequence[ChatMessage] = ({"role": "user", "content": "List three colours, one per line."},)
FOX = "The quick brown fox jumps over the lazy dog and then it rests under an old tree. "


def name(check: Any) -> str:
    """A check's name, for test ids."""
    return str(check.__name__)


async def answer(
    engine: LLMEngine, prompt: Prompt, sampling: Sampling, priority: Priority = DEMAND
) -> tuple[str, list[Delta]]:
    deltas = [delta async for delta in engine.generate(prompt, sampling, priority=priority)]
    return "".join(delta.text for delta in deltas), deltas


# --- language models


async def ends_with_reason_and_usage(engine: LLMEngine) -> None:
    text, deltas = await answer(engine, QUESTION, Sampling(max_tokens=8))
    assert text
    assert [delta.finish_reason for delta in deltas[:-1]] == [None] * (len(deltas) - 1)
    last = deltas[-1]
    assert last.finish_reason == "length" and last.usage is not None
    assert last.usage.completion_tokens == 8 == sum(delta.tokens for delta in deltas)
    assert last.usage.prompt_tokens == len(engine.encode(QUESTION))
    assert 0 <= last.usage.cached_tokens <= last.usage.prompt_tokens


async def greedy_repeats(engine: LLMEngine) -> None:
    first, _ = await answer(engine, QUESTION, Sampling(max_tokens=16))
    second, _ = await answer(engine, QUESTION, Sampling(max_tokens=16))
    assert first == second


async def greedy_ignores_neighbours(engine: LLMEngine) -> None:
    """Holds for float32; an engine of lower precision need not pass."""
    alone, _ = await answer(engine, QUESTION, Sampling(max_tokens=16))
    others = [answer(engine, FOX * (n + 1), Sampling(max_tokens=16)) for n in range(3)]
    together, *_ = await asyncio.gather(answer(engine, QUESTION, Sampling(max_tokens=16)), *others)
    assert together[0] == alone


async def seed_repeats(engine: LLMEngine) -> None:
    sampling = Sampling(max_tokens=12, temperature=1.0, seed=7)
    assert (await answer(engine, QUESTION, sampling))[0] == (await answer(engine, QUESTION, sampling))[0]


async def takes_all_prompt_forms(engine: LLMEngine) -> None:
    ids = engine.encode(QUESTION)
    from_messages, _ = await answer(engine, QUESTION, Sampling(max_tokens=6))
    from_ids, _ = await answer(engine, ids, Sampling(max_tokens=6))
    assert from_messages == from_ids
    assert ids == engine.encode(QUESTION), "the engine must not change the ids it is given"
    assert (await answer(engine, "The sea is", Sampling(max_tokens=3)))[0]


async def stop_string_ends_the_text(engine: LLMEngine) -> None:
    whole, _ = await answer(engine, QUESTION, Sampling(max_tokens=24))
    stop = whole[len(whole) // 2 : len(whole) // 2 + 2]
    text, deltas = await answer(engine, QUESTION, Sampling(max_tokens=24, stop=(stop,)))
    assert text == whole[: whole.index(stop)]
    assert deltas[-1].finish_reason == "stop"


async def constraints_hold(engine: LLMEngine) -> None:
    choice = Constraint("choice", ("crimson", "turquoise"))
    text, _ = await answer(engine, QUESTION, Sampling(max_tokens=16, constraint=choice))
    assert text in ("crimson", "turquoise")
    text, _ = await answer(engine, QUESTION, Sampling(max_tokens=16, constraint=Constraint("regex", "[0-9]{4}x")))
    assert len(text) == 5 and text[:4].isdigit()
    schema = {
        "type": "object",
        "properties": {"sizes": {"type": "array", "items": {"enum": ["small", "large"]}, "minItems": 2, "maxItems": 2}},
        "required": ["sizes"],
        "additionalProperties": False,
    }
    constraint = Constraint("json_schema", json.dumps(schema))
    text, _ = await answer(engine, QUESTION, Sampling(max_tokens=64, constraint=constraint))
    assert set(json.loads(text)["sizes"]) <= {"small", "large"}


async def bad_requests_fail_alone(engine: LLMEngine) -> None:
    bad_schema = Sampling(constraint=Constraint("json_schema", '{"type": 7}'))
    results = await asyncio.gather(
        answer(engine, [], Sampling()),
        answer(engine, [5] * (engine.max_prompt_tokens + 1), Sampling()),
        answer(engine, QUESTION, bad_schema),
        answer(engine, QUESTION, Sampling(temperature=-1.0)),
        answer(engine, QUESTION, Sampling(max_tokens=4)),
    )
    for _, deltas in results[:-1]:
        assert deltas[-1].finish_reason == "error" and isinstance(deltas[-1].error, RequestError)
    assert results[-1][1][-1].finish_reason == "length"


async def closing_the_stream_aborts(engine: LLMEngine) -> None:
    async with contextlib.aclosing(engine.generate(QUESTION, Sampling(max_tokens=2000, ignore_end=True))) as deltas:
        async for _ in deltas:
            break
    text, _ = await answer(engine, QUESTION, Sampling(max_tokens=4))
    assert text


async def cancelling_the_task_aborts(engine: LLMEngine) -> None:
    started = asyncio.Event()

    async def endless() -> None:
        async for _ in engine.generate(QUESTION, Sampling(max_tokens=2000, ignore_end=True)):
            started.set()

    task = asyncio.create_task(endless())
    await started.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert (await answer(engine, QUESTION, Sampling(max_tokens=4)))[0]


async def priorities_are_taken(engine: LLMEngine) -> None:
    results = await asyncio.gather(
        *(answer(engine, QUESTION, Sampling(max_tokens=4), priority=Priority(n)) for n in (5, 0, 2))
    )
    assert len({text for text, _ in results}) == 1


async def unfinished_prompts_begin_the_finished(engine: LLMEngine) -> None:
    content = FOX * 6 + "What's the therapist's name?\n\n1) 12,345.67  two  spaces\tand a\u2028line — naïve 東京 🙂 end"
    for role_messages in ([], [{"role": "system", "content": "Be short."}]):
        whole = engine.encode([*role_messages, {"role": "user", "content": content}])
        lengths = []
        for cut in range(0, len(content) + 1, 7):
            prefix = engine.encode_prefix([*role_messages, {"role": "user", "content": content[:cut]}])
            assert whole[: len(prefix)] == prefix, f"cut after {content[:cut]!r}"
            lengths.append(len(prefix))
        assert max(lengths) > len(whole) // 2, "most of what is known must be certain"
    assert engine.encode_prefix([]) == []


async def prefill_is_found_in_the_cache(engine: LLMEngine) -> None:
    if engine.cache_block_tokens == 0:
        return
    known = "Unique words of this check: marmalade, hexagon, lighthouse. " + FOX * 8
    prefix = engine.encode_prefix([{"role": "user", "content": known}])
    warmed = await engine.prefill(prefix)
    assert 0 < warmed <= len(prefix) and warmed % engine.cache_block_tokens == 0
    whole = [{"role": "user", "content": known + "What does the fox do?"}]
    warm, deltas = await answer(engine, whole, Sampling(max_tokens=8))
    usage = deltas[-1].usage
    assert usage is not None and usage.cached_tokens >= warmed
    assert await engine.prefill(prefix[: engine.cache_block_tokens - 1]) == 0
    assert (await answer(engine, whole, Sampling(max_tokens=8)))[0] == warm


LLM_CHECKS: tuple[LLMCheck, ...] = (
    ends_with_reason_and_usage,
    greedy_repeats,
    greedy_ignores_neighbours,
    seed_repeats,
    takes_all_prompt_forms,
    stop_string_ends_the_text,
    constraints_hold,
    bad_requests_fail_alone,
    closing_the_stream_aborts,
    cancelling_the_task_aborts,
    priorities_are_taken,
    unfinished_prompts_begin_the_finished,
    prefill_is_found_in_the_cache,
)


# --- embeddings


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


# --- reranking

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


# --- vector stores: an empty collection of dimension 3 for each check

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
