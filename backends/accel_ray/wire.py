"""What crosses between a program and the actors that serve it.

`describe` of an actor gives built-in types only, so that programs and actors of any two versions understand it; nothing
else is sent before their versions agree.
"""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import accel
from accel import errors
from accel.engine import DEMAND, Engine, EngineConfig, Priority, Session
from accel.engine.profile import Profile
from accel.engine.slots import Room
from accel.errors import AccelError, RequestError
from accel.process.clock import now_s
from accel_local.replicas import EngineLost

PROTOCOL = 3
"""Raised with every change to this file or to the actor's methods."""

Family = Literal["llm", "embedding", "reranking", "store"]


def version() -> tuple[str, int]:
    return accel.__version__, PROTOCOL


@dataclass(frozen=True, slots=True)
class ActorSpec:
    """What an actor was made for. `engine` names the deployment, of which it is replica number `replica`."""

    engine: str
    replica: int
    config: EngineConfig[Any]
    replicas: int = 1
    num_cpus: float = 0.0
    num_gpus: float = 0.0
    declared: bool = True

    @property
    def name(self) -> str:
        """Of the actor, in the backend's namespace."""
        return f"{self.engine}:{self.replica}"


@dataclass(frozen=True, slots=True)
class Private:
    """The engine of one program alone, whatever others ask for."""

    config: EngineConfig[Any]
    client: str

    @property
    def label(self) -> str:
        return self.config.label

    def create(self) -> Engine:
        engine: Engine = self.config.create()
        return engine


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `instance`: only an engine that was started under this name may answer, if it is given.
    `sent_s`: by the caller's clock, which may differ from the actor's."""

    id: str
    client: str
    config: EngineConfig[Any]
    method: str
    args: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    priority: Priority = DEMAND
    instance: str = ""
    sent_s: float = field(default_factory=now_s)

    def priority_here(self, session: Session | None = None) -> Priority:
        """The caller's priority, its times by the clock of the process that asks. `session`: the run's, here."""
        return self.priority.arrived(self.priority.arrived_s + now_s() - self.sent_s, session)


@dataclass(frozen=True, slots=True)
class Failure:
    """An AccelError on its way; exceptions with constructors of their own don't survive pickling."""

    kind: str
    what: str
    remedy: str

    @classmethod
    def of(cls, error: AccelError) -> "Failure":
        return cls(type(error).__name__, error.what, error.remedy)

    def error(self) -> AccelError:
        kind = EngineLost if self.kind == EngineLost.__name__ else getattr(errors, self.kind, RequestError)
        error: AccelError = kind.__new__(kind)
        AccelError.__init__(error, self.what, self.remedy)
        return error


@dataclass(frozen=True, slots=True)
class Reply:
    """A result or the failure of the whole call, and how many requests the actor has."""

    value: Any
    load: int

    def result(self) -> Any:
        """Raises the failure."""
        if isinstance(self.value, Failure):
            raise self.value.error()
        return self.value


@dataclass(frozen=True, slots=True)
class Opened:
    """What a program must know about an engine in an actor. `instance` names it until it is started anew.
    `probes`: the token ids of `accel_ray.encoding.PROBES`, for language models."""

    instance: str
    family: Family
    known_profile: Profile | None
    dimension: int = 0
    max_prompt_tokens: int = 0
    cache_block_tokens: int = 0
    probes: tuple[tuple[int, ...], ...] = ()
    room: Room | None = None


def packed(value: Any) -> bytes:
    """As a part of what `describe` gives, read only once the versions agree."""
    return pickle.dumps(value)


def unpacked(data: bytes) -> Any:
    return pickle.loads(data)
