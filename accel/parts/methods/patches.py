"""Leaf methods of component classes, patched once on the concrete class that defines them.

A patched method gives its calls to `route`; `uninstall` restores every class.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import signature
from types import FunctionType
from typing import Any, ClassVar, Protocol

from ...process import forks
from ...text.objects import own
from .methods import METHODS, Method
from .wrappers import wrapper

enabled = True
"""False after `uninstall`, until something is accelerated again."""


def _straight_on(method: Method, instance: Any, wrapped: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return wrapped(*args, **kwargs)


route: Callable[[Method, Any, Callable[..., Any], Any, Any], Any] = _straight_on
"""Where calls of patched methods go: method, component, the leaf as bound to it, arguments. Set by
`accel.run.demands.route`, without which there are no runs."""


class Tap(Protocol):
    """Sees the calls of patched leaves, and may answer them: what is below it runs for the program and early alike."""

    def asked(self, method: Method, component: Any, args: Any, kwargs: Any) -> None:
        """The program, or a component, calls a leaf."""

    def leaf(self, method: Method, component: Any, leaf: Callable[..., Any]) -> Callable[..., Any]:
        """What runs in the place of a bound leaf, in the same colour."""


tap: Tap | None = None
"""Commands put one in for a while (`accel.commands.tapping`)."""


def reach(method: Method, component: Any, leaf: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A leaf is called, as bound to its component."""
    seen = tap
    if seen is not None:
        seen.asked(method, component, args, kwargs)
        leaf = seen.leaf(method, component, leaf)
    return route(method, component, leaf, args, kwargs)


