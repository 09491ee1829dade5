"""`backend.yaml`: which engines a backend has, and where. `accel_ray.samples` writes one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from accel.engine import EngineConfig
from accel.errors import ConfigurationError
from accel_ray.addresses import host_and_port
from accel_ray.kinds import KINDS, WrongEngine, kind_of
from accel_ray.loading import load
from accel_ray.mistakes import Mistake, Names, WrongBackendFile, allowed, found, one_of
from accel_ray.wire import ActorSpec

DEFAULT_NAMESPACE = "accel"


class LocalRay(BaseModel):
    """Of a Ray that is started here. None: what the machine has; other numbers are logical ones."""

    model_config = ConfigDict(extra="forbid", strict=True)

    num_cpus: int | None = Field(default=None, ge=0)
    """How many CPUs it has to give. Left out: the machine's."""
    num_gpus: int | None = Field(default=None, ge=0)
    """How many GPUs it has to give. Left out: the machine's."""
    object_store_mib: int = Field(default=256, ge=80)
    """Memory for what processes hand to each other."""


class EngineEntry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    kind: str
    """What it is; see the kinds below."""
    model: str | None = None
    """Which model it serves, of kinds that have one. Left out: the kind's default."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Of its kind, below."""
    replicas: int = Field(default=1, ge=1, le=1024)
    """How many actors share its work, each with a model of its own."""
    num_gpus: float = Field(default=0.0, ge=0)
    """GPUs of each replica: whole ones, or a part of one."""
    num_cpus: float = Field(default=0.0, ge=0)
    """CPUs reserved for each replica, which is then limited to as many threads; 0: none reserved, no limit."""


class BackendFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    address: str | None = None
    """Of a Ray that runs: host:port, or auto for this machine's. Left out: a local one is started."""
    namespace: str = Field(default=DEFAULT_NAMESPACE, min_length=1)
    """Keeps backends apart."""
    local: LocalRay = Field(default_factory=LocalRay)
    """Of the Ray that is started, where there is no address."""
    engines: dict[str, EngineEntry] = Field(default_factory=dict)
    """Names of your choice to engines."""


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
    """A file, or what one would say. Raises ConfigurationError, with all mistakes in it."""
    where = "the backend's config" if isinstance(config, dict) else str(config)
    content, lines = (config, {}) if isinstance(config, dict) else load(Path(config))
    specs, mistakes = [], []
    try:
        file = BackendFile.model_validate(content)
    except ValidationError as error:
        mistakes = [_mistake(one, content) for one in error.errors()]
        file = BackendFile.model_construct(engines=dict(_entries(content)))
    mistakes += _address(file.address)
    for name, entry in file.engines.items():
        try:
            specs.append(_spec(name, entry))
        except WrongEngine as error:
            mistakes += [replace(one, field=("engines", name, *one.field)) for one in error.mistakes]
    if mistakes:
        placed = [replace(one, line=_line(one.field, lines)) for one in mistakes]
        raise WrongBackendFile(where, sorted(placed, key=lambda one: one.line or 0))
    return Deployment(tuple(specs), file.address, file.namespace, file.local)


def _entries(content: Any) -> Iterator[tuple[str, EngineEntry]]:
    """Of a file that is wrong, without what is: they may be wrong as well in what only their kind knows."""
    engines = content.get("engines") if isinstance(content, Mapping) else None
    for name, entry in engines.items() if isinstance(engines, Mapping) else ():
        try:
            yield str(name), EngineEntry.model_validate(entry)
        except ValidationError as error:
            wrong = {str(part) for one in error.errors() for part in one["loc"][:1]}
            if isinstance(entry, Mapping) and not wrong & {"kind", "model"}:
                right = {field: value for field, value in entry.items() if str(field) not in wrong}
                yield str(name), EngineEntry.model_validate(right)


def check_engines(deployment: Deployment, where: str | Path) -> None:
    """Raises ConfigurationError if there is nothing to start."""
    if not deployment.engines:
        raise ConfigurationError(f"{where} has no engines.", "Declare some under `engines`; `accel init` shows how.")


