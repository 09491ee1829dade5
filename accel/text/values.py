"""Values as JSON trees: what is recorded, compared and referred to.

A *tree* is ``str | int | float | bool | None | dict[str, tree] | list[tree] | Vector | Opaque``. Adapters add views
for their framework's classes (messages, documents); everything else is seen through pydantic fields,
dataclass fields or, failing that, by identity.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from .objects import UNTOLD, field, field_names, holds_more, items

T = TypeVar("T")
Tree = Any
"""A JSON tree whose leaves may also be `Vector` or `Opaque`."""

MAX_LEAVES = 20_000
"""A value with more leaves than this is seen as opaque: looking into it would cost more than it gains."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Opaque:
    """A leaf that can't be looked into: compared by identity, kept alive so that the identity stays unique."""

    obj: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and other.obj is self.obj

    def __hash__(self) -> int:
        return id(self.obj)

    def __repr__(self) -> str:
        return f"<{type(self.obj).__name__}>"


@dataclasses.dataclass(frozen=True, slots=True)
class Vector:
    """A list of floats as one leaf, equal bit by bit: an embedding is referred to as a whole or not at all."""

    bits: bytes

    @staticmethod
    def of(numbers: list[float]) -> Vector:
        return Vector(array("d", numbers).tobytes())

    def numbers(self) -> list[float]:
        return array("d", self.bits).tolist()

    def __repr__(self) -> str:
        return f"<{len(self.bits) // 8} floats>"

    def __str__(self) -> str:
        return self.bits.hex()  # what an endpoint has seen is compared as text


SHORTEST_VECTOR = 8
"""Shorter lists of floats are lists."""


class _TooLarge(Exception):
    pass


View = Callable[[Any], Tree]
_views: dict[type, View] = {}
_exact_views: dict[type, View] = {}
_builders: dict[str, Callable[[Tree], Any]] = {}
_PLAIN, _TUPLE = "$plain", "$tuple"
_TAGS = {_PLAIN, _TUPLE}
"""Keys by which `thaw` tells what a dict stands for; a dict of the program that has one is wrapped in `_PLAIN`."""


_handed_on: set[str] = set()


def add_view(
    cls: type,
    view: View,
    tag: str,
    build: Callable[[Tree], Any],
    handed_on: Iterable[str] = (),
    exact: View | None = None,
) -> None:
    """See instances of `cls` and its subclasses as the dict `view(instance)`, whose values are viewed in turn; in exact
    snapshots as `exact(instance)`, if that is another view, which is `Opaque` of an instance that it can't tell whole.

    The dict has the key `tag`, by which `thaw` knows what to `build` again. `handed_on`: fields that go on with the
    object as they stand (what a message says of its making); nobody pastes parts of them into texts.
    """
    _views[cls], _exact_views[cls] = view, exact or view
    _builders[tag] = build
    _TAGS.add(tag)
    _handed_on.update(handed_on)


def whole(view: View) -> View:
    """An exact view of objects that `view` tells all fields of: those with further attributes are opaque."""
    return lambda value: Opaque(value) if holds_more(value) else view(value)


def is_handed_on(key: object) -> bool:
    """Whether this is the name of a field that `add_view` was told of."""
    return key in _handed_on


_lookalikes: dict[type, Callable[[Any], Tree]] = {}


def add_lookalike(cls: type, plain: Callable[[Any], Tree]) -> None:
    """See instances of exactly this class as the plain value `plain(instance)`: components can't tell them apart."""
    _lookalikes[cls] = plain


def is_view(tree: Mapping[str, Tree]) -> bool:
    """Whether a dict is the view of an object, by an adapter."""
    return not _TAGS.isdisjoint(tree)


_classes: dict[str, type] = {}


def class_name(value: Any) -> str:
    """What the class of `value` is called in trees."""
    cls = type(value)
    name = f"{cls.__module__}.{cls.__qualname__}"
    _classes[name] = cls
    return name


def is_class_name(key: str, value: Tree) -> bool:
    """Whether this is what `class_name` put under the tag of a view, maybe in another process: no text of the run's."""
    return key in _TAGS and isinstance(value, str) and isinstance(_class_called(value), type)


