"""Which live components a program refers to: what its node functions and runnables can reach without a call."""

from __future__ import annotations

import functools
import sys
import types
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from ..frameworks import frameworks
from ..text.objects import is_a, own, slots_of, wraps_functions
from ..text.turns import NAME
from .components import is_declared, sort_of
from .identities.identity import identity_of
from .methods.sdks import is_leaf
from .program.places import wrapped
from .program.texts import Says, said_by_program, standing_texts, stands
from .together import Together

MAX_OBJECTS = 4_000
MAX_DEPTH = 12
MAX_ABSENT, LOOKED_AGAIN = 256, 32
"""Components that were not found, and after how many runs they are looked for again."""
MAX_HELD = 2_000
"""Of one container."""

_HOLDERS = {"argparse", "collections", "types"}
_LIBRARIES = (sys.stdlib_module_names - _HOLDERS) | {
    "pydantic", "sqlalchemy", "numpy", "torch", "transformers", "tokenizers", "httpx", "openai", "anthropic",
}  # fmt: skip
"""Packages whose objects hold no component of a program's, unlike a namespace; of others, but for the frameworks', its
classes may be."""
_RECORDS = ("accel.api", "accel.learn.", "accel.trace.record", "accel.run.", "accel.text.values")
"""Modules whose objects know what earlier runs have used."""

CONTAINERS = (dict, list, tuple, set, frozenset, deque)

