"""Where a program's text was found, as a way from a root: to go it again tells what stands there now."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ...text.objects import attributes, in_class, is_a, own
from ...text.values import leaves, snapshot

Step = Callable[[Any, Any], Any]
"""From an object to one that it refers to. Raises LookupError or AttributeError where there is none."""


@dataclass(slots=True, eq=False)
class Place:
    """An object on the way, or a text at its end; several in a tuple. Never changed, but many are made."""

    step: Step
    by: Any
    before: Place | None = None
    held: bool = False
    """By a container of the program's."""
    several: bool = False
    """In a container with others like it: a prompt for every tenant."""

    def now(self, roots: Sequence[Any]) -> Any:
        """What stands there. Asked before each call leaves: no calls in each other."""
        steps: list[Place] = []
        at: Place | None = self
        while at is not None:
            steps.append(at)
            at = at.before
        value: Any = roots
        while steps:
            at = steps.pop()
            value = at.step(value, at.by)
        return value

    def to(self, step: Step, by: Any, several: bool = False) -> Place:
        """What the object there calls its own."""
        return Place(step, by, self, self.held, self.several or several)


def item(container: Any, key: Any) -> Any:
    return container[key]


def key(container: Any, at: Any) -> Any:
    """Itself, if it is there."""
    if at not in container:
        raise KeyError(at)
    return at


def nth(container: Any, number: int) -> Any:
    """Of what has no keys or positions."""
    return list(container)[number]


def field(value: Any, name: str) -> Any:
    return attributes(value)[name]


def member(cls: Any, name: str) -> Any:
    return vars(cls)[name]


def attribute(value: Any, name: str) -> Any:
    return getattr(value, name)


def variable(function: Any, name: str) -> Any:
    names = function.__code__.co_freevars
    return function.__closure__[names.index(name)].cell_contents if name in names else function.__globals__[name]


def of_module(function: Any, names: tuple[str, str]) -> Any:
    return vars(variable(function, names[0]))[names[1]]


def default(function: Any, key: Any) -> Any:
    return (function.__kwdefaults__ if is_a(key, str) else function.__defaults__)[key]


def leaf(value: Any, path: Any) -> Any:
    """Of an object as it is recorded: what is at the path, with the path."""
    return (*path, dict(leaves(snapshot(value)))[path])


def given(partial: Any, key: Any) -> Any:
    return (partial.keywords if is_a(key, str) else partial.args)[key]


def fixed(value: Any, inner: Any) -> Any:
    """What doesn't change, as code doesn't."""
    return inner


def cls_of(value: Any, _: Any) -> Any:
    return type(value)


def plainly(value: Any, name: str) -> Any:
    """Without asking a `__getattr__` of the user's."""
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return None


_STORED = (types.GetSetDescriptorType, types.MemberDescriptorType)


def wrapped(value: Any, name: str = "__wrapped__") -> Any:
    """What something keeps that wraps a function. None for what only stands for another object, as Flask's `g` does: it
    would be asked which one, and has none outside a request."""
    held = vars(value) if is_a(value, type | types.FunctionType) else own(value) or {}
    if name in held:
        return held[name]
    slot = None if is_a(value, type) else in_class(type(value), name)
    if not isinstance(slot, _STORED):
        return None
    try:
        return slot.__get__(value)
    except (AttributeError, ValueError):  # not set
        return None


def cells(function: types.FunctionType) -> dict[str, Any]:
    """What it closes over."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # not bound yet
            found[name] = cell.cell_contents
    return found
