"""What a field of a component compares as, and what tells whether it still does."""

from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
import ssl
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from http.cookiejar import CookieJar
from types import BuiltinMethodType, MappingProxyType, MethodType, SimpleNamespace
from typing import Any

from ...text.classes import of_class, of_classes
from ...text.objects import UNTOLD, field, field_names, in_class, is_a, is_read_as_dict, is_small, own, viewed
from ...text.values import Opaque, exactly, freeze
from ...trace.sites import is_ours
from ..program.kept import kept_in_use, only_noted
from .clients import (
    OF_USE,
    SETTINGS,
    Identity,
    Record,
    given_cookies,
    is_client,
    is_sdks,
    is_sender,
    kept_elsewhere,
    made_by_sdk,
    recorded,
    told_by,
)
from .own_code import is_the_programs
from .watch import Watch

Told = Callable[[Any], Sequence[Any]]
_told: dict[type, Told] = {}
"""Classes of objects that only pass on what components tell of themselves, and to whom."""


def tells_only(cls: type, told: Told) -> None:
    """Objects of exactly this class count as the same where they tell the same objects: a program that makes a model
    for each call makes one of these for each, too."""
    _told[cls] = told


Known = dict[int, tuple[Any, Identity, Watch, tuple[Record, ...]]]
"""By id, clients that were looked at: what they are made of, how that is watched, and what is known of all in them."""
_ALONE = frozenset((str, type(None)))
"""Stand for themselves when they are frozen."""
ATOMS = frozenset((*_ALONE, int, float, bool, bytes))
MAX_DEPTH = 12
MOST_SET = 64
"""Values in a setting, lists and dicts around them included."""
MAX_OPENED = 256
"""Objects of the program's own classes in one field. One that holds more is never the same."""


