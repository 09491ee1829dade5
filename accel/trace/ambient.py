"""What comes in beside a run's input: ContextVars the user set, configuration, metadata, tags, a runtime context.

An early call runs in a copy of the run's entry context and retires only where the program sees the same (invariant 3).
What was learnt in one context is used in another as far as its *dimensions* allow (`accel.learn.contexts.contexts`):
every single value there is, objects taken apart.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
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
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

from ..process import forks
from ..text.objects import entries, in_class, own
from ..text.objects import items as held_by
from ..text.values import Opaque
from . import homed, tracing, webs

FRAMEWORK_VARS: set[str | contextvars.ContextVar[Any]] = {
    "accel_scope",
    "accel_around",
    "accel_batch",
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
INCOMPARABLE: Ambient = ({}, "equals nothing")
"""Of a run whose context can't even be compared with itself: nobody looks at it again (`unchanged`)."""

MAX_DIMENSIONS = 96
MAX_HELD = 2_000
MAX_DEPTH = 6
MAX_ITEMS = 32
"""Longer lists are one value."""
MAX_BULK = 20_000
"""Of longer lists nobody can tell whether they changed."""
LONG = 1_000
"""Longer texts are not copied to be compared."""
MAX_SAME_NAME = 64
"""Variables of one name that are told apart; further ones equal nothing."""
CREDENTIAL = re.compile(
    r"secret|passw|credential|authorization|bearer|api[-_]?key|(access|auth|refresh|session)[-_]?token"
    r"|(^|[-_])(key|token|auth)$|token_?provider$",
    re.IGNORECASE,
)
"""Names of fields that hold credentials."""

_NUMBERS_AND_TEXTS = (str, bool, int, float, complex, bytes, bytearray)
_PLAIN = (
    *_NUMBERS_AND_TEXTS, enum.Enum, uuid.UUID, decimal.Decimal, pathlib.PurePath,
    datetime.datetime, datetime.date, datetime.time, datetime.timedelta,
)  # fmt: skip
_DATALESS = (
    type(threading.Lock()), type(threading.RLock()), threading.Condition, threading.Event, threading.Semaphore,
    threading.Thread, asyncio.Lock, asyncio.Event, asyncio.Condition, asyncio.Semaphore, asyncio.AbstractEventLoop,
    asyncio.Task, logging.Logger, contextvars.Token, contextlib.ExitStack, contextlib.AsyncExitStack,
)  # fmt: skip
_UUID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""What OpenTelemetry makes its keys different with in every process."""
_HEAP_TYPE = 1 << 9
SECRET = "=secret "
"""How the digest of a secret begins. They are made anew in each process: a saved plan can't tell what it was."""
_process_key = os.urandom(16)


# --- from issue to demand: is it the same? --------------------------------------------------------------------------


def user_vars(context: Mapping[contextvars.ContextVar[Any], Any]) -> dict[contextvars.ContextVar[Any], Hashable]:
    """The user's ContextVars with what they hold now: plain values, else the object and what is in it."""
    return {var: held(homed.here(var, value)) for var, value in context.items() if _is_users(var, (value,))}


def set_since(
    before: Mapping[contextvars.ContextVar[Any], Any], now: Mapping[contextvars.ContextVar[Any], Any]
) -> list[str]:
    """The names of the user's ContextVars that hold another value, or none any more; nobody looks into values."""
    found = [var for var, value in now.items() if not _is_still(*homed.since(var, before.get(var, _UNSET), value))]
    found += [var for var in before if var not in now]
    return [var.name for var in found if _is_users(var, [there[var] for there in (before, now) if var in there])]


def _is_users(var: contextvars.ContextVar[Any], values: Iterable[Any]) -> bool:
    return var.name not in FRAMEWORK_VARS and var not in FRAMEWORK_VARS and not all(map(tracing.is_of_a_trace, values))


_UNSET: Any = object()


def _is_still(before: Any, value: Any) -> bool:
    return before is value or (type(before) is type(value) in (str, int, float, bool, bytes) and before == value)


def held(value: Any) -> Hashable:
    """A value as it is now: equal as long as it is the same object, or equal plain data, and nothing in it changes."""
    if value is None or type(value) in (str, int, float, bool, bytes):
        return type(value), value
    return Opaque(value), data_of(value)


def data_of(value: Any) -> Hashable:
    """The single values in it, in whatever order a dict has them; equal to nothing if they are too many."""
    found = sorted(_told("", value), key=operator.itemgetter(0))
    return tuple(found) if len(found) <= MAX_HELD else Opaque(object())


def unchanged(issued: Ambient, demanded: Ambient) -> bool:
    """Whether nothing a component could read differs."""
    return issued is not INCOMPARABLE and issued == demanded


