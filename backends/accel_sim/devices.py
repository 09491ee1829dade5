"""Simulated devices that hold one model at a time, of several that take turns on them.

A device serves a model as long as that has anything to do there, then turns to another one, which takes `switch_s` and
forgets what was cached. Whose models a batch places on which device (`accel.engine.placement`), it is told with the
batch's calls; without that every device takes whatever waits.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from accel.engine.placement import Operator, Placement, place
from accel.engine.profile import Profile

from .kv_cache import KVCache


class Model(Protocol):
    """An engine of a model on a device."""

    kv_cache: KVCache
    is_full: bool

    @property
    def label(self) -> str: ...

    @property
    def has_own_work(self) -> bool: ...

    @property
    def has_work(self) -> bool: ...


class Device:
    """`switches`: how often it has turned to another model."""

    def __init__(self, switch_s: float, group: Devices) -> None:
        self.group = group
        self._switch_s = switch_s
        self._holds: Model | None = None
        self._served: Model | None = None
        self._asking: dict[Model, asyncio.Future[None]] = {}
        self.placed: frozenset[str] | None = None
        """The labels of the models that a batch has placed here; None: nothing is placed."""
        self.switches = 0

    async def turn(self, model: Model) -> bool:
        """Wait until the device holds this model; whether it had not."""
        if self._served is model:
            return False
        if self._served is not None or not self.takes(model):
            self._asking[model] = asyncio.get_running_loop().create_future()
            await self._asking[model]
        self._served = model
        if self._holds is not None and self._holds is not model:
            self._holds.kv_cache.forget()
            self.switches += 1
            await asyncio.sleep(self._switch_s)
        self._holds = model
        model.is_full = False
        return True

    def leave(self, model: Model) -> None:
        """It has nothing to do here."""
        model.is_full = True
        if self._served is model:
            self._served = None
            self.choose()

    def choose(self) -> None:
        """The next model, if the device is free: the one that it holds, if that asks, else who asked first."""
        if self._served is not None:
            return
        asking = [model for model, asked in self._asking.items() if self.takes(model) and not asked.done()]
        if asking:
            chosen = self._holds if self._holds in asking else asking[0]
            assert chosen is not None
            self._served = chosen
            self._asking.pop(chosen).set_result(None)

    def takes(self, model: Model) -> bool:
        """What comes one by one is served wherever it was sent."""
        return model.has_own_work or (model.has_work and (self.placed is None or model.label in self.placed))


class Devices:
    """Of one host, for all models that name the same group."""

    def __init__(self, profile: Profile, count: int, switch_s: float, places: bool) -> None:
        self._profile, self._switch_s, self._places = profile, switch_s, places
        self.each = [Device(switch_s, self) for _ in range(count)]
        self._expected: Sequence[Operator] = ()

    def expect(self, outline: Sequence[Operator]) -> None:
        """What a batch is going to ask for; nothing: whatever comes is served where there is room."""
        if outline == self._expected or not self._places:
            return
        self._expected = outline
        found = _placed(tuple(outline), self._profile, len(self.each), self._switch_s) if outline else None
        models = {operator.name: operator.model for operator in outline}
        for number, device in enumerate(self.each):
            device.placed = frozenset(models[name] for name in found.lines[number]) if found is not None else None
            device.choose()


@lru_cache(maxsize=64)
def _placed(outline: tuple[Operator, ...], profile: Profile, devices: int, switch_s: float) -> Placement:
    """Two batches at the same time take turns, too."""
    return place(outline, profile, devices, switch_s)


@dataclass(frozen=True, slots=True)
class Group:
    """Names devices. Equal ones are the same on one loop."""

    name: str = ""
    count: int = 1
    switch_s: float = 5.0
    """Until a device holds another model than before; the first one is there."""
    places: bool = True
    """Batches are placed whose operators are known (`accel.engine.placement`)."""


_groups: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Group, Devices]] = weakref.WeakKeyDictionary()


def devices_of(group: Group, profile: Profile) -> Devices:
    """On the running loop."""
    groups = _groups.setdefault(asyncio.get_running_loop(), {})
    if group not in groups:
        groups[group] = Devices(profile, group.count, group.switch_s, group.places)
    return groups[group]
