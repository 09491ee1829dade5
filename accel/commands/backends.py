"""`accel init`, `up`, `status`, `down` and `conformance`: engines that many programs share.

Results go to standard output, as text or (`--json`) for programs; progress and errors to standard error.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import AccelError, ConfigurationError, MissingExtra
from .shell import AsJson
from .tables import doing, show_rows

DEFAULT_FILE = Path("backend.yaml")
FAILED, USAGE = 1, 2
"""Exit codes, beside 0."""


def _kinds(incomplete: str) -> list[str]:
    """For a shell that completes a word."""
    try:
        return [name for name in _ray("kinds").KINDS if name.startswith(incomplete)]
    except MissingExtra:
        return []


File = Annotated[Path, typer.Argument(metavar="FILE", help="Which backend.yaml.")]
Address = Annotated[
    str | None,
    typer.Option(help="Of a Ray: host:port, or auto. Left out: this machine's, and what `accel up` started."),
]
Namespace = Annotated[str | None, typer.Option(help="Only this backend.")]


def add(app: typer.Typer) -> None:
    """Make these subcommands of the command."""
    for command in (init, up, status, down, conformance):
        app.command()(command)


def init(
    file: File = DEFAULT_FILE,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="A kind of engine; may be repeated. Left out: all installed.", autocompletion=_kinds),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
) -> None:
    """Write a backend.yaml to begin with: every field, its comment, its default.

    Exit codes: 0 written; 2 wrong usage, no engine is installed, or the file
    is there already.
    """
    with errors():
        kinds = _ray("samples").write(file, kind or (), force=force)
    sys.stdout.write(f"wrote {file}: {', '.join(one.name for one in kinds)}\n")
    sys.stdout.write(f"next: accel up {file} --check, accel up {file}\n")


def up(
    file: File = DEFAULT_FILE,
    address: Annotated[
        str | None, typer.Option(help="Of a Ray that runs: host:port, or auto. Left out: the file's, else a local one.")
    ] = None,
    namespace: Annotated[str | None, typer.Option(help="Keeps backends apart. Left out: the file's.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Only look whether the file is right; start nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start the engines that a backend.yaml declares, on a Ray that runs or on its own.

    All of them or none. They go on when the command has ended, until
    `accel down`.

    Exit codes: 0 up, or (--check) the file is right; 1 not started, and nothing
    is left of it; 2 wrong usage, or the file is wrong.
    """
    with errors():
        if check:
            _checked(file, as_json)
            return
        deployment = _ray("config").read(file)
        chosen = {"address": address, "namespace": namespace}
        deployment = dataclasses.replace(deployment, **{k: v for k, v in chosen.items() if v is not None})
        with doing("starting") as told:
            found = _ray("deploy").up(deployment, told)
        attach = found.attach(deployment.address)
        if as_json:
            _json({**found.as_dict(), "attach": attach})
            return
        _show([found])
        sys.stdout.write(f"programs attach with: {attach}\n")


def status(address: Address = None, namespace: Namespace = None, as_json: AsJson = False) -> None:
    """Say which backends are up: engines, actors, versions, load, restarts.

    Exit codes: 0 everything is up; 1 nothing is up, something isn't well, or no
    Ray is at the address; 2 wrong usage.
    """
    with errors(), doing("looking"):
        every = _ray("looking").look_around(address)
    found = [one for one in every if namespace in (None, one.namespace)]
    if as_json:
        _json([one.as_dict() for one in found])
    elif found:
        _show(found)
    else:
        sys.stdout.write(f"nothing is up{_in(namespace, every)}\n")
    if not found or not all(one.well for one in found):
        raise typer.Exit(FAILED)


def down(
    address: Address = None,
    namespace: Namespace = None,
    everything: Annotated[bool, typer.Option("--all", help="Every backend there is.")] = False,
    as_json: AsJson = False,
) -> None:
    """End a backend's engines and actors, and its Ray if `accel up` started it.

    If several are up, say which: --namespace NAME, or --all. At a terminal, it
    shows them and asks.

    Exit codes: 0 nothing of it is left, or nothing was up; 1 something is left,
    and named, or no Ray is at the address; 2 wrong usage, or several are up and
    none was named: nothing was ended.
    """
    with errors():
        with doing("looking"):
            every = _ray("looking").look_around(address)
        ask = not as_json and sys.stdin.isatty() and sys.stdout.isatty()
        found = _meant([one for one in every if one.actors or one.ends_its_ray], namespace, everything, ask)
        with doing("closing the engines"):
            ended = _ray("ending").end(found)
    if as_json:
        _json([dataclasses.asdict(one) for one in ended])
    for one in () if as_json else ended:
        sys.stdout.write(f"{_ended(one)}\n")
    if not ended and not as_json:
        sys.stdout.write(f"nothing was up{_in(namespace, every)}\n")
    troubles = [f"{one.namespace}: still running: {', '.join(one.left)}" for one in ended if one.left]
    troubles += [one.problem for one in every if one.problem and not one.ends_its_ray]
    for trouble in troubles:
        sys.stderr.write(f"{trouble}\n")
    if troubles:
        raise typer.Exit(FAILED)


