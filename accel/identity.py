"""What must be equal for two components to count as the same one (invariant 3)."""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Hashable
from typing import Any

from .values import Opaque, freeze


def identity_of(component: Any, by_object: bool) -> Hashable:
    """A component as it is now.

    `by_object`: stores, retrievers, tools are themselves only. Clients: class plus all fields, secrets by value. What
    is worked out from fields and kept (a `cached_property`) says nothing of its own, and appears with the first use.
    """
    if by_object:
        return Opaque(component)
    fields = dict(getattr(component, "__dict__", {}))
    fields.update(getattr(component, "__pydantic_private__", None) or {})
    derived = _derived_of(type(component))
    own = {str(name): _field(value) for name, value in fields.items() if name not in derived}
    return (type(component), freeze(own))


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
    """A field as identity sees it: plain data, secrets and nested configuration by value, everything else (clients,
    loggers, caches) as the object it is."""
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
    return Opaque(value)
