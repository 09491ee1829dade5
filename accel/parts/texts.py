"""The program's own texts: constants of its code, its prompt templates, what its components say, and the texts that its
variables, attributes and dicts held when it was accelerated, and still hold. Where code may choose from the texts of a
list or dict, the runs tell whether it does (`accel.learn.tables`).

A text in a learnt template that is none of them is somebody's data, whatever the runs have in common (invariant 10).
So is what has come into a variable since: any code may have put it there, also some that is not found from here.
"""

from __future__ import annotations

import dis
import enum
import functools
import re
import sys
import sysconfig
import types
import typing
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any

from ..frameworks import frameworks
from ..text.values import leaves, snapshot
from ..trace.ambient import CREDENTIAL
from ..trace.sites import is_ours
from . import places
from .places import Place, Step, cells, fields, plainly
from .wording import FEWEST_WORDS

MAX_OBJECTS = 4_000
MAX_DEPTH = 12
MAX_HELD = 2_000
"""Of one container."""
MAX_ENTRIES = 20_000
"""Of all dicts and lists that code names."""
MAX_STANDING = 5_000
MOST_ENTRIES = 32
"""Of a list or dict all of whose texts may be the program's; more are data."""
_TEMPLATE = re.compile(r"(?<![\w{\\])\{[a-z_]\w*\}")

Kinds = Callable[[Any], bool]

Says = Callable[[Any, bool], Any]
"""What of an object of a framework's is the program's text, or None. Told whether a list or dict holds the object: then
a message may be anybody's. What a text or list says (a message's content) must have stood there like a variable's."""
Standing = Collection[int]
"""Hashes of the texts that a program's variables, attributes and dicts held when it was accelerated."""


def texts_of_program(
    roots: Iterable[Any], is_component: Kinds, is_opened: Kinds, says: Says, standing: Standing = ()
) -> dict[str, Place | None]:
    """The texts of a program that are reached from `roots` without a call, and where they stand; None of constants.
    `is_opened`: objects of a framework that are looked into."""
    look = _look_through(roots, is_component, is_opened, says)
    stored = {stored for code in look.codes for stored in _stored(code)}
    held = {text: place for text, place in look.held(stored).items() if hash(text) in standing}
    return {**held, **look.texts}


def stands(roots: Sequence[Any], is_component: Kinds, is_opened: Kinds, says: Says, text: str, place: Place) -> bool:
    """Whether a text is still where it was found."""
    try:
        value = place.now(roots)
        if place.among:
            return place.among in columns_of(value)
        if place.named:
            return text in _said((value,))
        look = _Look(is_component, is_opened, says)
        for _ in look.into(value, place):
            pass
    except Exception:  # noqa: BLE001 - a user's object may answer a look with anything; then it says nothing
        return False
    return text in look.texts or any(text == said for _, said in look.found)


def standing_texts(roots: Iterable[Any], is_component: Kinds, is_opened: Kinds, says: Says) -> Standing:
    """Asked for when the program is accelerated, on its path."""
    held = _look_through(roots, is_component, is_opened, says).held(())
    return frozenset(map(hash, islice(held, MAX_STANDING)))


def _look_through(roots: Iterable[Any], is_component: Kinds, is_opened: Kinds, says: Says) -> _Look:
    look = _Look(is_component, is_opened, says)
    seen: dict[int, Any] = {}
    coming = deque((root, 0, Place(places.item, number), True) for number, root in enumerate(roots))
    while coming and len(seen) < MAX_OBJECTS:
        value, depth, place, opened = coming.popleft()
        if id(value) in seen or depth > MAX_DEPTH:
            continue
        seen[id(value)] = value
        try:
            found = [way for way in look.into(value, place) if type(way[2]) not in _DATA]
            container = isinstance(value, _CONTAINERS)
            inside = (place.held and not isinstance(value, _CODE)) or container
            kinds = Counter(type(inner) for _, _, inner in found) if container and not opened else {}
            opens = is_opened(value) or (opened and container)
        except Exception:  # noqa: BLE001 - a user's object may answer a look with anything; then it says nothing
            continue
        for step, by, inner in found:
            several = inside and (place.several or kinds.get(type(inner), 0) > 1)
            coming.append((inner, depth + 1, Place(step, by, place, inside, several), opens))
    return look