class Look:
    """At one field of a component of class `of`. `known`: clients that fields before it held, or looks before this one;
    `stood`: those that are known to be as they were, in this look at a component."""

    def __init__(self, known: Known, stood: set[int], of: type = object) -> None:
        self._of = of
        self.watch = Watch()
        self.records: list[Record] = []
        """Of the clients that were met."""
        self._known, self._stood = known, stood
        self._within: set[int] = set()
        """The ids of what is being looked into,"""
        self._path: dict[int, int] = {}
        """and of objects in this field how deep they are in it."""
        self._parts: dict[int, Identity] = {}
        self._opened = 0
        self._default = False
        """The SDK made it, with settings of its own."""

    def at(self, value: Any, depth: int = 0) -> Any:
        """As identity sees it: plain data, secrets, configuration, objects of the program's own classes and clients of
        SDKs by value, everything else (loggers, caches) as the object it is."""
        cls = type(value)
        if cls in ATOMS:
            return value
        if id(value) in self._path:
            return ["again", self._path[id(value)]]
        if depth > MAX_DEPTH and not is_a(value, type):
            if self.watch.has(value):
                return Opaque(value)
            self.watch.never()  # nobody could look at it with each call
            return Opaque(object())
        if id(value) in self._within:
            return Opaque(value)
        if is_a(value, enum.Enum):
            return self._with(Opaque(value), value, depth, _OF_MEMBERS)
        if is_a(value, str | int | float | bytes):
            return self._with(value, value, depth)
        if is_a(value, type):
            return self._class(value, depth)
        if is_a(value, _CONTAINERS):
            return self._container(value, cls, depth)
        if cls in _told:
            return [Opaque(cls), *map(Opaque, self.watch.told(value, "told", partial(_listed, _told[cls], value)))]
        reveal = in_class(cls, "get_secret_value")  # of the class: an object may count who asks it
        if reveal is not None:
            return ["secret", *self.watch.told(value, "secret", lambda: [reveal(value)])]
        if is_a(value, CookieJar):
            cookies = self.watch.told(value, "cookies", partial(given_cookies, value))
            return [self._dict(self.watch.fields(cookie), depth) for cookie in cookies]
        holder: Any = type(value.__self__) if cls is MethodType else None
        if holder is not None and (is_client(holder) or is_plain(holder)):
            return [Opaque(value.__func__), self.at(value.__self__, depth + 1)]
        if cls is BuiltinMethodType and is_a(value.__self__, _CONTAINERS):
            return [value.__name__, self.at(value.__self__, depth + 1)]
        if cls is partial:
            return ["partial", *(self.at(each, depth + 1) for each in (value.func, value.args, value.keywords))]
        if is_a(value, ssl.SSLContext) and self._default:
            return "the SDK's"  # it does not tell the certificates that it holds: any other one is only itself
        if is_client(cls) and own(value) is not None:
            return self.client(value) if is_sender(cls) else self._part(value)
        if is_session(cls):
            return self._session(value, depth)
        return self._object(value, cls, depth)

    def _container(self, value: Any, cls: type, depth: int) -> Any:
        """What a list, dict, set or the like holds; of the program's own classes also their attributes."""
        if is_a(value, MappingProxyType):
            return ["proxy", self.at(viewed(value), depth + 1)]
        if is_a(value, bytearray):
            return ["bytes", *self.watch.told(value, "bytes", lambda: [bytes(value)])]
        if is_a(value, UserDict | UserList | ChainMap):
            seen: Any = []
        elif is_a(value, dict):
            if not is_read_as_dict(cls):
                self.watch.never()  # code of somebody's tells what it holds
                return Opaque(object())
            seen = self._dict(self.watch.mapping(value), depth)
        elif is_a(value, tuple):
            seen = [self.at(item, depth + 1) for item in value]
        else:
            seen = [self.at(item, depth + 1) for item in self.watch.row(value)]
            if is_a(value, set | frozenset):
                seen = ["set", *sorted(map(freeze, seen), key=hash)]
        return self._with(seen, value, depth)

    def _with(self, seen: Any, value: Any, depth: int, but: frozenset[str] = frozenset()) -> Any:
        """What was seen of a value, and the attributes that it has beside that."""
        held = self.watch.fields(value) if type(value).__dictoffset__ else {}
        held = {name: held[name] for name in sorted(held.keys() - but)}
        return ["with", seen, self._dict(held, depth), self._class(type(value), depth)] if held else seen

    def _class(self, cls: type, depth: int = 0) -> Any:
        """A class; one of the program's with the data that it holds for all of its objects."""
        if not own_bases(cls):
            return Opaque(cls)
        told = self.watch.told(cls, "class", partial(_data_of, cls, self._of))
        names = dict(sorted(zip(told[::2], told[1::2], strict=True)))
        return ["class", Opaque(cls), self._dict(names, depth)] if names else Opaque(cls)

    def _dict(self, held: dict[Any, Any], depth: int) -> Any:
        if all(type(key) is str for key in held):
            return {key: self.at(item, depth + 1) for key, item in held.items()}
        return ["dict", *([self.at(key, depth + 1), self.at(item, depth + 1)] for key, item in held.items())]

    def _object(self, value: Any, cls: type, depth: int) -> Any:
        names: list[str] | None = None
        fields, params = field_names(cls), in_class(cls, "__dataclass_params__")
        if fields is not None and params is None:
            names = [*fields]
        elif fields is not None and not is_plain(cls) and params.eq:
            names = [*fields]
        elif not is_plain(cls) or _guards_itself(value):
            return Opaque(value)
        self._opened += names is None
        if self._opened > MAX_OPENED or (cls.__dictoffset__ and own(value) is None):
            self.watch.never()
            return Opaque(object())
        self._path[id(value)] = depth
        try:
            held, noted = self.watch.fields(value), only_noted(self._of, cls)
            if names is not None:
                if params is None:  # of a pydantic model: private and further ones
                    names += sorted(held.keys() - set(names) - derived_of(cls))
                names = [name for name in names if name not in noted]
                held = {name: held[name] if name in held else field(value, name) for name in names}
                if any(each is UNTOLD for each in held.values()):
                    self.watch.never()
                    return Opaque(object())
            else:
                # What SDKs call their records may be anything in a class of the program's own.
                of_use = derived_of(cls) | noted | (OF_USE if _extends(cls) else frozenset())
                kept = kept_in_use(self._of, cls)  # what it makes with the first use, but for plain settings
                of_use |= {name for name in kept & held.keys() if type(held[name]) not in ATOMS or held[name] is None}
                held = {str(name): held[name] for name in sorted(held, key=str) if name not in of_use}
            # What extends an SDK's class is only itself, as it is now.
            itself = Opaque(value) if names is None and _extends(cls) else self._class(cls, depth)
            apart = _apart(cls)
            seen = {name: Opaque(at) if name in apart else self.at(at, depth + 1) for name, at in held.items()}
            return [itself, seen]
        finally:
            del self._path[id(value)]

    def _session(self, session: Any, depth: int) -> Any:
        """What one of `requests` sends with, which a program may set between two calls."""
        held = self.watch.fields(session)
        told = {name: held.get(name) for name in ("params", "proxies", "verify", "cert")}
        if (jar := held.get("cookies")) is not None:
            told["cookies"] = self.watch.told(jar, "cookies", lambda: told_by(jar))
        if (headers := held.get("headers")) is not None:
            told["headers"] = self.watch.told(headers, "headers", lambda: [*itertools.chain(*headers.items())])
        auth = held.get("auth")
        told["auth"] = self.watch.fields(auth) if own(auth) is not None else auth
        seen = self._dict(told, depth)
        record = recorded(session, Identity(type(session), (("set to", exactly(seen)),)))
        self.records += [record] if record is not None else []
        return ["session", Opaque(session), seen]

    def client(self, client: Any) -> Hashable:
        """What a client is made of. One that was looked at is looked at again where something has changed in it."""
        if id(client) in self._within:
            return Opaque(client)
        known = self._known.get(id(client))
        if known is None or known[0] is not client or not (id(client) in self._stood or known[2].stands()):
            look = Look(self._known, self._stood, self._of)
            look._within = self._within | self._path.keys() | {id(client)}
            look._default = self._default or made_by_sdk(type(client))
            made = look._fields_of(client)
            record = recorded(client, made)
            if record is not None:
                look.records.append(record)
            known = self._known[id(client)] = client, made, look.watch, tuple(dict.fromkeys(look.records))
        self._stood.add(id(client))
        self.watch.include(known[2])
        self.records += known[3]
        return known[1]

    def _part(self, part: Any) -> Identity:
        """What clients hold to send with (headers, transports)."""
        made = self._parts.get(id(part))
        if made is None:
            self._within.add(id(part))
            made = self._parts[id(part)] = self._fields_of(part)
            self._within.discard(id(part))
        return made

    def _fields_of(self, client: Any) -> Identity:
        cls: Any = type(client)
        own = self.watch.fields(client)
        if elsewhere := kept_elsewhere(cls):
            told = self.watch.told(client, "elsewhere", partial(_asked, client, elsewhere))
            own = {**own, **dict(zip(elsewhere, told, strict=True))}
        names = own.keys() - OF_USE - derived_of(cls)
        # First what the program gave: what is looked at is known after that.
        given = {SETTINGS: exactly(self.at(own[SETTINGS]))} if SETTINGS in names else {}
        self._default = self._default or bool(given)
        rest = {
            name: own[name] if type(own[name]) in _ALONE else exactly(self.at(own[name]))
            for name in sorted(names - given.keys())
        }
        return Identity(cls, tuple((given | rest).items()))


