"""Clients of SDKs, by what they were made of.

A program that makes a model for each call makes a client for each, too. What such a client sends, and where, is said by
its address, key, headers and settings; its pools, locks and cookies are its own. So two clients of the same class that
were made alike count as one, whatever each has done since. A client of a user's own class is only itself.
"""

from __future__ import annotations

import ssl
import weakref
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from http.cookiejar import CookieJar
from types import MethodType
from typing import Any

from ..text.values import Opaque, freeze
from .listed_classes import LISTED

_GOOGLES = "google.genai"
"""Other packages share the first part of this name."""


def _package(module: str) -> str:
    return _GOOGLES if f"{module}.".startswith(f"{_GOOGLES}.") else module.partition(".")[0]


SDKS = frozenset(
    f"anthropic cohere {_GOOGLES} groq httpcore httpcore2 httpx httpx2 mistralai ollama openai together".split()
)
"""Packages whose classes keep what they were made of in fields, and send nothing else."""
PACKAGES = SDKS | {_package(package) for package in LISTED}
TRACER = "_lazy_tracer"
"""The field in which a client keeps what tells OpenTelemetry of its calls, from the first one on."""
OF_USE = frozenset(
    "_aiohttp_sessions _async_auth_locks _async_retry _connections _network_backend _optional_thread_lock _platform "
    f"_pool_lock _requests _retry _state _sync_auth_lock _thread_lock {TRACER}".split()
)
"""Fields that tell what an object has done, or that it makes of others, not how it was made."""
SETTINGS = "_http_options"
"""The field that holds what an SDK makes its connections of: those beside it are its own, unless they stand in it."""

Field = Callable[[Any], Any]
"""What a part that is none of an SDK's compares as."""
Kept = Callable[[type], frozenset[str]]
"""The names under which objects of a class keep what they have worked out."""


class Identity:
    """Class and fields of a component or a client, to be compared by: its hash is worked out once."""

    __slots__ = ("_hash", "cls", "fields")

    def __init__(self, cls: type, fields: tuple[tuple[str, Hashable], ...]) -> None:
        self.cls = cls
        self.fields = fields
        self._hash = hash((cls, fields))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Identity) or self._hash != other._hash or self.cls is not other.cls:
            return False
        return self.fields == other.fields

    def __hash__(self) -> int:
        return self._hash


def is_client(cls: type) -> bool:
    """Whether it is a class of an SDK's, or one that a package of the built-in table derives from such a class."""
    return _is_client(cls)


@lru_cache(4_096)
def _is_client(cls: type) -> bool:
    return _package(cls.__module__) in PACKAGES and any(_package(base.__module__) in SDKS for base in cls.__mro__)


@lru_cache(4_096)
def is_connection(cls: type) -> bool:
    """Whether it is what SDKs send with, which knows addresses and headers, but no model and no prompt."""
    return any(_package(base.__module__) in _CONNECTIONS for base in cls.__mro__)


def is_closed(component: Any) -> bool:
    """Whether a client, or the one that a part of a client sends with, was closed: it answers nothing any more."""
    client: Any = component
    while is_client(type(client)):
        closed = getattr(client, "is_closed", False)
        if closed() if callable(closed) else closed:
            return True
        client = getattr(client, "_client", None)
    return False


_CONNECTIONS = frozenset("httpcore httpcore2 httpx httpx2".split())
Known = dict[int, tuple[weakref.ref[Any], Identity]]


class Anew(Known):
    """Of one look at clients that somebody may have given another key or address since the last one. What they connect
    with is not looked at again."""


_known: Known = {}
"""By id, clients that were looked at, and what they were made of: one object is itself, whatever becomes of it. Where
one stands for another they are looked at again (`alike_now`)."""
_DEFAULT = "HttpxClientWrapper"
"""How the names of classes end of which SDKs make the connections that nobody gave them."""


def made_of(
    client: Any, field: Field, kept: Kept, outer: tuple[int, ...] = (), known: Known = _known, default: bool = False
) -> Hashable:
    """What a client was made of. `outer`: the ids of the clients that hold it; `known`: those that are not looked at
    again; `default`: the SDK made it, with settings of its own."""
    held = _known if isinstance(known, Anew) and _package(type(client).__module__) in _CONNECTIONS else known
    seen = held.get(id(client))
    if seen is not None and seen[0]() is client:
        return seen[1]
    if id(client) in outer:
        return Opaque(client)
    made = _Look(field, kept, (*outer, id(client)), known, default or type(client).__name__.endswith(_DEFAULT)).at(
        client
    )
    with suppress(TypeError):  # no weak references: looked at again each time
        held[id(client)] = weakref.ref(client, partial(_forget, id(client))), made
    return made


def _forget(at: int, _: object) -> None:
    _known.pop(at, None)


@dataclass(frozen=True, slots=True)
class _Look:
    """At the fields of a client; see `made_of`."""

    field: Field
    kept: Kept
    outer: tuple[int, ...]
    known: Known
    default: bool

    def at(self, client: Any) -> Identity:
        cls, own = type(client), vars(client)
        names = own.keys() - OF_USE - self.kept(cls)
        # First what the program gave: what is looked at is known after that.
        given = {SETTINGS: freeze(self._tree(own[SETTINGS]))} if SETTINGS in names else {}
        look = replace(self, default=True) if given else self
        rest = {name: freeze(look._tree(own[name])) for name in sorted(names - given.keys())}
        return Identity(cls, tuple((given | rest).items()))

    def _tree(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, CookieJar):
            return [[cookie.domain, cookie.name, cookie.value] for cookie in value]
        if is_client(kind) and isinstance(getattr(value, "__dict__", None), dict):
            return made_of(value, self.field, self.kept, self.outer, self.known, self.default)
        if kind is MethodType and is_client(type(value.__self__)):
            return [value.__func__.__qualname__, self._tree(value.__self__)]
        if isinstance(value, ssl.SSLContext) and self.default:
            return "the SDK's"  # it does not tell the certificates that it holds: any other one is only itself
        if kind is dict:
            return [[self.field(key), self._tree(inner)] for key, inner in value.items()]
        if kind is list or kind is tuple:
            return [self._tree(inner) for inner in value]
        return self.field(value)
