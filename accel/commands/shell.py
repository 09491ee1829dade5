"""`accel check` and `accel bench`: what a user runs on a program of his own.

Results go to standard output; the program's own words, and progress, to standard error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from ..errors import AccelError, ConfigurationError
from ..run import switch
from .config import project_file, run_config
from .findings import USAGE
from .programs import Program, opened, options

T = TypeVar("T")


def _config(given: Path | None) -> Path | None:
    """The file with options, which is said if nobody named it."""
    if given is not None:
        return given
    with errors():
        found = project_file()
    if found is not None:
        sys.stderr.write(f"With the options of [tool.accel] in {found}.\n")
    return found


Target = Annotated[str, typer.Argument(metavar="PROGRAM", help="app.py:graph, or package.module:graph.")]
Inputs = Annotated[Path | None, typer.Option("--inputs", help="A file with a JSON value on each line.")]
OneInput = Annotated[list[str] | None, typer.Option("--input", help="A single input, JSON or text; may be repeated.")]
EnvFile = Annotated[Path | None, typer.Option(help="Variables for the program's environment.")]
Config = Annotated[
    Path | None,
    typer.Option(
        callback=_config,
        help="A TOML file: options of accelerate, and what every run is given. Left out: tool.accel of pyproject.toml.",
    ),
]
Speculate = Annotated[str | None, typer.Option(help="auto, certain, likely or off.")]
Egress = Annotated[str | None, typer.Option(help="known or inputs.")]
Plan = Annotated[str | None, typer.Option(help="A saved plan.")]
PureNode = Annotated[list[str] | None, typer.Option(help="A node that only computes; may be repeated.")]
Awaited = Annotated[bool | None, typer.Option("--async/--sync", help="Left out: async only where there is no sync.")]
CassetteFile = Annotated[
    Path | None, typer.Option("--cassette", help="Answers of models and services: recorded once, and replayed.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Call the function that makes the program for each run.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]


def add(app: typer.Typer) -> None:
    """Make these subcommands of the command."""
    app.command()(check)
    app.command()(bench)


def check(
    program: Target,
    inputs: Inputs = None,
    input: OneInput = None,
    rounds: Annotated[int, typer.Option(min=1, help="How often every input is asked, so that Accel learns.")] = 4,
    cassette: CassetteFile = None,
    fresh: Fresh = False,
    env_file: EnvFile = None,
    config: Config = None,
    speculate: Speculate = None,
    egress: Egress = None,
    plan: Plan = None,
    pure_node: PureNode = None,
    awaited: Awaited = None,
    as_json: AsJson = False,
) -> None:
    """Compare your program, unmodified and accelerated, on your own inputs.

    Results, streams, errors and calls of components must be equal.
    The program runs with its effects, twice for each input and round.
    Models that sample, or that you pay for: --cassette FILE records
    their answers once, and replays them to both.

    Exit codes: 0 equal; 1 different, or different from itself;
    2 wrong usage, or the program raised an error in every run.
    """
    from .check import run_check

    chosen = {"speculate": speculate, "egress": egress, "plan": plan, "pure_nodes": pure_node or None}

    def work(of: Program, progress: Callable[[int, int, str], None]) -> Any:
        asked = of.inputs(inputs, input or ())
        return run_check(of, asked, rounds, cassette, progress, options(config, **chosen), fresh)

    with errors():
        result = ran(program, env_file, awaited, config, work, "checking")
    say(result, as_json)
    raise typer.Exit(result.exit_code)


def bench(
    program: Target,
    inputs: Inputs = None,
    input: OneInput = None,
    concurrency: Annotated[str, typer.Option(help="How many runs at a time, one after the other: 1,16.")] = "1",
    rounds: Annotated[int, typer.Option(min=1, help="Pairs of runs for each input.")] = 5,
    warm: Annotated[int, typer.Option(min=0, help="Rounds before that, from which Accel learns.")] = 2,
    cassette: CassetteFile = None,
    picture: Annotated[Path | None, typer.Option(help="Where to draw it, as SVG.")] = None,
    env_file: EnvFile = None,
    config: Config = None,
    speculate: Speculate = None,
    egress: Egress = None,
    plan: Plan = None,
    pure_node: PureNode = None,
    awaited: Awaited = None,
    as_json: AsJson = False,
) -> None:
    """Measure your program, unmodified and accelerated, on your own inputs.

    Both are asked the same in turns, after a warm-up from which Accel learns.
    The program runs with its effects. With --cassette FILE, models and
    services are asked once, and then replayed as fast as they were.

    Exit codes: 0 measured; 2 wrong usage, or every run raised an error.
    """
    from .benchmark import run_bench

    chosen = {"speculate": speculate, "egress": egress, "plan": plan, "pure_nodes": pure_node or None}

    def work(of: Program, progress: Callable[[int, int, str], None]) -> Any:
        asked, levels = of.inputs(inputs, input or ()), _levels(concurrency)
        return run_bench(of, asked, rounds, warm, levels, cassette, progress, options(config, **chosen))

    with errors():
        writable(picture)
        result = ran(program, env_file, awaited, config, work, "measuring")
        if picture is not None and result.exit_code != USAGE:
            draw(result, picture)
    if sys.stdout.isatty() and not as_json:
        show(result)
    else:
        say(result, as_json)
    raise typer.Exit(result.exit_code)


def _levels(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigurationError(f"--concurrency {text} is no list of numbers.", "Write 1,16.") from None


def writable(path: Path | None) -> None:
    """Before a program runs for long: the folder is there. Raises ConfigurationError."""
    if path is not None and not path.parent.is_dir():
        raise ConfigurationError(
            f"There is no folder {path.parent}.", f"Create it first (mkdir -p {path.parent}), or name another."
        )


def draw(result: Any, path: Path) -> None:
    from .picture import picture

    try:
        path.write_text(picture(result), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path} can't be written: {error.strerror}.", "Name a file, as SVG.") from error


def show(result: Any) -> None:
    """At a terminal: as a table of it."""
    from rich.console import Console
    from rich.table import Table

    head, *rows = result.rows()
    table = Table(title=result.title, title_justify="left")
    for number, name in enumerate(head):
        table.add_column(name, justify="left" if number == 1 else "right")
    for row in rows:
        table.add_row(*row, end_section=not row[0])
    console = Console(highlight=False)
    console.print(table)
    for line in result.below:
        console.print(line, markup=False)


def ran(
    program: str,
    env_file: Path | None,
    awaited: bool | None,
    config: Path | None,
    work: Callable[[Program, Callable[[int, int, str], None]], T],
    what: str,
) -> T:
    """What comes of work with an open program; at a terminal, with a bar of its progress. Raises ConfigurationError
    where Accel is off, as nothing would have been tried."""
    if switch.state() == "off":
        raise ConfigurationError("Accel is off in this environment, so nothing would be accelerated.", "ACCEL=on")
    given = run_config(config)
    with redirect_stdout(sys.stderr), opened(program, env_file=env_file, awaited=awaited, config=given) as of:
        with bar(what) as progress:
            return work(of, progress)


@contextmanager
def bar(what: str) -> Generator[Callable[[int, int, str], None], None, None]:
    """Takes steps done, steps in all, and what comes next. Silent where nobody looks."""
    if not sys.stderr.isatty():
        yield lambda done, total, text: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=None)
        yield lambda done, total, text: shown.update(task, completed=done, total=total, description=f"{what}: {text}")


def say(result: Any, as_json: bool) -> None:
    text = json.dumps(result.as_dict(), indent=1, ensure_ascii=False) if as_json else str(result)
    sys.stdout.write(f"{text}\n")


@contextmanager
def errors() -> Generator[None, None, None]:
    """An error of ours is a message and its remedy, and exit code 2."""
    try:
        yield
    except AccelError as error:
        sys.stderr.write(f"{error}\n")
        raise typer.Exit(USAGE) from None
