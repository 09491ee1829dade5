"""What a look went through, and what stood there: a few microseconds tell whether it is all the same.

An object is told by what it holds, never by itself: somebody may set a header of a client, or an attribute of a
configuration, between two calls that go through the very same object.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from operator import is_
from types import MemberDescriptorType
from typing import Any

from ...text.classes import of_class
from ...text.objects import entries, in_class, is_a, own, slots_of

_every = chain.from_iterable
_OBJECT, _DICT, _ROW, _TOLD = range(4)
_At = tuple[int, str, int]
_Part = tuple[Any, list[Any], list[Any]]
"""What holds, and what was in it: names and values."""


class Watch:
    """Of what was looked into, in the order in which it was. It keeps that alive."""

    __slots__ = ("_before", "_dicts", "_lengths", "_objects", "_parts", "_rows", "_tells", "_torn")

    def __init__(self) -> None:
        self._parts: dict[_At, _Part] = {}
        self._torn = False
        """Something changed while it was looked at."""
        self._before: list[Any] | None = None

    def __bool__(self) -> bool:
        return bool(self._parts) or self._torn

    def fields(self, value: Any) -> dict[str, Any]:
        """What an object holds: attributes, those in slots, and a pydantic model's private and further ones."""
        held: dict[str, Any] = {}
        if own(value) is not None:
            names, values = self._add((_OBJECT, "", id(value)), value, *_both(vars(value)))
            held.update(zip(names, values, strict=True))
        if apart := _apart(type(value)):
            for more in self.told(value, "apart", lambda: [_in(slot, value) for slot in apart]):
                if type(more) is dict:
                    held.update(self.mapping(more))
        slots = [each for each in slots_of(type(value)) if not each[0].startswith("__pydantic_")]
        if slots:
            told = self.told(value, "slots", lambda: [_in(slot, value) for _, slot in slots])
            held.update((name, inner) for (name, _), inner in zip(slots, told, strict=True) if inner is not _NOTHING)
        return held

    def mapping(self, value: dict[Any, Any]) -> dict[Any, Any]:
        names, values = self._add((_DICT, "", id(value)), value, *_both(value))
        return dict(zip(names, values, strict=True))

    def values(self, value: dict[Any, Any]) -> list[Any]:
        """Of a dict, whose keys count, too."""
        return self._add((_DICT, "", id(value)), value, *_both(value))[1]

    def row(self, value: Iterable[Any]) -> list[Any]:
        """The items of a list, a set or the like."""
        items = _copied(value)
        self._torn = self._torn or items is None
        return self._add((_ROW, "", id(value)), value, [], items or [])[1]

    def has(self, value: Any) -> bool:
        """Whether it was looked into."""
        return any((kind, "", id(value)) in self._parts for kind in (_OBJECT, _DICT, _ROW))

    def told(self, value: Any, what: str, tell: Callable[[], list[Any]]) -> list[Any]:
        """What an object says when it is asked: `tell` holds it."""
        return self._add((_TOLD, what, id(value)), tell, [], tell())[1]

    def never(self) -> None:
        """It holds more than anybody could look at with each call."""
        self._torn = True

    def _add(self, at: _At, holder: Any, names: list[Any], values: list[Any]) -> tuple[list[Any], list[Any]]:
        before = self._parts.get(at)
        if before is None:
            self._parts[at] = holder, names, values
        else:
            self._torn = self._torn or not (_same(before[1], names) and _same(before[2], values))
        self._before = None
        return names, values

    def include(self, other: Watch) -> None:
        """Watch what another one does, too."""
        self._torn = self._torn or other._torn
        for at, part in other._parts.items():
            before = self._parts.setdefault(at, part)
            if before is not part and not (_same(before[1], part[1]) and _same(before[2], part[2])):
                self._torn = True
        self._before = None

    def differs(self, other: Watch, passed_over: Callable[[Any], Iterable[str]]) -> bool:
        """Whether what both looked into held other objects when `other` looked, be they equal. `passed_over`: the names
        of an object's fields that say nothing."""
        return any(
            (now := other._parts.get(at)) is not None and not _same_but(part, now, passed_over(part[0]))
            for at, part in self._parts.items()
        )

    def stands(self) -> bool:
        """Whether everything holds the very same objects."""
        if self._torn:
            return False
        if self._before is None:
            self._before = self._settle()
        try:
            held = [*map(vars, self._objects), *self._dicts]
            rows = [*self._rows, *[tell() for tell in self._tells]]
            now = [*_every(held), *_every(map(dict.values, held)), *_every(rows)]
            lengths = [*map(len, held), *map(len, rows)]
        except RuntimeError:  # another thread changes one
            return False
        return lengths == self._lengths and all(map(is_, now, self._before))

    def _settle(self) -> list[Any]:
        kinds: list[list[_Part]] = [[], [], [], []]
        for (kind, _, _), part in self._parts.items():
            kinds[kind].append(part)
        self._objects, self._dicts, self._rows, self._tells = ([part[0] for part in kind] for kind in kinds)
        with_names, rows = kinds[_OBJECT] + kinds[_DICT], kinds[_ROW] + kinds[_TOLD]
        self._lengths = [len(part[2]) for part in with_names + rows]
        names, values = (list(_every(part[at] for part in with_names)) for at in (1, 2))
        return names + values + list(_every(part[2] for part in rows))


def _both(held: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    held = entries(held)
    return list(held), list(held.values())


MAX_COPIES = 64


def _copied(value: Iterable[Any]) -> list[Any] | None:
    """None if that can't be had."""
    for _ in range(MAX_COPIES):
        with suppress(RuntimeError):  # another thread changes it
            kind: Any = next(each for each in (list, set, frozenset, deque) if is_a(value, each))
            return [*kind.__iter__(value)]
    return None


def _same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))


def _same_but(one: _Part, other: _Part, names: Iterable[str]) -> bool:
    if _same(one[1], other[1]) and _same(one[2], other[2]):
        return True
    if not one[1]:
        return False
    held, now = (dict(zip(part[1], part[2], strict=True)) for part in (one, other))
    return all(held.get(name) is now.get(name) for name in (held.keys() | now.keys()).difference(names))


_APART = ("__pydantic_private__", "__pydantic_extra__")
_NOTHING = object()


@of_class
def _apart(cls: type) -> Sequence[MemberDescriptorType]:
    """Where a pydantic model keeps what are no attributes."""
    slots = (in_class(cls, name) for name in _APART)
    return [slot for slot in slots if type(slot) is MemberDescriptorType]


def _in(slot: Any, value: Any) -> Any:
    try:
        return slot.__get__(value)
    except AttributeError:
        return _NOTHING
