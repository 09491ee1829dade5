"""The steps of the program's code, as far as it matters what they read and change."""

from __future__ import annotations

import dis
from functools import lru_cache
from types import CodeType
from typing import Literal, NamedTuple

from .code import CHANGES

Does = Literal[
    "load", "load cell", "load own", "store own", "take", "constant", "assign", "assign cell", "store attribute",
    "item", "store item", "copy", "swap", "import", "import from", "call", "null", "jump", "other",
]  # fmt: skip


class Step(NamedTuple):
    does: Does
    name: str
    effect: int
    """By how much the stack grows."""


_DOES: dict[str, Does] = {
    "LOAD_GLOBAL": "load", "LOAD_NAME": "load", "LOAD_DEREF": "load cell",
    "LOAD_CLASSDEREF": "load cell", "LOAD_FROM_DICT_OR_DEREF": "load cell", "LOAD_FROM_DICT_OR_GLOBALS": "load",
    "LOAD_ATTR": "take", "LOAD_METHOD": "take", "LOAD_CONST": "constant", "STORE_GLOBAL": "assign",
    "DELETE_GLOBAL": "assign", "STORE_DEREF": "assign cell", "STORE_ATTR": "store attribute",
    "DELETE_ATTR": "store attribute", "BINARY_SUBSCR": "item", "STORE_SUBSCR": "store item",
    "DELETE_SUBSCR": "store item", "COPY": "copy", "SWAP": "swap", "IMPORT_NAME": "import",
    "IMPORT_FROM": "import from", "CALL": "call", "PRECALL": "call", "CALL_KW": "call", "KW_NAMES": "call",
    "PUSH_NULL": "null",
    "LOAD_FAST": "load own", "LOAD_FAST_CHECK": "load own", "LOAD_FAST_BORROW": "load own", "STORE_FAST": "store own",
}  # fmt: skip
_LOADS: tuple[Does, int] = ("load own", 1)
_STORES: tuple[Does, int] = ("store own", -1)
_BOTH: dict[str, tuple[tuple[Does, int], tuple[Does, int]]] = {
    "LOAD_FAST_LOAD_FAST": (_LOADS, _LOADS), "LOAD_FAST_BORROW_LOAD_FAST_BORROW": (_LOADS, _LOADS),
    "STORE_FAST_LOAD_FAST": (_STORES, _LOADS), "STORE_FAST_STORE_FAST": (_STORES, _STORES),
}  # fmt: skip
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
_SILENT = frozenset(("NOP", "RESUME", "PRECALL", "CACHE", "EXTENDED_ARG", "NOT_TAKEN"))


@lru_cache(4_096)
def steps_of(code: CodeType) -> list[Step]:
    found = []
    for step in dis.get_instructions(code):
        effect = dis.stack_effect(step.opcode, step.arg if step.opcode >= dis.HAVE_ARGUMENT else None, jump=False)
        if step.opname in _SILENT and not effect:
            continue
        does = _DOES.get(step.opname, "jump" if step.opcode in _JUMPS else "other")
        if step.opname == "BINARY_OP" and step.argrepr == "[]":
            does = "item"
        if does == "constant" and not isinstance(step.argval, str):
            does = "other"
        if isinstance(step.argval, tuple) and step.opname in _BOTH:  # two steps of former versions in one
            both = zip(_BOTH[step.opname], step.argval, strict=True)
            found += [Step(does, name, effect) for (does, effect), name in both]
            continue
        name = step.argval if isinstance(step.argval, str) else ""
        found.append(Step(does, name, effect))
    return found


Keys = tuple[str, ...]
"""Constant keys, from the outermost dict on."""


@lru_cache(4_096)
def taken_by_keys(code: CodeType) -> list[tuple[str, Keys]]:
    """Of each variable or attribute that code names, how far it takes an entry of it by constant keys: no key where it
    does anything else with it, a look-up by a value among them."""
    steps, found = steps_of(code), []
    does = [step.does for step in steps]
    for at, step in enumerate(steps):
        if step.does not in ("load", "load cell", "take"):
            continue
        keys, then = [], at + 1
        while True:
            if does[then : then + 2] == ["constant", "item"]:
                keys.append(steps[then].name)
                then += 2
            elif does[then : then + 3] == ["take", "constant", "call"] and steps[then].name == "get":
                keys.append(steps[then + 1].name)
                then += 3
            else:
                break
        found.append((step.name, tuple(keys)))
    return found


def changed_at(steps: list[Step]) -> set[int]:
    """Where what is loaded, or taken of it, is a container that is then changed: by a method, or an item of it."""
    found = set[int]()
    for at, step in enumerate(steps):
        if step.does == "take" and step.name in CHANGES:
            found.add(_container(steps, at - 1))
        elif step.does == "store item" and steps[at - 1].does != "swap":
            found.add(_container(steps, _before(steps, at - 1)))
        elif step.does == "item" and [each.does for each in steps[at - 2 : at]] == ["copy", "copy"]:
            found.add(_container(steps, _before(steps, at - 3)))
    return found


def _before(steps: list[Step], at: int) -> int:
    """What ends before the expression that ends here begins."""
    height = 0
    while at >= 0:
        height += steps[at].effect
        at -= 1
        if height >= 1:
            break
    return at


def _container(steps: list[Step], at: int) -> int:
    """Of an item of a container, that container."""
    while at > 0 and steps[at].does == "item":
        at = _before(steps, at - 1)
    return at