_DATA = frozenset((str, bytes, int, float, bool, type(None)))
_CONTAINERS = (dict, list, tuple, set, frozenset, deque)
_CODE = (types.FunctionType, types.MethodType, functools.partial, type)

Way = tuple[Step, Any, Any]
"""How an object refers to another one, and to which."""


def _of_module(of: str) -> Step:
    return lambda function, name: places.of_module(function, (of, name))


def _of_base(base: type) -> Step:
    return lambda cls, name: places.member(base, name)


_GIVES = {"RESUME", "COPY_FREE_VARS", "LOAD_GLOBAL", "LOAD_DEREF", "RETURN_VALUE"}
Stored = str | tuple[str, str]
"""The name of a variable or an attribute; or a dict's, and a key."""


class _Look:
    def __init__(self, is_component: Kinds, is_opened: Kinds, says: Says) -> None:
        self.is_component, self.is_opened, self.says = is_component, is_opened, says
        self.texts: dict[str, Place | None] = {}
        """What code, prompts and components say, and where it stands; None of constants."""
        self.found: dict[tuple[Stored, str], Place] = {}
        """What variables, attributes and dicts hold, nearest first, and where."""
        self.names: set[str] = set()
        """What code names."""
        self.codes: list[types.CodeType] = []
        self._entries = MAX_ENTRIES

    def held(self, stored: Collection[Stored]) -> dict[str, Place]:
        """The texts of variables and attributes that code names, but for what it assigns to itself while it runs: that
        may hold anybody's."""
        found: dict[str, Place] = {}
        for (name, text), place in self.found.items():
            if name not in stored and (isinstance(name, tuple) or not name or name in self.names):
                if text not in found or (found[text].among and not place.among):
                    found[text] = place
        return found

    def into(self, value: Any, place: Place) -> Iterator[Way]:
        """Note the texts of an object there; what to look into next. It may be held by a list or dict, which may be of
        data."""
        self._place, held = place, place.held
        if type(value) in _DATA or isinstance(value, types.ModuleType):
            return
        said = self.says(value, held)
        if said is not None:
            keep = self._hold if isinstance(said, str | list) else self._keep
            yield from ((places.fixed, inner, inner) for inner in self._all_in(said, 0, keep))
        if isinstance(value, functools.partial):
            self._hold((*value.args, *value.keywords.values()))
            yield places.attribute, "func", value.func
            yield from ((places.given, at, inner) for at, inner in enumerate(value.args))
            yield from ((places.given, key, inner) for key, inner in value.keywords.items())
        elif isinstance(value, types.MethodType):
            yield places.attribute, "__self__", value.__self__
            yield places.attribute, "__func__", value.__func__
        elif isinstance(value, types.FunctionType):
            yield from self._of_function(value)
        elif isinstance(value, type):
            yield from self._of_class(value)
        elif isinstance(value, _CONTAINERS):
            if isinstance(value, dict):
                yield from ((places.item, key, inner) for key, inner in list(value.items())[:MAX_HELD])
            else:
                step = places.item if isinstance(value, list | tuple) else places.nth
                yield from ((step, at, inner) for at, inner in enumerate(list(value)[:MAX_HELD]))
        elif self.is_component(value) or self.is_opened(value) or _is_users(type(value)):
            own = fields(value)
            if self.is_component(value):
                self._keep(text for name, text in own.items() if not CREDENTIAL.search(name))
            if not held:
                self._name(own, places.field)
            yield from ((places.field, name, inner) for name, inner in own.items())
            yield places.cls_of, None, type(value)

    def _keep(self, values: Iterable[Any]) -> None:
        for text in _said(values):
            self.texts.setdefault(text, self._place)

    def _fix(self, values: Iterable[Any]) -> None:
        """Constants."""
        self.texts.update({text: None for text in _said(values)})

    def _hold(self, values: Iterable[Any]) -> None:
        """Code uses them in any case."""
        for text in _said(values):
            self.found.setdefault(("", text), self._place)

    def _name(self, held: Mapping[str, Any], step: Step) -> None:
        for name, value in list(held.items()):
            if type(value) in _DATA or isinstance(value, tuple | frozenset):
                place = self._place.to(step, name)
                for text in _said((value,)):
                    self.found.setdefault((name, text), place)
            for column in columns_of(value):
                place = self._place.to(step, name, column)
                for text in column:
                    self.found.setdefault((name, text), place)

    def _all_in(self, value: Any, depth: int, keep: Callable[[Iterable[Any]], None]) -> Iterator[Any]:
        """All texts in it; what else there is to look into."""
        keep((value,))
        if depth > MAX_DEPTH or self.is_component(value):
            return
        if isinstance(value, dict | list | tuple | set | frozenset):
            for inner in (*value, *value.values()) if isinstance(value, dict) else list(value):
                yield from self._all_in(inner, depth + 1, keep)
        elif isinstance(value, type | types.FunctionType | types.MethodType | functools.partial):
            yield value
        else:
            for inner in fields(value).values():
                yield from self._all_in(inner, depth + 1, keep)

    def _of_function(self, function: types.FunctionType) -> Iterator[Way]:
        users = _is_users(function)
        if not users and not self.is_opened(function):  # what a framework was given to make a node of
            yield from ((places.variable, name, inner) for name, inner in cells(function).items())
            return
        names: set[str] = set()
        constants: set[Any] = {function.__name__}
        for code in _codes(function.__code__):
            names.update(code.co_names)
            constants.update(code.co_consts, code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
            if users:
                self.codes.append(code)
        self._fix(constant for constant in constants if users or FEWEST_WORDS <= len(str(constant).split()))
        named = _named(function)
        self.names |= names | named.keys()
        self._name(named, places.variable)
        ways: list[Way] = [(places.variable, name, inner) for name, inner in named.items()]
        for of, module in list(named.items()):
            if isinstance(module, types.ModuleType):
                within = {name: vars(module)[name] for name in names if name in vars(module)}
                named |= within
                for name, inner in within.items():
                    self._name({name: inner}, _of_module(of))
                    ways.append((_of_module(of), name, inner))
        if users:
            self._hold((*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()))
            self._fix(choice for kind in function.__annotations__.values() for choice in _choices(kind))
            for name, value in named.items():
                self._by_key(name, value, constants, 0)
            yield places.fixed, (wrapped := vars(function).get("__wrapped__")), wrapped
            yield from ways
            yield from ((places.default, at, inner) for at, inner in enumerate(function.__defaults__ or ()))
            yield from ((places.default, key, inner) for key, inner in (function.__kwdefaults__ or {}).items())

    def _by_key(self, name: str, value: Any, constants: set[Any], depth: int, chosen: bool = True) -> None:
        """Of the texts in a dict those that code names by constant keys, from the outermost dict on (`chosen`), and
        what is there to be formatted: others, which it chooses by a value or a position, may be anybody's."""
        if depth > MAX_DEPTH or not isinstance(value, dict | list | tuple) or self._entries <= 0:
            return
        # Copied at once: another thread may change it.
        entries = list(value.items()) if isinstance(value, dict) else [(None, inner) for inner in list(value)]
        self._entries -= min(len(entries), MAX_HELD)
        for key, inner in entries[:MAX_HELD]:
            if type(inner) is str:
                by_name = type(key) is str and key in constants and chosen
                if by_name or _TEMPLATE.search(inner):
                    place = self._place if by_name or len(entries) < 2 else replace(self._place, several=True)
                    self.found[(name, str(key)), inner] = place
            else:
                by_name = key is None or (type(key) is str and key in constants)
                self._by_key(name, inner, constants, depth + 1, chosen and by_name)

    def _of_class(self, cls: type) -> Iterator[Way]:
        """Its methods, and what a schema made of it says: names, descriptions, choices; that also of a library's."""
        for base in cls.__mro__:
            users, members = _is_users(base), dict(vars(base))
            named = getattr(sys.modules.get(base.__module__), base.__name__, None) is base  # not made in a run
            schema = (members.get("__pydantic_fields__") or {}).values() if users or named else ()
            for field in schema:
                self._fix((field.description, field.default, *_choices(field.annotation)))
            if not users and not self.is_opened(base):
                continue
            self._name(members, places.member if base is cls else _of_base(base))
            for member in members.values():
                function = _function_of(member)
                if type(function) is types.FunctionType:
                    yield places.fixed, function, function
            if users:
                values = (member.value for member in members.values() if isinstance(member, enum.Enum))
                self._fix((base.__name__, base.__doc__, *values))
                for name, kind in list(members.get("__annotations__", {}).items()):
                    self._fix((name, *_choices(kind)))
                for field in schema:
                    for kind in (field.annotation, *typing.get_args(field.annotation)):
                        yield places.fixed, kind, kind
                for made in _factories(members):
                    held = [entry for default in _named(made).values() for entry in leaves(snapshot(default))]
                    self._hold(text for at, leaf in held[:MAX_HELD] for text in (*at, leaf) if isinstance(text, str))


def columns_of(value: Any) -> Iterator[tuple[str, ...]]:
    """The texts side by side in a short list or dict: its keys, its values, or one field of all of these."""
    if not isinstance(value, dict | list | tuple) or not 1 < len(value) <= MOST_ENTRIES:
        return
    entries = list(value.values()) if isinstance(value, dict) else list(value)
    rows = [entry if isinstance(entry, dict) else _fields_of_users(entry) for entry in entries]
    named = [[row.get(name) for row in rows] for name in rows[0]]
    for column in (list(value) if isinstance(value, dict) else [], entries, *named):
        if column and all(type(text) is str for text in column):
            yield tuple(column)


def _fields_of_users(value: Any) -> dict[str, Any]:
    """A library's object may be a document, or a message: data."""
    return fields(value) if _is_users(type(value)) else {}


def _said(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if type(value) in (str, int, float):
            yield str(value)
        elif isinstance(value, tuple | frozenset):
            yield from _said(value)


def _function_of(member: Any) -> Any:
    """What a member of a class runs; without asking the member, which may be anything."""
    kind = type(member)
    if issubclass(kind, property):
        return property.__dict__["fget"].__get__(member)
    if issubclass(kind, staticmethod | classmethod):
        return plainly(member, "__func__")
    return vars(member)["func"] if kind is functools.cached_property else member


_INSTALLED = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
_OTHERS = frozenset("openai anthropic pydantic pydantic_core httpx numpy wrapt".split())


def _is_users(part: Any) -> bool:
    """Whether a class or function was written for the program: not in a library that it uses."""
    module = getattr(part, "__module__", None)
    return isinstance(module, str) and _is_users_module(module)


@lru_cache(4_096)
def _is_users_module(module: str) -> bool:
    top = module.partition(".")[0]
    if module == "__main__":
        return True
    installed = (getattr(sys.modules.get(module), "__file__", None) or "").startswith(_INSTALLED)
    library = is_ours(module) or top in _OTHERS or top in sys.stdlib_module_names
    families = sum((framework.families for framework in frameworks()), ())
    return not library and not (installed and top.startswith(families))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)


def _stored(code: types.CodeType) -> Iterator[Stored]:
    """What code assigns to beyond its own variables, other than an object's first values."""
    if code.co_name in ("__init__", "__post_init__"):
        return
    instructions = list(dis.get_instructions(code))
    for instruction in instructions:
        name = instruction.opname
        if name in ("STORE_GLOBAL", "STORE_ATTR") or (name == "STORE_DEREF" and instruction.argval in code.co_freevars):
            yield instruction.argval
    for (at, key), (_, store) in pairwise(pairwise(instructions)):
        if store.opname == "STORE_SUBSCR" and isinstance(at.argval, str) and isinstance(key.argval, str):
            yield at.argval, key.argval


def _named(function: types.FunctionType) -> dict[str, Any]:
    """The variables of others that a function names."""
    names = (name for code in _codes(function.__code__) for name in code.co_names)
    return {name: function.__globals__[name] for name in names if name in function.__globals__} | cells(function)


def _factories(members: Mapping[str, Any]) -> list[types.FunctionType]:
    """The functions that give a class's fields what one variable holds, as it is, where nothing else is given."""
    fields = {**(members.get("__dataclass_fields__") or {}), **(members.get("__pydantic_fields__") or {})}
    made = [field.default_factory for field in fields.values() if type(field.default_factory) is types.FunctionType]
    return [function for function in made if {i.opname for i in dis.get_instructions(function)} <= _GIVES]


def _choices(annotation: Any) -> Iterator[Any]:
    """What may be chosen by an annotation: the words of a `Literal`."""
    if isinstance(annotation, str):
        yield from re.findall(r"""["']([^"']+)["']""", annotation)
    for argument in typing.get_args(annotation):
        yield argument
        yield from _choices(argument)
