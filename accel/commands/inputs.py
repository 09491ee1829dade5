"""What a program is asked, and how often: a JSON value for each line of a file, single ones from a shell, a list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigurationError
from ..run.batches.given import several

_LINE = 'Write one JSON value on a line: {"question": "..."}, or "..." for a program that takes text.'


@dataclass(frozen=True, slots=True)
class Given:
    """An input, and where a person finds it."""

    value: Any
    where: str


def given(file: str | Path | None, texts: Sequence[str]) -> list[Given]:
    """Of a file first. Raises ConfigurationError."""
    found = [*(_of_file(Path(file)) if file is not None else ()), *map(_of_text, texts)]
    if not found:
        what = f"{file} has no inputs." if file is not None else "There are no inputs."
        raise ConfigurationError(what, "Give a file with --inputs inputs.jsonl, or single ones with --input '...'.")
    return found


def _of_file(path: Path) -> list[Given]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}.", "Name a file of JSON lines.") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8.", _LINE) from error
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found.append(Given(json.loads(line), f"{path}, line {number}"))
            except json.JSONDecodeError as error:
                raise ConfigurationError(
                    f"{path}, line {number} is not JSON: {error.msg} (column {error.colno}): {_shortened(line)}", _LINE
                ) from error
    return found


def _of_text(text: str) -> Given:
    """JSON, or what looks like none: then the text itself."""
    where = f"--input {_shortened(text)}"
    try:
        return Given(json.loads(text), where)
    except json.JSONDecodeError as error:
        if text.lstrip()[:1] in ("{", "[", '"'):
            raise ConfigurationError(f"{where} is not JSON: {error.msg} (column {error.colno}).", _LINE) from error
    return Given(text, where)


def listed(inputs: Any, function: str) -> list[Any]:
    """Inputs of a caller. Raises ConfigurationError for a single one."""
    remedy = f"Give a list of inputs, two different ones at least: accel.{function}(graph, [first, second])."
    return list(several(inputs, function, remedy))


def counted(name: str, value: Any, remedy: str, least: int = 1) -> int:
    """Raises ConfigurationError for what is no number of anything."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigurationError(f"{name}={value!r} is not a whole number, {least} at least.", remedy)
    return value


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
