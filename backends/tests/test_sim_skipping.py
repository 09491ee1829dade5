"""Skipped time: engines take their time on its clock, the program's own work takes the time that it takes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Generator

import pytest

import accel_local
from accel.engine import Sampling
from accel.process import clock
from accel_sim import SimLLMConfig, profile_of, skipping
from accel_sim.skipping import SkippingLoop

CONFIG = SimLLMConfig(profile="7b")
PIECES = 50


@pytest.fixture
def loop() -> Generator[SkippingLoop]:
    with skipping.skipping() as loop:
        yield loop


def answer() -> float:
    """Seconds on the clock that an answer of `PIECES` tokens took."""

    async def generate() -> None:
        engine = await accel_local.aengine(CONFIG)
        async for _ in engine.generate("Say something.", Sampling(max_tokens=PIECES, ignore_end=True)):
            pass

    began = clock.now_s()
    accel_local.run(generate())
    return clock.now_s() - began


def least_s() -> float:
    return (PIECES - 1) * profile_of("7b", "llm").decode[0][1]


def test_waiting_is_skipped_and_counts(loop: SkippingLoop) -> None:
    real_s = time.perf_counter()
    took_s = answer()
    real_s = time.perf_counter() - real_s
    assert took_s >= least_s()
    assert 0 < loop.skipped_s <= took_s <= real_s + loop.skipped_s


def test_nothing_is_skipped_while_a_thread_works(loop: SkippingLoop) -> None:
    answer()
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            sum(range(1_000))

    thread = threading.Thread(target=work)
    thread.start()
    skipped_s = loop.skipped_s
    try:
        answer()
        assert loop.skipped_s == skipped_s
    finally:
        over.set()
        thread.join()


def test_calls_at_once_share_the_engine_s_steps(loop: SkippingLoop) -> None:
    async def both() -> None:
        await asyncio.gather(*(asyncio.to_thread(answer) for _ in range(2)))

    answer()
    began = clock.now_s()
    asyncio.run(both())
    assert clock.now_s() - began < 2 * least_s()


def test_engines_are_closed_afterwards() -> None:
    with skipping.skipping() as loop:
        answer()
        assert accel_local.running() == [CONFIG.label]
    assert CONFIG.label not in accel_local.running() and loop.is_closed()


def test_where_threads_cannot_be_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skipping, "TASKS", skipping.TASKS / "nothing")
    with pytest.raises(RuntimeError, match="run in real time"), skipping.skipping():
        pass
