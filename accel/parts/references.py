"""Which live components a program refers to: what its node functions and runnables can reach without a call."""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..frameworks import frameworks
from ..text.objects import is_a, own
from .components import is_declared, sort_of
from .identity import identity_of
from .sdks import is_leaf
from .texts import Says, columns_of_program, standing_texts, stands, texts_of_program

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


@dataclass(slots=True)
class Found:
    """A component that a program refers to."""

    component: Any
    named: bool = False
    """By a variable, an attribute or an object of the framework's, which uses all of its parts."""
    one_of_several: bool = False
    """In a container with others of its class: a store for every tenant."""
    way: tuple[Any, ...] = ()
    """If it is named: the objects that lead there, from a root on, without the component."""

    @property
    def chosen(self) -> bool:
        """Whether the program alone knows if this is the one to use. That some list holds it alone (the last one used)
        doesn't tell."""
        return self.one_of_several and not self.named

    def reached(self, at: _Coming) -> None:
        if not at.held and not self.named:
            self.named, self.way = True, at.way()
        self.one_of_several |= at.one_of_several


class Ways:
    """Where earlier runs of a program found its components. To go one way again is exact, and takes no look at the
    whole program."""

    def __init__(self) -> None:
        self.to: dict[int, tuple[Any, ...]] = {}
        """By id of the component, which is not kept alive."""
        self.absent: dict[Hashable, int] = {}
        """Those not found, and how many more runs take that for granted: a call is not early then. By id, or by the
        call site that makes its component anew for each call: the next one is not to be found, either."""


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
        """`says`: see `accel.parts.texts`. `ways`: of the program, kept from run to run."""
        self._roots = list(roots)
        self._ways = ways or Ways()
        self._step = functools.partial(_leads, is_component=is_component, is_opened=is_opened)
        self._said: dict[int, bool] = {}
        self._look = functools.partial(referenced, self._roots, is_component, is_opened)
        self.texts = functools.partial(texts_of_program, self._roots, is_component, is_opened, says)
        self.columns = functools.partial(columns_of_program, self._roots, is_component, is_opened, says)
        self.stands = functools.partial(stands, self._roots)
        self.standing = functools.partial(standing_texts, self._roots, is_component, is_opened, says)
        self._found: dict[int, Found] | None = None

    def __call__(self, component: Any, made_at: str = "") -> bool:
        """Whether it refers to this one, and not to one of several that it chooses from. `made_at`: the call site that
        makes one for each call, if one does."""
        absent_as: Hashable = made_at or id(component)
        if self._found is None:
            known = self._known(component, absent_as)
            if known is not None:
                return known
        found = self._all().get(id(component))
        refers = found is not None and found.component is component and not found.chosen
        if not refers:
            if len(self._ways.absent) >= MAX_ABSENT:
                self._ways.absent.clear()
            self._ways.absent[absent_as] = LOOKED_AGAIN
        return refers

    def _known(self, component: Any, absent_as: Hashable) -> bool | None:
        """By a way that was gone before; None if that doesn't tell."""
        said = self._said.get(id(component))
        if said is not None:
            return said
        way = self._ways.to.get(id(component))
        if way is not None:
            way = (*way, component)
            if any(way[0] is root for root in self._roots) and all(map(self._step, way, way[1:])):
                self._said[id(component)] = True
                return True
            return None
        left = self._ways.absent.get(absent_as, 0)
        if left <= 0:
            return None
        self._ways.absent[absent_as] = left - 1
        self._said[id(component)] = False
        return False

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
            self._ways.to = {at: found.way for at, found in self._found.items() if found.named}
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
        component = is_component(value) or is_leaf(value)
        if component or is_declared(value):
            found[id(value)] = Found(value)
            found[id(value)].reached(at)
        framework = is_opened(value)
        several = set() if at.frameworks else _several(value, is_component)
        container = is_a(value, CONTAINERS)
        parts = framework or (at.frameworks and container)
        for inner in _inner(value, component or framework, is_component):
            if id(inner) in seen and id(inner) not in found:
                continue
            is_one = bool(several) and sort_of(inner) in several
            coming.append(_Coming(inner, at.depth + 1, is_one, parts, container and not parts, at))
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
    before: _Coming | None = None

    def way(self) -> tuple[Any, ...]:
        """The objects that lead here."""
        found: list[Any] = []
        at = self.before
        while at is not None:
            found.append(at.value)
            at = at.before
        return tuple(reversed(found))


def _leads(outer: Any, inner: Any, is_component: Kinds, is_opened: Kinds) -> bool:
    """Whether the one refers to the other, now."""
    opened = is_component(outer) or is_opened(outer)
    return any(held is inner for held in _inner(outer, opened, is_component))


def _several(value: Any, is_component: Kinds) -> set[Any]:
    """The sorts of which a container holds more than one component."""
    if not is_a(value, CONTAINERS) or len(value) < 2:
        return set()
    held = _inner(value, False, is_component)
    counts = Counter(sort_of(inner) for inner in {id(one): one for one in held}.values() if is_component(inner))
    return {sort for sort, count in counts.items() if count > 1}


def _inner(value: Any, opened: bool, is_component: Kinds) -> Iterator[Any]:
    """What a value refers to, but for plain data: a tokenizer holds hundreds of thousands of words."""
    return (inner for inner in _referred(value, opened, is_component) if type(inner) not in _DATA)


_DATA = frozenset((str, bytes, int, float, bool, type(None), type))


def _referred(value: Any, opened: bool, is_component: Kinds) -> Iterator[Any]:
    if is_a(value, type):
        return
    if is_a(value, functools.partial):
        yield from (getattr(value, "__wrapped__", None), value.func, *value.args, *value.keywords.values())
    elif is_a(value, types.MethodType):
        yield from (value.__self__, value.__func__)
    elif is_a(value, types.FunctionType):
        yield from _of_function(value, is_component)
    elif is_a(value, dict):
        yield from list(value.values())[:MAX_HELD]  # copied at once: another thread may change it
    elif is_a(value, CONTAINERS):
        yield from list(value)[:MAX_HELD]
    elif opened or _is_plain(value):
        yield from list((own(value) or {}).values())
        yield from _slots(value)  # where pydantic keeps what is private


def _slots(value: Any) -> Iterator[Any]:
    cls = type(value)
    slots = _slots_of.get(cls)
    if slots is None:
        members = [member for base in cls.__mro__ for member in list(vars(base).values())]
        slots = _slots_of[cls] = tuple(one for one in members if is_a(one, types.MemberDescriptorType))
    for slot in slots:
        try:
            yield slot.__get__(value)
        except AttributeError:
            continue  # not set


_slots_of: weakref.WeakKeyDictionary[type, tuple[types.MemberDescriptorType, ...]] = weakref.WeakKeyDictionary()
"""By class, which gets no more of them once it is made."""


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
