"""The frameworks that adapters are installed for: what each says of itself, without importing its framework.

An adapter is found by its entry point in the group `accel.frameworks`.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, entry_points, version

from .errors import ConfigurationError

GROUP = "accel.frameworks"


@dataclass(frozen=True, slots=True)
class Framework:
    """What an adapter says."""

    name: str
    extra: str
    """Of the distribution: what installs it."""
    takes: str
    """The objects that can be accelerated, for people."""
    kinds: tuple[tuple[str, str], ...]
    """Their classes, by module and name; those not imported yet have no objects."""
    adapter: str
    """The module with `accelerate_object`."""
    packages: tuple[str, ...]
    """The packages whose objects are the framework's own."""
    families: tuple[str, ...]
    """How the names of its packages begin, and those of its integrations."""
    boundaries: tuple[str, ...]
    """How the names of files end through which it, or its adapter, enters user code."""
    programs: str = field(default="", kw_only=True)
    """The module with `PROGRAMS`: how commands run its programs and compare what they give (`accel.commands.kinds`)."""
    supports: tuple[tuple[str, str, str], ...]
    """Its distributions, the main one first, with the oldest version that is supported and the first that is not."""
    instead: tuple[tuple[str, str, str], ...] = ()
    """By module and name, classes of objects that are nearly what is taken, and what to do with them instead."""

    no_components: tuple[tuple[str, str, str], ...] = ()
    """By module and name, classes of objects of which nothing can be declared, and what to declare instead."""

    def makes(self, obj: object) -> bool:
        """Whether it is one of these objects, or a class of them."""
        return any(_is_of(obj, module, name) for module, name in self.kinds)

    def advice(self, obj: object) -> str | None:
        """What to do with an object that is nearly one of these."""
        return _advice(obj, self.instead)

    def instead_of_declaring(self, obj: object) -> str | None:
        """What to do with an object of which nothing can be declared."""
        return _advice(obj, self.no_components)

    @property
    def is_installed(self) -> bool:
        return installed(self.supports[0][0]) is not None

    def check_versions(self) -> None:
        """Raises ConfigurationError for a version that Accel wasn't made for: results could be wrong."""
        for package, oldest, beyond in self.supports:
            found = installed(package)
            if found is not None and not _release(oldest) <= _release(found) < _release(beyond):
                raise ConfigurationError(
                    f"{package} {found} is installed; this Accel supports versions from {oldest} on, below {beyond}.",
                    f"pip install '{package}>={oldest},<{beyond}'",
                )


def _is_of(obj: object, module: str, name: str) -> bool:
    """Whether it is an object of a class, or a subclass of it."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and (isinstance(obj, kind) or (isinstance(obj, type) and issubclass(obj, kind)))


def _advice(obj: object, table: tuple[tuple[str, str, str], ...]) -> str | None:
    return next((advice for module, name, advice in table if _is_of(obj, module, name)), None)


@lru_cache
def installed(package: str) -> str | None:
    """The version of a distribution; None if it isn't there."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _release(version: str) -> tuple[int, ...]:
    """What a version is, or is going to be: 1.3.0rc1 counts as 1.3.0."""
    return tuple(map(int, re.findall(r"\d+", re.split(r"[^\d.]", version)[0])))


@lru_cache(1)
def frameworks() -> tuple[Framework, ...]:
    """In the order of their names."""
    found: list[Framework] = [point.load() for point in entry_points(group=GROUP)]
    return tuple(sorted(found, key=lambda framework: framework.name))
