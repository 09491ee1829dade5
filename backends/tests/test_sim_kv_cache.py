"""The simulated KV cache: what fits, what is found again, what goes first; and engines that have little of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accel_local
from accel.engine import Priority, Sampling, Session
from accel.engine.beginnings import Reuse
from accel.engine.conformance import LLM_CHECKS, LLMCheck, answer, name
from accel.engine.profile import Profile, ProfileFile
from accel.errors import ConfigurationError, InvalidRequest
from accel_sim import SimLLMConfig, SimReplicasConfig, virtual
from accel_sim.kv_cache import AT_ONCE, EVICTIONS, LEAST_RECENT, NEXT_USE, KVCache, Place
from accel_sim.llm import SimLLM
from accel_sim.replicas import SimReplicas

BLOCK = 4
PROFILE = Profile("llm", prefill=((10, 0.11), (100, 1.01)), decode=((1, 0.02), (4, 0.05)), batch_tokens=20, slots=4,
                  block_tokens=BLOCK)  # fmt: skip


def begun(cache: KVCache, ids: list[int], answer_tokens: int = 1) -> Place | None:
    return cache.begin(cache.blocks(ids), len(ids), answer_tokens)


def served(cache: KVCache, ids: list[int], answer_tokens: int = 1) -> int:
    """A request from its beginning to its end; the tokens that it found."""
    place = begun(cache, ids, answer_tokens)
    assert place is not None
    found = place.found_tokens
    cache.computed(place, len(ids))
    cache.end(place)
    return found


def prompt(first: int, tokens: int = 12) -> list[int]:
    return list(range(first, first + tokens))


def test_a_prompt_finds_the_whole_blocks_that_it_begins_with_but_not_its_last_token() -> None:
    cache = KVCache(400, BLOCK)
    assert served(cache, prompt(0, 14)) == 0
    assert served(cache, prompt(0, 12)) == 8
    assert served(cache, prompt(0, 13)) == 12
    assert served(cache, [*prompt(0, 8), 99, 98, 97]) == 8
    assert served(cache, [99, *prompt(0, 8)]) == 0


def test_what_a_prompt_would_find_and_what_others_are_computing_of_it() -> None:
    cache = KVCache(400, BLOCK)
    blocks = cache.blocks(prompt(0))
    assert cache.reuse(blocks) == Reuse(0, blocks[0], blocks=3)
    one, two = begun(cache, prompt(0)), begun(cache, [*prompt(0, 8), 99, 98, 97, 96])
    assert one is not None and two is not None
    assert cache.reuse(blocks) == Reuse(0, blocks[0], coming=True, blocks=3)
    cache.computed(one, 8)
    assert cache.reuse(blocks) == Reuse(2, blocks[2], coming=True, blocks=3)
    cache.computed(one, 12)
    assert cache.reuse(blocks) == Reuse(3, None, blocks=3)
    cache.end(one)
    cache.end(one)
    cache.end(two)  # given up before anything was computed
    others = cache.blocks([*prompt(0, 8), 99, 98, 97, 96])
    assert cache.reuse(others) == Reuse(2, others[2], blocks=3)


def test_what_is_not_computed_yet_is_not_found_and_what_two_computed_is_kept_once() -> None:
    cache = KVCache(400, BLOCK)
    one, two = begun(cache, prompt(0)), begun(cache, prompt(0))
    assert one is not None and two is not None and one.found_tokens == two.found_tokens == 0
    assert cache.held_tokens == 2 * 16
    cache.computed(one, 12)
    cache.computed(two, 12)
    assert cache.held_tokens == 12 + 2 * 4
    cache.end(one)
    assert cache.held_tokens == 12 + 4
    cache.end(two)
    assert (cache.held_tokens, cache.used_tokens) == (0, 12)


def test_a_request_waits_for_room_and_not_for_what_nobody_holds() -> None:
    cache = KVCache(32, BLOCK)
    one = begun(cache, prompt(0), 8)
    assert one is not None and cache.held_tokens == 20
    assert begun(cache, prompt(100), 4) is None
    cache.computed(one, 12)
    cache.end(one)
    assert begun(cache, prompt(100), 12) is not None
    assert (cache.used_tokens, cache.evicted_blocks) == (32, 1)


def test_ends_go_before_beginnings_and_old_prompts_before_new_ones() -> None:
    cache = KVCache(32, BLOCK)
    served(cache, prompt(0))
    served(cache, prompt(100))
    assert served(cache, prompt(200)) == 0, "takes the room of the first one's last two blocks"
    assert served(cache, prompt(0)) == 4
    assert served(cache, prompt(200)) == 8


def test_evicted_at_once_only_what_runs_at_the_same_time_shares() -> None:
    cache = KVCache(400, BLOCK, AT_ONCE)
    assert served(cache, prompt(0)) == served(cache, prompt(0)) == 0
    place = begun(cache, prompt(0))
    assert place is not None
    cache.computed(place, 12)
    assert served(cache, prompt(0)) == 8
    assert cache.used_tokens == 16


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="least recently used, at once"):
        SimLLMConfig(eviction="random").create()
    with pytest.raises(ConfigurationError, match="no room for a prompt"):
        SimLLMConfig(kv_tokens=3).create()
    with pytest.raises(ConfigurationError, match="replicas serve nothing"):
        SimReplicasConfig(SimLLMConfig(), 0)


# --- properties

prompts = st.builds(lambda shared, rest, own: [*range(shared), *range(1000 * own, 1000 * own + rest)],
                    st.integers(0, 12), st.integers(1, 12), st.integers(1, 3))  # fmt: skip
steps = st.lists(st.tuples(prompts, st.integers(1, 8), st.integers(0, 30), st.booleans()), max_size=40)


@settings(max_examples=150, deadline=None)
@given(steps, st.sampled_from([32, 40, 80]), st.sampled_from(EVICTIONS))
def test_never_more_than_the_capacity_and_nothing_is_lost(taken: object, capacity: int, eviction: str) -> None:
    cache = KVCache(capacity, BLOCK, eviction)
    running: list[tuple[Place, int]] = []
    for ids, tokens, computed, ends in taken:  # type: ignore[attr-defined]
        place = begun(cache, ids, tokens)
        if place is None:
            assert running, "what is alone always fits"
        else:
            running.append((place, len(ids)))
        assert cache.held_tokens <= cache.used_tokens <= capacity
        if running:
            place, length = running[0]
            cache.computed(place, max(place.found_tokens, min(computed, length)))
            if ends:
                cache.end(running.pop(0)[0])
        assert cache.held_tokens <= cache.used_tokens <= capacity
    for place, _ in running:
        cache.end(place)
    assert cache.held_tokens == 0


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("kv") / "profile.json"
    ProfileFile({"llm": PROFILE}).save(path)
    return str(path)


requests = st.lists(
    st.tuples(prompts, st.integers(1, 8), st.integers(0, 5), st.booleans()), min_size=1, max_size=12
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(taken=requests, replicas=st.integers(1, 3))
def test_nothing_starves_and_answers_are_the_same_however_little_room_there_is(
    profile: str, taken: list[tuple[list[int], int, int, bool]], replicas: int
) -> None:
    def answers(kv_tokens: int) -> list[str]:
        async def main() -> list[str]:
            config = SimReplicasConfig(SimLLMConfig(profile, kv_tokens=kv_tokens), replicas)
            engine = await accel_local.aengine(config)
            assert isinstance(engine, SimReplicas)

            async def ask(ids: list[int], tokens: int, after: int, gives_up: bool) -> str:
                await asyncio.sleep(0.1 * after)
                asked = asyncio.ensure_future(answer(engine, ids, Sampling(max_tokens=tokens, ignore_end=True)))
                if gives_up:
                    await asyncio.sleep(0.05)
                    asked.cancel()
                    await asyncio.wait([asked])
                    return "given up"
                return (await asked)[0]

            found = await asyncio.gather(*(ask(*one) for one in taken))
            for member in engine._engines:
                assert member.kv_cache.held_tokens == 0
                assert not kv_tokens or member.kv_cache.used_tokens <= kv_tokens
            return list(found)

        return virtual.run(main)

    assert answers(32) == answers(0)


# --- engines


@pytest.mark.parametrize("check", LLM_CHECKS, ids=name)
@pytest.mark.parametrize("replicas", [1, 2])
def test_conformance_with_little_room(check: LLMCheck, replicas: int) -> None:
    async def main() -> None:
        config = SimLLMConfig(max_model_len=2048, kv_tokens=4096)
        await check(await accel_local.aengine(SimReplicasConfig(config, replicas)))

    virtual.run(main)


def test_no_request_is_longer_than_the_cache(profile: str) -> None:
    async def main() -> tuple[int, int, object]:
        engine = await accel_local.aengine(SimLLMConfig(profile, kv_tokens=41))
        assert isinstance(engine, SimLLM)
        _, deltas = await answer(engine, prompt(0, 30), Sampling(max_tokens=100, ignore_end=True))
        refused = [delta async for delta in engine.generate(prompt(0, 40), Sampling())]
        return engine.max_prompt_tokens, sum(delta.tokens for delta in deltas), refused[-1].error

    most, answered, error = virtual.run(main)
    assert (most, answered) == (39, 10)
    assert isinstance(error, InvalidRequest) and "kv_tokens" in str(error)


def test_of_a_batch_what_begins_alike_is_served_together_where_little_fits(profile: str) -> None:
    """Five questions on each of six documents, in turns, with room for two of the documents."""

    async def prefilled(batching: str, batch: bool) -> int:
        engine = await accel_local.aengine(
            SimLLMConfig(profile, kv_tokens=120, batching=batching, name=f"{batching} {batch}")
        )
        assert isinstance(engine, SimLLM)
        sampling = Sampling(max_tokens=2, ignore_end=True)
        asked = [[*prompt(1000 * document, 40), 500 + question] for question in range(5) for document in range(6)]
        given = [Priority(0, "batch" if batch else f"run {n}", 0.0, batch=batch) for n in range(len(asked))]
        answers = (answer(engine, ids, sampling, priority=whose) for ids, whose in zip(asked, given, strict=True))
        assert all(text for text, _ in await asyncio.gather(*answers))
        return engine.served.prompt_tokens

    async def main() -> list[int]:
        return [
            await prefilled("topology-aware", True),
            await prefilled("topology-aware", False),
            await prefilled("topology-aware, without reuse", True),
        ]

    together, apart, without = virtual.run(main)
    assert together < 6 * 40 + 30 + 40, "less than one document is computed again"
    assert apart > 2 * together
    assert without > 1.5 * together, "even if runs are admitted by what their beginnings take beside others"


def test_replicas_share_out_requests_and_send_a_prompt_where_its_beginning_lies(profile: str) -> None:
    async def main() -> tuple[list[int], int]:
        engine = await accel_local.aengine(SimReplicasConfig(SimLLMConfig(profile), 2))
        assert isinstance(engine, SimReplicas)
        sampling = Sampling(max_tokens=2, ignore_end=True)
        await asyncio.gather(*(answer(engine, prompt(100 * n), sampling) for n in range(4)))
        shares = [member.served.prompt_tokens for member in engine._engines]
        await answer(engine, prompt(300, 13), sampling)
        return shares, engine.served.cached_tokens

    assert virtual.run(main) == ([24, 24], 12)


def of_batch(query: str, next_use: int = 0) -> Priority:
    return Priority(0, "batch", 0.0, batch=True, session=Session(query), next_use=next_use)


def test_what_a_run_uses_next_is_kept_where_what_was_used_last_is_not(profile: str) -> None:
    """Eight chains of two calls, which begin alike, with room for three prompts; between the two calls of a chain other
    requests come, which nobody will repeat."""

    async def prefilled(eviction: str) -> int:
        engine = await accel_local.aengine(SimLLMConfig(profile, kv_tokens=400, eviction=eviction))
        assert isinstance(engine, SimLLM)
        sampling = Sampling(max_tokens=2, ignore_end=True)
        for chain in range(8):
            begins = prompt(1000 * chain, 120)
            await answer(engine, [*begins, 1], sampling, priority=of_batch(f"{chain}", next_use=1))
            for other in range(3):
                await answer(engine, prompt(10_000 + 1000 * chain + 200 * other, 120), sampling)
            await answer(engine, [*begins, 2], sampling, priority=of_batch(f"{chain}"))
        return engine.served.prompt_tokens

    async def main() -> tuple[int, int]:
        return await prefilled(NEXT_USE), await prefilled(LEAST_RECENT)

    kept, lost = virtual.run(main)
    assert kept == 8 * (121 + 3 * 120 + 1) and lost > kept + 8 * 60


@pytest.mark.parametrize("one_line", [True, False])
def test_replicas_share_out_a_batch_by_what_they_have(profile: str, one_line: bool) -> None:
    """Six documents with six questions each, in turns: none has to be read by all, and nobody is idle."""

    async def main() -> tuple[int, list[int]]:
        engine = await accel_local.aengine(SimReplicasConfig(SimLLMConfig(profile), 3, one_line))
        assert isinstance(engine, SimReplicas)
        sampling = Sampling(max_tokens=4, ignore_end=True)
        asked = [[*prompt(1000 * document, 40), 500 + question] for question in range(6) for document in range(6)]
        answers = [answer(engine, ids, sampling, priority=of_batch(str(n))) for n, ids in enumerate(asked)]
        assert all(text for text, _ in await asyncio.gather(*answers))
        return engine.served.prompt_tokens, [member.served.output_tokens for member in engine._engines]

    prompt_tokens, shares = virtual.run(main)
    assert sum(shares) == 36 * 4 and min(shares) >= 36
    assert prompt_tokens < 2 * (6 * 40 + 36)


def test_of_a_batch_that_is_given_up_nothing_is_left_waiting(profile: str) -> None:
    async def main() -> tuple[int, int]:
        engine = await accel_local.aengine(SimReplicasConfig(SimLLMConfig(profile, kv_tokens=120), 2))
        assert isinstance(engine, SimReplicas)
        sampling = Sampling(max_tokens=20, ignore_end=True)
        tasks = [
            asyncio.create_task(answer(engine, prompt(1000 * n, 40), sampling, priority=of_batch(str(n), 1)))
            for n in range(12)
        ]
        await asyncio.sleep(0.5)
        for task in tasks[:-1]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        members = [member for member in engine._engines if isinstance(member, SimLLM)]
        return members[0]._line.waiting.__len__(), sum(member.load for member in members)

    assert virtual.run(main) == (0, 0)
