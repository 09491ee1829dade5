"""Several equal simulated language models behind one config: each request goes to one of them, as real replicas share
out theirs."""

from __future__ import annotations

from dataclasses import dataclass, fields

from accel.errors import ConfigurationError
from accel_local.replicas import ReplicatedLLM

from .devices import Group, devices_of
from .line import Line
from .llm import Served, SimLLM, SimLLMConfig
from .published import profile_of
from .tokens import tokenizer_of


@dataclass(frozen=True, slots=True)
class SimReplicasConfig:
    """Equal configs share one group of engines."""

    llm: SimLLMConfig
    """Of each."""
    replicas: int = 2
    one_line: bool = True
    """Requests of batches wait together, and each replica takes what is best for it when it has room; else they are
    shared out as they come, as all others are."""

    def __post_init__(self) -> None:
        if self.replicas < 1:
            raise ConfigurationError(f"{self.replicas} replicas serve nothing.", "give one or more")

    @property
    def label(self) -> str:
        return f"{self.replicas} replicas of a {self.llm.label}"

    def create(self) -> SimReplicas:
        return SimReplicas(self)


@dataclass(frozen=True, slots=True)
class SimDevicesConfig:
    """One of several models that take turns on the same devices. Equal configs share one group of engines."""

    llm: SimLLMConfig
    devices: Group = Group()

    @property
    def label(self) -> str:
        return self.llm.label

    def create(self) -> SimReplicas:
        return SimReplicas(SimReplicasConfig(self.llm, self.devices.count), self.devices)


class SimReplicas(ReplicatedLLM):
    def __init__(self, config: SimReplicasConfig, devices: Group | None = None) -> None:
        """devices: what the engines take turns on with those of other models."""
        self._devices, self._profile = devices, profile_of(config.llm.profile, "llm")
        tokenizer = tokenizer_of(config.llm.tokenizer)
        line = Line() if config.one_line else None
        self._engines = [SimLLM(config.llm, tokenizer, line) for _ in range(config.replicas)]
        super().__init__(self._engines, config.label, one_line=False)

    async def start(self) -> None:
        if self._devices is not None:
            for engine, device in zip(self._engines, devices_of(self._devices, self._profile).each, strict=True):
                engine.take_turns(device)
        for engine in self._engines:
            await engine.start()

    @property
    def served(self) -> Served:
        """By all of them."""
        each = [engine.served for engine in self._engines]
        return Served(**{field.name: sum(getattr(one, field.name) for one in each) for field in fields(Served)})
