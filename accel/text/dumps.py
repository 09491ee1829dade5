"""Values as programs print them into texts: `json.dumps` with its common options, and `str` of lists and dicts."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from .values import Tree, is_view

LONGEST = 40_000
"""Characters of a printed value that are looked at,"""
MOST = 64
"""and how many beginnings of one, in one text."""
SHORTEST = 8
"""``[1]`` is a footnote more often than a list."""
DEEPEST = 64
"""Lists and dicts within each other; more is no value that a program prints for somebody to read."""
_OPEN = re.compile(r"[\[{](?=\s*[\"'\[{\w-])")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[\[\]{}]', re.DOTALL)
_FIRST_LINE = re.compile(r"[\[{]\n( +)")
_LAST_LINE = re.compile(r"\n( *)[\]}]$")


@dataclass(frozen=True, slots=True)
class Dump:
    """A list or dict as text."""

    style: str
    """``json``, or ``str``."""
    indent: int | None = None
    margin: int = 0
    """How far its lines are indented as part of a larger value."""
    compact: bool = False
    """Without spaces after commas and colons."""
    sort_keys: bool = False
    any_letter: bool = False
    """``ensure_ascii=False``"""

    def __str__(self) -> str:
        options = [
            f" indent {self.indent}" if self.indent is not None else "",
            f" margin {self.margin}" if self.margin else "",
            " compact" if self.compact else "",
            " sorted" if self.sort_keys else "",
            " text" if self.any_letter else "",
        ]
        return f"|as {self.style}{''.join(options)}"

    def shown(self, value: Tree) -> str | None:
        """None for a value that programs see as something else than it is here (an object of a class)."""
        if not is_plain(value):
            return None
        if self.style == "str":
            return str(value)
        separators = (",", ":") if self.compact else None
        text = json.dumps(
            value, ensure_ascii=not self.any_letter, indent=self.indent, separators=separators, sort_keys=self.sort_keys
        )
        return text.replace("\n", "\n" + " " * self.margin) if self.margin else text


def is_plain(value: Tree) -> bool:
    """Whether the value is what Python's own literals give."""
    if isinstance(value, dict):
        return not is_view(value) and all(type(key) is str and is_plain(held) for key, held in value.items())
    if isinstance(value, list):
        return all(map(is_plain, value))
    return value is None or type(value) in (str, int, float, bool)


@lru_cache(16)  # a prompt is looked at several times in a row
def dumped(text: str) -> tuple[tuple[int, int, Tree], ...]:
    """Lists and dicts that stand in a text, as beginning, end and value; also those within others."""
    found = []
    for opening in islice(_OPEN.finditer(text), MOST):
        at = opening.start()
        end = _end_of(text, at)
        if end is not None and end - at >= SHORTEST and (value := _parsed(text[at:end])):
            found.append((at, end, value))
    return tuple(found)


def quoted(text: str) -> Iterator[tuple[int, int, str]]:
    """Texts with their quotes in the lists and dicts that `str` printed into a text (`json.dumps` always takes the same
    quotes), as beginning, end and value."""
    done = 0
    for at, end, _ in dumped(text):
        if at >= done and _json(text[at:end]) is None:
            done = end
            for token in _TOKEN.finditer(text, at, end):
                held = _parsed(f"[{token.group()}]") if token.group()[0] in "\"'" else None
                if isinstance(held, list) and repr(held[0]) == token.group():
                    yield token.start(), token.end(), held[0]


def styles_of(text: str) -> Iterator[Dump]:
    """In which ways a list or dict may have been printed so; several where one text doesn't tell."""
    yield Dump("str")
    indent, margin = None, 0
    first, last = _FIRST_LINE.match(text), _LAST_LINE.search(text)
    if first and last:
        margin = len(last.group(1))
        indent = len(first.group(1)) - margin
        if indent <= 0:
            return
    for sort_keys in (False, True):
        for any_letter in (False, True):
            yield Dump("json", indent, margin, False, sort_keys, any_letter)
            if indent is None:
                yield Dump("json", None, 0, True, sort_keys, any_letter)


def _end_of(text: str, at: int) -> int | None:
    depth = 0
    for token in _TOKEN.finditer(text, at, at + LONGEST):
        if token.group() in "[{":
            depth += 1
            if depth > DEEPEST:
                return None
        elif token.group() in "]}":
            depth -= 1
            if depth == 0:
                return token.end()
    return None


def _json(text: str) -> Tree:
    """None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _parsed(text: str) -> Tree:
    """None if it is neither JSON nor a literal of Python's, or one of what is in no tree: a set, a number as a key."""
    value = _json(text)
    if value is not None:
        return value
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that no literal has
            value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, dict | list) and is_plain(value) else None