def at_begin(
    context: Mapping[contextvars.ContextVar[Any], Any], config: Callable[[], Hashable]
) -> tuple[dict[contextvars.ContextVar[Any], Hashable], Ambient]:
    """The variables that a run begins with, and what its calls are compared by: once and for all nothing, where the
    context doesn't even equal itself."""
    first, again = (user_vars(context), config()), (user_vars(context), config())
    return first[0], first if first == again else INCOMPARABLE


# --- dimensions -----------------------------------------------------------------------------------------------------


def dimensions(variables: Mapping[contextvars.ContextVar[Any], Any], beside: Mapping[str, Any]) -> dict[str, str]:
    """Every value that came in beside the input, by name. `beside`: by kind, what the framework was given; sets of
    tags. What is None says nothing."""
    given = [(f"ContextVar {_name_of(var)}", value_of(seen)) for var, seen in variables.items()]
    found: dict[str, str] = {}
    for name, leaf in itertools.chain.from_iterable(itertools.starmap(_told, [*beside.items(), *given])):
        if name in beside and leaf in ("dict", "set"):
            continue
        if len(found) == MAX_DIMENSIONS:
            return found | {"what goes beyond the first values": digest(Opaque(object()))}
        found[name] = digest((found[name], digest(leaf))) if name in found else digest(leaf)
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class _Secret:
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class _Bulk:
    """Plain data that is too much to be taken apart: two of them prove nothing of what is in them."""

    data: Hashable


def value_of(seen: Any) -> Any:
    """Of a variable, as `user_vars` gives it."""
    first, value = seen
    return first.obj if isinstance(first, Opaque) else value


_numbers: dict[str, dict[int, int]] = {}
_numbers_lock = forks.lock()


def _name_of(var: contextvars.ContextVar[Any]) -> str:
    """Its name; those of further variables of that name are numbered. They are not kept alive for that: a new one may
    take the number of one that is gone."""
    with _numbers_lock:
        same = _numbers.setdefault(var.name, {})
        if id(var) not in same and len(same) == MAX_SAME_NAME:
            return f"{var.name} ({uuid.uuid4().hex})"
        number = same.setdefault(id(var), len(same) + 1)
    return var.name if number == 1 else f"{var.name} ({number})"


def _told(name: str, value: Any) -> list[tuple[str, Hashable]]:
    """The single values in it; a few more than `MAX_HELD` if there are more. What can't be looked through equals
    nothing."""
    try:
        return list(itertools.islice(_leaves(name, value), MAX_HELD + 1))
    except Exception:  # noqa: BLE001  # a value of the user's, of any class: the program must not see what it raises
        return [(name, Opaque(object()))]


def _leaves(name: str, value: Any, depth: int = 0, within: tuple[int, ...] = ()) -> Iterator[tuple[str, Hashable]]:
    """The single values in a value, with their names; none for what holds no data. Runs no code of the user's: even
    `isinstance` would, of an object that stands for another one."""
    kind = type(value)
    if value is None or issubclass(kind, (*_DATALESS, *LISTENERS)) or kind.__module__.startswith(tracing.MODULES):
        return
    if issubclass(kind, _PLAIN) or in_class(kind, "get_secret_value"):
        yield name, _shown(name, value)
        return
    if id(value) in within:
        return
    parts = _parts(value) if depth < MAX_DEPTH and not webs.is_machinery(kind) else None
    data, few = None, parts is not None and len(parts) <= MAX_ITEMS
    if kind in (*_LISTS, *_SETS) and (not few or (kind in _SETS and not _are_tags(value))):
        data = _plainly(value, 0, [MAX_BULK])
    if data is not None:
        yield name, (kind.__qualname__, data) if few else _Bulk(data)
    elif parts or (parts is not None and issubclass(kind, (dict, *_LISTS, *_SETS))):
        yield name, kind.__qualname__
        for key, part in parts:
            yield from _leaves(f"{name}{key}", part, depth + 1, (*within, id(value)))
    else:
        yield name, Opaque(value)


def _shown(name: str, value: Any) -> Hashable:
    if in_class(type(value), "get_secret_value"):
        return _Secret(str(value.get_secret_value()))
    if issubclass(type(value), str) and CREDENTIAL.search(name.rpartition(".")[2]):
        return _Secret(str.__str__(value))
    return _exactly(value)


def _exactly(value: Any) -> Hashable:
    """A single value, so that it equals what is the same."""
    cls = type(value)
    if value is None:
        return None
    if issubclass(cls, enum.Enum) and type(value._name_) is str:
        return cls.__qualname__, value._name_
    kind: Any = next(kind for kind in _PLAIN if issubclass(cls, kind))
    if kind is int:
        return kind.__qualname__, _number(value)
    if kind in (str, bytes, bytearray) and kind.__len__(value) > LONG:
        if kind is bytearray:  # it may change
            return kind.__qualname__, "long", sha256(bytearray.__getitem__(value, slice(None))).hexdigest()
        return kind.__qualname__, "long", str.__str__(value) if kind is str else bytes.__getitem__(value, slice(None))
    named = kind if kind in _NUMBERS_AND_TEXTS else cls
    return named.__qualname__, kind.__repr__(value)


