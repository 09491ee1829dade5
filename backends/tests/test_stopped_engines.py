"""Engines of this process that stop by themselves: another one takes their place."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import accel_local
from accel.engine import DEMAND, Priority
from accel.engine.profile import Profile
from accel_local.replicas import has_stopped, replicated


@dataclass(frozen=True)
class EchoConfig:
    engines: list["Echo"] = field(default_factory=list, compare=False)
    label: str = "an echo"

    def create(self) -> "Echo":
        return Echo(self.engines)


class Echo:
    """An embedding engine, whose vectors say which one of its config it is."""

    known_profile: Profile | None = None
    dimension = 1

    def __init__(self, engines: list["Echo"]) -> None:
        self._engines = engines
        self.stopped = self.closed = False

    async def start(self) -> None:
        assert all(engine.closed for engine in self._engines), "there may not be room for two"
        await asyncio.sleep(0)
        self._engines.append(self)

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.closed = True

    async def profile(self) -> Profile:
        raise NotImplementedError

    async def embed(self, texts: Any, *, priority: Priority = DEMAND) -> Any:
        assert not self.stopped and not self.closed
        return [[float(self._engines.index(self))] for _ in texts]


def test_an_engine_that_has_stopped_is_closed_and_started_anew_once() -> None:
    config = EchoConfig(label="stops")

    async def ask() -> Any:
        engine: Any = await accel_local.aengine(config)
        return (await engine.embed(["the sea"]))[0]

    async def all_at_once() -> list[Any]:
        return list(await asyncio.gather(*(ask() for _ in range(8))))

    assert asyncio.run(all_at_once()) == [[0.0]] * 8
    config.engines[0].stopped = True
    assert asyncio.run(all_at_once()) == [[1.0]] * 8
    assert [engine.closed for engine in config.engines] == [True, False]
    config.engines[1].stopped = True
    again: Any = accel_local.engine(config)
    assert again is config.engines[2] is accel_local.engine(config)


async def test_of_several_those_serve_that_have_not_stopped() -> None:
    engines: list[Echo] = []
    members = [Echo(engines) for _ in range(2)]
    engines.extend(members)
    both: Any = replicated(members, "two echoes")
    members[0].stopped = True
    assert [(await both.embed(["the sea"]))[0] for _ in range(5)] == [[1.0]] * 5 and not has_stopped(both)
    members[1].stopped = True
    assert has_stopped(both)