def conformance(
    engine: Annotated[
        list[str] | None,
        typer.Option(help="A kind; may be repeated. Left out: all that are installed.", autocompletion=_kinds),
    ] = None,
    host: Annotated[list[str] | None, typer.Option(help="local or ray; may be repeated. Left out: both.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run one suite of checks for every engine on every host.

    Exit codes: 0 all checks of what is installed passed; 1 some failed, and are
    named; 2 wrong usage.
    """
    with errors(), doing("starting") as told:
        cells = _ray("table").fill(engine, host, told)
    if as_json:
        _json([one.as_dict() for one in cells])
    else:
        show_rows(*_ray("table").rows(cells))
    for cell in () if as_json else cells:
        for check, why in cell.failures:
            sys.stdout.write(f"{cell.engine} on {cell.host}: {check}: {why}\n")
    if any(cell.failures for cell in cells):
        raise typer.Exit(FAILED)


# --- which backends are meant, and what is said of them


def _meant(every: Sequence[Any], namespace: str | None, everything: bool, ask: bool) -> list[Any]:
    """What to end, of all that is up. Raises ConfigurationError where that isn't sure, and nobody is to be asked."""
    asked = [one for one in every if namespace in (None, one.namespace)]
    ending = {one.address for one in asked if one.ends_its_ray}
    found = [one for one in every if one in asked or one.address in ending]
    if len(found) < 2 or (everything and len(found) == len(asked)):
        return found
    guests = [one for one in found if one not in asked]
    if ask:
        _show(found)
        if not typer.confirm(f"End all {len(found)} backends?"):
            sys.stdout.write("nothing was ended\n")
            raise typer.Exit(USAGE)
        return found
    said = ", ".join(f"{one.namespace!r} (Ray at {one.address})" for one in found)
    if guests:
        raise ConfigurationError(
            f"With the Ray of {asked[0].namespace!r} others end: {', '.join(repr(one.namespace) for one in guests)}.",
            f"End them first: accel down --namespace {guests[0].namespace}; or end all: accel down --all",
        )
    raise ConfigurationError(
        f"{len(found)} backends are up: {said}.",
        f"Name one: accel down --namespace {found[0].namespace}; or end all: accel down --all"
        if namespace is None
        else f"Name its Ray: accel down --namespace {namespace} --address {found[0].address}",
    )


def _ended(one: Any) -> str:
    actors = f"{_count(len(one.engines), 'engine')} ({', '.join(one.engines)})" if one.engines else "no engine"
    parts = [actors, *([_count(len(one.actors), "actor")] if one.actors else [])]
    if one.engine_processes:
        parts[-1] += f" with {_count(one.engine_processes, 'process', 'processes')}"
    parts += [f"its Ray ({_count(one.ray_processes, 'process', 'processes')})"] if one.ray_processes else []
    return f"{one.namespace}: ended {', '.join(parts)}"


def _count(number: int, one: str, more: str = "") -> str:
    return f"{number} {one if number == 1 else more or one + 's'}"


def _in(namespace: str | None, every: Sequence[Any]) -> str:
    """Where nothing was found, and where something would have been."""
    names = ", ".join(repr(one.namespace) for one in every)
    return "" if namespace is None else f" in namespace {namespace!r}{f'; up are {names}' if names else ''}"


COLUMNS = ("namespace", "engine", "state", "what", "node", "pid", "calls", "programs", "restarts")


def _show(found: Sequence[Any]) -> None:
    rows = []
    for one in found:
        for each in one.actors:
            known = (each.label, each.node, each.pid, each.requests, each.clients, each.restarts)
            texts = ["?" if value is None else str(value) for value in known]
            rows.append([one.namespace, each.name, each.state, *texts])
        if not one.actors:
            rows.append([one.namespace, "", "unreachable" if one.problem else "no engines", *[""] * 6])
    show_rows(COLUMNS, rows, right=COLUMNS[5:], folded=("what",))
    for one in found:
        versions = "".join(sorted({f"Accel {each.version}, " for each in one.actors if each.version}))
        ends = ", which ends with it" if one.ends_its_ray else ""
        problem = f". {one.problem}" if one.problem else ""
        sys.stdout.write(f"{one.namespace}: {versions}Ray at {one.address}{ends}{problem}\n")


def _checked(file: Path, as_json: bool) -> None:
    config = _ray("config")
    try:
        deployment = config.read(file)
        config.check_engines(deployment, file)
    except AccelError as error:
        if as_json:
            unknown: dict[str, Any] = {"engines": {}, "not_installed_here": {}}
            _json({"file": str(file), "right": False, "mistakes": _mistakes(error), **unknown})
            raise typer.Exit(USAGE) from None
        raise
    missing = config.not_installed(deployment)
    if as_json:
        engines = {spec.name: spec.config.label for spec in deployment.engines}
        _json({"file": str(file), "right": True, "mistakes": [], "engines": engines, "not_installed_here": missing})
        return
    names = ", ".join(f"{spec.name} ({spec.config.label})" for spec in deployment.engines)
    sys.stdout.write(f"{file} is right: {names}\n")
    for name, package in missing.items():
        sys.stdout.write(f"{name}: {package} is not installed here; the machine that serves it needs it\n")


def _mistakes(error: AccelError) -> list[dict[str, Any]]:
    """As data; what isn't about a field of the file has none."""
    mistakes = getattr(error, "mistakes", ())
    if not mistakes:
        return [{"field": "", "line": None, "what": error.what, "remedy": error.remedy}]
    return [{"field": ".".join(m.field), "line": m.line, "what": m.said, "remedy": m.remedy} for m in mistakes]


def _json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def _ray(module: str) -> Any:
    try:
        return import_module(f"accel_ray.{module}")
    except ModuleNotFoundError as error:
        raise MissingExtra("Backends", "ray", error.name or "") from error


@contextmanager
def errors() -> Generator[None, None, None]:
    """An error of ours is a message and its remedy; 2 where it is about what was given, else 1."""
    try:
        yield
    except AccelError as error:
        sys.stderr.write(f"{error}\n")
        given = isinstance(error, (ConfigurationError, MissingExtra))
        raise typer.Exit(USAGE if given else FAILED) from None
