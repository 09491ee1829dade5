"""What commands ask of an adapter: how programs of its framework are run, and how what they give is compared."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator, Mapping
from importlib import import_module
from typing import Any, Protocol

from ..errors import ConfigurationError
from ..frameworks import Framework, frameworks
from ..parts.methods.methods import Method

Told = dict[str, Any]
"""What a user sees of one run, by its kind: "result", and the chunks of each stream. Filled while it goes on: an error
leaves what came before it."""


class Programs(Protocol):
    """Of one framework: `PROGRAMS` of the module that its adapter names (`Framework.programs`)."""

    def finished(self, obj: Any) -> Any:
        """The object that can be accelerated: this one, or what is made of it (a compiled graph); None if it is nothing
        of this framework's. Raises ConfigurationError for what only the user can finish."""

    def asynchronous(self, obj: Any) -> bool:
        """Whether it can only be awaited."""

    def ways(self, obj: Any) -> tuple[str, ...]:
        """How users run it, "stream" among them where it has streams; the plainest first."""

    def given(self, obj: Any, value: Any) -> Any:
        """A JSON value as the input that it stands for. Raises ValueError."""

    def run(self, obj: Any, value: Any, way: str, told: Told, config: Mapping[str, Any]) -> None:
        """Run it once. `config`: of the framework's own form, where it has one."""

    async def arun(self, obj: Any, value: Any, way: str, told: Told, config: Mapping[str, Any]) -> None: ...

    def plain(self, value: Any) -> Any:
        """A value of the framework's as dicts and lists, without what no two runs share; any other one as it is."""

    def place(self) -> tuple[Hashable, Hashable]:
        """When and where in the program the current code is, as far as the framework tells: what is at one moment in
        several places goes on side by side."""

    def install(self) -> None:
        """See calls of every component class that there is now."""

    def dump(self, value: Any) -> Any:
        """A component's result, or a chunk of one, as dicts and lists of what `accel.text.values.snapshot` can build
        again; any other value as it is."""

    def load(self, tree: Any) -> Any:
        """What `dump` was given, from what it gave."""

    def chunk(self, method: Method, result: Any) -> Any:
        """A result as the only chunk of its stream, by the family's streaming method."""


def loaded() -> Iterator[tuple[Framework, Programs]]:
    """Of the frameworks that the process has imported: only these can have objects."""
    for framework in frameworks():
        if framework.programs and any(package in sys.modules for package in framework.packages):
            yield framework, import_module(framework.programs).PROGRAMS


def programs_of(obj: Any) -> tuple[Any, Programs] | None:
    """An object that can be accelerated, made of this one where it must be, and its framework's; None if there is none.
    Raises ConfigurationError."""
    for _, programs in loaded():
        made = programs.finished(obj)
        if made is not None:
            return made, programs
    return None


def unknown(what: str, obj: Any) -> ConfigurationError:
    """What to raise for an object that no framework knows."""
    takes = ", or ".join(framework.takes for framework in frameworks())
    return ConfigurationError(f"{what} is {_a(obj)}, which can't be accelerated.", f"Name {takes}.")


def _a(obj: Any) -> str:
    name = f"the class {obj.__name__}" if isinstance(obj, type) else f"an object of {type(obj).__name__}"
    return "a module" if type(obj) is type(sys) else name
