"""The program's own texts: constants of its code, its prompt templates, what its components say, and the texts that its
variables, attributes and dicts held when it was accelerated, and still hold.

A text in a learnt template that is none of them is somebody's data, whatever the runs have in common (invariant 10).
So is what has come into a variable since: any code may have put it there, also some that is not found from here.
"""

from __future__ import annotations

import enum
import functools
import re
import sys
import types
import typing
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import Any

from ...process.spare import breathe
from ...text.constants import Table
from ...text.objects import attributes, is_a, public
from ...text.values import leaves, snapshot
from ...trace.ambient import CREDENTIAL
from . import places
from .code import Stored, choices, codes, factories, function_of, is_users, named_by, stored_by
from .places import Place, Step, cells
from .printed import in_print
from .said import NOTHING, Column, Said, Standing
from .steps import Keys, taken_by_keys
from .wording import FEWEST_WORDS

MAX_OBJECTS = 4_000
MAX_DEPTH = 12
MAX_HELD = 2_000
"""Of one container."""
MAX_ENTRIES = 20_000
"""Of all dicts and lists that code names."""
MAX_STANDING = 5_000
MAX_ROWS = 32
"""Of a list or dict that a program may go through from its first entry to its last."""
_TEMPLATE = re.compile(r"(?<![\w{\\])\{[a-z_]\w*\}")

Kinds = Callable[[Any], bool]

Says = Callable[[Any, bool], Any]
"""What of an object of a framework's is the program's text, or None. Told whether a list or dict holds the object: then
a message may be anybody's. What a text or list says (a message's content) must have stood there like a variable's."""


def said_by_program(
    roots: Iterable[Any], is_component: Kinds, is_opened: Kinds, says: Says, standing: Standing = NOTHING
) -> Said:
    """What is reached from `roots` without a call. `is_opened`: objects of a framework that are looked into."""
    look = _look_through(roots, is_component, is_opened, says)
    stored = {stored for code in look.codes for stored in stored_by(code)}
    held = {text: place for text, place in look.held(stored).items() if hash(text) in standing.texts}
    named = {name if isinstance(name, str) else name[0] for name in stored}
    columns = [column for name, column in look.columns if name not in named and _hash(name, column) in standing.columns]
    rows = [(table, name) for name, table in look.tables if name not in named]
    tables = [tuple(row for row in table if hash((name, *row)) in standing.rows) for table, name in rows]
    moved = [row for table, name in rows for row in table if hash((name, *row)) not in standing.rows]
    return Said({**held, **look.texts}, look.held(()), columns, [*filter(None, tables)], moved)


def _hash(name: str, column: Column) -> int:
    return hash((name, *(text for text, _ in column)))


def stands(roots: Sequence[Any], text: str, place: Place) -> bool:
    """Whether a text is still where it was found."""
    try:
        return text in _said(place.now(roots))
    except Exception:  # noqa: BLE001 - a user's object may answer a look with anything; then it says nothing
        return False


def standing_texts(roots: Iterable[Any], is_component: Kinds, is_opened: Kinds, says: Says) -> Standing:
    """Asked for when the program is accelerated, on its path."""
    look = _look_through(roots, is_component, is_opened, says)
    columns = (_hash(name, column) for name, column in look.columns)
    texts = map(hash, islice(look.held(()), MAX_STANDING))
    rows = (hash((name, *row)) for name, table in look.tables for row in table)
    return Standing(frozenset(texts), *(frozenset(islice(hashes, MAX_STANDING)) for hashes in (columns, rows)))


def _look_through(roots: Iterable[Any], is_component: Kinds, is_opened: Kinds, says: Says) -> _Look:
    roots = list(roots)
    look = _looked_through(roots, _Look(is_component, is_opened, says), frozenset())
    if alone := look.taken_alone():
        look = _looked_through(roots, _Look(is_component, is_opened, says), alone)
    look.look_up()
    return look


def _looked_through(roots: Sequence[Any], look: _Look, alone: Set[tuple[int, Any]]) -> _Look:
    """`alone`: entries of dicts that are none of several, as code takes each by a constant key."""
    seen: dict[int, Any] = {}
    coming = deque((root, 0, Place(places.item, number), True) for number, root in enumerate(roots))
    while coming and len(seen) < MAX_OBJECTS:
        value, depth, place, opened = coming.popleft()
        if id(value) in seen or depth > MAX_DEPTH:
            continue
        seen[id(value)] = value
        breathe()
        try:
            found = [way for way in look.into(value, place) if type(way[2]) not in _DATA]
            container = is_a(value, _CONTAINERS)
            inside = (place.held and not is_a(value, _CODE)) or container
            kinds = Counter(type(inner) for _, _, inner in found) if container and not opened else {}
            opens = look.is_opened(value) or (opened and container)
        except Exception:  # noqa: BLE001 - a user's object may answer a look with anything; then it says nothing
            continue
        for step, by, inner in found:
            one_of_many = kinds.get(type(inner), 0) > 1 and (id(value), by) not in alone
            several = inside and (place.several or one_of_many)
            coming.append((inner, depth + 1, Place(step, by, place, inside, several), opens))
    return look