class Place(Protocol):
    """Where a decorator of the framework keeps the function it decorates."""

    def get(self) -> Any: ...

    def put(self, function: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class _Patch:
    """What was put in the place of a leaf has it as `_self_patch`: it lives as long."""

    leaf: Any
    """The function below Accel's wrapper."""
    restore: Callable[[], None]
    now: Callable[[], Any]
    """What stands there at this moment."""


class _Methods:
    """Functions that were put in classes, or found there. Programs make classes while they run, and functions lead to
    theirs: none of both is kept alive."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[weakref.ref[type], dict[str, weakref.ref[Any]]]] = {}

    def note(self, cls: type, name: str, function: Any) -> None:
        at = id(cls)
        _, noted = self._of.setdefault(at, (weakref.ref(cls, lambda _: self._of.pop(at, None)), {}))
        noted[name] = weakref.ref(function)

    def has(self, cls: type, name: str) -> bool:
        """Whether one was noted, also if it is gone."""
        return name in self._of.get(id(cls), _NONE)[1]

    def get(self, cls: type, name: str) -> Any:
        """None if none was noted, or nobody has it any more: another one stands in its place for good."""
        noted = self._of.get(id(cls), _NONE)[1].get(name)
        return noted() if noted is not None else None

    def classes(self) -> set[type]:
        return {cls for of, _ in list(self._of.values()) if (cls := of()) is not None}

    def clear(self) -> list[Any]:
        """Those that were noted, and are not gone."""
        noted = [function() for _, functions in list(self._of.values()) for function in functions.values()]
        self._of.clear()
        return [function for function in noted if function is not None]


_NONE: tuple[Any, dict[str, Any]] = None, {}
_installed, _passing = _Methods(), _Methods()
"""What was put in the place of leaves; and methods that give their calls to a base class, as they were when that was
noted."""
_wrapped: dict[tuple[Any, str], Any] = {}
_installations = 0
_lock = forks.lock()


def _wrapper(method: Method) -> Callable[..., Any]:
    def intercept(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if method.takes is not None and not method.takes(instance):
            return wrapped(*args, **kwargs)
        if tap is None:
            return route(method, instance, wrapped, args, kwargs)
        return reach(method, instance, wrapped, args, kwargs)

    return intercept


def install(cls: type, method: Method, find: Callable[[Any], Place | None] = lambda function: None) -> None:
    """Patch `cls.name` if the class itself defines it. Idempotent.

    `find`: where the framework's decorators keep the leaf of a decorated function. It is patched there, so that their
    events and spans stay around the demand, and early calls have none.
    """
    global _installations
    METHODS.setdefault((method.family, method.name), method)
    defined = cls.__dict__.get(method.name)
    if not enabled or defined is None or is_installed(cls, method.name) or not callable(defined):
        return
    with _lock:
        if not is_installed(cls, method.name):
            place = find(defined)
            _installations += 1
            put = _in_class(cls, method, defined) if place is None else _in_place(place, method)
            _installed.note(cls, method.name, put)


def pass_on(cls: type, name: str) -> bool:
    """`cls.name` only hands its calls to the method of that name of a base class, which is the leaf; False if somebody
    has put another function in its place by now (a mock). Idempotent."""
    global _installations
    defined = cls.__dict__.get(name)
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if defined is not None and not any(_is_of(file, link) for link in _wraps(defined)):
        return False
    with _lock:
        if enabled and defined is not None and not _passing.has(cls, name):
            _installations += 1
            _passing.note(cls, name, defined)
    return True


def _is_of(file: str | None, function: Any) -> bool:
    return isinstance(function, FunctionType) and function.__code__.co_filename == file


def _in_class(cls: type, method: Method, defined: Any) -> Any:
    put = wrapper()(defined, _wrapper(method))
    put._self_patch = _Patch(defined, lambda: setattr(cls, method.name, defined), lambda: cls.__dict__.get(method.name))
    setattr(cls, method.name, put)
    return put


def _in_place(place: Place, method: Method) -> Any:
    leaf = place.get()
    intercept = _wrapper(method)

    def patched(instance: Any, *args: Any, **kwargs: Any) -> Any:
        return intercept(leaf.__get__(instance), instance, args, kwargs)

    patched.__signature__ = signature(leaf, follow_wrapped=False)  # type: ignore[attr-defined]
    patched.__name__, patched.__qualname__ = leaf.__name__, leaf.__qualname__
    patched._self_patch = _Patch(leaf, lambda: place.put(leaf), place.get)  # type: ignore[attr-defined]
    place.put(patched)
    return patched


def wrap(cls: type, name: str, look: Callable[..., Any]) -> None:
    """Put a wrapper (by wrapt's signature) around a method of a framework's class, until `uninstall`. Idempotent."""
    if not enabled or (cls, name) in _wrapped:
        return
    with _lock:
        if (cls, name) not in _wrapped:
            _wrapped[cls, name] = cls.__dict__[name]
            setattr(cls, name, wrapper()(cls.__dict__[name], look))


class Classes:
    """The classes of components that an adapter has looked at, until `uninstall`: then all count as new."""

    _all: ClassVar[list[Classes]] = []

    def __init__(self) -> None:
        self._seen: dict[int, weakref.ref[type]] = {}
        """By id; none is kept alive for it."""
        self._all.append(self)

    def new(self, base: type) -> list[type]:
        """The subclasses of a base that nobody has noted. Every run asks: no generators in each other."""
        coming: list[type] = base.__subclasses__()
        found = []
        while coming:
            cls = coming.pop()
            coming += cls.__subclasses__()
            seen = self._seen.get(id(cls))
            if seen is None or seen() is not cls:
                found.append(cls)
        return found

    def note(self, cls: type) -> None:
        at = id(cls)
        self._seen[at] = weakref.ref(cls, lambda _: self._seen.pop(at, None))

    @classmethod
    def forget(cls) -> None:
        for classes in cls._all:
            classes._seen.clear()


def is_wrapped(cls: type, name: str) -> bool:
    """Whether `wrap` has put a wrapper there."""
    return (cls, name) in _wrapped


def put(owner: Any, name: str, value: Any) -> None:
    """Put a value in the place of an attribute of a framework's module or class, until `uninstall`. Idempotent."""
    with _lock:
        if enabled and (owner, name) not in _wrapped:
            _wrapped[owner, name] = owner.__dict__[name]
            setattr(owner, name, value)


def enable() -> None:
    """Something is accelerated: classes may be patched (again)."""
    global enabled
    enabled = True


def installations() -> int:
    """How often a leaf method was patched, or all were restored."""
    return _installations


def is_installed(cls: type, name: str) -> bool:
    return _installed.has(cls, name)


def has_leaf(component: Any, name: str) -> bool:
    """Whether a concrete class of the component defines this leaf (a framework's default does not count)."""
    return any(is_installed(base, name) for base in type(component).__mro__)


def has_leaves(cls: type) -> bool:
    """Whether objects of a class, or of a subclass, have any leaf."""
    patched = _installed.classes()
    return not patched.isdisjoint(cls.__mro__) or any(cls in base.__mro__ for base in patched)


def stands(component: Any, name: str) -> bool:
    """Whether calls of this method still come to Accel: nobody has put a function in its place, on the class or the
    object, that does something else (a mock). One that says what it wraps calls it."""
    placed = (own(component) or {}).get(name)
    if placed is not None and not any(getattr(link, "__self__", None) is component for link in _wraps(placed)):
        return False
    for base in type(component).__mro__:
        if name in base.__dict__:
            if _passing.has(base, name):
                if base.__dict__[name] is _passing.get(base, name):
                    continue
                return False
            if not is_installed(base, name):
                return True
            put = _installed.get(base, name)
            # What wrapt gives who asks the class for it is another object each time, and knows what it is of.
            return put is not None and any(
                link is put or getattr(link, "_self_parent", None) is put for link in _wraps(put._self_patch.now())
            )
    return False


def _wraps(function: Any) -> Iterator[Any]:
    """A function, what it wraps, and so on."""
    for _ in range(_MAX_WRAPPED):
        if function is None:
            return
        yield function
        function = getattr(function, "__wrapped__", None)


_MAX_WRAPPED = 32


def original(component: Any, method: Method) -> Any:
    """The component's bound method below Accel's wrapper."""
    for base in type(component).__mro__:
        if method.name in base.__dict__ and not _passing.has(base, method.name):
            put = _installed.get(base, method.name)
            defined = put._self_patch.leaf if put is not None else base.__dict__[method.name]
            leaf, seen = defined.__get__(component, type(component)), tap
            return leaf if seen is None else seen.leaf(method, component, leaf)
    raise AttributeError(method.name)


def uninstall() -> None:
    """Restore every patched class."""
    global enabled, _installations
    with _lock:
        enabled = False
        for put in _installed.clear():
            put._self_patch.restore()
        _passing.clear()
        _installations += 1
        for (cls, name), function in _wrapped.items():
            setattr(cls, name, function)
        _wrapped.clear()
        Classes.forget()
