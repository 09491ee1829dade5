"""What must be equal for two components to count as the same one (invariant 3)."""

from __future__ import annotations

import dataclasses
import functools
import operator
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MemberDescriptorType
from typing import Any

from ..text.values import Opaque, freeze
from .clients import Anew, Identity, Known, is_client, made_of
from .listed import listed

Told = Callable[[Any], Sequence[Any]]
_told: dict[type, Told] = {}
"""Classes of objects that only pass on what components tell of themselves, and to whom."""


def tells_only(cls: type, told: Told) -> None:
    """Objects of exactly this class count as the same where they tell the same objects: a program that makes a model
    for each call makes one of these for each, too."""
    _told[cls] = told


def identity_of(component: Any, by_object: bool) -> Hashable:
    """A component as it is now.

    `by_object`: stores, retrievers, tools are themselves only. Clients: class plus all fields, secrets by value. What
    is worked out from fields and kept (a `cached_property`) says nothing of its own, and appears with the first use.
    """
    return Identities().of(component, by_object)


def alike_now(one: Any, other: Any) -> bool:
    """Whether components that count as the same are alike at this moment: their clients, too, which somebody may have
    changed since they were looked at."""
    return one is other or _clients(one) == _clients(other)


def unchanged(component: Any) -> bool:
    """Whether its clients are what they were when they were first looked at."""
    return _clients(component) == _clients(component, again=False)


def _clients(component: Any, again: bool = True) -> dict[str, Hashable]:
    held = {**getattr(component, "__dict__", {}), **(getattr(component, "__pydantic_private__", None) or {})}
    clients = {name: value for name, value in held.items() if is_client(type(value)) and not _is_kept(component, name)}
    if not again:
        return {name: made_of(value, _field, _derived_of) for name, value in clients.items()}
    known: Known = {}  # several fields hold one client, itself or by its parts
    return {name: made_of(value, _field, _derived_of, known=known) for name, value in clients.items()}


def _is_kept(component: Any, name: str) -> bool:
    """Whether a field may hold a client that the component makes of its others, with the first use."""
    cls = type(component)
    return name in _derived_of(cls) or (name.startswith("_") and listed(cls) is not None)


class Identities:
    """Of the components of one run. Fields that hold the same object again, in which nothing can change, are not looked
    into again. `seen`: how some of them were before, by id."""

    def __init__(self, seen: Mapping[int, Seen] | None = None) -> None:
        self._seen = dict(seen or {})

    def of(self, component: Any, by_object: bool) -> Hashable:
        """See `identity_of`."""
        if by_object:
            return Opaque(component)
        if is_client(type(component)):
            return made_of(component, _field, _derived_of, known=Anew())
        seen = self._seen.get(id(component))
        if seen is None:
            seen = self._seen[id(component)] = Seen(component)
        return seen.now()

    def seen(self, components: Iterable[Any]) -> dict[int, Seen]:
        """How these were when they were looked at last. It keeps them alive."""
        return {id(one): seen for one in components if (seen := self._seen.get(id(one))) is not None}


class Seen:
    """What a component was when it was looked at last."""

    def __init__(self, component: Any) -> None:
        self._component = component
        self._derived = _derived_of(type(component))
        self._last: _Look | None = None

    def now(self) -> Identity:
        held, last = _held_by(self._component), self._last
        if last is None or not last.stands(held):
            last = self._last = self._look([*held.items()], last)
        return last.identity

    def _look(self, items: list[tuple[str, Any]], last: _Look | None) -> _Look:
        before = last.fields if last is not None else {}
        same = last is not None
        fields: dict[str, _Held] = {}
        for name, value in items:
            if name in self._derived or (_is_part(name, value) and _is_kept(self._component, name)):
                continue
            held = before.get(name)
            if held is None or held[0] is not value or not _stands(held):
                parts = _items(value)  # first: if it changes meanwhile, it doesn't stand
                compared = freeze(_field(value))
                same = same and held is not None and held[1] == compared
                held = (value, compared, _telling(value, compared, parts))
            fields[name] = held
        if last is not None and same and len(before) == len(fields):
            return _Look(items, fields, last.identity)
        compared = tuple((str(name), fields[name][1]) for name in sorted(fields, key=str))
        return _Look(items, fields, Identity(type(self._component), compared))


def _held_by(component: Any) -> dict[str, Any]:
    """Its fields: attributes, those in slots, and a pydantic model's private and further ones."""
    held: dict[str, Any] = getattr(component, "__dict__", {})
    more = [more for name in _APART if (more := getattr(component, name, None))]
    slots = _slots_of(type(component))
    if more or slots:
        held = dict(held)
        for fields in more:
            held.update(fields)
        for name, slot in slots:
            with suppress(AttributeError):  # nothing is in it
                held[name] = slot.__get__(component)
    return held


_APART = ("__pydantic_private__", "__pydantic_extra__")
_slots: weakref.WeakKeyDictionary[type, list[tuple[str, Any]]] = weakref.WeakKeyDictionary()


