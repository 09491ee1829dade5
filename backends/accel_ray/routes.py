"""Which engine of a backend serves what a program asks for. Pure."""

import dataclasses
import hashlib
import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from accel.backend import BackendError
from accel.engine import EngineConfig
from accel_local.sources import Engines
from accel_ray.config import Deployment, EngineSpec
from accel_ray.kinds import differing, kind_of, served_as


@dataclass(frozen=True, slots=True)
class Route:
    """The engine, and the config under which it serves this program."""

    spec: EngineSpec
    config: EngineConfig[Any]


def route(asked: EngineConfig[Any], specs: Sequence[EngineSpec], namespace: str, gpus: float) -> Route:
    """An engine that was started or declared for it; if none was declared at all, one of its own.

    gpus: those of the largest node; a language model that nobody declared takes a whole one. Raises BackendError,
    saying what the nearest engine does otherwise.
    """
    for spec in specs:
        served = served_as(spec.config, asked)
        if served is not None:
            return Route(spec, served)
    declared = [spec for spec in specs if spec.declared]
    if declared:
        raise BackendError(*_unserved(asked, declared, namespace))
    kind = kind_of(asked)
    needs_gpu = kind is not None and kind.name in ("vllm", "transformers") and gpus >= 1
    return Route(EngineSpec(_name(asked), asked, num_gpus=float(needs_gpu), declared=False), asked)


def in_process(deployment: Deployment) -> Callable[[EngineConfig[Any]], Engines]:
    """For a host in this process: what is declared is served as declared, all else as asked."""

    def deployed(asked: EngineConfig[Any]) -> Engines:
        for spec in deployment.engines:
            served = served_as(spec.config, asked)
            if served is not None:
                return served, spec.replicas
        return asked, 1

    return deployed


def _unserved(asked: EngineConfig[Any], declared: Sequence[EngineSpec], namespace: str) -> tuple[str, str]:
    what = f"The backend in namespace {namespace!r} has no engine for {asked.label}"
    alike = [spec for spec in declared if type(spec.config) is type(asked)]
    if not alike:
        names = ", ".join(f"{spec.name} ({spec.config.label})" for spec in declared)
        return f"{what}; it has {names}.", "add it to backend.yaml, then `accel down` and `accel up`"
    near = min(alike, key=lambda spec: len(differing(spec.config, asked)))
    options = differing(near.config, asked)
    theirs = ", ".join(f"{name}={getattr(near.config, name)!r}" for name in options)
    ours = ", ".join(f"{name}={getattr(asked, name)!r}" for name in options)
    if not options:
        return f"{what}.", "add it to backend.yaml, then `accel down` and `accel up`"
    return f"{what}: its {near.name} has {theirs}, the program asks for {ours}.", "make them agree"


def _name(config: EngineConfig[Any]) -> str:
    """For an engine that nobody named: equal configs have equal names. Secrets can't be read out of it."""
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        said = json.dumps(dataclasses.asdict(config), sort_keys=True, default=repr).encode()
    else:
        said = pickle.dumps(config)
    digest = hashlib.sha256(type(config).__qualname__.encode() + said).hexdigest()[:12]
    return f"{type(config).__name__}-{digest}"
