"""What every language model's engine must do."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from ...errors import RequestError
from ..protocols import (
    DEMAND,
    ChatMessage,
    Constraint,
    Delta,
    LLMEngine,
    Priority,
    Prompt,
    Sampling,
)
from .samples import FOX

LLMCheck = Callable[[LLMEngine], Coroutine[Any, Any, None]]

QUESTION: Sequence[ChatMessage] = ({"role": "user", "content": "List three colours, one per line."},)


async def answer(
    engine: LLMEngine, prompt: Prompt, sampling: Sampling, priority: Priority = DEMAND
) -> tuple[str, list[Delta]]:
    deltas = [delta async for delta in engine.generate(prompt, sampling, priority=priority)]
    return "".join(delta.text for delta in deltas), deltas


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
