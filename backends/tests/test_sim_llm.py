"""The simulated language model: the suite of all engines in virtual time, and the arithmetic of its steps."""

import asyncio
import contextlib
from dataclasses import replace
from pathlib import Path

import pytest

import accel_local
from accel.engine import Priority, Sampling
from accel.engine.conformance import LLM_CHECKS, LLMCheck, answer, name
from accel.engine.profile import Profile, ProfileFile
from accel.errors import ConfigurationError, RequestError
from accel.process import clock
from accel_sim import SimLLMConfig, profile_of, virtual
from accel_sim.llm import SimLLM
from accel_sim.recorded import save_answers

PROFILE = Profile(
    "llm", prefill=((10, 0.11), (100, 1.01)), decode=((1, 0.02), (2, 0.03), (4, 0.05)), batch_tokens=100,
    block_tokens=4, slots=2,
)  # fmt: skip


@pytest.fixture
def profile(tmp_path: Path) -> str:
    path = tmp_path / "profile.json"
    ProfileFile({"llm": PROFILE}).save(path)
    return str(path)


@pytest.mark.parametrize("check", LLM_CHECKS, ids=name)
def test_conformance(check: LLMCheck) -> None:
    async def main() -> None:
        await check(await accel_local.aengine(SimLLMConfig(max_model_len=2048)))

    virtual.run(main)


async def engine_of(config: SimLLMConfig) -> SimLLM:
    engine = await accel_local.aengine(config)
    assert isinstance(engine, SimLLM)
    return engine


def endless(tokens: int) -> Sampling:
    return Sampling(max_tokens=tokens, ignore_end=True)


def test_one_request_takes_its_prefill_and_its_steps(profile: str) -> None:
    async def main() -> float:
        engine = await engine_of(SimLLMConfig(profile))
        began = clock.now_s()
        await answer(engine, list(range(50)), endless(6))
        return clock.now_s() - began

    # One step of 0.01 s carries 50 prompt tokens of 0.01 s each and gives the first token; five more steps follow.
    assert virtual.run(main) == pytest.approx(0.01 + 0.5 + 5 * 0.02)


def test_requests_decode_together_up_to_the_slots(profile: str) -> None:
    async def main() -> list[float]:
        engine = await engine_of(SimLLMConfig(profile))
        began = clock.now_s()

        async def ask(first: int) -> float:
            await answer(engine, list(range(first, first + 10)), endless(3))
            return clock.now_s() - began

        return list(await asyncio.gather(*(ask(100 * n) for n in range(3))))

    # A step prefills the two that have slots; the third waits until both are over, two steps later.
    one, two, three = virtual.run(main)
    assert one == two == pytest.approx(0.01 + 0.2 + 2 * 0.03)
    assert three == pytest.approx(one + 0.01 + 0.1 + 2 * 0.02)


def test_long_prompts_are_prefilled_in_chunks_beside_others(profile: str) -> None:
    async def main() -> tuple[int, float]:
        engine = await engine_of(SimLLMConfig(profile))
        began = clock.now_s()
        await answer(engine, list(range(250)), endless(1))
        return engine.served.steps, clock.now_s() - began

    steps, seconds = virtual.run(main)
    assert steps == 3 and seconds == pytest.approx(3 * 0.01 + 2.5)


def test_a_demand_has_its_first_token_before_early_prompts_are_prefilled(tmp_path: Path) -> None:
    profile = tmp_path / "roomy.json"
    ProfileFile({"llm": replace(PROFILE, slots=4)}).save(profile)

    async def main() -> dict[str, float]:
        engine = await engine_of(SimLLMConfig(str(profile)))
        first: dict[str, float] = {}

        async def ask(name: str, token: int, priority: Priority) -> None:
            async with contextlib.aclosing(engine.generate([token] * 20, endless(2), priority=priority)) as deltas:
                async for _ in deltas:
                    first.setdefault(name, clock.now_s() - began)

        began = clock.now_s()
        await asyncio.gather(ask("early", 1, Priority(9)), ask("demand", 2, Priority(0)))
        return first

    first = virtual.run(main)
    assert first["demand"] == pytest.approx(0.01 + 0.2)
    assert first["early"] == pytest.approx(0.01 + 0.2 + 0.02 + 0.2), "in the step in which the demand decodes"


