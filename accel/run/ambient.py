"""What comes in beside a run's input: ContextVars the user set, configuration, metadata, tags, a runtime context.

An early call runs in a copy of the run's entry context and retires only where the program sees the same (invariant 3).
What was learnt in one context is used in another as far as its *dimensions* allow (`accel.learn.contexts`): every
single value there is, objects taken apart.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import datetime
import decimal
import enum
import hmac
import itertools
import logging
import operator
import os
import pathlib
import re
import threading
import types
import uuid
import weakref
from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any

from ..values import Opaque

FRAMEWORK_VARS: set[str | contextvars.ContextVar[Any]] = {
    "accel_scope",
    "accel_around",
    "accel_priority",
    "accel_cancel_token",
    "decimal_context",
    "current_async_library_cvar",
}
"""ContextVars that frameworks set for themselves, or their names; adapters add theirs."""

LISTENERS: set[type] = set()
"""Classes that frameworks tell of themselves (callback handlers): they change with every call. Adapters add theirs."""

Ambient = tuple[dict[contextvars.ContextVar[Any], Hashable], Hashable]
Dimensions = Mapping[str, str]
"""By name, what a value is: digests that begin with `=`. What can't be compared by value begins with `~`."""

MAX_DIMENSIONS = 96
MAX_HELD = 2_000
MAX_DEPTH = 6
MAX_ITEMS = 32
"""Longer lists are one value."""
CREDENTIAL = re.compile(
    r"secret|passw|credential|authorization|bearer|api[-_]?key|(access|auth|refresh|session)[-_]?token"
    r"|(^|[-_])(key|token|auth)$|token_?provider$",
    re.IGNORECASE,
)
"""Names of fields that hold credentials."""

_NUMBERS_AND_TEXTS = (str, bool, int, float, complex, bytes)
_PLAIN = (
    *_NUMBERS_AND_TEXTS, enum.Enum, uuid.UUID, decimal.Decimal, pathlib.PurePath,
    datetime.date, datetime.time, datetime.timedelta,
)  # fmt: skip
_DATALESS = (
    type(threading.Lock()), type(threading.RLock()), threading.Condition, threading.Event, threading.Semaphore,
    threading.Thread, asyncio.Lock, asyncio.Event, asyncio.Condition, asyncio.Semaphore, asyncio.AbstractEventLoop,
    asyncio.Task, logging.Logger, contextvars.Token,
)  # fmt: skip
_TRACING = ("opentelemetry.trace", "opentelemetry.sdk.", "langsmith.", "langfuse.", "ddtrace.", "sentry_sdk.")
"""Modules whose objects say where a trace belongs, and nothing about the run."""
_UUID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""What OpenTelemetry makes its keys different with in every process."""
_HEAP_TYPE = 1 << 9
SECRET = "=secret "
"""How the digest of a secret begins. They are made anew in each process: a saved plan can't tell what it was."""
_process_key = os.urandom(16)


# --- from issue to demand: is it the same? --------------------------------------------------------------------------


def user_vars(context: Mapping[contextvars.ContextVar[Any], Any]) -> dict[contextvars.ContextVar[Any], Hashable]:
    """The user's ContextVars with what they hold now: plain values, else the object and what is in it."""
    return {var: held(value) for var, value in context.items() if FRAMEWORK_VARS.isdisjoint((var, var.name))}


def held(value: Any) -> Hashable:
    """A value as it is now: equal as long as it is the same object, or equal plain data, and nothing in it changes."""
    if value is None or type(value) in (str, int, float, bool, bytes):
        return type(value), value
    return Opaque(value), data_of(value)


def data_of(value: Any) -> Hashable:
    """The single values in it, in whatever order a dict has them; equal to nothing if they are too many."""
    found = sorted(itertools.islice(_leaves("", value), MAX_HELD + 1), key=operator.itemgetter(0))
    return tuple(found) if len(found) <= MAX_HELD else Opaque(object())


def unchanged(issued: Ambient, demanded: Ambient) -> bool:
    """Whether nothing a component could read differs."""
    return issued == demanded


# --- dimensions -----------------------------------------------------------------------------------------------------


def dimensions(variables: Mapping[contextvars.ContextVar[Any], Any], beside: Mapping[str, Any]) -> dict[str, str]:
    """Every value that came in beside the input, by name. `beside`: by kind, what the framework was given; sets of
    tags. What is None says nothing."""
    given = [(f"ContextVar {_name_of(var)}", _value_of(seen)) for var, seen in variables.items()]
    found: dict[str, str] = {}
    for name, leaf in itertools.chain.from_iterable(_leaves(*told) for told in [*beside.items(), *given]):
        if name in beside and leaf in ("dict", "set"):
            continue
        if len(found) == MAX_DIMENSIONS:
            return found | {"what goes beyond the first values": _digest(Opaque(object()))}
        found[name] = _digest((found[name], _digest(leaf))) if name in found else _digest(leaf)
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class _Secret:
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class _Bulk:
    """Plain data that is too much to be taken apart: two of them prove nothing of what is in them."""

    data: str


def _value_of(seen: Any) -> Any:
    first, value = seen
    return first.obj if isinstance(first, Opaque) else value


_first_of_name: dict[str, list[contextvars.ContextVar[Any]]] = {}


