"""What `backend.yaml` may say, for people: `python -m accel_ray.document` writes docs/backend.md anew."""

import inspect
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import BaseModel

from accel.commands import backends
from accel_ray.config import BackendFile, EngineEntry, LocalRay
from accel_ray.described import described
from accel_ray.kinds import KINDS, Kind
from accel_ray.mistakes import allowed
from accel_ray.samples import PUBLISHED, scalar

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "backend.md"
COMMANDS = (backends.init, backends.up, backends.status, backends.down, backends.conformance)
_HEAD = """# A backend for many programs

You get engines that many programs share: what a `backend.yaml` declares runs as actors on Ray. This page is written by
`python -m accel_ray.document` from the models of the file and the commands themselves.

```sh
pip install 'accelgraph[ray,vllm,st,pgvector]'
accel init --kind vllm --kind pgvector  # writes backend.yaml; without --kind: with all engines that are installed
accel up --check      # is it right?
accel up              # starts the engines; they go on when the command has ended
accel status          # what is up, in which namespace
accel down            # ends it, and says what it ended
```

<!-- engines: attaches to a Ray that runs -->
```python
from accel.backend import Backend

with Backend.ray("auto"):  # the one backend that is up; Backend.ray("auto", namespace="b") if there are several
    fast.invoke({"question": "..."})
```

`Backend.ray` with no namespace takes the one that is up. With several it raises `BackendError`, which names them and
the argument to give; it never asks, and never takes one of them by chance. If none is up and the Ray runs, it is
`accel`. What a program itself declares, `Backend.ray(config="backend.yaml")`, is in the namespace that the file says.

## Several backends

A namespace is one backend. `accel up` without an address starts a Ray of its own for it, so that two namespaces on a
machine are two Rays; `accel up --address` puts it on a Ray that runs. `accel status` and `accel down` see all of them:
what `accel up` started on this machine, whatever its namespace, and the Ray that the machine is part of (`ray start`,
or `RAY_ADDRESS`). What a program started for itself (`Backend.ray()`) ends with it, and isn't shown (`--address auto`
looks for it if there is nothing else). Another cluster is seen with `--address host:port`.

`accel down` ends the one backend there is. If several are up, it ends none without being told: `--namespace NAME` or
`--all`; at a terminal it shows them and asks. A Ray that `accel up` started ends with its namespace, and so would
what somebody put on it in another one: there, too, it asks, or names what is to be ended first. It waits until the
processes are gone; one that stays is named, and the exit code is 1.

## What is wrong with a file

Every mistake at once, each with its line, the field, what was found there, and what is allowed:

```text
backend.yaml has 2 mistakes:
  backend.yaml:3: engines.llm.kind is 'vlm'. Did you mean 'vllm'? There are vllm, transformers, ...
  backend.yaml:6: engines.rerank.replicas is -1. Give a whole number from 1 to 1024.
  Remedy: Correct them all.
```

Values that may be secrets are never repeated. `accel up --check` starts nothing and needs no Ray; whether a model is
there, and whether the engines fit the machine, `accel up` finds out.
"""
_JSON = """
### Output for programs

`--json` writes one value to standard output. Errors are on standard error, and the exit code says the same.

| command | |
| --- | --- |
| `up` | `namespace`, `address`, `ends_its_ray`, `well`, `problem`, `actors`, `attach` (the line for programs) |
| `up --check` | `file`, `right`, `mistakes` (`field`, `line`, `what`, `remedy`), `engines`, `not_installed_here` |
| `status` | a list of what `up` writes, without `attach` |
| `down` | a list: `namespace`, `address`, `engines`, `actors`; here: `engine_processes`, `ray_processes`, `left` |
| `conformance` | a list: `engine`, `host`, `checks`, `passed`, `failures` (`check`, `why`), `missing` |

An actor has `engine`, `replica`, `state`, `restarts`, and, if it answers, `label`, `version`, `node`, `pid`, `up_s`,
`requests` and `clients` (programs). Tables are drawn at a terminal only; elsewhere they are plain columns.

`accel --install-completion` has your shell complete commands, options and kinds of engines; `--show-completion` only
prints what it would install.
"""


def document() -> str:
    """The page, as Markdown."""
    return "\n".join([_HEAD, *_file(), *_kinds(), *_commands(), _JSON.lstrip()])


def _file() -> Iterator[str]:
    yield "## The file\n"
    yield "A mapping. Other fields than these are mistakes, and so is a field that is there twice.\n"
    yield from _fields(BackendFile)
    yield "\n### local\n"
    yield from _fields(LocalRay)
    yield "\n### engines.NAME\n"
    yield from _fields(EngineEntry)
    yield ""


def _fields(model: type[BaseModel]) -> Iterator[str]:
    yield "| field | | default | |"
    yield "| --- | --- | --- | --- |"
    texts = described(model)
    for name, info in model.model_fields.items():
        default = info.get_default(call_default_factory=True)
        shown = "" if info.is_required() or isinstance(default, (dict, BaseModel)) else _default(default)
        yield f"| `{name}` | {allowed(info.annotation, info.metadata)} | {shown} | {texts[name]} |"


def _kinds() -> Iterator[str]:
    yield "## Kinds of engines\n"
    yield "Programs and backend must agree on the options marked \\*; the others are the backend's own affair."
    for kind in KINDS.values():
        yield f"\n### {kind.name}\n"
        yield f"{kind.what} Where it runs: `pip install 'accelgraph[{kind.extra}]'`.\n"
        yield "```yaml"
        yield "engines:"
        yield f"  {kind.engine}:"
        yield f"    kind: {kind.name}"
        defaults = {field.name: field.default for field in fields(kind.config_class())}
        if kind.model:
            default = defaults[kind.model]
            yield f"    model: {PUBLISHED if default is MISSING else default}"
        yield "```\n"
        yield from _options(kind)
    yield ""


def _options(kind: Kind) -> Iterator[str]:
    made = kind.config_class()
    types, texts = get_type_hints(made), described(made)
    yield "| | | default | |"
    yield "| --- | --- | --- | --- |"
    for field in fields(made):
        if field.name in kind.asked:
            continue
        name = "`model`" if field.name == kind.model else f"`options.{field.name}`"
        name += " \\*" if field.name in kind.agree else ""
        meant = "a text" if field.name == "profile" else allowed(types[field.name], kind.limits(field.name))
        default = "" if field.default is MISSING else _default(field.default)
        yield f"| {name} | {meant} | {default} | {texts[field.name]} |"


def _default(value: Any) -> str:
    return "" if value is None else f"`{scalar(value)}`"


def _commands() -> Iterator[str]:
    yield "## Commands\n"
    for command in COMMANDS:
        yield f"### accel {command.__name__}\n"
        yield inspect.cleandoc(command.__doc__ or "") + "\n"
        yield "| option | |"
        yield "| --- | --- |"
        for name, hint in get_type_hints(command, include_extras=True).items():
            if name == "return":
                continue
            info = hint.__metadata__[0]
            said = [one for one in (info.default, *(info.param_decls or ())) if isinstance(one, str)]
            flag = info.metavar or next(iter(said), f"--{name.replace('_', '-')}")
            yield f"| `{flag}` | {info.help} |"
        yield ""


if __name__ == "__main__":
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_text(document(), encoding="utf-8")
