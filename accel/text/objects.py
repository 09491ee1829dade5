"""What an object of the program's is, and holds, without asking it.

Objects may stand for others and work when they are looked at: Flask's `request` raises outside of a request, Django's
`request.user` reads the database. `isinstance`, `__dict__` and `getattr` would be answered by what they stand for.
"""

from __future__ import annotations

import dataclasses
import gc
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import local
from types import FunctionType, GetSetDescriptorType, MappingProxyType, MemberDescriptorType
from typing import TYPE_CHECKING, Any

from .classes import of_class

__all__ = [
    "UNTOLD", "attributes", "entries", "field", "field_names", "holds_more", "in_class", "is_a", "is_read_as_dict",
    "is_small", "items", "own", "private", "slots_of", "viewed", "wraps_functions",
]  # fmt: skip

if TYPE_CHECKING:
    from builtins import isinstance as is_a  # so that checkers narrow types by it
else:

    def is_a(value, kinds):
        """Whether the object itself is one of these. A function that `wrapt` has wrapped is a function."""
        cls = type(value)
        return issubclass(cls, kinds) or (issubclass(cls, _wrapping or _loaded()) and isinstance(value, kinds))


_wrapping: tuple[type, ...] = ()
"""The classes of what `wrapt` makes of functions, once it is loaded: to compare with them is as fast as to remember."""


def wraps_functions(cls: type) -> bool:
    """Whether objects of this class stand in the place of a function, or of what else can be called: by `wrapt`."""
    return issubclass(cls, _wrapping or _loaded())


def _loaded() -> tuple[type, ...]:
    global _wrapping
    wrapt = sys.modules.get("wrapt")
    if wrapt is not None:
        _wrapping = wrapt.FunctionWrapper, wrapt.BoundFunctionWrapper
    return _wrapping


_USUAL = vars(type("Usual", (), {}))["__dict__"].__doc__
"""What the interpreter says of the `__dict__` that it gives to classes. Those of extensions may do anything."""
_held_by: Callable[[Any, str], Any] = object.__getattribute__
"""Of an object of which is known that no code of somebody's answers."""


def own(value: Any) -> dict[str, Any] | None:
    """The attributes of an object, where it keeps them; those of a `threading.local` are of this thread. None if it has
    no place for them, or other code would give them; and for classes."""
    cls = type(value)
    if issubclass(cls, local):
        return dict(vars(value))
    return _held_by(value, "__dict__") if _has_attributes(cls) else None


@of_class
def _has_attributes(cls: Any) -> bool:
    if issubclass(cls, type) or _asks(cls):
        return False
    for base in cls.__mro__:
        member = vars(base).get("__dict__")
        if member is not None:
            known = member.__doc__ == _USUAL or base.__module__.partition(".")[0] in sys.stdlib_module_names
            return known and type(member) in (GetSetDescriptorType, MemberDescriptorType)
    return False


def attributes(value: Any) -> dict[str, Any]:
    """Those, and what a pydantic model keeps private."""
    return {**(own(value) or {}), **private(value)}


def public(value: Any) -> dict[str, Any]:
    """Of its attributes, those that are not for itself alone."""
    return {name: held for name, held in (own(value) or {}).items() if not name.startswith("_")}


def private(value: Any) -> dict[str, Any]:
    cls: Any = type(value)
    with suppress(AttributeError):  # not set
        return (_held_by(value, "__pydantic_private__") if _has_private(cls) else None) or {}
    return {}


@of_class
def _has_private(cls: type[Any]) -> bool:
    return type(in_class(cls, "__pydantic_private__")) is MemberDescriptorType


def slots_of(cls: type) -> Sequence[tuple[str, MemberDescriptorType]]:
    """The slots of a class and of its bases."""
    names, inherited = _slots(cls)
    if not names:
        return inherited
    held = ((name, vars(cls).get(name)) for name in names)
    return (*((name, slot) for name, slot in held if type(slot) is MemberDescriptorType), *inherited)


@of_class
def _slots(cls: type) -> tuple[tuple[str, ...], tuple[tuple[str, MemberDescriptorType], ...]]:
    """The names of its own, which lead to it, and those of its bases."""
    own, *inherited = (
        tuple((name, slot) for name, slot in list(vars(base).items()) if type(slot) is MemberDescriptorType)
        for base in cls.__mro__
    )
    return tuple(name for name, _ in own), sum(inherited, ())