def not_installed(deployment: Deployment) -> dict[str, str]:
    """Engines that couldn't be started on this machine, and the package that each lacks."""
    kinds = {spec.name: kind_of(spec.config) for spec in deployment.engines}
    return {name: kind.package for name, kind in kinds.items() if kind is not None and not kind.installed}


def _spec(name: str, entry: EngineEntry) -> EngineSpec:
    """Raises WrongEngine."""
    if not name or ":" in name:
        raise WrongEngine([Mistake((), "is no name for an engine", "Take letters, digits and '-', say.")])
    kind = KINDS.get(entry.kind)
    if kind is None:
        raise WrongEngine([Mistake(("kind",), found(entry.kind), one_of(KINDS, entry.kind))])
    mistakes = []
    if entry.num_gpus > 1 and entry.num_gpus != int(entry.num_gpus):
        mistakes.append(Mistake(("num_gpus",), found(entry.num_gpus), "Give whole GPUs, or a part of one."))
    if kind.stores and entry.replicas > 1:
        remedy = "Write replicas: 1; replicas of a store would each hold other records, and one serves many programs."
        mistakes.append(Mistake(("replicas",), f"{found(entry.replicas)} for a store", remedy))
    try:
        config = kind.make(entry.model, entry.options)
    except WrongEngine as error:
        raise WrongEngine([*mistakes, *error.mistakes]) from error
    share = getattr(config, "gpu_memory_utilization", 0.0)
    if 0 < entry.num_gpus < share:
        what = f"{found(entry.num_gpus)}, and {share:g} of a GPU's memory doesn't fit into that"
        remedy = f"Write options: {{gpu_memory_utilization: {0.9 * entry.num_gpus:g}}}, or a larger num_gpus."
        mistakes.append(Mistake(("num_gpus",), what, remedy))
    if mistakes:
        raise WrongEngine(mistakes)
    return EngineSpec(name, config, entry.replicas, entry.num_cpus, entry.num_gpus)


def _address(address: str | None) -> list[Mistake]:
    if address in (None, "auto"):
        return []
    try:
        host_and_port(str(address))
    except ConfigurationError as error:
        return [Mistake(("address",), found(address), error.remedy)]
    return []


# --- what the model of the file says in its own words


def _mistake(error: Any, content: Any) -> Mistake:
    field = tuple(str(part) for part in error["loc"])
    known = _fields(field[:-1])
    match error["type"]:
        case "extra_forbidden":
            return Mistake(field, "is no field", _unknown(field, known, content))
        case "missing":
            return Mistake(field, "is missing", one_of(KINDS) if field[-1] == "kind" else "Add it.")
    if field[-1:] == ("[key]",):
        return Mistake(field[:-1], "is no text", "Put the name in quotes.")
    if not field:
        remedy = f"Give {allowed(BackendFile)}; `accel init` writes an example."
        return Mistake(field, found(content), remedy)
    info = known.get(field[-1])
    meant = (info.annotation, info.metadata) if info is not None else (EngineEntry, ())
    return Mistake(field, found(error["input"]), f"Give {allowed(*meant)}.")


def _fields(field: Names) -> Mapping[str, Any]:
    """What the mapping there may have."""
    if field == ("engines",):
        return {}
    if field[:1] == ("engines",):
        return EngineEntry.model_fields
    return (LocalRay if field else BackendFile).model_fields


def _unknown(field: Names, known: Mapping[str, Any], content: Any) -> str:
    *_, name = field
    if len(field) == 3:  # of an engine
        kind = KINDS.get(str(content["engines"].get(field[1], {}).get("kind")))
        if kind is not None and name in kind.options():
            return f"It is an option of {kind.name}: write options: {{{name}: ...}}."
    return one_of(known, name, "There are")


def _line(field: Names, lines: Mapping[Names, int]) -> int | None:
    """Of a field, or, if it isn't there, of what it belongs to."""
    while field and field not in lines:
        field = field[:-1]
    return lines.get(field)
