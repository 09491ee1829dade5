"""Objects by the names that users give commands: `app.py:graph`, `package.module:attribute.attribute`."""

from __future__ import annotations

import importlib.util
import sys
import sysconfig
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import ConfigurationError

_FORM = "Write app.py:graph or package.module:graph."


def target(named: str, takes: Callable[[Any], bool]) -> Any:
    """The object of this name. `takes`: tells those that a command takes, for messages. Raises ConfigurationError."""
    place, colon, path = named.rpartition(":")
    if not colon or (len(place) == 1 and path[:1] in "/\\"):  # C:\app.py
        place, path = named, ""
    module = _module(place)
    if not path:
        raise ConfigurationError(f"{named!r} names no object.", _offer(place, module, takes))
    obj: Any = module
    for name in path.split("."):
        try:
            obj = getattr(obj, name)
        except AttributeError:
            remedy = _offer(place, module, takes) if obj is module else _FORM
            raise ConfigurationError(f"{place} has no {path!r}.", remedy) from None
    return obj


def _offer(place: str, module: ModuleType, takes: Callable[[Any], bool]) -> str:
    """The objects of a module that could be meant."""
    found = []
    for name, value in vars(module).items():
        try:
            if not name.startswith("_") and not isinstance(value, type | ModuleType) and takes(value):
                found.append(f"{place}:{name}")
        except ConfigurationError:
            continue
    return f"Name one of {', '.join(found)}." if found else _FORM


def _module(place: str) -> ModuleType:
    """Of a file, or by its name; both as if its program had been started where the user is."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    path = Path(place)
    is_file = path.suffix == ".py" or path.is_file()
    if is_file and not path.is_file():
        raise ConfigurationError(f"There is no file {place}.", _FORM)
    if not place.strip("."):
        raise ConfigurationError(f"{place or 'The name'} is no module.", _FORM)
    given, sys.argv = sys.argv, [place]  # the words are Accel's, not the program's
    try:
        return _of_file(path.resolve()) if is_file else import_module(place)
    except SystemExit as error:
        raise ConfigurationError(
            f"{place} ends the process while it is imported{_at(error)}: {error}",
            "Put what runs it as a script under if __name__ == '__main__'.",
        ) from error
    except ModuleNotFoundError as error:
        if error.name and not is_file and (place == error.name or place.startswith(f"{error.name}.")):
            raise ConfigurationError(f"There is no module {place!r}.", _FORM) from error
        raise _unimportable(place, error) from error
    except Exception as error:
        raise _unimportable(place, error) from error
    finally:
        sys.argv = given


def _of_file(path: Path) -> ModuleType:
    """A module of a file. One of a package is imported by its full name, so that its relative imports work."""
    names, folder = [path.stem] if path.stem != "__init__" else [], path.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    name = ".".join(names)
    known = sys.modules.get(name)
    if known is not None and Path(getattr(known, "__file__", None) or "").resolve() == path:
        return known
    if known is None and len(names) > 1:
        return import_module(name)
    if known is not None or name in sys.stdlib_module_names:
        name = f"{name}_of_{abs(hash(path)):x}"  # of another file
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{path} is no Python file.", _FORM)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _unimportable(place: str, error: Exception) -> ConfigurationError:
    if isinstance(error, ConfigurationError):
        return error
    remedy = "Make sure that python can import it here; --env-file gives it variables."
    if "relative import" in str(error):
        remedy = "Name it by its package, package.module:graph, in the folder that the package is in."
    return ConfigurationError(f"{place} can't be imported{_at(error)}: {type(error).__name__}: {error}", remedy)


def failed(named: str, error: Exception) -> ConfigurationError:
    """What to raise where a function that was named raised."""
    what = f"{named} raised an error{_at(error)}: {type(error).__name__}: {error}"
    return ConfigurationError(what, "Call it by itself first; --env-file gives it variables.")


def _at(error: BaseException) -> str:
    """The last line of the user's that an error came by."""
    last = next(filter(_is_users, reversed(traceback.extract_tb(error.__traceback__))), None)
    return f" ({Path(last.filename).name}, line {last.lineno})" if last is not None else ""


def _is_users(frame: traceback.FrameSummary) -> bool:
    """Whether a line is neither Accel's, nor Python's, nor of a package that was installed."""
    path = Path(frame.filename)
    known = Path(__file__).parents[1], *(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))
    return path.is_absolute() and not any(path.is_relative_to(folder) for folder in known)