def _name_of(var: contextvars.ContextVar[Any]) -> str:
    """Its name; those of further variables of that name are numbered."""
    same = _first_of_name.setdefault(var.name, [])
    if var not in same:
        same.append(var)
    return var.name if same[0] is var else f"{var.name} ({same.index(var) + 1})"


def _leaves(name: str, value: Any, depth: int = 0, within: tuple[int, ...] = ()) -> Iterator[tuple[str, Hashable]]:
    """The single values in a value, with their names; none for what holds no data. Runs no code of the user's."""
    if value is None or isinstance(value, (*_DATALESS, *LISTENERS)) or type(value).__module__.startswith(_TRACING):
        return
    if isinstance(value, _PLAIN) or hasattr(type(value), "get_secret_value"):
        yield name, _shown(name, value)
        return
    if id(value) in within:
        return
    parts = _parts(value) if depth < MAX_DEPTH else None
    if parts is not None and len(parts) > MAX_ITEMS and type(value) in _LISTS and _is_plain(value):
        yield name, _Bulk(repr(value))
    elif parts or (parts is not None and type(value) in (dict, *_LISTS)):
        yield name, type(value).__qualname__
        for key, part in parts:
            yield from _leaves(f"{name}{key}", part, depth + 1, (*within, id(value)))
    else:
        yield name, Opaque(value)


def _shown(name: str, value: Any) -> Hashable:
    if hasattr(type(value), "get_secret_value"):
        return _Secret(str(value.get_secret_value()))
    if isinstance(value, str) and CREDENTIAL.search(name.rpartition(".")[2]):
        return _Secret(value)
    if isinstance(value, enum.Enum):
        return type(value).__qualname__, value.name
    kind: Any = next((kind for kind in _NUMBERS_AND_TEXTS if isinstance(value, kind)), type(value))
    return kind.__qualname__, kind.__repr__(value)


_LISTS = (list, tuple, set, frozenset)


def _parts(value: Any) -> list[tuple[str, Any]] | None:
    """What an object consists of, by name; None if that can't be told."""
    if isinstance(value, set | frozenset):
        return list(map(_tag, sorted(value))) if all(type(item) is str for item in value) else None
    found: dict[str, Any] = {}
    if isinstance(value, dict | types.MappingProxyType):
        found = {f".{_UUID.sub('', key) if type(key) is str else _key(key)}": part for key, part in [*value.items()]}
    elif isinstance(value, list | tuple):
        names = getattr(type(value), "_fields", None) or range(len(value))
        found = {f".{key}": part for key, part in zip(names, [*value], strict=False)}
    elif not _is_open(type(value)):
        return None
    own = {**(getattr(value, "__dict__", None) or {}), **dict(_slots(value))}
    for further in ("__pydantic_extra__", "__pydantic_private__"):
        own |= own.pop(further, None) or {}
    own.pop("__pydantic_fields_set__", None)
    return [*found.items(), *((f".{key}", part) for key, part in own.items())]


def _slots(value: Any) -> Iterator[tuple[str, Any]]:
    for base in type(value).__mro__:
        for name, member in vars(base).items():
            if isinstance(member, types.MemberDescriptorType) and base.__flags__ & _HEAP_TYPE:
                with suppress(AttributeError):  # not set
                    yield name, member.__get__(value)


def _key(key: Any) -> str:
    return repr(key) if isinstance(key, _NUMBERS_AND_TEXTS) else _token(key)


def _tag(tag: str) -> tuple[str, Any]:
    """`tenant:ann` is a value of a dimension of its own; of other tags it counts whether they are there."""
    key, mark, rest = re.split(r"([:=])", tag, maxsplit=1) if re.search("[:=]", tag) else (tag, "", True)
    return f" {key}", rest


def _is_open(cls: type) -> bool:
    """Whether the fields of its objects are all there is: written in Python, on top of nothing else."""
    slots = sum(isinstance(m, types.MemberDescriptorType) for base in cls.__mro__ for m in vars(base).values())
    python = all(base.__flags__ & _HEAP_TYPE for base in cls.__mro__ if base is not object)
    return cls is types.SimpleNamespace or (python and cls.__basicsize__ <= object.__basicsize__ + 8 * (slots + 2))


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, _PLAIN) or (type(value) in _LISTS and all(map(_is_plain, value)))


def _digest(leaf: Hashable) -> str:
    if isinstance(leaf, Opaque):
        return f"~{_token(leaf.obj)}"
    if isinstance(leaf, _Secret):
        return SECRET + hmac.new(_process_key, leaf.text.encode(), "sha256").hexdigest()[:32]
    return ("~" if isinstance(leaf, _Bulk) else "=") + sha256(repr(leaf).encode()).hexdigest()[:32]


_tokens: dict[int, tuple[weakref.ref[Any], str]] = {}


def _token(obj: Any) -> str:
    """The same for the very same object, as long as it lives; another one each time if nobody can tell how long."""
    known = _tokens.get(id(obj))
    if known is not None and known[0]() is obj:
        return known[1]
    token, at = uuid.uuid4().hex, id(obj)

    def forget(gone: weakref.ref[Any]) -> None:
        if at in _tokens and _tokens[at][0] is gone:
            del _tokens[at]

    try:
        _tokens[at] = (weakref.ref(obj, forget), token)
    except TypeError:
        pass  # it has no weak references
    return token
