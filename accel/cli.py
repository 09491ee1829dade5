"""The command `accel`: your programs unmodified against accelerated, and a backend for many of them."""

from __future__ import annotations

import sys
from typing import Annotated

from . import __version__
from .errors import MissingExtra

try:
    import rich  # noqa: F401  or it would be missed in the middle of a command
    import typer

    from .commands import backends, insights, shell
except ModuleNotFoundError as error:  # this module is a program, and this its first message
    missing = (error.name or "").partition(".")[0]
    sys.stderr.write(f"{MissingExtra('The command accel', 'cli', missing)}\n")
    raise SystemExit(2) from None

app = typer.Typer(no_args_is_help=True, help=__doc__, pretty_exceptions_enable=False)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"accel {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    pass


for commands in (shell, insights, backends):
    commands.add(app)


def main() -> None:
    app()


if __name__ == "__main__":
    main()
