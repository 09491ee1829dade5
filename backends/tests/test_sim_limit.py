"""The limit against the simulator: random programs, random schedules of them, none of which may beat it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

import accel_local
from accel.engine import Priority, Sampling
from accel.engine.conformance import answer
from accel.engine.profile import Profile, ProfileFile
from accel.process import clock
from accel.reports.limits.limit import limit
from accel.trace.record import CallRecord, Trace
from accel_sim import SimLLMConfig, virtual
from accel_sim.llm import SimLLM

PROFILE = Profile(
    "llm", prefill=((64, 0.034), (256, 0.106), (1024, 0.394)), decode=((1, 0.02), (2, 0.022), (4, 0.026), (16, 0.05)),
    batch_tokens=256, block_tokens=16, slots=8,
)  # fmt: skip


@dataclass
class Call:
    number: int
    words: int
    tokens: int
    needs: tuple[int, ...]


def random_program(dice: Random) -> list[Call]:
    calls = []
    for number in range(dice.randrange(3, 9)):
        needs = tuple(n for n in range(number) if dice.random() < 0.35)
        calls.append(Call(number, dice.randrange(10, 150), dice.randrange(4, 60), needs))
    return calls


class Run:
    """One run of a program on a simulated engine."""

    def __init__(self, program: list[Call], engine: SimLLM) -> None:
        self.program, self.engine = program, engine
        self.trace = Trace({})
        self.trace.tick()
        self.answers: dict[int, asyncio.Task[str]] = {}

    async def ask(self, call: Call, priority: Priority) -> str:
        parts = [await self.answers[n] for n in call.needs]
        # Its own words first: no two prompts share a beginning, so nothing comes out of the cache.
        prompt = " ".join([f"{call.number}w{n}" for n in range(call.words)] + parts)
        start, started_s = self.trace.tick(), clock.now_s()
        text, deltas = await answer(self.engine, prompt, Sampling(max_tokens=call.tokens, ignore_end=True), priority)
        usage = deltas[-1].usage
        assert usage is not None and usage.cached_tokens == 0
        record = CallRecord("site", "", "m", "f", "decode", None, None, {"text": prompt}, None, start, started_s)
        record.output, record.end, record.ended_s = {"content": text}, self.trace.tick(), clock.now_s()
        record.tokens = (usage.prompt_tokens, usage.completion_tokens)
        self.trace.calls.append(record)
        return text

    async def in_order(self) -> float:
        for call in self.program:
            self.answers[call.number] = asyncio.create_task(self.ask(call, Priority()))
            await self.answers[call.number]
        return self.end()

    async def at_once(self, dice: Random) -> float:
        """Every call as soon as it can be made, with a random rank where several wait."""
        for call in self.program:
            self.answers[call.number] = asyncio.create_task(self.ask(call, Priority(dice.randrange(0, 2))))
        await asyncio.gather(*self.answers.values())
        return self.end()

    def end(self) -> float:
        self.trace.ended_s, self.trace.completed = clock.now_s(), True
        return self.trace.ended_s - self.trace.started_s


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("limit") / "profile.json"
    ProfileFile({"llm": PROFILE}).save(path)
    return str(path)


@pytest.mark.parametrize("seed", range(25))
def test_no_schedule_beats_the_limit(seed: int, profile: str) -> None:
    async def main() -> None:
        dice = Random(seed)
        program = random_program(dice)
        engine = await accel_local.aengine(SimLLMConfig(profile))
        assert isinstance(engine, SimLLM)
        run = Run(program, engine)
        in_order_s = await run.in_order()
        found = limit(run.trace, {"llm": PROFILE})
        assert found.in_order_s == pytest.approx(in_order_s, rel=0.01), "the model is the simulator's"
        for _ in range(4):
            await engine.reset_prefix_cache()
            took_s = await Run(program, engine).at_once(dice)
            assert took_s >= found.makespan_s * 0.999
            assert took_s >= found.lower_bound_s * (1 - 1e-9)

    virtual.run(main)


def test_the_limit_of_a_chain_is_the_chain(profile: str) -> None:
    async def main() -> None:
        program = [Call(n, 50, 30, (n - 1,) if n else ()) for n in range(4)]
        engine = await accel_local.aengine(SimLLMConfig(profile))
        assert isinstance(engine, SimLLM)
        run = Run(program, engine)
        in_order_s = await run.in_order()
        found = limit(run.trace, {"llm": PROFILE})
        # What is known of a prompt before the answer it waits for can be prefilled meanwhile: no more than that.
        assert found.makespan_s == pytest.approx(in_order_s, rel=0.2) and found.makespan_s <= in_order_s

    virtual.run(main)