def _class_called(name: str) -> Any:
    module, _, own = name.rpartition(".")
    return _classes.get(name) or getattr(sys.modules.get(module), own, None)


def class_named(name: str, base: type[T]) -> type[T]:
    """The class of this name, which may have been seen in another process. Raises LookupError if it is not loaded
    here, or is no `base`: names may come from a file."""
    cls = _class_called(name)
    if not isinstance(cls, type) or not issubclass(cls, base):
        raise LookupError(f"no {base.__name__} {name} is loaded")
    return cls


def snapshot(value: Any, exact: bool = False) -> Tree:
    """A tree of `value` that later in-place mutation of `value` can't change.

    `exact`: only what `thaw` can build again is looked into; other objects stay opaque. Tuples are told from lists,
    except `value` itself, which gives a list.
    """
    try:
        if type(value) in _LEAVES:
            return value
        return _view(list(value) if type(value) is tuple else value, [MAX_LEAVES], 0, exact)
    except (_TooLarge, RecursionError, TypeError):  # the last of a class that has no hash
        return Opaque(value)


def thaw(tree: Tree) -> Any:
    """The value of which `tree` is an exact snapshot."""
    if isinstance(tree, Opaque):
        return tree.obj
    if isinstance(tree, Vector):
        return tree.numbers()
    if isinstance(tree, dict):
        if _PLAIN in tree:
            return {key: thaw(value) for key, value in tree[_PLAIN].items()}
        if _TUPLE in tree:
            return tuple(map(thaw, tree[_TUPLE]))
        values = {key: thaw(value) for key, value in tree.items()}
        tag = next((key for key in tree if key in _builders), None)
        return _builders[tag](values) if tag is not None else values
    return [thaw(item) for item in tree] if isinstance(tree, list) else tree


DATA = frozenset((str, int, float, bool, type(None), Vector))
_LEAVES = DATA | {Opaque}


def _view(value: Any, budget: list[int], depth: int, exact: bool) -> Tree:
    kind: Any = type(value)
    if kind in _LEAVES:
        return value
    if kind in _lookalikes:
        return _lookalikes[kind](value)
    if issubclass(kind, float) and not exact:
        return float.__float__(value)  # numpy's; a subclass may give another one
    budget[0] -= 1
    if budget[0] < 0 or depth > 40:
        raise _TooLarge
    if kind is list and len(value) >= SHORTEST_VECTOR and all(type(item) is float for item in value):
        return Vector.of(value)
    if kind is list or kind is tuple:
        budget[0] -= len(value)
        seen = [item if type(item) in _LEAVES else _view(item, budget, depth + 1, exact) for item in value]
        return {_TUPLE: seen} if exact and kind is tuple else seen
    if kind is dict:
        budget[0] -= len(value)
        if all(type(key) is str for key in value):
            plain = _fields(value, budget, depth, exact)
            return {_PLAIN: plain} if exact and not _TAGS.isdisjoint(value) else plain
        return Opaque(value)
    views = _exact_views if exact else _views
    for cls in kind.__mro__:
        view = views.get(cls)
        if view is not None:
            told = view(value)
            return told if type(told) is Opaque else _fields(told, budget, depth + 1, exact)
    if exact or issubclass(kind, type) or callable(value):
        return Opaque(value)
    held = items(value)
    if held is not None:
        return _view(held, budget, depth + 1, exact)
    names = field_names(kind)
    if names is not None:
        told = {name: field(value, name) for name in names}
        if not any(each is UNTOLD for each in told.values()):
            return _fields(told, budget, depth, exact)
    return Opaque(value)


def _fields(value: Mapping[str, Any], budget: list[int], depth: int, exact: bool) -> Tree:
    return {
        key: item if type(item) in _LEAVES else _view(item, budget, depth + 1, exact) for key, item in value.items()
    }


def freeze(tree: Tree) -> Hashable:
    """A hashable key: equal exactly when the trees are equal, leaf types included (``1`` is not ``True``), whatever the
    order of dicts. Flat: a run holds many, and the garbage collector looks at every tuple."""
    return _told(tree, sorted)


def exactly(tree: Tree) -> Hashable:
    """The same, but equal only if dicts have the same order, too: who writes one down, for a model, gives another
    text. Views of objects have none."""
    return _told(tree, _ordered)


