"""Which keys components hold, and whether somebody has changed them since the program was accelerated (invariant 3).

An early call takes whatever key its component holds then. Where a node sets the key of the run's tenant just before it
calls, that is another tenant's key until it has.
"""

from __future__ import annotations

import itertools
import os
import re
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from ...process import forks
from ...text.classes import of_class
from ...text.objects import attributes, entries, in_class, is_a
from ...trace.ambient import CREDENTIAL
from .identity import identity_of
from .own_code import provides

MAX_DEPTH = 5
MAX_WATCHED = 512
_HOLDERS = re.compile(
    r"client|session|header|kwargs|config|embed|llm|model$|bound|transport|store$|index$|retriever", re.IGNORECASE
)
"""Names of fields whose objects may hold a credential."""

Path = tuple[str, ...]
Held = dict[Path, Any]
"""By path, the object that is a credential: told from an equal one."""


def credentials_of(component: Any) -> Held:
    """The credentials that a component, or a client in it, holds now."""
    return dict(_in(component, (), False, set()))


def _in(value: Any, path: Path, named: bool, seen: set[int]) -> Iterator[tuple[Path, Any]]:
    """named: `value` is called a credential."""
    if _is_secret(value) or (named and value and (is_a(value, str | bytes) or _gives(value))):
        yield path, value
    elif value is None or is_a(value, str | bytes | int | float | type):
        return
    elif len(path) <= MAX_DEPTH and id(value) not in seen:
        seen.add(id(value))
        for name, inner in _fields(value).items():
            is_key = _is_key(name)
            if is_key or named or _is_secret(inner) or _may_hold(name):
                yield from _in(inner, (*path, name), is_key or (named and is_a(value, dict)), seen)


@lru_cache(4_096)
def _is_key(name: str) -> bool:
    return CREDENTIAL.search(name) is not None


@lru_cache(4_096)
def _may_hold(name: str) -> bool:
    return _HOLDERS.search(name) is not None


def _is_secret(value: Any) -> bool:
    kind: Any = type(value)
    return _reveals(kind)


@of_class
def _reveals(kind: type) -> bool:
    return in_class(kind, "get_secret_value") is not None


def _gives(value: Any) -> bool:
    """Whether it is a function that gives a credential, another one each time perhaps."""
    return is_a(value, FunctionType | MethodType | BuiltinFunctionType | partial)


def _varies(value: Any) -> bool:
    """Whether it is one that may give another credential to others who ask."""
    return _gives(value) and not provides(value)


def _fields(value: Any) -> dict[str, Any]:
    if is_a(value, dict):
        return {name: inner for name, inner in entries(value).items() if type(name) is str}
    if is_a(value, ModuleType):  # one that stands in for a client: its settings are keys, its functions give none
        return {name: inner for name, inner in list(vars(value).items()) if is_a(inner, str) or _is_secret(inner)}
    return attributes(value)


def _settings_of(component: Any) -> tuple[Path, ...]:
    modules = [(name, value) for name, value in _fields(component).items() if is_a(value, ModuleType)]
    return tuple(
        (name, setting)
        for name, module in modules
        for setting, value in list(vars(module).items())
        if _is_key(setting) and (value is None or is_a(value, str) or _is_secret(value))
    )


def _at(value: Any, path: Path) -> Any:
    """What stands there now; None if nothing does."""
    for name in path:
        value = dict.get(value if is_a(value, dict) else attributes(value), name)
    return value


_asked = itertools.count()


def _text(credential: Any) -> str:
    if provides(credential):
        return f"by {id(credential)}"
    if _gives(credential):
        return f"? {next(_asked)}"  # nobody knows what it would give: equal to nothing
    try:
        return (
            "" if credential is None else str(credential.get_secret_value() if _is_secret(credential) else credential)
        )
    except Exception:  # noqa: BLE001 - a vault that does not answer
        return f"? {next(_asked)}"


