"""The frameworks that adapters are installed for: what each says of itself, without importing its framework.

An adapter is found by its entry point in the group `accel.frameworks`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import entry_points

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

    def makes(self, obj: object) -> bool:
        """Whether it is one of these objects, or a class of them."""
        for module, name in self.kinds:
            kind = getattr(sys.modules.get(module), name, None)
            if kind is not None and (isinstance(obj, kind) or (isinstance(obj, type) and issubclass(obj, kind))):
                return True
        return False


@lru_cache(1)
def frameworks() -> tuple[Framework, ...]:
    """In the order of their names."""
    found: list[Framework] = [point.load() for point in entry_points(group=GROUP)]
    return tuple(sorted(found, key=lambda framework: framework.name))
