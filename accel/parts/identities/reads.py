"""What the program's own code in a component reads beside what it is given: thread-locals, ContextVars, variables of
modules and closures, environment variables.

def _generate(self, messages, ...):
    key = KEY or KEYS["default"]    # a variable, an item: as they are now, or the component is another one
    key = os.environ["TENANT_KEY"]  # the same
    key = request.key               # a threading.local: another value on another thread

The code is what a framework calls of the component, and what that calls of the program's, as far as names tell. It is
followed once for all components of the same classes and functions.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from types import FunctionType, MethodType
from typing import Any, TypeVar

from ...text.classes import of_class
from ...text.objects import is_a
from ...text.values import Opaque
from ..listed.table import listed
from ..methods.methods import METHODS
from ..program.code import module_of, users_bases, written
from ..program.following import Following, Space, getter, is_followed, is_function, is_held, package_of
from .watch import Watch

MAX_PARTS, MAX_VALUES = 64, 64
T = TypeVar("T")
KEPT = 32
"""Of so many classes and functions together, which are kept for that, it is known what they read."""
_PLAIN = frozenset((str, int, float, bool, bytes, type(None)))
_environment: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
"""Where the interpreter keeps it."""


class Reads:
    """What code reads beside what it is given."""

    def __init__(
        self,
        local: str,
        context: bool,
        places: list[tuple[Space, str]],
        names: set[str] | None,
        named: Iterable[str] = (),
    ) -> None:
        self.local, self.context, self.named = local, context, frozenset(named)
        """The name of a thread-local; whether it reads ContextVars; and all variables and attributes that it names."""
        self._places = [(getter(space), name) for space, name in places]
        self._names = sorted(names) if names is not None else None
        """Of environment variables; None: whichever."""
        self._first: int | None = None
        self.changed = self.restless = False
        """Somebody has changed what it reads since that was first looked at, and within a run."""

    @property
    def thread_local(self) -> str:
        """The name of one that it reads, also of one that a variable has come to hold."""
        return self.local or next((name for at, name in self._places if is_a(at(name), threading.local)), "")

    def now(self) -> Hashable:
        """The values of all variables; None if there are none."""
        if not self._places and self._names == []:
            return None
        values = tuple([_seen(at(name)) for at, name in self._places])
        now = values, tuple(_environment.items() if self._names is None else map(os.environ.get, self._names))
        said = hash(now)  # no more of it: it may be a tenant's
        self._first = said if self._first is None else self._first
        self.changed = self.changed or said != self._first
        return now


NOTHING = Reads("", False, [], set())


def reads_of(component: Any, watch: Watch | None = None) -> Reads:
    """What calls of a component read, by its code and by that of the program's objects and functions in its fields.
    `watch` gets what was looked through."""
    parts = _Parts(component, Watch() if watch is None else watch)
    if parts.local:
        return Reads(parts.local, False, [], set())
    if not parts.functions and not parts.classes:
        return NOTHING
    # By weak references: classes may be made anew with each call.
    cls, *others = map(weakref.ref, (_of_the_programs(type(component)), *parts.classes))
    return _followed(cls, tuple(others), tuple(map(weakref.ref, parts.functions)), len(METHODS))


class _Parts:
    """The program's functions, and classes of its own, in a component and its fields."""

    def __init__(self, component: Any, watch: Watch) -> None:
        self._watch = watch
        self.classes: dict[type, None] = {}
        self.functions: dict[FunctionType, None] = {}
        self.local = ""
        """A field that holds a thread-local."""
        seen: dict[int, Any] = {}
        cls: Any = type(component)
        self._package = package_of(cls)
        if _kind_of(cls) in ("function", "method", "partial"):
            coming = deque([("", component, True)])
        else:
            seen[id(component)] = component
            if any(is_followed(base.__module__, self._package) for base in cls.__mro__):
                self.classes[_of_the_programs(cls)] = None
            coming = deque((name, value, True) for name, value in watch.fields(component).items())
        while coming and len(seen) < MAX_PARTS:
            name, value, opens = coming.popleft()
            of: Any = type(value)
            kind = _kind_of(of)
            if kind == "other" or id(value) in seen or (kind == "items" and not opens):
                continue
            seen[id(value)] = value
            opens = opens and kind != "held"
            coming.extend([(at, each, opens) for at, each in self._in(name, value, kind) if type(each) not in _PLAIN])

    def _in(self, name: str, value: Any, kind: str) -> Iterable[tuple[str, Any]]:
        """Of what an object in a field holds in lists and dicts, nothing is known to be called."""
        if kind == "local":
            self.local = self.local or name
        elif kind == "function":
            written_of_it = (each for each in written(value) if is_followed(module_of(each), self._package))
            self.functions.update(dict.fromkeys(written_of_it))
        elif kind == "method":
            return [(name, value.__func__), (name, value.__self__)]
        elif kind == "partial":
            return [(name, each) for each in (value.func, value.args, value.keywords)]
        elif kind == "held":
            if is_followed(type(value).__module__, self._package):
                self.classes[type(value)] = None
                return self._watch.fields(value).items()
        elif len(value) <= MAX_VALUES:
            return [(name, each) for each in self._items(value)]
        return ()

    def _items(self, value: Any) -> Iterable[Any]:
        """What a tuple holds never changes."""
        if is_a(value, tuple):
            return tuple(value)
        return self._watch.values(value) if is_a(value, dict) else self._watch.row(value)