def _slots_of(cls: type) -> list[tuple[str, Any]]:
    """The slots of a class and of those that it is made of, which hold fields."""
    found = _slots.get(cls)
    if found is None:
        found = _slots[cls] = [
            (name, slot)
            for one in cls.__mro__
            for name, slot in vars(one).items()
            if isinstance(slot, MemberDescriptorType) and not name.startswith("__pydantic_")
        ]
    return found


class _Look:
    """The fields of a component at one moment. Most hold the same object at the next one, in which nothing changes."""

    __slots__ = ("_names", "_others", "_values", "fields", "identity")

    def __init__(self, items: list[tuple[str, Any]], fields: dict[str, _Held], identity: Identity) -> None:
        self._names = [name for name, _ in items]
        self._values = [value for _, value in items]
        self._others = [held for held in fields.values() if held[2] != ()]
        """Those that may be others although they are the same objects."""
        self.fields = fields
        self.identity = identity

    def stands(self, held: dict[str, Any]) -> bool:
        """Whether these are the very same."""
        names, values = list(held), list(held.values())  # at once: another thread may set one
        same = names == self._names and len(values) == len(names) and all(map(operator.is_, values, self._values))
        return same and all(map(_stands, self._others))


_CLEANUP = "_client_cleanup"


def _is_part(name: str, value: Any) -> bool:
    """Whether it may be a client, or what closes one when nobody has it any more."""
    return value is None or name == _CLEANUP or is_client(type(value))


_Held = tuple[Any, Hashable, tuple[Any, ...] | None]
"""What a field held, how that is compared, and its parts, in which nothing can change; None if that can't be told."""
_ATOMS = (str, int, float, bytes, type(None))
_MAX_NESTED = 4


def _telling(value: Any, compared: Hashable, parts: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Those parts, if they tell whether it has changed."""
    if isinstance(value, _ATOMS) or type(compared) is Opaque or is_client(type(value)):
        return ()
    if type(value) in _told:
        return parts
    plain = all(isinstance(part, _ATOMS) or type(part) in (dict, list) for part in parts)
    return parts if parts and plain else None


def _items(value: Any) -> tuple[Any, ...]:
    """Of dicts and lists in each other: how many each has, and what; nothing if they are nested deep."""
    if type(value) in _told:
        told = _told[type(value)](value)
        return len(told), *told
    parts: list[Any] = []
    coming = [value] if type(value) is dict or type(value) is list else []
    for _ in range(_MAX_NESTED):
        inner: list[Any] = []
        for one in coming:
            held = one.copy()  # at once: another thread may change it
            parts.append(len(held))
            if type(held) is dict:
                parts += held
                held = [*held.values()]
            parts += held
            for part in held:
                if type(part) is dict or type(part) is list:
                    inner.append(part)
        if not inner:
            return tuple(parts)
        coming = inner
    return ()


def _stands(held: _Held) -> bool:
    """Whether the very same object still has the very same parts."""
    value, _, parts = held
    if not parts:
        return parts is not None
    now = _items(value)
    return len(now) == len(parts) and all(map(operator.is_, now, parts))


_derived: weakref.WeakKeyDictionary[type, frozenset[str]] = weakref.WeakKeyDictionary()


def _derived_of(cls: type) -> frozenset[str]:
    """The names of its cached properties."""
    names = _derived.get(cls)
    if names is None:
        members = [member for base in cls.__mro__ for member in list(vars(base).items())]
        names = frozenset(name for name, value in members if isinstance(value, functools.cached_property))
        _derived[cls] = names
    return names


_MAX_DEPTH = 12


def _field(value: Any, depth: int = 0) -> Any:
    """A field as identity sees it: plain data, secrets, nested configuration and clients of SDKs by value, everything
    else (loggers, caches) as the object it is."""
    if value is None or isinstance(value, str | int | float | bool | bytes):
        return value
    if depth > _MAX_DEPTH or isinstance(value, type):
        return Opaque(value)
    if isinstance(value, list | tuple):
        return [_field(item, depth + 1) for item in value]
    if isinstance(value, set | frozenset):
        return ["set", *sorted((freeze(_field(item, depth + 1)) for item in value), key=hash)]
    if isinstance(value, dict):
        if all(type(key) is str for key in value):
            return {key: _field(item, depth + 1) for key, item in value.items()}
        return ["dict", *([_field(key, depth + 1), _field(item, depth + 1)] for key, item in value.items())]
    if type(value) in _told:
        return [Opaque(type(value)), *map(Opaque, _told[type(value)](value))]
    reveal = getattr(type(value), "get_secret_value", None)  # of the class: an object may count who asks it
    if reveal is not None:
        return ["secret", reveal(value)]
    names: list[str] = []
    if isinstance(getattr(type(value), "model_fields", None), dict):
        names = [*type(value).model_fields, *(getattr(value, "__pydantic_private__", None) or ())]
    elif getattr(getattr(type(value), "__dataclass_params__", None), "eq", False):
        names = [field.name for field in dataclasses.fields(value)]
    if names:
        return [Opaque(type(value)), {name: _field(getattr(value, name, None), depth + 1) for name in names}]
    if is_client(type(value)):
        return made_of(value, _field, _derived_of)
    return Opaque(value)
