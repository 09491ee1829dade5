"""Copies that stand for a result: of data, whose identity nobody can go by."""

from __future__ import annotations

import copy
import datetime
import decimal
import enum
import fractions
import pathlib
import re
import types
import uuid
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .classes import of_class
from .objects import field_names, in_class, items, own, private
from .values import Vector, thaw


class Uncopied(Exception):
    """A result that no copy can stand for: it is whatever made it, or nobody knows what it is."""


_PLAIN: tuple[type, ...] = (str, int, float, complex, bytes)
_FIXED: tuple[type, ...] = (
    type(None), type(...), datetime.date, datetime.time, datetime.timedelta, datetime.timezone,
    decimal.Decimal, fractions.Fraction, pathlib.PurePath, re.Pattern, range, uuid.UUID,
)  # fmt: skip
"""Like those, they never change."""
_CONTAINERS = frozenset((list, tuple, dict, set, frozenset, bytearray, deque, Counter, OrderedDict))


def copy_data(result: Any) -> Any:
    """A copy that shares nothing with it that could change. Raises Uncopied of anything but plain data, arrays of
    numbers, and dataclasses and pydantic models of these."""
    for _ in changeable(result):
        pass
    try:
        return copy.deepcopy(result)
    except Exception as error:  # a class may have a way of its own
        raise Uncopied from error


def copy_vectors(result: Any) -> Any:
    """The same of embeddings, which mostly are lists of numbers."""
    if type(result) is list and _are_numbers(result):
        return list(result)
    if type(result) is list and all(type(row) is list and _are_numbers(row) for row in result):
        return [list(row) for row in result]
    return copy_data(result)


def _are_numbers(row: list[Any]) -> bool:
    return set(map(type, row)) <= {float, int}


@dataclass(frozen=True, slots=True)
class Rows:
    """Embeddings that are kept for others, in a quarter of the memory; each gets lists of its own."""

    packed: Vector | list[Vector]

    @staticmethod
    def of(result: Any) -> Rows | None:
        """None of what isn't one list of floats, or a list of those."""
        if type(result) is not list or not result:
            return None
        if _are_floats(result):
            return Rows(Vector.of(result))
        if not all(type(row) is list and _are_floats(row) for row in result):
            return None
        return Rows(list(map(Vector.of, result)))

    def lists(self) -> Any:
        return thaw(self.packed)


def _are_floats(row: list[Any]) -> bool:
    return set(map(type, row)) == {float}


def shares(result: Any, given: Iterable[Any]) -> bool:
    """Whether data holds an object that what was given holds, too, and that may change. Raises Uncopied if it isn't."""
    ours = {id(each) for each in changeable(result)}
    return bool(ours) and any(id(each) in ours for value in given for each in _changeable(value, opened=True))


def hands_back(result: Any, given: Iterable[Any]) -> bool:
    """The same of what may be anything: of the data in it."""
    given_data = {id(each) for value in given for each in _data_in(value)}
    return bool(given_data) and any(id(each) in given_data for each in _data_in(result))


def _data_in(value: Any) -> Iterator[Any]:
    return (each for each in _changeable(value, opened=True) if _inside(each, type(each)) is not None)


def changeable(value: Any) -> Iterator[Any]:
    """The objects that data is made of, apart from those that never change. Raises Uncopied if it isn't data."""
    return _changeable(value, opened=False)


def _changeable(value: Any, opened: bool) -> Iterator[Any]:
    """`opened`: what isn't data is one of them, and not looked into."""
    waiting, seen = [value], set[int]()
    while waiting:
        each = waiting.pop()
        kind: Any = type(each)
        if _is_fixed(kind) or id(each) in seen:
            continue
        seen.add(id(each))
        inside = () if kind is list and _are_numbers(each) else _inside(each, kind)
        if inside is None and not opened:
            raise Uncopied
        if kind not in (tuple, frozenset):
            yield each
        waiting += inside or ()


@of_class
def _is_fixed(kind: type) -> bool:
    """Whether its objects are what they say. Those of the program's own classes may hold more."""
    if issubclass(kind, enum.Enum):
        return True
    if issubclass(kind, _PLAIN):
        return in_class(kind, "__dict__") is None
    return issubclass(kind, _FIXED) and kind.__module__ in _STANDARD


_STANDARD = frozenset(kind.__module__ for kind in _FIXED) | {"pathlib._local"}


def _inside(value: Any, kind: Any) -> Iterable[Any] | None:
    """What an object holds, if it is data."""
    if kind in _CONTAINERS or (issubclass(kind, tuple) and in_class(kind, "_fields") is not None):
        held = items(value)
        return [*value] if held is None else [*held, *held.values()]
    if kind.__module__ == "numpy":
        return None if getattr(getattr(value, "dtype", None), "hasobject", True) else ()
    names = field_names(kind)
    if not names:  # one without fields is told by its identity alone
        return None
    extra = in_class(kind, "__pydantic_extra__")
    more = (extra.__get__(value) or {}) if type(extra) is types.MemberDescriptorType else {}
    slots = [slot for name in names if type(slot := in_class(kind, name)) is types.MemberDescriptorType]
    held = own(value)
    if held is None and len(slots) < len(names):  # other code gives its fields
        return None
    in_slots = [slot.__get__(value) for slot in slots]
    return [*(held or {}).values(), *private(value).values(), *more.values(), *in_slots]
