"""Simulated devices that hold one model at a time, and batches that are placed on them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

import accel_local
from accel.engine import Priority, Sampling, Session
from accel.engine.conformance import answer
from accel.engine.placement import Operator
from accel.engine.profile import Profile, ProfileFile
from accel_sim import Group, SimDevicesConfig, SimLLMConfig, virtual
from accel_sim.devices import Device
from accel_sim.llm import SimLLM
from accel_sim.replicas import SimReplicas

PROFILE = Profile("llm", prefill=((10, 0.01), (100, 0.1)), decode=((1, 0.02), (16, 0.04)), batch_tokens=200, slots=16,
                  block_tokens=4)  # fmt: skip
SAMPLING = Sampling(max_tokens=20, ignore_end=True)
INPUTS = 16


@pytest.fixture
def profile(tmp_path: Path) -> str:
    ProfileFile({"llm": PROFILE}).save(tmp_path / "profile.json")
    return str(tmp_path / "profile.json")


async def engines_on(profile: str, group: Group) -> tuple[SimReplicas, SimReplicas]:
    large, small = [
        await accel_local.aengine(SimDevicesConfig(SimLLMConfig(profile, name=name), group))
        for name in ("large", "small")
    ]
    assert isinstance(large, SimReplicas) and isinstance(small, SimReplicas)
    return large, small


def devices_of(engine: SimReplicas) -> list[Device]:
    found = [member._device for member in engine._engines if isinstance(member, SimLLM)]
    return [device for device in found if device is not None]


def prompt(first: int) -> list[int]:
    return list(range(first, first + 12))


def test_a_device_serves_what_a_model_has_to_do_before_it_turns_to_another(profile: str) -> None:
    async def main() -> tuple[float, int, int]:
        large, small = await engines_on(profile, Group(count=1, switch_s=10.0))
        loop = asyncio.get_running_loop()
        asked = [answer(engine, prompt(100 * n), SAMPLING) for n in range(4) for engine in (large, small)]
        began_s = loop.time()
        assert all(text for text, _ in await asyncio.gather(*asked))
        (device,) = devices_of(large)
        switches, took_s = device.switches, loop.time() - began_s
        await answer(small, prompt(0), SAMPLING)
        again = device.switches
        return took_s, switches, again

    took_s, switches, again = virtual.run(main)
    assert 10.0 < took_s < 12.0 and switches == again == 1, "what it holds costs nothing"


def test_what_was_cached_is_forgotten_with_its_model(profile: str) -> None:
    async def main() -> int:
        large, small = await engines_on(profile, Group(count=1, switch_s=1.0))
        for engine in (large, small, large):
            await answer(engine, prompt(0), SAMPLING)
        return large.served.cached_tokens

    assert virtual.run(main) == 0


async def batch(large: SimReplicas, small: SimReplicas, outline: Sequence[Operator]) -> float:
    """Solve with one model, criticise with the other, revise with the first; the seconds."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()

    async def run(number: int) -> None:
        whose = Priority(0, "batch", 0.0, 0, True, Session(f"{number}"), outline=outline)
        for step, engine in enumerate((large, small, large)):
            text, _ = await answer(engine, prompt(1000 * number + 100 * step), SAMPLING, priority=whose)
            assert text

    await asyncio.gather(*map(run, range(INPUTS)))
    return loop.time() - began_s


def operators(profile: str) -> list[Operator]:
    large, small = (SimLLMConfig(profile, name=name).label for name in ("large", "small"))
    return [
        Operator("solve", large, INPUTS, 12, 20),
        Operator("criticise", small, INPUTS, 12, 20, ("solve",)),
        Operator("revise", large, INPUTS, 12, 20, ("criticise",)),
    ]


@pytest.mark.parametrize("switch_s", [0.0, 5.0])
def test_a_batch_is_placed_so_that_switches_pay(profile: str, switch_s: float) -> None:
    def measured(places: bool) -> tuple[float, list[int]]:
        async def main() -> tuple[float, list[int]]:
            large, small = await engines_on(profile, Group(count=2, switch_s=switch_s, places=places))
            seconds = await batch(large, small, operators(profile))
            return seconds, [device.switches for device in devices_of(large)]

        return virtual.run(main)

    (anyhow_s, turned), (placed_s, stayed) = measured(False), measured(True)
    if switch_s:
        assert stayed == [0, 0] and sum(turned) >= 2 and placed_s < anyhow_s - switch_s
    else:
        assert placed_s == pytest.approx(anyhow_s) and stayed == turned


def test_what_comes_beside_a_placed_batch_is_served_wherever_it_was_sent(profile: str) -> None:
    async def main() -> list[str]:
        large, small = await engines_on(profile, Group(count=2, switch_s=5.0))
        others = [answer(engine, prompt(n), SAMPLING) for n in range(4) for engine in (large, small)]
        _, *answers = await asyncio.gather(batch(large, small, operators(profile)), *others)
        return [text for text, _ in answers]

    assert all(virtual.run(main))


def test_engines_that_are_closed_leave_their_device_to_others(profile: str) -> None:
    async def main() -> bool:
        large, small = await engines_on(profile, Group(count=1, switch_s=1.0))
        asking = asyncio.create_task(answer(large, prompt(0), Sampling(max_tokens=10_000, ignore_end=True)))
        await asyncio.sleep(0.1)
        await large.close()
        await asyncio.gather(asking, return_exceptions=True)
        text, _ = await answer(small, prompt(0), SAMPLING)
        return bool(text)

    assert virtual.run(main)


def test_an_engine_that_is_closed_while_its_device_turns_to_it_leaves_it_to_others(profile: str) -> None:
    async def main() -> bool:
        large, small = await engines_on(profile, Group(count=1, switch_s=10.0))
        await answer(large, prompt(0), SAMPLING)
        asking = asyncio.create_task(answer(small, prompt(0), SAMPLING))
        await asyncio.sleep(1.0)
        await small.close()
        await asyncio.gather(asking, return_exceptions=True)
        text, _ = await answer(large, prompt(0), SAMPLING)
        return bool(text)

    assert virtual.run(main)