def note_assigned(before: Watch, look: Look, is_another: bool = False) -> bool:
    """Whether somebody has given a client something since: also if it is equal to what it had, it may be something else
    the next time."""
    if not look.records or not (is_another or before.differs(look.watch, _of_use)):
        return False
    look.records[-1].changed = True
    return True


def _of_use(value: Any) -> frozenset[str]:
    return OF_USE | derived_of(type(value)) if is_client(type(value)) else frozenset()


def _listed(told: Told, value: Any) -> list[Any]:
    return list(told(value))


def _asked(client: Any, names: Sequence[str]) -> list[Any]:
    return [getattr(client, name, None) for name in names]


_OF_MEMBERS = frozenset(("_name_", "_value_", "_sort_order_", "__objclass__"))
"""What each member of an enumeration has."""
_CONTAINERS: Any = (
    list, tuple, dict, set, frozenset, deque, bytearray, MappingProxyType, UserDict, UserList, ChainMap,
)  # fmt: skip


def _data_of(cls: type, component: type) -> list[Any]:
    """Names and values of what a class and its bases hold for all objects that is no code, and is not what the calls of
    the component keep there."""
    held = [vars(base) for base in own_bases(cls)]
    names = _data_names(cls, component, tuple(map(len, held)))
    return [each for name, number in names for each in (name, held[number].get(name))]


