"""Which trees mean the same whenever they are equal: their objects are functions and classes that don't change."""

from __future__ import annotations

import enum
import sys
import sysconfig
import types
from collections.abc import Set
from typing import Any

from .objects import field_names, is_a
from .values import DATA, Opaque, Tree

_IMMUTABLE_TYPE = 1 << 8
"""The flag of classes that can't be changed."""
_LIBRARY = sysconfig.get_path("stdlib")
_WITHOUT_STATE = frozenset("collections fractions functools itertools json math operator re statistics string".split())
"""Modules that a function may use and always give the same."""


def is_comparable(tree: Tree) -> bool:
    """Whether equal trees mean equal values: opaque leaves must be functions or classes that don't change. Other
    objects are equal by identity and may have changed meanwhile."""
    if isinstance(tree, dict | list):
        for part in tree.values() if isinstance(tree, dict) else tree:
            if type(part) not in DATA and not is_comparable(part):
                return False
        return True
    return not isinstance(tree, Opaque) or _never_changes(tree.obj, frozenset())


def _never_changes(value: Any, within: Set[types.FunctionType]) -> bool:
    """Of functions, those of a module that keep nothing, and read nothing that a program may set between two calls; of
    classes, those that say what data looks like, and those of the interpreter and of extensions. `within`: functions
    that are looked at."""
    if is_a(value, type):
        schema = field_names(value) is not None or is_a(value, enum.EnumMeta) or "__total__" in vars(value)
        return schema or bool(value.__flags__ & _IMMUTABLE_TYPE)
    if is_a(value, types.BuiltinFunctionType):
        return is_a(value.__self__, types.ModuleType | type(None))
    if is_a(value, types.ModuleType):
        return bool(within) and value.__name__ in _WITHOUT_STATE
    if not is_a(value, types.FunctionType) or value.__closure__:
        return False
    if value in within:
        return True
    kept = (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
    of_module = getattr(sys.modules.get(value.__module__), value.__qualname__, None) is value
    if not of_module or not all(type(each) in DATA for each in kept):
        return False
    return _is_pythons(value) or all(_never_changes(each, {*within, value}) for each in _read_by(value))


def _is_pythons(function: types.FunctionType) -> bool:
    """Whether it is one of Python's own library."""
    path = function.__code__.co_filename
    return path.startswith(_LIBRARY) and "site-packages" not in path


def _read_by(function: types.FunctionType) -> list[Any]:
    """What the variables of its module hold that its code names."""
    codes, names = [function.__code__], set[str]()
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [const for const in code.co_consts if is_a(const, types.CodeType)]
    return [function.__globals__[name] for name in names if name in function.__globals__]
