"""Which classes the built-in table speaks of, and where their instances send data.

A class is listed by its name and the package it must come from (`accel.parts.listed.classes`). A subclass counts as the
listed class if it changes nothing of it: see `listed`. All other components are vouched for by their users, or not at
all. `python -m accel.parts.listed.table` writes the table down for people.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import Any

from ...text.classes import of_class
from ...text.objects import is_a
from .classes import LISTED as LISTED
from .classes import NEAR
from .facts import Entry
from .facts import Facts as Facts


@of_class
def listed(cls: type) -> Entry | None:
    """What the table says of a class.

    A subclass of a listed one may bring plain methods, and other default values for fields that are there already; with
    another address by default it loses `local` and `readonly`. A method, attribute, field, validator or `__init__` that
    isn't the listed class's own makes it a class of which nobody knows anything.
    """
    for base in cls.__mro__:
        entry = _exactly(base)
        if entry is not None:
            return entry if base is cls else _inherited(cls, base, entry)
    return None


def _exactly(cls: type) -> Entry | None:
    parts = cls.__module__.split(".")
    for length in range(len(parts), 0, -1):
        found = LISTED.get(".".join(parts[:length]), {}).get(cls.__name__)
        if found is not None:
            return found
    return None


def passes_on(cls: type) -> bool:
    """Whether the table says so of this very class; see `Entry.passes_on`."""
    entry = _exactly(cls)
    return entry is not None and entry.passes_on


# --- subclasses -----------------------------------------------------------------------------------------------------

_PLAIN = (str, int, float, bool, type(None))
_BOOKKEEPING = frozenset(
    "__module__ __qualname__ __doc__ __annotations__ __annotate__ __annotate_func__ __annotations_cache__ __dict__ "
    "__weakref__ __abstractmethods__ _abc_impl __parameters__ __orig_bases__ __signature__ __static_attributes__ "
    "__firstlineno__ __class_vars__".split()
)
"""What Python, abc and pydantic write into every class."""


def _inherited(cls: type, base: type, entry: Entry) -> Entry | None:
    """What holds for a subclass of a listed class; None if it may do otherwise."""
    new = [each for each in cls.__mro__ if each not in base.__mro__]
    if type(cls) is not type(base) or not all(_adds_nothing(each, cls, base) for each in new):
        return None
    redefined = {name for each in new for name in inspect.get_annotations(each)}
    if redefined.isdisjoint(address.split(".")[0] for address in entry.addresses or ()):
        return entry
    return replace(entry, local=None, readonly=None)


def _adds_nothing(new: type, cls: type, base: type) -> bool:
    """Whether one of the classes that `cls` has and `base` hasn't leaves all as it is in `base`."""
    names = {name for each in base.__mro__ for name in vars(each)}
    checked = {name for name in vars(new)} & _validators(cls)
    own = [
        (name, value)
        for name, value in vars(new).items()
        if name not in _BOOKKEEPING and not (name.startswith("__pydantic_") and not callable(value))
    ]
    return (
        not checked
        and all(_is_plain_default(cls, base, name) for name in inspect.get_annotations(new))
        and all(_is_same(base, name, value) if name in names else _is_method(name, value) for name, value in own)
    )


def _is_method(name: str, value: Any) -> bool:
    return not name.startswith("__") and type(value) in (FunctionType, staticmethod, classmethod, property)


def _is_same(base: type, name: str, value: Any) -> bool:
    """Whether what a class says under a name of the listed class is what that one says."""
    inherited = getattr(base, name, None)
    if name == "model_post_init":  # pydantic gives each class with private fields one that calls the inherited one
        while value is not inherited and getattr(value, "__globals__", {}).get("__name__", "").startswith("pydantic."):
            value = getattr(value, "__wrapped__", inherited)
    return value is inherited or (type(value) in (*_PLAIN, dict) and value == inherited)


def _is_plain_default(cls: type, base: type, name: str) -> bool:
    """Whether a field of a listed model got another default value, and nothing else."""
    old, new = (getattr(each, "model_fields", {}).get(name) for each in (base, cls))
    return (
        old is not None
        and new is not None
        and type(new.default) in _PLAIN
        and new.default_factory is None
        and (not new.metadata or new.metadata == old.metadata)
    )


def _validators(cls: type) -> set[str]:
    """The methods that pydantic calls by itself, while it makes or writes an object of this class."""
    decorators = getattr(cls, "__pydantic_decorators__", None)
    if decorators is None:
        return set()
    return {name for kind in dataclasses.fields(decorators) for name in getattr(decorators, kind.name)}


# --- addresses ------------------------------------------------------------------------------------------------------


def addresses_of(component: Any) -> list[str] | None:
    """Where a component of a listed class sends data, as its fields and its client say: environment variables have had
    their part in that. None if its class isn't listed or its fields don't tell; empty if none is set. A declared host
    is its own."""
    own = getattr(type(component), "accel_address", None)
    if is_a(own, str):
        return [own]
    entry = listed(type(component))
    if entry is None or entry.addresses is None:
        return None
    found = []
    for path in entry.addresses:
        value = at(component, path)
        if value is _MISSING:
            return None  # a client of another make
        if value:
            found.append(str(value))
    return found


