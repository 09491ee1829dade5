"""What `accel init` writes: a `backend.yaml` with every field, its comment, and its default.

A line that begins with "#" and no blank is a field with its default: without the "#", it says the same.
"""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from accel.errors import ConfigurationError
from accel_ray.config import BackendFile, EngineEntry, LocalRay
from accel_ray.described import described
from accel_ray.kinds import KINDS, Kind
from accel_ray.mistakes import one_of

WIDTH = 100
PUBLISHED = "7b"
"""The profile of simulated engines, which have no default."""
_HEAD = """\
# Engines that many programs share. Every field is said in docs/backend.md.
#   accel up FILE --check    is this file right?
#   accel up FILE            start the engines; then: accel status, accel down
# A field behind "#" has its default there; to change it, remove the "#"."""


def chosen(names: Sequence[str]) -> list[Kind]:
    """The kinds of these names; without names those that are installed here, but for simulated ones. Raises
    ConfigurationError."""
    for name in names:
        if name not in KINDS:
            raise ConfigurationError(f"There is no kind {name!r} of engines.", one_of(KINDS, name))
    kinds = [KINDS[name] for name in dict.fromkeys(names)]
    kinds = kinds or [kind for kind in KINDS.values() if kind.installed and not kind.simulated]
    if not kinds:
        raise ConfigurationError(
            "No engine is installed here.",
            "pip install 'accelgraph[vllm,st,pgvector]'; or name what the backend's machines have: "
            "accel init --kind vllm --kind pgvector",
        )
    return kinds


def write(file: Path, kinds: Sequence[str], *, force: bool = False, gpus: int | None = None) -> list[Kind]:
    """Write a sample, and give the kinds in it. gpus: of the machines; None: of this one. Raises ConfigurationError."""
    engines = chosen(kinds)
    text = sample(engines, named=bool(kinds), gpus=_gpus() if gpus is None else gpus)
    try:
        with file.open("w" if force else "x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError as error:
        raise ConfigurationError(f"{file} is there already.", "Name another file, or replace it: --force.") from error
    except OSError as error:
        raise ConfigurationError(f"{file} can't be written: {error.strerror}.", "Name another file.") from error
    return engines


def sample(kinds: Sequence[Kind], *, named: bool = True, gpus: int = 0) -> str:
    """The text of a file. named: every kind was asked for; else a second language model is only shown."""
    lines = [_HEAD, ""]
    lines += _fields(BackendFile, ("address", "namespace"), 0, {"address": "auto"})
    lines += [f"# {described(BackendFile)['local']}", "#local:"]
    lines += [f"#{line}" for line in _fields(LocalRay, LocalRay.model_fields, 2, {}, commented=False)]
    lines += ["", "engines:"]
    models = 0
    for place, kind in enumerate(kinds):
        models += _is_language_model(kind)
        block = list(engine(kind, gpus, explained=place == 0))
        if models > 1 and _is_language_model(kind) and not named:
            block = [f"{block[0]} Instead of the one above:", *(f"  #{line[2:]}" for line in block[1:])]
        lines += ["", *block]
    return "\n".join(lines) + "\n"


def engine(kind: Kind, gpus: int = 0, *, explained: bool = True) -> Iterator[str]:
    """An engine's lines, in a file's `engines`. explained: with what is the same for all kinds."""
    yield f"  # {kind.what}"
    yield f"  {kind.engine}:"
    yield f"    kind: {kind.name}"
    texts, defaults = described(kind.config_class()), _defaults(kind)
    if kind.model:
        yield from _comment(texts[kind.model], 4)
        yield f"    model: {defaults.pop(kind.model) or PUBLISHED}"
    own_gpu = _is_language_model(kind) and not kind.simulated and gpus > 0
    if not kind.stores:
        yield from _fields(EngineEntry, ("replicas",), 4, {}, explained=explained)
        shown = {"num_gpus": 1} if own_gpu else {}
        yield from _fields(EngineEntry, ("num_gpus",), 4, shown, commented=not own_gpu, explained=explained)
        yield from _fields(EngineEntry, ("num_cpus",), 4, {}, explained=explained)
    if defaults:
        yield "    #options:"
    for option, default in defaults.items():
        yield from (f"    #{line[4:]}" for line in _comment(texts[option], 6))
        yield f"    #  {option}: {scalar(default)}"


def scalar(value: Any) -> str:
    """As it is written in YAML."""
    whole = isinstance(value, float) and value.is_integer()
    return str(yaml.safe_dump(int(value) if whole else value)).splitlines()[0]


def _defaults(kind: Kind) -> dict[str, Any]:
    held = {field.name: field.default for field in fields(kind.config_class()) if field.name not in kind.asked}
    return {name: None if value is MISSING else value for name, value in held.items()}


def _fields(
    model: type[BaseModel],
    names: Iterable[str],
    indent: int,
    shown: Mapping[str, Any],
    *,
    commented: bool = True,
    explained: bool = True,
) -> Iterator[str]:
    texts = described(model)
    for name in names:
        if explained:
            yield from _comment(texts[name], indent)
        default = shown.get(name, model.model_fields[name].get_default())
        yield f"{' ' * indent}{'#' if commented else ''}{name}: {scalar(default)}"


def _comment(text: str, indent: int) -> list[str]:
    lead = " " * indent + "# "
    return textwrap.wrap(text, WIDTH, initial_indent=lead, subsequent_indent=lead, break_on_hyphens=False)


def _is_language_model(kind: Kind) -> bool:
    return kind.name in ("vllm", "transformers", "sim_llm")


def _gpus() -> int:
    return len([path for path in Path("/dev").glob("nvidia*") if path.name.removeprefix("nvidia").isdigit()])