Kinds = Callable[[Any], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Several:
    """A list or dict of the program's through whose entries it gets at different components of one sort: a store for
    every tenant. Keeps none of these alive."""

    container: Any
    held: list[int]
    """The ids of its entries,"""
    entries: tuple[frozenset[int], ...]
    """of those that lead to components of the sort the ids of these,"""
    names: Mapping[int, Any]
    """and by which names models call them, by id."""

    def calls_one(self, name: Any) -> bool:
        """Whether just one of them has this name."""
        return list(self.names.values()).count(name) == 1


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """How the program gets at a component that it chooses."""

    way: tuple[Any, ...]
    """The objects that lead to it, from a root on, without itself,"""
    among: tuple[Several, ...]
    """and those of them that lead to others as well."""


@dataclass(slots=True)
class Found:
    """A component that a program refers to."""

    component: Any
    way: tuple[Any, ...] | None = None
    """If a variable, an attribute or an object of the framework's, which uses all of its parts, names it: the objects
    that lead there, from a root on, without the component."""
    choice: Choice | None = None
    """From which the program takes it, if it is not named: it alone knows when. None if it is only held by a container
    without others of its sort (the last one used), which doesn't tell."""


class Ways:
    """Where earlier runs of a program found its components. To go one way again is exact, and takes no look at the
    whole program."""

    def __init__(self) -> None:
        self.to: dict[int, tuple[Any, ...]] = {}
        """By id of the component, which is not kept alive."""
        self.choices: dict[int, Choice] = {}
        """The same for those that it chooses."""
        self.together = Together()
        self.absent: dict[Hashable, int] = {}
        """Those not found, and how many more runs take that for granted: a call is not early then. By id and the names
        that were called, or by the call site that makes its component anew for each call: the next one is not to be
        found, either."""


class References:
    """Which components a program refers to; looked up with the first question, for the time of a run."""

    def __init__(
        self,
        roots: Iterable[Any] = (),
        is_component: Kinds = lambda value: False,
        is_opened: Kinds = lambda value: False,
        says: Says = lambda value, held: None,
        ways: Ways | None = None,
    ) -> None:
        """`says`: see `accel.parts.program.texts`. `ways`: of the program, kept from run to run."""
        self._roots = list(roots)
        self._ways = ways or Ways()
        self._step = functools.partial(_leads, is_component=is_component, is_opened=is_opened)
        self._said: dict[Hashable, bool] = {}
        self._look = functools.partial(referenced, self._roots, is_component, is_opened)
        self.said = functools.partial(said_by_program, self._roots, is_component, is_opened, says)
        self.stands = functools.partial(stands, self._roots)
        self.standing = functools.partial(standing_texts, self._roots, is_component, is_opened, says)
        self._found: dict[int, Found] | None = None

    def __call__(self, component: Any, made_at: str = "", called: AbstractSet[str] = frozenset()) -> bool:
        """Whether it refers to this one, and not to one of several that it chooses from in a way that nobody knows.
        `made_at`: the call site that makes one for each call, if one does; `called`: names that somebody has called."""
        absent_as: Hashable = made_at or (id(component), frozenset(called))
        if self._found is None:
            known = self._known(component, absent_as, called)
            if known is not None:
                return known
        found = self._all().get(id(component))
        refers = (
            found is not None
            and found.component is component
            and (found.choice is None or self._is_clear(found.choice, component, called))
        )
        if not refers:
            if len(self._ways.absent) >= MAX_ABSENT:
                self._ways.absent.clear()
            self._ways.absent[absent_as] = LOOKED_AGAIN
        return refers

    def _known(self, component: Any, absent_as: Hashable, called: AbstractSet[str]) -> bool | None:
        """By a way that was gone before; None if that doesn't tell."""
        said = self._said.get(absent_as)
        if said is not None:
            return said
        way, choice = self._ways.to.get(id(component)), self._ways.choices.get(id(component))
        if way is not None and not self._leads((*way, component)):
            return None
        if way is not None or (choice is not None and self._still_clear(choice, component, called)):
            self._said[absent_as] = True
            return True
        left = self._ways.absent.get(absent_as, 0)
        if left <= 0:
            return None
        self._ways.absent[absent_as] = left - 1
        self._said[absent_as] = False
        return False

    def _leads(self, way: tuple[Any, ...]) -> bool:
        """Whether the way still leads to its end."""
        return any(way[0] is root for root in self._roots) and all(map(self._step, way, way[1:]))

    def _still_clear(self, choice: Choice, component: Any, called: AbstractSet[str]) -> bool:
        same = all(_entries(several.container) == several.held for several in choice.among)
        return same and self._leads((*choice.way, component)) and self._is_clear(choice, component, called)

    def _is_clear(self, choice: Choice, component: Any, called: AbstractSet[str]) -> bool:
        """Whether runs use something of all that there is to choose from, or somebody has called it by a name that is
        its alone."""
        name = _name_of(component)
        if name in called and all(several.calls_one(name) for several in choice.among):
            return True
        return all(self._ways.together.uses_all(component, several.entries) for several in choice.among)

    def ran(self, used: Iterable[Any]) -> None:
        """A run that came to its end has used these components."""
        self._ways.together.note(used)

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
            self._ways.to = {at: one.way for at, one in self._found.items() if one.way is not None}
            self._ways.choices = {at: one.choice for at, one in self._found.items() if one.choice is not None}
        return self._found


def referenced(roots: Iterable[Any], is_component: Kinds, is_opened: Kinds) -> dict[int, Found]:
    """Live components by id, found through closures, globals, defaults and attributes. `is_opened`: objects of a
    framework that are looked into; objects of users' classes always are."""
    reached: dict[int, list[_Coming]] = {}
    seen: dict[int, Any] = {}
    # Nearest first: what a program refers to is near, and a large object on the way must not use up the look.
    coming: deque[_Coming] = deque(_Coming(root, 0) for root in roots)
    while coming and len(seen) < MAX_OBJECTS:
        at = coming.popleft()
        value = at.value
        if id(value) in reached:
            reached[id(value)].append(at)
        if id(value) in seen or at.depth > MAX_DEPTH:
            continue
        seen[id(value)] = value
        component = is_component(value) or is_leaf(value)
        if component or is_declared(value):
            reached[id(value)] = [at]
        framework = is_opened(value)
        container = is_a(value, CONTAINERS)
        parts = framework or (at.frameworks and container)
        for inner in _inner(value, component or framework, is_component):
            if id(inner) not in seen or id(inner) in reached:
                coming.append(_Coming(inner, at.depth + 1, parts, container and not parts, at))
    return _told_apart(reached)


def _told_apart(reached: dict[int, list[_Coming]]) -> dict[int, Found]:
    """Components that are named, and those that the program chooses. `reached`: by id, all ways to one."""
    led_to: dict[tuple[int, Hashable], tuple[Any, dict[int, dict[int, Any]]]] = {}
    """By container and sort, and by entry, the components that it leads to."""
    for at, ways in reached.items():
        sort = sort_of(ways[0].value)
        for entry in (entry for way in ways for entry in way.entries()):
            container, by_entry = led_to.setdefault((id(entry.outer), sort), (entry.outer, {}))
            by_entry.setdefault(id(entry.value), {})[at] = ways[0].value
    several = {at: _several(container, by_entry) for at, (container, by_entry) in led_to.items()}
    found = {}
    for at, ways in reached.items():
        one, sort = Found(ways[0].value), sort_of(ways[0].value)
        for way in ways:
            containers = (several[id(entry.outer), sort] for entry in way.entries())
            among = tuple(each for each in containers if each is not None)
            if not among and not way.held:
                one.way, one.choice = way.way(), None
                break
            if among and one.choice is None:
                one.choice = Choice(way.way(), among)
        found[at] = one
    return found


def _several(container: Any, by_entry: Mapping[int, Mapping[int, Any]]) -> Several | None:
    """None if it leads to one component alone, or through one entry."""
    names = {at: _name_of(component) for led in by_entry.values() for at, component in led.items()}
    if len(by_entry) < 2 or len(names) < 2:
        return None
    return Several(container, _entries(container), tuple(map(frozenset, by_entry.values())), names)


@dataclass(frozen=True, slots=True)
class _Coming:
    """What is still to be looked at."""

    value: Any
    depth: int
    frameworks: bool = False
    """It is part of an object of a framework, which uses all of its parts."""
    held: bool = False
    """By a container of the program's."""
    before: _Coming | None = None

    @property
    def outer(self) -> Any:
        """What refers to it."""
        return self.before.value if self.before is not None else None

    def way(self) -> tuple[Any, ...]:
        """The objects that lead here."""
        return tuple(reversed([at.value for at in self._back()]))[:-1]

    def entries(self) -> list[_Coming]:
        """What was held by a container on the way here, itself included; the last first."""
        return [at for at in self._back() if at.held]

    def _back(self) -> Iterator[_Coming]:
        at: _Coming | None = self
        while at is not None:
            yield at
            at = at.before


def _entries(container: Any) -> list[int]:
    return list(map(id, list(container.values() if is_a(container, dict) else container)[:MAX_HELD]))


def _leads(outer: Any, inner: Any, is_component: Kinds, is_opened: Kinds) -> bool:
    """Whether the one refers to the other, now."""
    opened = is_component(outer) or is_opened(outer)
    return any(held is inner for held in _inner(outer, opened, is_component))


def _name_of(component: Any) -> Any:
    """That by which models call it, if it has one."""
    return (own(component) or {}).get(NAME)


def _inner(value: Any, opened: bool, is_component: Kinds) -> Iterator[Any]:
    """What a value refers to, but for plain data: a tokenizer holds hundreds of thousands of words."""
    return (inner for inner in _referred(value, opened, is_component) if type(inner) not in _DATA)


_DATA = frozenset((str, bytes, int, float, bool, type(None), type))


def _referred(value: Any, opened: bool, is_component: Kinds) -> Iterator[Any]:
    cls: Any = type(value)
    if is_a(value, type):
        return
    if is_a(value, functools.partial):
        yield from (wrapped(value), value.func, *value.args, *value.keywords.values())
    elif is_a(value, types.MethodType):
        yield from (value.__self__, value.__func__)
    elif is_a(value, types.FunctionType):
        yield from _of_function(value, is_component)
    elif wraps_functions(cls):
        yield wrapped(value)  # an object that can be called
    elif is_a(value, dict):
        yield from list(dict.values(value))[:MAX_HELD]  # copied at once: another thread may change it
    elif is_a(value, CONTAINERS):
        kind: Any = next(kind for kind in CONTAINERS if is_a(value, kind))
        yield from list(kind.__iter__(value))[:MAX_HELD]  # a class of the program's may read a database then
    elif opened or _is_plain(value):
        yield from list((own(value) or {}).values())
        yield from _slots(value)  # where pydantic keeps what is private


def _slots(value: Any) -> Iterator[Any]:
    for _, slot in slots_of(type(value)):
        try:
            yield slot.__get__(value)
        except AttributeError:
            continue  # not set


def _of_function(function: types.FunctionType, is_component: Kinds) -> Iterator[Any]:
    inner = wrapped(function)
    if inner is not None:
        yield inner
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
        if is_a(value, types.ModuleType):
            for inner in names:
                attribute = vars(value).get(inner)
                if is_component(attribute) or is_a(attribute, types.FunctionType):
                    yield attribute
        elif value is not None:
            yield value


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for const in code.co_consts:
        if is_a(const, types.CodeType):
            names |= _names(const)
    return names


def _is_plain(value: Any) -> bool:
    """An object of a user's class. Library objects are looked into only where `is_opened` says so."""
    return _is_users(type(value).__module__)


@functools.lru_cache(4_096)
def _is_users(module: str) -> bool:
    package = module.partition(".")[0]
    library = package in _LIBRARIES or any(package in framework.packages for framework in frameworks())
    return not library and not module.startswith(_RECORDS)
