"""Options of `accelerate` from a TOML file and from a shell.

speculate = "likely"          # accel.toml; in pyproject.toml, where commands look by themselves, under [tool.accel]
pure_nodes = ["score"]

[budget]
waste = 0.05

[run]                         # what every run is given beside its input, in the framework's form
configurable = { user = "ada" }
"""

from __future__ import annotations

import dataclasses
import inspect
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..api import accelerate
from ..errors import ConfigurationError
from ..run.settings import Budget, Cap


def accelerate_options(file: str | Path | None, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the file, and over them the chosen ones that are not None. Raises ConfigurationError."""
    known = [name for name in inspect.signature(accelerate).parameters if name != "obj"]
    found = _of_file(Path(file)) if file is not None else {}
    found.pop("run", None)
    found |= {name: value for name, value in chosen.items() if value is not None}
    for name in found:
        if name not in known:
            where = f"{file}: " if file is not None and name not in chosen else ""
            raise ConfigurationError(f"{where}the option {name!r} is not known.", f"Known are {', '.join(known)}.")
    if isinstance(found.get("budget"), Mapping):
        found["budget"] = _budget(found["budget"])
    return found


def project_file() -> Path | None:
    """The `pyproject.toml` of the working directory, if it has options. Raises ConfigurationError."""
    path = Path("pyproject.toml")
    return path if path.is_file() and _of_file(path) else None


def _budget(given: Mapping[str, Any]) -> Budget:
    names = [field.name for field in dataclasses.fields(Budget)]
    for name in given:
        if name not in names:
            raise ConfigurationError(f"The budget has no {name!r}.", f"Known are {', '.join(names)}.")
    caps = given.get("caps", ())
    if isinstance(caps, list) and all(isinstance(cap, Mapping) for cap in caps):
        return Budget(**{**given, "caps": [Cap(**cap) for cap in caps]})
    return Budget(**given)


def _of_file(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}.", "Name a TOML file.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not TOML: {error}.", 'Write lines like speculate = "likely".') from error
    if path.name == "pyproject.toml":
        tools = found.get("tool", {})
        found = tools.get("accel", {}) if isinstance(tools, dict) else {}
        if not isinstance(found, dict):
            raise ConfigurationError(
                f"{path}: tool.accel is no table.", "Write [tool.accel], and the options below it."
            )
    return found


def run_config(file: str | Path | None) -> dict[str, Any]:
    """The table `run` of a file. Raises ConfigurationError."""
    found = _of_file(Path(file)).get("run", {}) if file is not None else {}
    if not isinstance(found, dict):
        raise ConfigurationError(f"{file}: run is no table.", "Write [run], and below it what every run is given.")
    return found