_DATA = frozenset((str, bytes, int, float, bool, type(None)))
_CONTAINERS = (dict, list, tuple, set, frozenset, deque)
_CODE = (types.FunctionType, types.MethodType, functools.partial, type)

Way = tuple[Step, Any, Any]
"""How an object refers to another one, and to which."""


Keep = Callable[[Any, Place], None]


def _saying(value: Any, by: tuple[Says, bool]) -> Any:
    says, held = by
    return says(value, held)


def _of_module(of: str) -> Step:
    return lambda function, name: places.of_module(function, (of, name))


def _of_base(base: type) -> Step:
    return lambda cls, name: places.member(base, name)


class _Look:
    def __init__(self, is_component: Kinds, is_opened: Kinds, says: Says) -> None:
        self.is_component, self.is_opened, self.says = is_component, is_opened, says
        self.texts: dict[str, Place | None] = {}
        """What code, prompts and components say, and where it stands; None of constants."""
        self.found: dict[tuple[Stored, str], Place] = {}
        """What variables, attributes and dicts hold, nearest first, and where."""
        self.names: set[str] = set()
        """What code names."""
        self.columns: list[tuple[str, Column]] = []
        """Of lists and dicts, by the name that code has for them;"""
        self.tables: list[tuple[str, Table]] = []
        """of dicts what goes with each key: a text, what the entry has in one field, or either as it is printed;"""
        self._in_rows: set[tuple[str, int]] = set()
        """those that were looked at: many functions may name one."""
        self.codes: list[types.CodeType] = []
        self._entries = MAX_ENTRIES
        self._dicts: dict[int, tuple[Any, dict[str, Place], set[Keys]]] = {}
        """Dicts and lists that code names: by which names, where they stand, and by which keys it takes entries."""

    def held(self, stored: Collection[Stored]) -> dict[str, Place]:
        """The texts of variables and attributes that code names, but for what it assigns to itself while it runs: that
        may hold anybody's."""
        found: dict[str, Place] = {}
        for (name, text), place in self.found.items():
            if name not in stored and (is_a(name, tuple) or not name or name in self.names):
                found.setdefault(text, place)
        return found

    def into(self, value: Any, place: Place) -> Iterator[Way]:
        """Note the texts of an object there; what to look into next. It may be held by a list or dict, which may be of
        data."""
        self._place, held = place, place.held
        if type(value) in _DATA or is_a(value, types.ModuleType):
            return
        said = self.says(value, held)
        if said is not None:
            keep = self._hold if is_a(said, str | list) else self._keep
            yield from self._all_in(said, place.to(_saying, (self.says, held)), 0, keep)
        if is_a(value, functools.partial):
            for at, inner in (*enumerate(value.args), *value.keywords.items()):
                self._hold(inner, place.to(places.given, at))
            yield places.attribute, "func", value.func
            yield from ((places.given, at, inner) for at, inner in enumerate(value.args))
            yield from ((places.given, key, inner) for key, inner in value.keywords.items())
        elif is_a(value, types.MethodType):
            yield places.attribute, "__self__", value.__self__
            yield places.attribute, "__func__", value.__func__
        elif is_a(value, types.FunctionType):
            yield from self._of_function(value)
        elif is_a(value, type):
            yield from self._of_class(value)
        elif is_a(value, _CONTAINERS):
            yield from _parts(value)
        elif self.is_component(value) or self.is_opened(value) or is_users(type(value)):
            own = attributes(value)
            if self.is_component(value):
                for name, inner in own.items():
                    if not CREDENTIAL.search(name):
                        self._keep(inner, place.to(places.field, name))
            if not held:
                self._name(own, places.field)
            yield from ((places.field, name, inner) for name, inner in own.items())
            yield places.cls_of, None, type(value)

    def _keep(self, value: Any, place: Place) -> None:
        for text in _said(value):
            self.texts.setdefault(text, place)

    def _fix(self, values: Iterable[Any]) -> None:
        """Constants."""
        self.texts.update({text: None for value in values for text in _said(value)})

    def _hold(self, value: Any, place: Place) -> None:
        """Code uses it in any case."""
        for text in _said(value):
            self.found.setdefault(("", text), place)

    def _name(self, held: Mapping[str, Any], step: Step) -> None:
        for name, value in list(held.items()):
            if type(value) in _DATA or is_a(value, tuple | frozenset | re.Pattern):
                place = self._place.to(step, name)
                for text in _said(value):
                    self.found.setdefault((name, text), place)

    def _all_in(self, value: Any, place: Place, depth: int, keep: Keep) -> Iterator[Way]:
        """All texts in it; what else there is to look into."""
        keep(value, place)
        if depth > MAX_DEPTH or self.is_component(value):
            return
        if is_a(value, type | types.FunctionType | types.MethodType | functools.partial):
            yield places.fixed, value, value
            return
        if is_a(value, dict):
            for key in list(value):  # another thread may change it
                yield from self._all_in(key, place.to(places.key, key), depth + 1, keep)
        for step, by, inner in _parts(value):
            yield from self._all_in(inner, place.to(step, by), depth + 1, keep)

    def _of_function(self, function: types.FunctionType) -> Iterator[Way]:
        users = is_users(function)
        if not users and not self.is_opened(function):  # what a framework was given to make a node of
            yield from ((places.variable, name, inner) for name, inner in cells(function).items())
            return
        names: set[str] = set()
        constants: set[Any] = {function.__name__}
        taken: dict[str, set[Keys]] = {}
        for code in codes(function.__code__):
            names.update(code.co_names)
            constants.update(code.co_consts, code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
            if users:
                self.codes.append(code)
                for name, keys in taken_by_keys(code):
                    taken.setdefault(name, set()).add(keys)
        self._fix(constant for constant in constants if users or FEWEST_WORDS <= len(str(constant).split()))
        named = named_by(function)
        self.names |= names | named.keys()
        self._name(named, places.variable)
        ways: list[Way] = [(places.variable, name, inner) for name, inner in named.items()]
        for of, module in list(named.items()):
            if is_a(module, types.ModuleType):
                within = {name: vars(module)[name] for name in names if name in vars(module)}
                named |= within
                for name, inner in within.items():
                    self._name({name: inner}, _of_module(of))
                    ways.append((_of_module(of), name, inner))
        if users:
            for at, inner in (*enumerate(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()):
                self._hold(inner, self._place.to(places.default, at))
            self._fix(choice for kind in function.__annotations__.values() for choice in choices(kind))
            for step, name, value in ways:
                if is_a(value, dict | list | tuple):
                    _, places_of, by_keys = self._dicts.setdefault(id(value), (value, {}, set()))
                    places_of.setdefault(name, self._place.to(step, name))
                    by_keys |= taken.get(name, {()})
                self._in_columns(name, value, self._place.to(step, name))
            yield places.fixed, (wrapped := vars(function).get("__wrapped__")), wrapped
            yield from ways
            yield from ((places.default, at, inner) for at, inner in enumerate(function.__defaults__ or ()))
            yield from ((places.default, key, inner) for key, inner in (function.__kwdefaults__ or {}).items())

    def look_up(self) -> None:
        """What code takes of dicts by constant keys, once all of it was seen."""
        for value, names, by_keys in self._dicts.values():
            for name, place in names.items():
                self._by_key(name, value, place, by_keys, ())

    def taken_alone(self) -> Set[tuple[int, Any]]:
        """The entries of dicts, other than texts, that all code takes by a constant key: by the dict's id."""
        return {
            (id(value), keys[0])
            for value, _, by_keys in self._dicts.values()
            for keys in by_keys
            if is_a(value, dict) and () not in by_keys and type(dict.get(value, keys[0])) not in _DATA
        }

    def _by_key(self, name: str, value: Any, place: Place, by_keys: Set[Keys], keys: Keys) -> None:
        """Of the texts in a dict those that all code takes by constant keys, from the outermost dict on, and what is
        there to be formatted: others, which it chooses by a value or a position, may be anybody's."""
        if len(keys) > MAX_DEPTH or not is_a(value, dict | list | tuple) or self._entries <= 0:
            return
        entries = list(_parts(value))
        self._entries -= len(entries)
        for step, key, inner in entries:
            at = (*keys, key if is_a(value, dict) and type(key) is str else "")
            chosen = at in by_keys and not any(at[:depth] in by_keys for depth in range(len(at)))
            if type(inner) is not str:
                self._by_key(name, inner, place.to(step, key), by_keys, at)
            elif chosen or _TEMPLATE.search(inner):
                several = not chosen and len(entries) > 1
                self.found[(name, str(key) if is_a(value, dict) else ""), inner] = place.to(step, key, several)

    def _in_columns(self, name: str, value: Any, place: Place) -> None:
        """The keys of a dict, its values and those of a list, or what their entries have in one field or position."""
        if not is_a(value, dict | list | tuple) or not 1 < len(value) <= MAX_ROWS:
            return
        if (name, id(value)) in self._in_rows:
            return
        self._in_rows.add((name, id(value)))
        parts = list(_parts(value))
        keys = [key for _, key, _ in parts] if is_a(value, dict) else []
        keys = keys if all(type(key) is str for key in keys) else []
        if keys:
            self.columns.append((name, tuple((key, place.to(places.key, key)) for key in keys)))
        entries = tuple((inner, place.to(step, key)) for step, key, inner in parts)
        rows: list[Sequence[tuple[Any, Place]]] = []
        opened = [is_a(inner, dict | list | tuple) or is_users(type(inner)) for inner, _ in entries]
        for (inner, at), opens in zip(entries, opened, strict=True):
            ways = islice(_parts(inner), MAX_ROWS) if opens else ()
            inside = [(one, at.to(within, by)) for within, by, one in ways if not CREDENTIAL.search(str(by))]
            rows.append(inside if opens else [(inner, at)])
        columns = [*zip(*rows, strict=True)] if len({len(row) for row in rows}) == 1 else []
        self.columns += [(name, column) for column in columns if all(type(text) is str for text, _ in column)]
        for column in (*columns, *([entries] if any(opened) else [])) if keys else ():
            values = [inner for inner, _ in column]
            said = [values] if all(type(text) is str for text in values) else [*in_print(values)]
            self.tables += [(name, tuple(zip(keys, texts, strict=True))) for texts in said]

    def _of_class(self, cls: type) -> Iterator[Way]:
        """Its methods, and what a schema made of it says: names, descriptions, choices; that also of a library's."""
        told = self._place.step is not places.cls_of  # held for what it says, not the class of an object
        for base in cls.__mro__:
            users, members = is_users(base), dict(vars(base))
            named = getattr(sys.modules.get(base.__module__), base.__name__, None) is base  # not made in a run
            schema = members.get("__pydantic_fields__") or {} if users or named else {}
            for field in schema.values():
                self._fix((field.description, field.default, *choices(field.annotation)))
            if schema and (users or told):
                titles = (name.title().replace("_", " ") for name in schema)  # as pydantic writes them
                self._fix((base.__name__, base.__doc__, *schema, *titles))
                for field in schema.values():
                    for kind in (field.annotation, *typing.get_args(field.annotation)):
                        yield places.fixed, kind, kind
            if not users and not self.is_opened(base):
                continue
            self._name(members, places.member if base is cls else _of_base(base))
            for member in members.values():
                function = function_of(member)
                if is_a(function, types.FunctionType):  # also where a framework has wrapped it
                    yield places.fixed, function, function
            if users:
                values = (member.value for member in members.values() if is_a(member, enum.Enum))
                self._fix((base.__name__, base.__doc__, *values))
                for name, kind in list(members.get("__annotations__", {}).items()):
                    self._fix((name, *choices(kind)))
                for made in factories(members):
                    for name, default in named_by(made).items():
                        place = self._place.to(places.fixed, made).to(places.variable, name)
                        for path, leaf in list(leaves(snapshot(default)))[:MAX_HELD]:
                            self._hold((*path, leaf), place.to(places.leaf, path))


def _parts(value: Any) -> Iterator[Way]:
    """What a container or an object holds, as far as it is looked at. Copied at once: another thread may change it."""
    if is_a(value, dict):
        return ((places.item, key, inner) for key, inner in list(islice(value.items(), MAX_HELD)))
    if is_a(value, _CONTAINERS):
        step = places.item if is_a(value, list | tuple) else places.nth
        return ((step, at, inner) for at, inner in enumerate(list(islice(value, MAX_HELD))))
    # Not what an object works out once and keeps, as LangChain's prompts do with what they are written as.
    return ((places.field, name, inner) for name, inner in public(value).items())


def _said(value: Any) -> Iterator[str]:
    if type(value) in (str, int, float):
        yield str(value)
    elif is_a(value, re.Pattern):
        yield str(value.pattern)
    elif is_a(value, tuple | frozenset):
        for inner in value:
            yield from _said(inner)