def _number(value: int) -> str:
    """Python refuses to write a very long one in decimal."""
    return int.__repr__(value) if int.bit_length(value) < LONG else hex(value)


_LISTS = (list, tuple, collections.deque)
_SETS = (set, frozenset)
_COPY: dict[type, Callable[[Any], list[Any]]] = {
    list: lambda value: list.__getitem__(value, slice(None)),
    tuple: lambda value: [*tuple.__iter__(value)],
    collections.deque: lambda value: [*collections.deque.__iter__(value)],
    set: lambda value: [*set.__iter__(value)],
    frozenset: lambda value: [*frozenset.__iter__(value)],
}
"""What is in a container, whatever its class makes of iteration."""


def _items(value: Any) -> list[Any]:
    return next(copy(value) for kind, copy in _COPY.items() if issubclass(type(value), kind))


def _parts(value: Any) -> list[tuple[str, Any]] | None:
    """What an object consists of, by name; None if that can't be told."""
    cls = type(value)
    found: list[tuple[str, Any]] = []
    if issubclass(cls, _SETS):
        items = _items(value)
        return [*map(_tag, sorted(items))] if _are_tags(value) else [(f" {_token(item)}", item) for item in items]
    if issubclass(cls, dict | types.MappingProxyType):
        inside = entries(value) if issubclass(cls, dict) else held_by(value)
        if inside is None:
            return None
        found = [(f".{_UUID.sub('', key) if type(key) is str else _key(key)}", part) for key, part in inside.items()]
    elif issubclass(cls, _LISTS):
        items = _items(value)
        names = getattr(cls, "_fields", None) or range(len(items))
        found = [(f".{key}", part) for key, part in zip(names, items, strict=False)]
    elif not _is_open(cls):
        return None
    held = {**(own(value) or {}), **dict(_slots(value))}
    for further in ("__pydantic_extra__", "__pydantic_private__"):
        held |= held.pop(further, None) or {}
    held.pop("__pydantic_fields_set__", None)
    return webs.data(cls, [*found, *((f".{key}", part) for key, part in held.items())])


def _slots(value: Any) -> Iterator[tuple[str, Any]]:
    for base in type(value).__mro__:
        for name, member in vars(base).items():
            if isinstance(member, types.MemberDescriptorType) and base.__flags__ & _HEAP_TYPE:
                with contextlib.suppress(AttributeError):  # not set
                    yield name, member.__get__(value)


def _key(key: Any) -> str:
    kind = type(key)
    if kind is int:
        return _number(key)
    if kind in _NUMBERS_AND_TEXTS:
        return repr(key)
    return repr(_exactly(key)) if issubclass(kind, _PLAIN) else _token(key)


def _are_tags(value: Any) -> bool:
    return all(type(item) is str for item in _items(value))


def _tag(tag: str) -> tuple[str, Any]:
    """`tenant:ann` is a value of a dimension of its own; of other tags it counts whether they are there."""
    key, mark, rest = re.split(r"([:=])", tag, maxsplit=1) if re.search("[:=]", tag) else (tag, "", True)
    return f" {key}", rest


def _is_open(cls: type) -> bool:
    """Whether the fields of its objects are all there is: written in Python, on top of nothing else."""
    slots = sum(isinstance(m, types.MemberDescriptorType) for base in cls.__mro__ for m in vars(base).values())
    python = all(base.__flags__ & _HEAP_TYPE for base in cls.__mro__ if base is not object)
    return cls is types.SimpleNamespace or (python and cls.__basicsize__ <= object.__basicsize__ + 8 * (slots + 2))


def _plainly(value: Any, depth: int, left: list[int]) -> Hashable:
    """Plain data, all of it; None if anything in it is something else, or it is nested too deep."""
    kind = type(value)
    if value is None or issubclass(kind, _PLAIN):
        return ("", _exactly(value))
    if kind not in (*_LISTS, *_SETS) or depth > MAX_DEPTH:
        return None
    items = _items(value)
    left[0] -= len(items)
    if left[0] < 0:
        raise OverflowError("too much to be compared")
    found = [_plainly(item, depth + 1, left) for item in items]
    if None in found:
        return None
    return kind.__qualname__, tuple(sorted(found, key=repr) if kind in _SETS else found)


def digest(leaf: Hashable) -> str:
    """What a value is, without telling it: see `Dimensions`."""
    if isinstance(leaf, Opaque):
        return f"~{_token(leaf.obj)}"
    if isinstance(leaf, _Secret):
        return SECRET + hmac.new(_process_key, leaf.text.encode("utf-8", "surrogatepass"), "sha256").hexdigest()[:32]
    text = repr(leaf).encode("utf-8", "surrogatepass")
    return ("~" if isinstance(leaf, _Bulk) else "=") + sha256(text).hexdigest()[:32]


def digest_of_secret(text: str) -> str:
    """See `SECRET`."""
    return digest(_Secret(text))


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