def in_class(cls: type, name: str) -> Any:
    """What a class or the first of its bases holds under this name, or None. Neither a descriptor nor the metaclass is
    asked."""
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


@of_class
def _asks(cls: type[Any]) -> bool:
    """Whether code of its own gives every attribute."""
    return type(in_class(cls, "__getattribute__")) is FunctionType


@of_class
def field_names(cls: type[Any]) -> tuple[str, ...] | None:
    """Of a dataclass or a pydantic model; None of other classes."""
    for name in ("__pydantic_fields__", "model_fields"):  # from Pydantic 2.10 on, and before
        if type(fields := in_class(cls, name)) is dict:
            return tuple(fields)
    return tuple(each.name for each in dataclasses.fields(cls)) if in_class(cls, "__dataclass_fields__") else None


def holds_more(value: Any) -> bool:
    """Whether an instance of a dataclass or pydantic model has attributes beside its fields, private ones of a model
    too."""
    cls: Any = type(value)
    names = _only_names(cls)
    return names is None or not (own(value) or {}).keys() <= names or bool(private(value))


@of_class
def _only_names(cls: Any) -> frozenset[str] | None:
    """Of its fields; None if it has other places for attributes, or code of its own gives them."""
    names, slots = frozenset(field_names(cls) or ()), set[str]()
    for base in cls.__mro__:
        slots |= {name for name, held in vars(base).items() if type(held) is MemberDescriptorType}
    told = all(name in names or name.startswith("__") for name in slots)
    return names if told and field_names(cls) is not None and not _asks(cls) else None


UNTOLD: Any = object()
"""What only code of somebody's would tell: nobody knows it, and it equals nothing."""


def field(value: Any, name: str) -> Any:
    """What an object holds under this name, or its class for all; None if neither does. `UNTOLD` where a property or
    other code would give it."""
    cls: Any = type(value)
    if _asks(cls):
        return UNTOLD
    given = in_class(cls, name)
    if type(given) is MemberDescriptorType:
        with suppress(AttributeError):  # not set
            return given.__get__(value)
        return None
    if in_class(type(given), "__set__") is not None:
        return UNTOLD
    held = own(value) or {}
    if name in held:
        return held[name]
    return given if in_class(type(given), "__get__") is None else UNTOLD


def entries(value: dict[Any, Any]) -> dict[Any, Any]:
    """A copy of what a dict holds, made at once, as another thread may change it. A subclass is not asked."""
    cls = type(value)
    if cls is dict or type(in_class(cls, "__iter__")) is not FunctionType:
        return dict.copy(value)
    return dict([*dict.items(value)])


def viewed(view: MappingProxyType[Any, Any]) -> Any:
    """The mapping that a view of one shows, which the view would ask."""
    return next(iter(gc.get_referents(view)))


def items(value: Any) -> dict[Any, Any] | None:
    """What a dict holds, also one of a subclass, if that changes nothing in how it is read. None of other mappings:
    they may work when they are read."""
    cls = type(value)
    if cls is MappingProxyType:
        value = viewed(value)
        cls = type(value)
    return entries(value) if issubclass(cls, dict) and is_read_as_dict(cls) else None


@of_class
def is_read_as_dict(cls: type[Any]) -> bool:
    """Whether a subclass of `dict` holds what it says it does."""
    before = [base for base in cls.__mro__[: cls.__mro__.index(dict)] if base.__module__ != "collections"]
    return not any(name in vars(base) for base in before for name in _READING)


_READING = frozenset(
    ("__contains__", "__getattribute__", "__getitem__", "__iter__", "__len__", "get", "items", "keys", "values")
)


def is_small(value: Any, most: int, held: Callable[[Any], Sequence[Any] | None]) -> bool:
    """Whether there are at most so many values in it, itself and what holds others included. `held`: what a value
    holds, nothing if it is a leaf; None of what does not count as small at all."""
    left, coming = most, [value]
    while coming and left:
        left -= 1
        inside = held(coming.pop())
        if inside is None:
            return False
        coming += inside[: left + 1]
    return not coming
