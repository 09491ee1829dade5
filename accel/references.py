"""Which live components a program refers to: what its node functions and runnables can reach without a call."""

from __future__ import annotations

import functools
import types
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .components import is_declared
from .identity import identity_of
from .texts import Says, standing_texts, texts_of_program

MAX_OBJECTS = 4_000
MAX_DEPTH = 12
MAX_HELD = 2_000
"""Of one container."""

_LIBRARIES = ("builtins", "langgraph", "langchain_core", "llama_index", "pydantic", "threading", "logging")
_RECORDS = ("accel.api", "accel.learn.", "accel.record", "accel.run.", "accel.values")
"""Modules whose objects know what earlier runs have used."""

CONTAINERS = (dict, list, tuple, set, frozenset, deque)

Kinds = Callable[[Any], bool]


@dataclass(slots=True)
class Found:
    """A component that a program refers to."""

    component: Any
    named: bool = False
    """By a variable, an attribute or an object of the framework's, which uses all of its parts."""
    one_of_several: bool = False
    """In a container with others of its class: a store for every tenant."""

    @property
    def chosen(self) -> bool:
        """Whether the program alone knows if this is the one to use. That some list holds it alone (the last one used)
        doesn't tell."""
        return self.one_of_several and not self.named

    def reached(self, at: _Coming) -> None:
        self.named |= not at.held
        self.one_of_several |= at.one_of_several


class References:
    """Which components a program refers to; looked up once, with the first question."""

    def __init__(
        self,
        roots: Iterable[Any] = (),
        is_component: Kinds = lambda value: False,
        is_opened: Kinds = lambda value: False,
        says: Says = lambda value, held: None,
    ) -> None:
        """`says`: see `accel.texts`."""
        self._look = functools.partial(referenced, roots, is_component, is_opened)
        self.texts = functools.partial(texts_of_program, roots, is_component, is_opened, says)
        self.standing = functools.partial(standing_texts, roots, is_component, is_opened, says)
        self._found: dict[int, Found] | None = None

    def __call__(self, component: Any) -> bool:
        """Whether it refers to this one, and not to one of several that it chooses from."""
        found = self._all().get(id(component))
        return found is not None and found.component is component and not found.chosen

    def components(self) -> list[Any]:
        """All of them."""
        return [found.component for found in self._all().values()]

    def only(self, name: str, by_object: bool) -> Any:
        """The component of the class of this (qualified) name; None if there is none, or several that differ."""
        found = [one.component for one in self._all().values() if type(one.component).__qualname__ == name]
        if len(found) > 1 and len({identity_of(component, by_object) for component in found}) > 1:
            return None
        return found[0] if found else None

    def _all(self) -> dict[int, Found]:
        if self._found is None:
            self._found = self._look()
        return self._found


def referenced(roots: Iterable[Any], is_component: Kinds, is_opened: Kinds) -> dict[int, Found]:
    """Live components by id, found through closures, globals, defaults and attributes. `is_opened`: objects of a
    framework that are looked into; objects of users' classes always are."""
    found: dict[int, Found] = {}
    seen: dict[int, Any] = {}
    # Nearest first: what a program refers to is near, and a large object on the way must not use up the look.
    coming: deque[_Coming] = deque(_Coming(root, 0) for root in roots)
    while coming and len(seen) < MAX_OBJECTS:
        at = coming.popleft()
        value = at.value
        if id(value) in found:
            found[id(value)].reached(at)
        if id(value) in seen or at.depth > MAX_DEPTH:
            continue
        seen[id(value)] = value
        component = is_component(value)
        if component or is_declared(value):
            found[id(value)] = Found(value)
            found[id(value)].reached(at)
        framework = is_opened(value)
        several = set() if at.frameworks else _several(value, is_component)
        container = isinstance(value, CONTAINERS)
        parts = framework or (at.frameworks and container)
        for inner in _inner(value, component or framework, is_component):
            coming.append(_Coming(inner, at.depth + 1, type(inner) in several, parts, container and not parts))
    return found


@dataclass(frozen=True, slots=True)
class _Coming:
    """What is still to be looked at."""

    value: Any
    depth: int
    one_of_several: bool = False
    frameworks: bool = False
    """It is part of an object of a framework, which uses all of its parts."""
    held: bool = False
    """By a container of the program's."""


def _several(value: Any, is_component: Kinds) -> set[type]:
    """The classes of which a container holds more than one component."""
    held = list(_inner(value, False, is_component)) if isinstance(value, CONTAINERS) else ()
    counts = Counter(type(inner) for inner in {id(one): one for one in held}.values() if is_component(inner))
    return {cls for cls, count in counts.items() if count > 1}


def _inner(value: Any, opened: bool, is_component: Kinds) -> Iterator[Any]:
    """What a value refers to, but for plain data: a tokenizer holds hundreds of thousands of words."""
    return (inner for inner in _referred(value, opened, is_component) if type(inner) not in _DATA)


_DATA = frozenset((str, bytes, int, float, bool, type(None), type))


def _referred(value: Any, opened: bool, is_component: Kinds) -> Iterator[Any]:
    if isinstance(value, type):
        return
    if isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, types.MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value, is_component)
    elif isinstance(value, dict):
        yield from list(value.values())[:MAX_HELD]  # copied at once: another thread may change it
    elif isinstance(value, CONTAINERS):
        yield from list(value)[:MAX_HELD]
    elif opened or _is_plain(value):
        own = getattr(value, "__dict__", None)
        if isinstance(own, dict):  # an object may answer to any name
            yield from list(own.values())
        yield from _slots(value)  # where pydantic keeps what is private


def _slots(value: Any) -> Iterator[Any]:
    for base in type(value).__mro__:
        for member in list(vars(base).values()):
            if isinstance(member, types.MemberDescriptorType):
                try:
                    yield member.__get__(value)
                except AttributeError:
                    continue  # not set


def _of_function(function: types.FunctionType, is_component: Kinds) -> Iterator[Any]:
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None:
        yield wrapped
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue  # not bound yet
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    names = _names(function.__code__)
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, types.ModuleType):
            for inner in names:
                attribute = vars(value).get(inner)
                if is_component(attribute) or isinstance(attribute, types.FunctionType):
                    yield attribute
        elif value is not None:
            yield value


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            names |= _names(const)
    return names


def _is_plain(value: Any) -> bool:
    """An object of a user's class. Library objects are looked into only where `is_opened` says so."""
    module = type(value).__module__
    return module.split(".")[0] not in _LIBRARIES and not module.startswith(_RECORDS)