def _of_the_programs(cls: type) -> type:
    """The class that the program has written: objects may get one more when they are accelerated, which holds them."""
    for base in users_bases(cls):
        named: object = getattr(sys.modules.get(base.__module__), base.__name__, None)
        if named is base:
            return base
    return cls


@of_class
def _kind_of(cls: Any) -> str:
    """What objects of a class are to a component that holds them."""
    if is_function(cls):
        return "function"
    found = (kind for kind, base in _KINDS if issubclass(cls, base))
    return next(found, "held" if is_held(cls) else "other")


_KINDS: tuple[tuple[str, Any], ...] = (
    ("local", threading.local), ("method", MethodType), ("partial", partial),
    ("items", list | tuple | dict),
)  # fmt: skip


@lru_cache(KEPT)
def _followed(
    component: weakref.ref[type],
    classes: tuple[weakref.ref[type], ...],
    functions: tuple[weakref.ref[FunctionType], ...],
    _: int,
) -> Reads:
    """As long as so many methods are known: any may have been declared of its class."""
    [cls] = _held((component,))
    following = Following(cls, _held(classes), _held(functions))
    following.go()
    names = None if following.whole else following.environment
    return Reads(following.local, following.context, following.read, names, following.named)


def _held(references: Iterable[weakref.ref[T]]) -> tuple[T, ...]:
    """What they refer to, which whoever asks holds."""
    return tuple(one for each in references if (one := each()) is not None)


_named: dict[int, tuple[weakref.ref[Any], frozenset[str]]] = {}


def names_in(component: Any) -> frozenset[str]:
    """The variables, attributes (".name") and arguments ("name=") that the code of a component names, where that is the
    program's own, as it was when this was asked first."""
    if listed(type(component)) is not None:
        return frozenset()
    at = id(component)
    known = _named.get(at)
    if known is not None and known[0]() is component:
        return known[1]
    named = reads_of(component).named
    with suppress(TypeError):  # no weak references: looked at again each time
        _named[at] = weakref.ref(component, lambda _: _named.pop(at, None)), named
    return named


def forget_all() -> None:
    """The interpreter ends, which finalises what modules hold, if nobody holds the modules."""
    _followed.cache_clear()


def _seen(value: Any) -> Hashable:
    """Plain data by value, else the object that it is: a list or dict that code names may hold what others do."""
    if type(value) in _PLAIN:
        return type(value), value
    return tuple(map(_seen, value)) if type(value) is tuple else Opaque(value)
