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


_FENCE = re.compile(r"```(?:json)?\s*\n?")


def _json(text: str, done: bool) -> Tree:
    start = _FENCE.search(text)
    body = text[start.end() :] if start else text
    if start:
        body = body.split("```", 1)[0]
    at = min((i for i in (body.find("{"), body.find("[")) if i >= 0), default=-1)
    if at < 0:
        return None
    body = body[at:]
    try:
        if done:
            end = max(body.rfind("}"), body.rfind("]"))
            return jiter.from_json(body[: end + 1].encode()) if end >= 0 else None
        return _opened(jiter.from_json(body.encode(), partial_mode=True), body)
    except ValueError:
        return None


def _opened(value: Tree, body: str) -> Tree:
    """Mark what may still grow: jiter drops an unfinished last item, so what it returns is closed except containers
    on the right edge."""
    if isinstance(value, list):
        items = Open(value[:-1])
        if value:
            last = value[-1]
            # A number or a container at the edge may still continue; a closed string or literal can't.
            items.append(_opened(last, body) if isinstance(last, list | dict) else last)
            if isinstance(last, int | float) and not isinstance(last, bool):
                items.pop()
        return items
    if isinstance(value, dict):
        keys = list(value)
        return {key: (_opened(value[key], body) if key == keys[-1] else value[key]) for key in keys}
    if isinstance(value, int | float) and not isinstance(value, bool):
        return None
    return value


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