def _ordered(tree: dict[str, Tree]) -> Iterable[str]:
    return sorted(tree) if is_view(tree) else tree


def _told(tree: Tree, order: Callable[[Any], Iterable[str]]) -> Hashable:
    if type(tree) in _ALONE:
        return tree  # type: ignore[no-any-return]
    told: list[Any] = []
    _tell(tree, told.append, order)
    return tuple(told)


_ALONE = frozenset((str, type(None), Vector, Opaque))
"""What stands for itself in a key."""


def _tell(tree: Tree, tell: Callable[[Any], None], order: Callable[[Any], Iterable[str]]) -> None:
    """What is in a tree, so that it can be read in one way only: texts stand for themselves, a number that no type
    precedes says how many come, of a dict (even) or a list (odd)."""
    kind = type(tree)
    if kind in _ALONE:
        tell(tree)
    elif kind is dict:
        tell(2 * len(tree))
        for key in order(tree):
            tell(key)
            value = tree[key]
            if type(value) in _ALONE:  # as most are: a call less
                tell(value)
            else:
                _tell(value, tell, order)
    elif kind is list:
        tell(2 * len(tree) + 1)
        for item in tree:
            _tell(item, tell, order)
    elif kind is float:
        tell(kind)
        tell("nan" if math.isnan(tree) else tree.hex())
    else:
        tell(kind)
        tell(tree)


def same(left: Tree, right: Tree) -> bool:
    """Tree equality with leaf types, whatever the order of dicts."""
    return left is right or freeze(left) == freeze(right)


def equal(left: Tree, right: Tree) -> bool:
    """Tree equality with leaf types, and with the order of dicts."""
    return left is right or exactly(left) == exactly(right)


def leaves(tree: Tree, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Tree]]:
    """All leaves with their paths (dict keys and list positions), in order; empty containers count as leaves."""
    found: list[tuple[tuple[Any, ...], Tree]] = []
    stack: list[tuple[tuple[Any, ...], Tree]] = [(path, tree)]
    while stack:
        here, value = stack.pop()
        if isinstance(value, dict) and value:
            stack.extend(((*here, key), value[key]) for key in reversed(value))
        elif isinstance(value, list) and value:
            stack.extend(((*here, i), value[i]) for i in range(len(value) - 1, -1, -1))
        else:
            found.append((here, value))
    return found


def containers(tree: Tree, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Tree]]:
    """All lists and dicts that hold anything, with their paths."""
    if isinstance(tree, dict | list) and tree:
        yield path, tree
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from containers(value, (*path, key))


def holds_number(tree: Tree) -> bool:
    """Whether a number is anywhere in it."""
    if isinstance(tree, dict | list):
        return any(map(holds_number, tree.values() if isinstance(tree, dict) else tree))
    return isinstance(tree, int | float) and not isinstance(tree, bool)


def texts_of(tree: Tree) -> Iterator[str]:
    """All texts of a tree, in order."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict | list):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from texts_of(value)


def length_of(tree: Tree) -> int:
    """Characters of all its texts. Asked of every call: no generators in each other."""
    if not isinstance(tree, dict | list):
        return len(tree) if isinstance(tree, str) else 0
    length = 0
    for part in tree.values() if isinstance(tree, dict) else tree:
        length += len(part) if type(part) is str else length_of(part)
    return length


def rebuild(tree: Tree, leaf: Callable[[tuple[Any, ...], Tree], Tree], path: tuple[Any, ...] = ()) -> Tree:
    """The same shape with every leaf replaced by ``leaf(path, value)``."""
    if isinstance(tree, dict) and tree:
        return {key: rebuild(value, leaf, (*path, key)) for key, value in tree.items()}
    if isinstance(tree, list) and tree:
        return [rebuild(value, leaf, (*path, i)) for i, value in enumerate(tree)]
    return leaf(path, tree)


def shape(tree: Tree) -> Hashable:
    """The skeleton of a tree: containers, keys and leaf types, without leaf values."""
    if isinstance(tree, dict):
        return ("{", *((key, shape(tree[key])) for key in sorted(tree)))
    if isinstance(tree, list):
        return ("[", *map(shape, tree))
    return "opaque" if isinstance(tree, Opaque) else type(tree).__name__
