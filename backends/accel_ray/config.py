"""`backend.yaml`: which engines a backend has, and where.

address: auto            # of a Ray that runs; left out: a local one is started
namespace: accel
engines:
  llm:
    kind: vllm
    model: smollm2-135m-instruct
    options: {dtype: float32, gpu_memory_utilization: 0.45}
    replicas: 2
    num_gpus: 0.5
  embedding:
    kind: sentence_transformers
  records:
    kind: pgvector       # serves any collection
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from accel.engine import EngineConfig
from accel.errors import ConfigurationError
from accel_ray.kinds import KINDS
from accel_ray.nearest import nearest
from accel_ray.wire import ActorSpec

DEFAULT_NAMESPACE = "accel"


class LocalRay(BaseModel):
    """Of a Ray that is started here. None: what the machine has; other numbers are logical ones."""

    model_config = ConfigDict(extra="forbid")

    num_cpus: int | None = Field(default=None, ge=0)
    num_gpus: int | None = Field(default=None, ge=0)
    object_store_mib: int = Field(default=256, ge=80)


class EngineEntry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: str
    model: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    replicas: int = Field(default=1, ge=1, le=1024)
    num_gpus: float = Field(default=0.0, ge=0)
    """Of each replica: whole ones, or a part of one."""
    num_cpus: float = Field(default=0.0, ge=0)
    """Reserved for each replica, which is then limited to as many threads; 0: none reserved, no limit."""


class BackendFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    address: str | None = None
    namespace: str = Field(default=DEFAULT_NAMESPACE, min_length=1)
    local: LocalRay = Field(default_factory=LocalRay)
    engines: dict[str, EngineEntry] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """An engine of a backend: one actor per replica."""

    name: str
    config: EngineConfig[Any]
    replicas: int = 1
    num_cpus: float = 0.0
    num_gpus: float = 0.0
    declared: bool = True

    def actors(self) -> list[ActorSpec]:
        return [
            ActorSpec(self.name, n, self.config, self.replicas, self.num_cpus, self.num_gpus, self.declared)
            for n in range(self.replicas)
        ]

    @classmethod
    def of(cls, actor: ActorSpec) -> "EngineSpec":
        return cls(actor.engine, actor.config, actor.replicas, actor.num_cpus, actor.num_gpus, actor.declared)


@dataclass(frozen=True, slots=True)
class Deployment:
    """What a `backend.yaml` says, checked."""

    engines: tuple[EngineSpec, ...] = ()
    address: str | None = None
    namespace: str = DEFAULT_NAMESPACE
    local: LocalRay = field(default_factory=LocalRay)


def read(config: str | Path | dict[str, Any]) -> Deployment:
    """A file, or what one would say. Raises ConfigurationError, naming what was probably meant."""
    where = "the backend's config" if isinstance(config, dict) else str(config)
    content = config if isinstance(config, dict) else _load(Path(config))
    try:
        file = BackendFile.model_validate(content)
    except ValidationError as error:
        problems = [_problem(one) for one in error.errors()]
        raise ConfigurationError(f"{where}: {'; '.join(problems)}.", "see `accel up --help`") from error
    engines = tuple(_spec(where, name, entry) for name, entry in file.engines.items())
    return Deployment(engines, file.address, file.namespace, file.local)


def _spec(where: str, name: str, entry: EngineEntry) -> EngineSpec:
    if not name or ":" in name:
        raise ConfigurationError(f"{where}: {name!r} is no name for an engine.", "letters, digits and '-', say")
    kind = KINDS.get(entry.kind)
    if kind is None:
        raise ConfigurationError(
            f"{where}: engines.{name}: there is no kind {entry.kind!r}{nearest(entry.kind, KINDS)}.",
            f"one of {', '.join(KINDS)}",
        )
    if entry.num_gpus > 1 and entry.num_gpus != int(entry.num_gpus):
        raise ConfigurationError(
            f"{where}: engines.{name}: num_gpus is {entry.num_gpus:g}.", "give whole GPUs, or a part of one"
        )
    if kind.stores and entry.replicas > 1:
        raise ConfigurationError(
            f"{where}: engines.{name}: {entry.replicas} replicas of a store would each hold other records.",
            "replicas: 1; it serves many programs at once",
        )
    config = kind.make(name, entry.model, entry.options)
    share = getattr(config, "gpu_memory_utilization", 0.0)
    if 0 < entry.num_gpus < share:
        raise ConfigurationError(
            f"{where}: engines.{name} doesn't fit into {entry.num_gpus:g} of a GPU: it takes {share:g} of its memory.",
            f"options: {{gpu_memory_utilization: {0.9 * entry.num_gpus:g}}}, or a larger num_gpus",
        )
    return EngineSpec(name, config, entry.replicas, entry.num_cpus, entry.num_gpus)


def _load(path: Path) -> Any:
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _UniqueKeys)
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}.", "give the path of a YAML file") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is no YAML: {' '.join(str(error).split())}", "correct it there") from error
    return {} if content is None else content


class _UniqueKeys(yaml.SafeLoader):  # type: ignore[misc]
    """YAML lets a second key of the same name win silently."""


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key, _ in node.value:
        name = loader.construct_object(key, deep=True)
        if name in seen:
            raise yaml.constructor.ConstructorError(None, None, f"{name!r} is there twice", key.start_mark)
        seen.add(name)
    loader.flatten_mapping(node)
    return dict(loader.construct_mapping(node, deep=True))


_UniqueKeys.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _problem(error: Any) -> str:
    path = [str(part) for part in error["loc"]]
    if error["type"] == "extra_forbidden":
        known = _known(path[:-1])
        within = f"{'.'.join(path[:-1])}: " if path[:-1] else ""
        return f"{within}unknown key {path[-1]!r}{nearest(path[-1], known)}, known are {', '.join(known)}"
    return f"{'.'.join(path) or 'the file'}: {error['msg'][:1].lower()}{error['msg'][1:]}"


def _known(path: list[str]) -> list[str]:
    """The keys that are known there."""
    if path[:1] == ["engines"]:
        return list(EngineEntry.model_fields)
    return list(LocalRay.model_fields if path else BackendFile.model_fields)