@of_classes
def _data_names(cls: type, component: type, _: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
    """With the number of the class that holds each, as long as these have as many."""
    kept = kept_in_use(component, cls, True)
    bases = list(enumerate(own_bases(cls)))
    held = {name: (number, value) for number, base in reversed(bases) for name, value in list(vars(base).items())}
    return tuple((name, at) for name, (at, value) in held.items() if name not in kept and _is_data(name, value))


def own_bases(cls: type) -> tuple[type, ...]:
    """Those of the program's classes among them; none of an enumeration."""
    itself, others = _own_bases(cls)
    return (cls, *others) if itself else others


@of_class
def _own_bases(cls: type) -> tuple[bool, tuple[type, ...]]:
    """Whether it is one itself, which would be kept alive, and the others."""
    if issubclass(cls, enum.Enum):
        return False, ()
    own = [base for base in cls.__mro__ if is_the_programs(base) and not is_ours(base.__module__)]
    return any(base is cls for base in own), tuple(base for base in own if base is not cls)


def _is_data(name: str, value: Any) -> bool:
    kind: Any = type(value)
    if name.startswith("__") or in_class(kind, "__get__") is not None or in_class(kind, "__call__") is not None:
        return False
    return kind in ATOMS or issubclass(kind, _CONTAINERS) or is_plain(kind)


@of_class
def is_session(cls: type) -> bool:
    """Whether it is one of `requests`, or extends it."""
    return any(base.__module__ == "requests.sessions" and base.__name__ == "Session" for base in cls.__mro__)


def is_setting(value: Any) -> bool:
    """Whether it is plain data of the program's, and little of it: no rows of a store, and no component."""
    return is_small(value, MOST_SET, _set)


def _set(value: Any) -> Sequence[Any] | None:
    """What plain data holds; None of what is none."""
    cls = type(value)
    if cls in ATOMS:
        return ()
    if cls is dict:
        return [*dict.values(value)]
    if cls in (list, tuple, set, frozenset):
        return [*value]
    return [*(own(value) or {}).values()] if is_plain(cls) and not _guards_itself(value) else None


@of_class
def is_plain(cls: type) -> bool:
    """Whether objects of a class are the program's own data. What extends a library (a callback handler) works for that
    library, and is the object it is."""
    if cls is SimpleNamespace:
        return True
    bases = [base for base in cls.__mro__ if base.__module__.partition(".")[0] not in _NEUTRAL]
    own = [base for base in bases if is_the_programs(base) and not base.__module__.startswith("accel")]
    return is_the_programs(cls) and bool(own) and all(base in own or is_sdks(base) for base in bases)


@of_class
def _apart(cls: type) -> frozenset[str]:
    """The fields by which a dataclass does not compare: they are the objects that they are."""
    fields = dataclasses.fields(cls) if in_class(cls, "__dataclass_fields__") else ()
    return frozenset(each.name for each in fields if not each.compare)


@of_class
def _extends(cls: type) -> bool:
    return any(map(is_sdks, cls.__mro__))


def _guards_itself(value: Any) -> bool:
    """Whether an object holds a lock or the like: it keeps what calls do (records, counts, a pool), for many threads,
    and is no configuration."""
    return any(type(held).__module__ in _GUARDS for held in list((own(value) or {}).values()))


_GUARDS = frozenset(("_queue", "_thread", "asyncio.locks", "asyncio.queues", "queue", "threading"))
_NEUTRAL = frozenset(("abc", "builtins", "collections", "typing", "typing_extensions"))
"""Packages whose classes add no state that counts."""


@of_class
def derived_of(cls: type) -> frozenset[str]:
    """The names of its cached properties."""
    members = [member for base in cls.__mro__ for member in list(vars(base).items())]
    return frozenset(name for name, value in members if is_a(value, functools.cached_property))  # noqa: TID251
