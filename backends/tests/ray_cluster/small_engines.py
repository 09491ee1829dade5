"""Small engines for tests, which say what they see. Actors import them from here."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accel.engine import DEMAND, Priority
from accel.engine.profile import Profile
from accel.errors import EngineClosed, ModelNotFound
from accel_sim import SimStoreConfig
from accel_sim.engines import SimStore
from backends.tests.ray_cluster.conftest import OTHERS

_made = 0


@dataclass(frozen=True, slots=True)
class BreakingConfig:
    """Of an engine that breaks when it is told to, or never starts."""

    starts: bool = True

    @property
    def label(self) -> str:
        return "an engine that breaks"

    def create(self) -> "Breaking":
        return Breaking(self.starts)


class Breaking:
    """Its vectors are the process id and the number of the engine in its process; "threads" gives OMP_NUM_THREADS."""

    dimension = 2
    known_profile = None

    def __init__(self, starts: bool) -> None:
        global _made
        _made += 1
        self._number = _made
        self._starts = starts
        self._breaks = False

    async def start(self) -> None:
        if not self._starts:
            raise ModelNotFound("Model 'x' is nowhere.", "give another")

    async def close(self) -> None: ...

    async def profile(self) -> Profile:
        raise EngineClosed("it has no profile")

    async def embed(self, texts: Sequence[str], *, priority: Priority = DEMAND) -> list[Any]:
        if self._breaks:
            raise EngineClosed("its processes are gone")
        if texts[0] == "threads":
            return [os.environ.get("OMP_NUM_THREADS", "")]
        if texts[0] == "fail":
            raise ZeroDivisionError("an engine's own mistake")
        self._breaks = "break" in texts[0]
        return [(os.getpid(), self._number) for _ in texts]


@dataclass(frozen=True, slots=True)
class OwnStoreConfig:
    """Of a collection in memory that is each program's own."""

    collection: str
    temporary: bool = True

    @property
    def label(self) -> str:
        return f"own collection {self.collection!r}"

    def create(self) -> SimStore:
        return SimStoreConfig(self.collection, 3, OTHERS["searching"]).create()
