"""Extractors: a text seen as the list or object it contains, also while it is still being decoded.

``extract(name, text, done)`` gives the items that no continuation of the text can change; with ``done`` it gives all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jiter

from .values import Tree


class Open(list[Any]):
    """A list of which only the first items are known yet."""


class Partial(str):
    """A text of which only the beginning is known yet."""


def _lines(text: str, done: bool) -> list[str]:
    rows = text.split("\n")
    return [row.strip() for row in (rows if done else rows[:-1]) if row.strip()]


def _marked(marker: re.Pattern[str]) -> Callable[[str, bool], list[str]]:
    def items(text: str, done: bool) -> list[str]:
        return [m.group(1).strip() for row in _lines(text, done) if (m := marker.match(row)) and m.group(1).strip()]

    return items


def _commas(text: str, done: bool) -> list[str]:
    parts = text.split(",")
    return [part.strip() for part in (parts if done else parts[:-1]) if part.strip()]


_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)  # also a string that is still open
_MAX_STARTS = 16


def _json(text: str, done: bool) -> Tree:
    """The first array or object in the text, whatever stands around it (prose, a code fence)."""
    at = -1
    for _ in range(_MAX_STARTS):
        at = min((i for i in (text.find("{", at + 1), text.find("[", at + 1)) if i >= 0), default=-1)
        if at < 0:
            return None
        end = _end_of_container(text, at)
        try:
            if end is not None:
                value = jiter.from_json(text[at:end].encode())
                return value if done or not isinstance(value, list) else Open(value)
            value = jiter.from_json(text[at:].encode(), partial_mode=True)
            return value if done else _opened(value, _ends_in_number(text, at))
        except ValueError:
            continue  # a bracket in prose: no continuation makes it JSON
    return None


def _end_of_container(text: str, at: int) -> int | None:
    """Behind the bracket that closes the one at `at`; None if it is still open."""
    depth = 0
    for token in _TOKENS.finditer(text, at):
        if token.group() in ("[", "{"):
            depth += 1
        elif token.group() in ("]", "}"):
            depth -= 1
            if depth == 0:
                return token.end()
    return None


def _ends_in_number(text: str, at: int) -> bool:
    """Whether the text ends inside a number, and not inside a string that ends in a digit so far."""
    tokens = list(_TOKENS.finditer(text, at))
    in_string = tokens[-1].end() == len(text) and tokens[-1].group().startswith('"')
    return text[-1].isdigit() and not in_string


def _opened(value: Tree, in_number: bool) -> Tree:
    """Mark what may still grow: jiter drops an unfinished last text, so what it returns is closed except containers
    on the right edge, and a number there if the text may end inside it."""
    if isinstance(value, list):
        items = Open(value[:-1])
        if value and not (in_number and _is_number(value[-1])):
            items.append(_opened(value[-1], in_number))
        return items
    if isinstance(value, dict):
        last = next(reversed(value), None)
        return {
            key: _opened(item, in_number) if key == last else item
            for key, item in value.items()
            if not (in_number and key == last and _is_number(item))
        }
    return value


def _is_number(value: Tree) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


EXTRACTORS: dict[str, Callable[[str, bool], Tree]] = {
    "json": _json,
    "numbered": _marked(re.compile(r"\(?\d+[.):]\s*(.*)")),
    "bullets": _marked(re.compile(r"[-*•–]\s+(.*)")),
    "lines": _lines,
    "commas": _commas,
}
"""In order of preference where several explain the same items."""


def extract(name: str, text: str, done: bool = True) -> Tree:
    """The items of `text`; of an unfinished text only the closed ones, as an `Open` list."""
    value = EXTRACTORS[name](text, done)
    if not done and isinstance(value, list) and not isinstance(value, Open):
        return Open(value)
    return value
