"""Measures what a language model costs on this machine, so that a schedule's limit can be computed."""

import asyncio
import itertools
import random
import statistics
import time

from accel.engine import LLMEngine, Sampling
from accel.engine.profile import Profile

PREFILL_TOKENS = (64, 128, 256, 512, 1024)
DECODE_BATCHES = (1, 2, 4, 8, 16)
DECODE_STEPS = 24
PROMPT_TOKENS = 256
"""The context of the requests that decode: attention over it is part of a step, and programs have some."""


async def measure_profile(engine: LLMEngine, batch_tokens: int = 0, slots: int = 0) -> Profile:
    """Prefill seconds by prompt length and seconds per decode step by requests decoding together, on an idle engine.

    About 45 s for a 135M model in fp32 on two cores. `dataclasses.asdict` of the result is JSON-able.
    """
    dice = random.Random(0)
    longest = engine.max_prompt_tokens - DECODE_STEPS
    await _answer(engine, _prompt(dice, PROMPT_TOKENS), 2)  # whatever is made on first use
    prefill = []
    for tokens in PREFILL_TOKENS:
        if tokens <= longest:
            repeats = 3 if tokens <= 256 else 1
            took = [await _prefill_s(engine, _prompt(dice, tokens)) for _ in range(repeats)]
            prefill.append((tokens, statistics.median(took)))
    decode = []
    for batch in DECODE_BATCHES:
        prompts = [_prompt(dice, PROMPT_TOKENS) for _ in range(batch)]
        # The first ones decode while the last are still prefilled: only steps of the whole batch count.
        answers = await asyncio.gather(*(_answer(engine, prompt, DECODE_STEPS + 2 * batch) for prompt in prompts))
        together, apart = max(times[0] for times in answers), min(times[-1] for times in answers)
        steps = [
            later - earlier
            for times in answers
            for earlier, later in itertools.pairwise(times)
            if earlier >= together and later <= apart
        ]
        decode.append((batch, statistics.median(steps)))
    return Profile(
        engine="llm",
        prefill=tuple(prefill),
        decode=tuple(decode),
        batch_tokens=batch_tokens,
        block_tokens=engine.cache_block_tokens,
        slots=slots,
        source="measured",
    )


def _prompt(dice: random.Random, tokens: int) -> list[int]:
    """Random, so that no prefix is in the cache."""
    return [dice.randrange(1000, 20000) for _ in range(tokens)]


async def _prefill_s(engine: LLMEngine, prompt: list[int]) -> float:
    """Time to the first token: the prefill and one decode step, which vLLM takes out of the same forward pass."""
    began = time.perf_counter()
    async for _ in engine.generate(prompt, Sampling(max_tokens=1)):
        pass
    return time.perf_counter() - began


async def _answer(engine: LLMEngine, prompt: list[int], tokens: int) -> list[float]:
    """Decode `tokens` tokens; when each came."""
    return [
        time.perf_counter()
        async for delta in engine.generate(prompt, Sampling(max_tokens=tokens, ignore_end=True))
        if delta.tokens
    ]
