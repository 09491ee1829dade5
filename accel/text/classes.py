"""What is known of classes, for as long as they live. Programs make classes while they run, and `accelerate` makes one
for every object of LlamaIndex's: whoever kept such a class would keep all that its object holds.

What is known must not lead to the class itself: neither it nor its `__mro__`, members or slots.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, TypeVar
from weakref import ref

__all__ = ["of_class", "of_classes"]

C = TypeVar("C")
T = TypeVar("T")
MOST = 4_096
"""Of one function, answers are known of so many classes at a time."""


class _Known(ref[Any], Generic[T]):
    """What is known of a class."""

    __slots__ = ("at", "told")
    at: int
    told: T


def of_class(function: Callable[[C], T]) -> Callable[[C], T]:
    """Ask `function` once for each class. Classes are told apart as the objects that they are: a metaclass may say that
    two are equal, or that one has no hash."""
    known: dict[int, _Known[T]] = {}

    @wraps(function)
    def asked(cls: C) -> T:
        try:
            found = known[id(cls)]
        except KeyError:
            return ask(cls)
        return found.told if found() is cls else ask(cls)  # an id may come back

    def ask(cls: C) -> T:
        told = function(cls)
        if len(known) >= MOST:
            known.clear()
        found = _Known[T](cls, forget)
        found.at, found.told = id(cls), told
        known[found.at] = found
        return told

    def forget(found: Any) -> None:
        known.pop(found.at, None)

    return asked


def of_classes(function: Callable[..., T]) -> Callable[..., T]:
    """Ask `function` once for each two classes, and whatever else it is given in its order."""
    known: dict[Any, tuple[ref[type], ref[type], T]] = {}

    @wraps(function)
    def asked(one: type, other: type, *beside: Any) -> T:
        key = (id(one), id(other), beside)
        found = known.get(key)
        if found is not None and found[0]() is one and found[1]() is other:  # an id may come back
            return found[2]
        told = function(one, other, *beside)

        def forget(_: Any) -> None:
            known.pop(key, None)

        if len(known) >= MOST:
            known.clear()
        known[key] = ref(one, forget), ref(other, forget), told
        return told

    return asked
