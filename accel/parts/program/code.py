"""What the program's code is, and what it says and names: read from functions and classes, none of which is asked."""

from __future__ import annotations

import dis
import functools
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from ...process.spare import breathe
from ...trace.sites import is_frameworks, is_ours
from .places import cells, plainly, wrapped

_GIVES = {"RESUME", "COPY_FREE_VARS", "LOAD_GLOBAL", "LOAD_DEREF", "RETURN_VALUE"}
Stored = str | tuple[str, str]
"""The name of a variable or an attribute; or a dict's, and a key."""


def function_of(member: Any) -> Any:
    """What a member of a class runs; without asking the member, which may be anything."""
    kind = type(member)
    if issubclass(kind, property):
        return property.__dict__["fget"].__get__(member)
    if issubclass(kind, staticmethod | classmethod):
        return plainly(member, "__func__")
    return vars(member)["func"] if kind is functools.cached_property else member  # noqa: TID251


MAX_WRAPPERS = 64


def written(member: Any) -> list[types.FunctionType]:
    """The functions of the program's that a member of a class runs, below what decorators made of it: those of
    libraries say what they wrap, or keep it in a closure (`llm_completion_callback`)."""
    found: dict[types.FunctionType, None] = {}
    coming, seen = [function_of(member)], dict[int, Any]()
    while coming and len(seen) < MAX_WRAPPERS:
        value = coming.pop()
        is_function = type(value) is types.FunctionType
        inner = wrapped(value)
        if id(value) in seen or not (is_function or inner is not None):
            continue
        seen[id(value)] = value
        coming += [inner, wrapped(value, "_self_wrapper")]
        if is_function and is_users_module(module_of(value)):
            found[value] = None
        elif is_function:
            coming += cells(value).values()
    return list(found)


def module_of(function: types.FunctionType) -> str:
    """The module that its code stands in."""
    return function.__globals__.get("__name__") or ""


_OTHERS = frozenset("openai anthropic pydantic pydantic_core httpx numpy wrapt".split())


def is_users(part: Any) -> bool:
    """Whether a class or function was written for the program: not in a library that it uses."""
    module = getattr(part, "__module__", None)
    return isinstance(module, str) and is_users_module(module)


def users_bases(cls: Any) -> list[type]:
    """Of a class and its bases, those that were written for the program."""
    return [base for base in cls.__mro__ if is_users(base)]


def libraries_bases(cls: type) -> list[type]:
    """Those that were not."""
    return [base for base in cls.__mro__ if not is_users(base) and base is not object]


@lru_cache(4_096)
def is_users_module(module: str) -> bool:
    top = module.partition(".")[0]
    if module == "__main__":
        return True
    return not (is_ours(module) or top in _OTHERS or top in sys.stdlib_module_names or is_frameworks(module))


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """That of a function, and of those in it. What a decorator shows in the place of code, for its signature
    (`wrapt.decorator`), is none."""
    if type(code) is not types.CodeType:
        return
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from codes(const)


@lru_cache(8_192)
def stored_by(code: types.CodeType) -> tuple[Stored, ...]:
    """What code assigns to beyond its own variables, other than an object's first values. Asked of all code of a
    program with each lesson."""
    return tuple(_stored_by(code))


def _stored_by(code: types.CodeType) -> Iterator[Stored]:
    breathe()
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


CHANGES = frozenset("add append appendleft clear discard extend insert pop popleft remove setdefault update".split())


def named_by(function: types.FunctionType) -> dict[str, Any]:
    """The variables of others that a function names."""
    names = (name for code in codes(function.__code__) for name in code.co_names)
    return {name: function.__globals__[name] for name in names if name in function.__globals__} | cells(function)


def factories(members: Mapping[str, Any]) -> list[types.FunctionType]:
    """The functions that give a class's fields what one variable holds, as it is, where nothing else is given."""
    fields = {**(members.get("__dataclass_fields__") or {}), **(members.get("__pydantic_fields__") or {})}
    made = [field.default_factory for field in fields.values() if type(field.default_factory) is types.FunctionType]
    return [function for function in made if _only_gives(function.__code__)]


@lru_cache(1_024)
def _only_gives(code: types.CodeType) -> bool:
    return {instruction.opname for instruction in dis.get_instructions(code)} <= _GIVES


def choices(annotation: Any) -> Iterator[Any]:
    """What may be chosen by an annotation: the words of a `Literal`."""
    if isinstance(annotation, str):
        yield from re.findall(r"""["']([^"']+)["']""", annotation)
    for argument in typing.get_args(annotation):
        yield argument
        yield from choices(argument)