@dataclass(slots=True)
class _Watched:
    component: Callable[[], Any]
    first: Held
    held: bool
    """The program refers to it, and has not run before `first`."""
    reassigned: bool = False
    settings: tuple[Path, ...] = ()
    """Of a module that stands in for its client, what is called a credential, set or not yet."""
    _names: tuple[tuple[str, ...], tuple[str, ...]] = (), ()
    """Of its fields, when it was looked at last, and of those that are called credentials."""

    def now(self, component: Any) -> Held:
        """Those that it had, and what its own fields hold beside them."""
        found = {path: _at(component, path) for path in self.first}
        fields = _fields(component)
        names, keys = self._names
        if tuple(fields) != names:
            names = tuple(fields)
            keys = tuple(filter(_is_key, names))
            self._names = names, keys
        for path in self.settings:
            value = _at(component, path)
            if value and path not in found:
                found[path] = value
        for name in keys:
            value = fields.get(name)
            if (name,) not in found and value and (_is_secret(value) or is_a(value, str)):
                found[(name,)] = value
        return found

    def judge(self, now: Held) -> None:
        """Another object is another credential, also an equal one: somebody assigned it. What a client makes of its
        key with the first use is none of its own."""
        if not now and not self.first:
            return
        texts = set(map(_text, self.first.values()))
        changed = any(now.get(path) is not first for path, first in self.first.items())
        self.reassigned |= changed or any(_text(one) not in texts for one in now.values())


class Keys:
    """The credentials of a program's components, as they were when it was accelerated, or first used. Thread-safe."""

    def __init__(self) -> None:
        self._watched: dict[int, _Watched] = {}
        self._environment: dict[str, str] = {}
        self._looked: dict[int, Callable[[], Any]] = {}
        self._lock = forks.lock()

    def look(self, root: Any, components: Callable[[], Iterable[Any]]) -> None:
        """The program that begins with this object refers to these, and has not run yet."""
        known = self._looked.get(id(root))
        if known is not None and known() is root:
            return
        self._looked = {at: of for at, of in self._looked.items() if of() is not None} | {id(root): _weakly(root)}
        self._environment = self._environment or dict(os.environ)
        for component in components():
            self._watch(component, held=True)
            identity_of(component, by_object=True)  # what its clients are, before a run changes them

    def _watch(self, component: Any, held: bool) -> _Watched:
        watched = self._watched.get(id(component))
        if watched is not None and watched.component() is component:
            return watched
        with self._lock:
            watched = self._watched.get(id(component))
            if watched is None or watched.component() is not component:
                if len(self._watched) >= MAX_WATCHED:
                    gone = [at for at, other in self._watched.items() if other.component() is None or not other.held]
                    for at in gone or [next(iter(self._watched))]:
                        del self._watched[at]
                watched = _Watched(
                    _weakly(component), credentials_of(component), held, settings=_settings_of(component)
                )
                self._watched[id(component)] = watched
            return watched

    def note(self, component: Any) -> tuple[str, ...]:
        """What its credentials say now, as far as that shows at once; that somebody has given it others is
        remembered."""
        watched = self._watch(component, held=False)
        now = watched.now(component)
        watched.judge(now)
        return tuple(map(_text, now.values()))

    def check(self) -> None:
        """A run begins: somebody may have changed them meanwhile."""
        for watched in list(self._watched.values()):
            component = watched.component() if watched.first and watched.held and not watched.reassigned else None
            if component is not None:
                self.note(component)

    def trusts(self, component: Any) -> bool:
        """Whether it may be called with the key that it holds before this run has used that: it has none, or one that
        nobody has ever changed, or that is the same for the whole process."""
        watched = self._watch(component, held=False)
        return self.of_everybody(component) or (
            watched.held and not watched.reassigned and not any(map(_varies, watched.now(component).values()))
        )

    def may_be_known(self, component: Any) -> bool:
        """Whether no function may give it another key each time."""
        return not any(map(_varies, credentials_of(component).values()))

    def of_everybody(self, component: Any) -> bool:
        """Whether it has no key, or one that is the same for the whole process."""
        watched = self._watch(component, held=False)
        now = credentials_of(component)
        watched.judge(now)
        if any(map(_gives, now.values())):
            return False
        if not now:
            return not watched.reassigned
        return all(self._is_process_wide(_text(credential)) for credential in now.values())

    def _is_process_wide(self, text: str) -> bool:
        return any(text == value and os.environ.get(name) == value for name, value in list(self._environment.items()))


def _weakly(value: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value