def test_a_prefilled_prompt_costs_only_its_rest(profile: str) -> None:
    async def main() -> tuple[float, int]:
        engine = await engine_of(SimLLMConfig(profile))
        assert await engine.prefill(list(range(40))) == 40
        began = clock.now_s()
        _, deltas = await answer(engine, list(range(50)), endless(1))
        assert deltas[-1].usage is not None
        return clock.now_s() - began, deltas[-1].usage.cached_tokens

    seconds, cached = virtual.run(main)
    assert cached == 40 and seconds == pytest.approx(0.01 + 0.1)


def test_the_urgent_go_first_and_the_abandoned_never(profile: str) -> None:
    async def main() -> list[str]:
        engine = await engine_of(SimLLMConfig(profile))
        order: list[str] = []

        async def ask(who: str, priority: int, first: int) -> None:
            await answer(engine, list(range(first, first + 8)), endless(2), Priority(priority))
            order.append(who)

        busy = [asyncio.create_task(ask(f"running {n}", 0, 1000 * n)) for n in (1, 2)]
        await asyncio.sleep(0.001)
        late = [asyncio.create_task(ask(who, rank, 10 * rank)) for who, rank in (("late", 9), ("gone", 5), ("soon", 1))]
        await asyncio.sleep(0.001)
        late[1].cancel()
        await asyncio.gather(*busy, late[0], late[2])
        return order

    assert virtual.run(main) == ["running 1", "running 2", "soon", "late"]


def test_the_prefix_cache_forgets_what_was_used_longest_ago(profile: str) -> None:
    async def main() -> list[int]:
        engine = await engine_of(SimLLMConfig(profile, kv_tokens=40))
        found = []
        for first in (0, 100, 0, 200, 300, 400, 0):
            _, deltas = await answer(engine, list(range(first, first + 13)), endless(1))
            assert deltas[-1].usage is not None
            found.append(deltas[-1].usage.cached_tokens)
        return found

    assert virtual.run(main) == [0, 0, 12, 0, 0, 0, 0]


def test_equal_seeds_repeat_bit_by_bit_and_others_differ(profile: str) -> None:
    def run(seed: int) -> list[float]:
        async def main() -> list[float]:
            engine = await engine_of(SimLLMConfig(profile, jitter=0.1, seed=seed))

            async def ask(n: int) -> float:
                await asyncio.sleep(0.05 * n)
                await answer(engine, f"Write {n} search queries, one per line.", Sampling(max_tokens=30))
                return clock.now_s()

            return list(await asyncio.gather(*map(ask, range(6))))

        return virtual.run(main)

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_recorded_answers_go_before_made_up_ones(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    save_answers(path, {(1, 2, 3): "recorded words"})

    async def main() -> list[str]:
        engine = await engine_of(SimLLMConfig(answers=str(path)))
        return [(await answer(engine, ids, Sampling()))[0] for ids in ([1, 2, 3], [1, 2, 4])]

    known, other = virtual.run(main)
    assert known == "recorded words" and other != known


def test_a_closed_engine_ends_its_requests() -> None:
    async def main() -> object:
        engine = SimLLMConfig().create()
        await engine.start()
        stream = engine.generate("words", endless(500))
        async with contextlib.aclosing(stream):
            await anext(stream)
            await engine.close()
            last = [delta async for delta in stream][-1]
        return last.error

    assert isinstance(virtual.run(main), RequestError)


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="7b, 13b, 30b"):
        SimLLMConfig("70b").create()


def test_larger_published_models_are_slower_to_decode() -> None:
    times = [profile_of(size, "llm").decode[0][1] for size in ("7b", "13b", "30b")]
    assert times == sorted(times)


def test_virtual_time_names_what_it_cannot_simulate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual, "STUCK_S", 0.01)

    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="no virtual time brings"):
        virtual.run(main)
