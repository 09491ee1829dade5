"""The command `accel`: your programs unmodified against accelerated, and a backend for many of them."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from .errors import AccelError, MissingExtra

try:
    import typer
    from rich.console import Console
    from rich.table import Table

    from .commands import insights, shell
except ModuleNotFoundError as error:  # this module is a program, and this its first message
    missing = (error.name or "").partition(".")[0]
    sys.stderr.write(f"{MissingExtra('The command accel', 'cli', missing)}\n")
    raise SystemExit(2) from None

DEFAULT_FILE = "backend.yaml"
NAMESPACE = "accel"


app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__, pretty_exceptions_enable=False)
Namespace = Annotated[str | None, typer.Option(help="Keeps backends apart.")]
Address = Annotated[
    str | None, typer.Option(help="Of a Ray: host:port, or auto. Left out: what `accel up` started here.")
]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]


@app.command()
def up(
    file: Annotated[Path, typer.Argument(help="What the backend has.")] = Path(DEFAULT_FILE),
    address: Address = None,
    namespace: Namespace = None,
) -> None:
    """Start the engines that a backend.yaml declares, on a Ray that runs or on a local one.

    engines: {NAME: {kind, model, options, replicas, num_gpus, num_cpus}}; address, namespace and
    local: {num_cpus, num_gpus, object_store_mib} beside it.
    """
    console = _console()
    with _errors():
        deployment = _ray("config").read(file)
        chosen = {"address": address, "namespace": namespace}
        deployment = dataclasses.replace(deployment, **{k: v for k, v in chosen.items() if v is not None})
        deploy = _ray("deploy")
        with console.status("starting") as shown:
            found = deploy.up(deployment, lambda text: shown.update(text))
        _show(console, found)
        where = "" if deployment.namespace == NAMESPACE else f", namespace={deployment.namespace!r}"
        console.print(f"programs attach with: Backend.ray({deployment.address or 'auto'!r}{where}).use()")


@app.command()
def status(address: Address = None, namespace: Namespace = None, as_json: AsJson = False) -> None:
    """Say which actors are up, their versions, load and restarts."""
    with _errors():
        found = _ray("deploy").status(address, namespace or NAMESPACE)
        if as_json:
            sys.stdout.write(json.dumps([dataclasses.asdict(one) for one in found], indent=1) + "\n")
        else:
            _show(_console(), found)


@app.command()
def down(address: Address = None, namespace: Namespace = None) -> None:
    """End a backend's engines and actors, and the Ray if `accel up` started it."""
    console = _console()
    with _errors(), console.status("closing the engines"):
        ended = _ray("deploy").down(address, namespace or NAMESPACE)
    console.print(f"ended {', '.join(ended)}" if ended else "nothing was up")


@app.command()
def conformance(
    engine: Annotated[list[str] | None, typer.Option(help="Only these; left out: all that are installed.")] = None,
    host: Annotated[list[str] | None, typer.Option(help="Only these: local, ray.")] = None,
) -> None:
    """Run the conformance suite for every engine on every host, and print the table."""
    console = _console()
    with _errors():
        table = _ray("table")
        with console.status("starting") as shown:
            cells = table.fill(engine, host, lambda text: shown.update(text))
        console.print(table.drawn(cells))
        for cell in cells:
            for check, why in cell.failures:
                console.print(f"{cell.engine} on {cell.host}: {check}: {why}", highlight=False)
    if any(cell.failures for cell in cells):
        raise typer.Exit(1)


shell.add(app)
insights.add(app)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 120)


def _show(console: Console, found: Sequence[Any]) -> None:
    if not found:
        console.print("nothing is up")
        return
    table = Table()
    for column in ("engine", "state", "what", "Accel (protocol)", "node", "pid", "requests", "programs", "restarts"):
        table.add_column(column, justify="right" if column in ("pid", "requests", "programs", "restarts") else "left")
    for one in found:
        known = (one.label, one.version, one.node, one.pid, one.requests, one.clients)
        label, version, node, pid, requests, clients = ("?" if value is None else str(value) for value in known)
        name = f"{one.engine}:{one.replica}"
        table.add_row(name, one.state, label, version, node, pid, requests, clients, str(one.restarts))
    console.print(table)


def _ray(module: str) -> Any:
    try:
        return import_module(f"accel_ray.{module}")
    except ModuleNotFoundError as error:
        raise MissingExtra("The command accel", "ray", error.name or "") from error


@contextmanager
def _errors() -> Generator[None, None, None]:
    """An error of ours is a message and its remedy, not a traceback."""
    try:
        yield
    except AccelError as error:
        sys.stderr.write(f"{error}\n")
        raise typer.Exit(1) from None


def main() -> None:
    app()


if __name__ == "__main__":
    main()
