"""The kinds of engines that a `backend.yaml` may name: what makes their configs, and what a program decides of them."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any

from pydantic import TypeAdapter, ValidationError

from accel.engine import EngineConfig
from accel.errors import ConfigurationError, MissingExtra
from accel_ray.nearest import nearest


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of engine. `module`, `config`: the class of its configs. `model`: the option that `model` in the file
    stands for. `agree`: options that decide what comes out; program and backend must agree on them. `asked`: options
    that each program sets for itself; an actor serves any. The rest is the backend's affair, and a program's settings
    of it don't matter there. `stores`: its engines hold records; a second one would hold others.
    """

    name: str
    module: str
    config: str
    model: str = ""
    agree: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    stores: bool = False

    def config_class(self) -> Any:
        try:
            return getattr(import_module(self.module), self.config)
        except ImportError as error:
            raise MissingExtra(f"Engines of kind {self.name}", "all", error.name or "") from error

    def make(self, engine: str, model: str | None, options: Mapping[str, Any]) -> EngineConfig[Any]:
        """The config of engine `engine` in the file. Raises ConfigurationError."""
        made = self.config_class()
        given = dict(options)
        if model is not None:
            if not self.model or self.model in given:
                raise ConfigurationError(
                    f"engines.{engine}: {self.name} takes no model{' twice' if self.model else ''}.", "leave it out"
                )
            given[self.model] = model
        known = [field.name for field in fields(made) if field.name not in self.asked]
        for option in given:
            if option not in known:
                raise ConfigurationError(
                    f"engines.{engine}.options: {self.name} has no option {option!r}{nearest(option, known)}.",
                    f"one of {', '.join(known)}",
                )
        for option in self.asked:
            given.setdefault(option, _ANY[option])
        if "profile" in given and self.config != "SimLLMConfig":
            given["profile"] = _profile(self, given["profile"])
            return _made(engine, made, given, check=False)
        return _made(engine, made, given)


_ANY: dict[str, Any] = {"collection": "any", "dimension": 1, "temporary": False}
"""Stands for what each program says."""

KINDS = {
    kind.name: kind
    for kind in (
        Kind("vllm", "accel_vllm", "VLLMConfig", "model", ("model", "dtype", "max_model_len")),
        Kind("transformers", "accel_transformers", "TransformersConfig", "model", ("model", "dtype", "max_model_len")),
        Kind(
            "sentence_transformers", "accel_sentence_transformers", "SentenceTransformersConfig", "model",
            ("model", "together"),
        ),
        Kind("rerank", "accel_sentence_transformers", "RerankConfig", "model", ("model",)),
        Kind(
            "pgvector", "accel_pgvector", "PgVectorConfig", "", ("dsn", "folder"),
            ("collection", "dimension", "temporary"), stores=True,
        ),
        Kind("sim_llm", "accel_sim", "SimLLMConfig", "profile", ("tokenizer", "answers", "max_model_len", "name")),
        Kind("sim_embedding", "accel_sim", "SimEmbeddingConfig", "profile", ("dimension", "seed")),
        Kind("sim_rerank", "accel_sim", "SimRerankConfig", "profile"),
        Kind("sim_store", "accel_sim", "SimStoreConfig", "profile", (), ("collection", "dimension"), stores=True),
    )
}  # fmt: skip


def kind_of(config: EngineConfig[Any]) -> Kind | None:
    """None for configs of somebody else's engines."""
    name = type(config).__name__
    return next(
        (kind for kind in KINDS.values() if kind.config == name and isinstance(config, kind.config_class())), None
    )


def private(config: EngineConfig[Any]) -> bool:
    """Whether an engine is one program's own: a temporary collection starts empty for each."""
    return bool(getattr(config, "temporary", False))


def lasting(config: EngineConfig[Any]) -> bool:
    """Whether the records of a store outlive the process that serves it."""
    kind = kind_of(config)
    return kind is not None and kind.name == "pgvector" and not private(config)


def served_as(declared: EngineConfig[Any], asked: EngineConfig[Any]) -> EngineConfig[Any] | None:
    """The config under which a declared engine serves a program that asks for `asked`; None if it doesn't."""
    if declared == asked:
        return declared
    kind = kind_of(asked)
    if kind is None or type(declared) is not type(asked) or differing(declared, asked):
        return None
    changed: Any = dataclasses.replace(declared, **{name: getattr(asked, name) for name in kind.asked})  # type: ignore[type-var]
    served: EngineConfig[Any] = changed
    return served


def differing(declared: EngineConfig[Any], asked: EngineConfig[Any]) -> list[str]:
    """The options of a kind on which program and backend would have to agree."""
    kind = kind_of(asked)
    return [name for name in (kind.agree if kind else ()) if getattr(declared, name) != getattr(asked, name)]


def _profile(kind: Kind, name: Any) -> Any:
    made_for = {"SimEmbeddingConfig": "embedding", "SimRerankConfig": "reranking", "SimStoreConfig": "searching"}
    return import_module("accel_sim").profile_of(str(name), made_for[kind.config])


def _made(engine: str, made: Any, given: dict[str, Any], *, check: bool = True) -> EngineConfig[Any]:
    try:
        config: EngineConfig[Any] = TypeAdapter(made).validate_python(given, strict=False) if check else made(**given)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise ConfigurationError(f"engines.{engine}.options: {wrong}.", "correct it") from error
    except TypeError as error:
        raise ConfigurationError(f"engines.{engine}: {error}.", "add it to options") from error
    return config
