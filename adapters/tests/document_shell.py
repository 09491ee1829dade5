"""The lines of a shell that pages show: what runs as it stands, and what must at least exist."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
TIME_S = 110.0
"""For one command."""
NOT_RUN = {
    "up": "starts the engines of a backend: backends/tests/ray_cluster does, on simulated ones",
    "status": "likewise",
    "down": "likewise",
    "conformance": "takes every engine there is: likewise",
}
"""Subcommands of `accel` whose options alone are looked at, and why."""
USERS = {"server.py"}
"""Programs that are the reader's own."""


class Wrong(Exception):
    """A line that a reader could not run."""


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each line with its words, without comments; lines that end in a backslash go on."""
    for line in text.replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            yield line.strip(), words


def obey(words: Sequence[str]) -> None:
    """Run or check a command. Raises Wrong, and for a command that nobody knows here, too."""
    while "=" in words[0] and re.fullmatch(r"[A-Z_]+", words[0].partition("=")[0]):
        _variable(words[0].partition("=")[0])
        words = words[1:]
    for part in _parts(words):
        if part[0] not in COMMANDS:
            raise Wrong(f"nobody here knows how to check {part[0]!r}: add it to adapters/tests/document_shell.py")
        COMMANDS[part[0]](part[1:])


def _parts(words: Sequence[str]) -> Iterator[list[str]]:
    """Commands between `&&`."""
    part: list[str] = []
    for word in (*words, "&&"):
        if word != "&&":
            part.append(word)
        else:
            yield part
            part = []


def _variable(name: str) -> None:
    quoted = {f'"{name}"', f"'{name}'"}
    for folder in ("accel", "adapters", "backends", "bench", "compat_tests", "corpus"):
        for path in (ROOT / folder).rglob("*.py"):
            if "document" not in path.name and any(each in path.read_text(encoding="utf-8") for each in quoted):
                return
    raise Wrong(f"nothing reads the variable {name}")


def ran(*words: str) -> str:
    """What it printed, in the page's folder. Raises Wrong where it fails."""
    roots = os.pathsep.join(str(ROOT / folder) for folder in ("", "adapters", "backends"))
    done = subprocess.run(
        words, env={**os.environ, "PYTHONPATH": roots, "ACCEL": "on"}, capture_output=True, text=True, timeout=TIME_S
    )
    if done.returncode:
        raise Wrong(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def _accel(words: Sequence[str]) -> None:
    import typer

    from accel.cli import app

    group = typer.main.get_command(app)
    with group.make_context("accel", list(words)) as context:
        name, command, rest = group.resolve_command(context, list(words))  # type: ignore[attr-defined]
        command.make_context(name, list(rest)).close()
    if name in NOT_RUN:
        return
    ran(sys.executable, "-m", "accel.cli", *words)
    for option, given in zip(words, words[1:], strict=False):
        if option in ("--out", "--picture", "--cassette") and not Path(given).stat().st_size:
            raise Wrong(f"{given} is empty")


def _pip(words: Sequence[str]) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    if words[0] != "install":
        raise Wrong(f"pip {words[0]}")
    for option, word in zip(words, words[1:], strict=False):
        if option == "-r" and not (ROOT / word).is_file():
            raise Wrong(f"there is no file {word}")
        if option in ("-r", "-e") or word.startswith("-"):
            continue
        asked = Requirement(word)
        if asked.name == "accelgraph" and (unknown := asked.extras - extras.keys()):
            raise Wrong(f"there is no extra {', '.join(sorted(unknown))}")


def _make(words: Sequence[str]) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for word in words:
        if word not in targets:
            raise Wrong(f"there is no target {word}")


def _python(words: Sequence[str]) -> None:
    if words[0] != "-m":
        if words[0] in USERS:
            return
        if not (ROOT / words[0]).is_file():
            raise Wrong(f"there is no program {words[0]}")
        _known(words[1:], lambda: ran(sys.executable, words[0], "--help"))
    elif words[1] == "bench":
        _known(words[3:], lambda: _bench(words[2]))
    else:
        if find_spec(words[1]) is None:
            raise Wrong(f"there is no module {words[1]}")
        _known(words[2:], lambda: ran(sys.executable, "-m", words[1], "--help"))


def _bench(name: str) -> str:
    from bench.__main__ import main

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        main([name, "--help"])
    if "usage:" not in said.getvalue():
        raise Wrong(f"python -m bench {name} has no help")
    return said.getvalue()


def _known(words: Sequence[str], help_of: Callable[[], str]) -> None:
    """Its help names the options."""
    said = help_of()
    for word in words:
        if word.startswith("--") and not re.search(rf"(?<![\w-]){word}(?![\w-])", said):
            raise Wrong(f"it has no option {word}")


def _pytest(words: Sequence[str]) -> None:
    """On a test of the page's folder."""
    ran(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", ".", *words)


COMMANDS: Mapping[str, Callable[[Sequence[str]], None]] = {
    "accel": _accel,
    "pip": _pip,
    "make": _make,
    "python": _python,
    "pytest": _pytest,
}