def is_inside(component: Any) -> bool:
    """Whether a store of a listed class is held by objects of this process: all that it has, and one at least."""
    entry = listed(type(component))
    if entry is None:
        return _is_near(component)
    if not entry.inside:
        return False
    held = [(at(component, path), classes) for path, classes in entry.inside]
    found = [(value, classes) for value, classes in held if value is not None]
    return bool(found) and all(_full_name(type(value)) in classes for value, classes in found)


def _is_near(component: Any) -> bool:
    """The same of a store that is not listed."""
    cls = type(component)
    near = next((found[cls.__name__] for package, found in NEAR.items() if _is_of(cls, package, found)), None)
    if near is None:
        return False
    held = [at(component, path) for path in near.held]
    classes = ["" if each is None or each is _MISSING else _full_name(type(each)) for each in held]
    if not classes[0] or any(cls not in ("", known) for cls, known in zip(classes, near.held.values(), strict=True)):
        return False
    place = str(at(component, near.place)) if near.place else ""
    return ":" not in place or place.startswith(("memory://", "file://"))


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _is_of(cls: type, package: str, names: Iterable[str]) -> bool:
    return cls.__name__ in names and f"{cls.__module__}.".startswith(f"{package}.")


def calls_the_programs(component: Any) -> bool:
    """Whether a component of a listed class calls functions that it was given, or objects of classes that are not its
    package's (`Entry.works_with`)."""
    entry = listed(type(component))
    values = [at(component, path) for path in entry.works_with] if entry is not None else []
    package = _package(type(component))
    return any(
        any(value.values()) if is_a(value, Mapping) else _package(type(value)) != package
        for value in values
        if value is not _MISSING and type(value) not in _PLAIN
    )


def _package(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def at(component: Any, path: str) -> Any:
    """What stands there; None if nothing does."""
    value: Any = component
    for step in path.split("."):
        value = value.get(step) if is_a(value, Mapping) else getattr(value, step, _MISSING)
        if value is None or value is _MISSING:
            break
    return value


_MISSING = object()

# --- documentation --------------------------------------------------------------------------------------------------

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "components.md"
_HEAD = """# Listed components

Accel enters these classes early without being told. This page is written by `python -m accel.parts.listed.table` from
`accel/parts/listed/classes.py`, whose head says what is left out and why. A subclass counts as well if it only adds
methods or changes default values. An object whose HTTP client was given code of yours (event hooks, a class or function
of yours as `auth=`, a transport) does not count. Any other component is vouched for with `accel.register` or
`accel.pure`.

- **At once**: how many calls may be inside one instance; one where nothing is said.
- **Reads**: *settled* where an early read may stand for the program's own, because nobody changes meanwhile what it
  reads; *feeds* where it only lets later calls begin, and the program reads itself.
- **Addresses**: where an instance keeps the addresses it sends to. It counts as local if all that are set are private,
  and requests get there straight: by no proxy at a public address, and by no answer so far that led them on to one.
  *unknown* always counts as remote.
"""
_TAIL = """## Local once they are declared

Nobody vouches for these stores, as their searches may disturb what the program reads from the same connection. If you
do (`accel.register(store, readonly=True)`), they count as local where they are in this process: an address (`db://`,
`s3://`) is remote.

| Package | Class | In this process if |
| --- | --- | --- |
"""


def document() -> str:
    """The table for people, as Markdown."""
    return "\n".join([_HEAD, *_lines()]) + f"\n{_TAIL}{''.join(_near())}"


def _near() -> Iterator[str]:
    for package, classes in NEAR.items():
        for name, near in classes.items():
            held = [f"`{path}` is a `{cls}`" if cls else f"there is no `{path}`" for path, cls in near.held.items()]
            kept = [f"`{near.place}` is a path"] if near.place else []
            yield f"| `{package}` | `{name}` | {', '.join(held + kept)} |\n"


def _lines() -> Iterator[str]:
    for package in sorted(LISTED):
        yield f"## {package}\n"
        yield "| Class | Kind | At once | Reads | Addresses | Why |"
        yield "| --- | --- | --- | --- | --- | --- |"
        for name, entry in LISTED[package].items():
            reads = ("settled" if entry.readonly else "feeds") if entry.kind in _READERS else ""
            reason = entry.reason.removeprefix("listed: ")
            columns = (f"`{name}`", entry.kind, str(entry.concurrency or 1), reads, _address(entry), reason)
            yield f"| {' | '.join(columns)} |"
        yield ""


_READERS = ("vector store", "retriever", "tool")


def _address(entry: Entry) -> str:
    if entry.inside:
        where = ", ".join(f"`{path}`" for path in entry.addresses or ())
        held = ", ".join(f"`{path}`" for path, _ in entry.inside)
        return f"this process, by the class of {held}" + (f"; else {where}" if where else "; else unknown")
    if entry.addresses is None:
        return "unknown"
    return ", ".join(f"`{path}`" for path in entry.addresses) or ("this process" if entry.local else "its service's")


if __name__ == "__main__":
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_text(document(), encoding="utf-8")
