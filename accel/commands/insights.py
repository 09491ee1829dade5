"""`accel report`, `accel explain`, `accel timeline`: what accelerated objects tell of a user's program, from a shell.

Results go to standard output or into a file; the program's own words, and progress, to standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from ..api import settle
from ..errors import ConfigurationError
from ..insight import Insight
from ..reports.explain import form_of
from ..reports.pictures.timeline import format_of
from ..reports.pictures.timeline import timeline as draw
from ..run.gains.pace import load
from .cassette import Cassette
from .compare import error_in_words
from .programs import Program, options
from .shell import (
    AsJson,
    Awaited,
    CassetteFile,
    Config,
    Egress,
    EnvFile,
    Inputs,
    OneInput,
    Plan,
    PureNode,
    Speculate,
    Target,
    errors,
    ran,
    writable,
)
from .tapping import Tapping

ROUNDS = 3
Rounds = Annotated[int, typer.Option(min=1, help="How often every input is asked, so that Accel learns.")]
Progress = Callable[[int, int, str], None]


def add(app: typer.Typer) -> None:
    """Make these subcommands of the command."""
    app.command()(report)
    app.command()(explain)
    app.command()(timeline)


def report(
    program: Target,
    inputs: Inputs = None,
    input: OneInput = None,
    rounds: Rounds = ROUNDS,
    cassette: CassetteFile = None,
    env_file: EnvFile = None,
    config: Config = None,
    speculate: Speculate = None,
    egress: Egress = None,
    plan: Plan = None,
    pure_node: PureNode = None,
    awaited: Awaited = None,
    as_json: AsJson = False,
) -> None:
    """Say what your program gains, and by which lines it would gain more.

    The program runs with its effects, accelerated, on your own inputs.
    With --cassette FILE, models and services are asked once, and then
    replayed as fast as they were.

    Exit codes: 0; 2 wrong usage, or every run raised an error.
    """
    chosen = {"speculate": speculate, "egress": egress, "plan": plan, "pure_nodes": pure_node or None}

    def work(of: Program, progress: Progress) -> str:
        watched = Watched(of, of.inputs(inputs, input or ()), cassette, options(config, **chosen))
        watched.run(rounds, progress)
        found = watched.fast.report()
        return found.to_json() if as_json else str(found)

    with errors():
        text = ran(program, env_file, awaited, config, work, "running")
        sys.stdout.write(f"{text}\n")


def explain(
    program: Target,
    inputs: Inputs = None,
    input: OneInput = None,
    format: Annotated[
        str | None, typer.Option(help="text, mermaid or svg; left out: as --out ends (.mmd, .svg), else text.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A file for it; left out: standard output.")] = None,
    graph: Annotated[bool, typer.Option("--graph", help="The compiler's view, prompts included.")] = False,
    rounds: Rounds = ROUNDS,
    cassette: CassetteFile = None,
    env_file: EnvFile = None,
    config: Config = None,
    speculate: Speculate = None,
    egress: Egress = None,
    plan: Plan = None,
    pure_node: PureNode = None,
    awaited: Awaited = None,
) -> None:
    """Say which call of your program waits for which, and what starts when.

    The program runs with its effects, accelerated, on your own inputs.
    With --cassette FILE, models and services are asked once, and then replayed.

    Exit codes: 0; 2 wrong usage, or every run raised an error.
    """
    chosen = {"speculate": speculate, "egress": egress, "plan": plan, "pure_nodes": pure_node or None}

    def work(of: Program, progress: Progress) -> str:
        watched = Watched(of, of.inputs(inputs, input or ()), cassette, options(config, **chosen))
        watched.run(rounds, progress)
        return watched.fast.explain(graph=graph, format=form)

    with errors():
        form = form_of(format, out, graph)
        writable(out)
        text = ran(program, env_file, awaited, config, work, "running")
        if out is None:
            sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        else:
            written(out, lambda: out.write_text(text, encoding="utf-8"))


def timeline(
    program: Target,
    out: Annotated[Path, typer.Option(help="A page ends in .html, a picture in .svg, a trace for Perfetto in .json.")],
    inputs: Inputs = None,
    input: OneInput = None,
    measured: Annotated[
        bool, typer.Option("--measured", help="Run the last input unmodified, too, instead of working that out.")
    ] = False,
    texts: Annotated[bool, typer.Option("--texts", help="With what prompts and answers say.")] = False,
    rounds: Rounds = ROUNDS,
    cassette: CassetteFile = None,
    env_file: EnvFile = None,
    config: Config = None,
    speculate: Speculate = None,
    egress: Egress = None,
    plan: Plan = None,
    pure_node: PureNode = None,
    awaited: Awaited = None,
) -> None:
    """Draw when each call of your program ran, before and after, for the last of your inputs.

    The program runs with its effects, accelerated, on your own inputs.
    With --cassette FILE, models and services are asked once, and then
    replayed as fast as they were.

    Exit codes: 0; 2 wrong usage, or every run raised an error.
    """
    chosen = {"speculate": speculate, "egress": egress, "plan": plan, "pure_nodes": pure_node or None}

    def work(of: Program, progress: Progress) -> str:
        watched = Watched(of, of.inputs(inputs, input or ()), cassette, options(config, **chosen))
        before = watched.run(rounds, progress, measured)
        last = watched.fast.plan.last
        assert last is not None  # or every run raised
        written(out, lambda: draw(last, str(out), plan=watched.fast.plan, before=before, texts=texts))
        return str(watched.fast.report()).splitlines()[0]

    with errors():
        writable(out)
        format_of(out)
        headline = ran(program, env_file, awaited, config, work, "running")
    sys.stderr.write(f"{headline}\n{out}\n")


def written(path: Path, write: Callable[[], object]) -> None:
    try:
        write()
    except OSError as error:
        raise ConfigurationError(f"{path} can't be written: {error.strerror}.", "Name another file.") from error


class Watched:
    """A program that runs accelerated until something is known of it."""

    def __init__(self, program: Program, inputs: list[Any], cassette: Path | None, options: Mapping[str, Any]) -> None:
        self.program, self.inputs = program, inputs
        self.tape = Cassette(cassette) if cassette is not None else None
        self.tap = Tapping(program.kind, self.tape, wait=lambda took_s: took_s, exact=False)
        self.options = options
        self.fast: Insight = program.accelerated(**options)
        self._failed: Exception | None = None

    def run(self, rounds: int, progress: Progress, measured: bool = False) -> Any:
        """Ask every input so often; gives the trace of the last one unmodified, if that is to be measured. Raises
        ConfigurationError where every run raised."""
        total, followed, before = rounds * len(self.inputs), load.enabled, None
        load.enabled = False  # also on a machine that is busy with something else
        try:
            with ExitStack() as around:
                if self.tape is not None:
                    around.enter_context(self.tap.within())
                    self._record()
                for number in range(total):
                    turn, place = divmod(number, len(self.inputs))
                    progress(number, total, f"round {turn + 1}, input {place + 1}")
                    if measured and number == total - 1:
                        recorder = self.program.accelerated(**{**self.options, "plan": None, "speculate": "off"})
                        before = recorder.plan.last if self._one(recorder, place) else None
                    self._one(self.fast, place)
        finally:
            load.enabled = followed
        progress(total, total, "")
        if self.fast.plan.last is None or (self._failed is not None and not self.fast.report().requests):
            error = self._failed
            raise ConfigurationError(
                f"Every run raised {error_in_words(type(error).__name__, str(error))}",
                "Run the program as it is first.",
            )
        return before

    def _record(self) -> None:
        """What the unmodified program asks of models and services."""
        for value in self.inputs:
            for _ in range(2):  # once more if a class of components was first seen meanwhile
                seen = self.tap.look()
                with self.tap.run(False):
                    self._tried(self.program.obj, value)
                if self.tap.look() == seen:
                    break

    def _one(self, obj: Any, place: int) -> bool:
        obj.plan.pace.news()  # every run is followed
        if self.tape is None:
            done = self._tried(obj, self.inputs[place])
        else:
            with self.tap.run(True):
                done = self._tried(obj, self.inputs[place])
        settle()
        return done

    def _tried(self, obj: Any, value: Any) -> bool:
        try:
            self.program.run(obj, value)
        except Exception as error:  # noqa: BLE001  whatever the program raises is told
            self._failed = error
            return False
        return True
