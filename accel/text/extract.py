"""Extractors: a text seen as the list or object it contains, also while it is still being decoded.

``extract(name, text, done)`` gives the items that no continuation of the text can change; with ``done`` it gives all.
Each reads a text the way programs do (a split, a pattern by line, tags by name), in time linear in the text, and finds
nothing where its marks are missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import jiter

from .values import Tree

Extractor = Callable[[str, bool], Tree]


class Open(list[Any]):
    """A list of which only the first items are known yet."""


class Partial(str):
    """A text of which only the beginning is known yet."""


def _whole_lines(text: str, done: bool) -> str:
    return text if done else text[: text.rfind("\n") + 1]


def _items(texts: Iterable[str]) -> list[str]:
    """Without surrounding white space; empty ones are no items."""
    return [item for text in texts if (item := text.strip())]


def _lines(text: str, done: bool) -> list[str]:
    return _items(_whole_lines(text, done).split("\n"))


# --- items with a mark before each ----------------------------------------------------------------------------------
# A mark looks at most one character ahead: once the text goes on behind it, it is certain.

_NUMBER = r"(?:\(\d+\)|\[\d+\]|\d+[.):](?!\d)|\d+[ \t]*[-–—](?=\s)|\#\d+[.):]?(?=\s)|\d+\ufe0f?\u20e3)"
_STEP = r"(?:\#+[ \t]+)?(?:\*\*)?[A-Z][A-Za-z]*[ \t]+(?:\d+|[IVX]+)[ \t]*[.:)–—-](?!\d)(?:\*\*)?"
_LETTER = r"(?:\(?(?:[a-zA-Z]|[ivx]{1,5}|[IVX]{1,5})[.)](?=\s))"
_BULLET = r"(?:[-*+–—·](?=\s)|[•‣⁃∙\u2190-\u21ff\u2460-\u27bf\u2b00-\u2bff\U0001f300-\U0001faff]\ufe0f?)"


def _bold(mark: str) -> str:
    """The mark, also in bold: ``**1.** one``, ``**1. one**``."""
    return rf"(?P<bold>\*\*|__)?{mark}(?(bold)(?:\*\*|__)?)"


def _marked(mark: str) -> Extractor:
    """What stands behind the mark in its line."""
    pattern = re.compile(mark)

    def items(text: str, done: bool) -> list[str]:
        return _items(row[m.end() :] for row in _lines(text, done) if (m := pattern.match(row)))

    return items


def _wrapped(mark: str) -> Extractor:
    """What stands between a mark and the next one; lines with indented marks belong to the item."""
    pattern = re.compile("^ ?" + mark, re.MULTILINE)

    def items(text: str, done: bool) -> list[str]:
        marks = [m for m in pattern.finditer(text) if done or m.end() < len(text)]
        ends = [*(m.start() for m in marks[1:]), *([len(text)] if done else [])]
        return _items(text[m.end() : end] for m, end in zip(marks, ends, strict=False))

    return items


_ANY = _bold(f"(?:{_NUMBER}|{_BULLET}|\\#+(?=\\s))")
_MARK = re.compile(_ANY)


def _unmarked(text: str, done: bool) -> list[str]:
    """All lines, with a mark or not: without it, and without quotes or bold around them."""
    rows = ((row, _MARK.match(row)) for row in _lines(text, done))
    return _items(row[m.end() if m else 0 :].strip(" \t\"'`*_“”") for row, m in rows)


# --- items with a separator between them ----------------------------------------------------------------------------


def _but_last(parts: list[str], done: bool) -> list[str]:
    return _items(parts if done else parts[:-1])


def _commas(text: str, done: bool) -> list[str]:
    return _but_last(text.split(","), done)


def _listed(text: str, done: bool) -> list[str]:
    """Items of a sentence such as ``"one", two, and three.``, without what makes it a sentence."""
    return _items(re.sub(r"^(?:and|or)\s", "", item).strip(" .\"'`*_“”") for item in _commas(text, done))


def _split(separator: str) -> Extractor:
    """The parts of a text that has the separator, a pattern, at all."""
    pattern = re.compile(separator)
    return lambda text, done: _but_last(pattern.split(text), done) if pattern.search(text) else []


_RULE = re.compile(r"^[ \t]*(?:-{3,}|\*{3,}|={3,}|_{3,}|\#{3,}|~{3,})[ \t\r]*$", re.MULTILINE)
_SEPARATOR = re.compile(r"(?<!\S)(?:[^\w\s*]{2,8}|[~^·→§]|<\|?\w+\|?/?>|\[[A-Z_]+\])(?=\s)")


def _rules(text: str, done: bool) -> list[str]:
    """The parts of a text between lines such as ``---``."""
    lines = _whole_lines(text, done)
    return _but_last(_RULE.split(lines), done) if _RULE.search(lines) else []


def _separated(text: str, done: bool) -> list[str]:
    """The parts of a text by the first thing in it that stands alone like a separator: ``###``, ``||``, ``<sep>``."""
    first = _SEPARATOR.search(text)
    return _but_last(text.split(first.group()), done) if first else []


def _found(pattern: str, flags: int = 0) -> Extractor:
    """All that a pattern finds. It must not look ahead, nor match less the more text there is."""
    compiled = re.compile(pattern, flags)
    return lambda text, done: _items(m.group(1) for m in compiled.finditer(text))


# --- named parts ----------------------------------------------------------------------------------------------------

_TAG = re.compile(r"<(/?)([A-Za-z][\w.:-]*)(?:\s[^<>]*)?(?<!/)>")


def _xml(text: str, done: bool) -> dict[str, list[str]]:
    """What stands between tags, by their name and at any depth, as ``re.findall("<a>(.*?)</a>")`` finds it."""
    inside: dict[str, int] = {}
    found: dict[str, list[str]] = {}
    for tag in _TAG.finditer(text):
        closing, name = tag.groups()
        if not closing:
            inside.setdefault(name, tag.end())
        elif name in inside:
            found.setdefault(name, [] if done else Open()).append(text[inside.pop(name) : tag.start()].strip())
    return found


_PAIR = re.compile(
    rf"(?:{_ANY})?"
    r"\s*[*_\"]{0,2}(?P<key>[^\W_][^.!?]{0,59}?)[*_\"]{0,2}(?:\s*:|\s+[-–—](?=\s))(?!//)[*_]{0,2}(?P<value>.*)"
)


def _pairs(text: str, done: bool) -> list[dict[str, str]]:
    """Lines of the form ``key: value`` or ``key - value``, whatever mark they have."""
    rows = ((m["key"].strip(), m["value"].strip()) for row in _lines(text, done) if (m := _PAIR.match(row)))
    return [{"key": key, "value": value} for key, value in rows if value]


def _first_of(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The first value of every key: a later one can't change it."""
    found: dict[str, str] = {}
    for key, value in pairs:
        if value:
            found.setdefault(key, value)
    return found


def _keys(text: str, done: bool) -> dict[str, str]:
    return _first_of((pair["key"], pair["value"]) for pair in _pairs(text, done) if len(pair["key"]) <= 40)


_SECTION = re.compile(
    r"^(?:\#{1,6}[ \t]+)?(?:\*\*|__)?([A-Z][\w-]{0,39}(?: [\w&/-]{1,39}){0,3})(?:\*\*|__)?:(?:\*\*|__)?(?=[ \t\r\n])",
    re.MULTILINE,
)


def _sections(text: str, done: bool) -> dict[str, str]:
    """What stands between ``Key:`` and the next line that begins so."""
    text += "\n" if done else ""
    keys = list(_SECTION.finditer(text))
    ends = [*(key.start() for key in keys[1:]), *([len(text)] if done else [])]
    return _first_of((key[1], text[key.end() : end].strip()) for key, end in zip(keys, ends, strict=False))


_HEADING = re.compile(r"^(\#{1,6})[ \t]+(.*)$", re.MULTILINE)


def _headings(text: str, done: bool) -> dict[str, list[dict[str, str]]]:
    """By level (``#``, ``##`` …) the titles, each with what follows up to the next heading of its level or above."""
    found: dict[str, list[dict[str, str]]] = {}
    above: list[tuple[str, int, dict[str, str]]] = []

    def end(level: str, at: int) -> None:
        while above and len(above[-1][0]) >= len(level):
            _, start, section = above.pop()
            section["body"] = text[start:at].strip()

    for heading in _HEADING.finditer(_whole_lines(text, done)):
        level, title = heading.groups()
        end(level, heading.start())
        section = {"title": title.strip()}
        found.setdefault(level, [] if done else Open()).append(section)
        above.append((level, heading.end(), section))
    if done:
        end("#", len(text))
    return found


# --- JSON -----------------------------------------------------------------------------------------------------------

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


def _json_lines(text: str, done: bool) -> list[Tree]:
    """An object in every line; two at least, for the only one is what `_json` finds."""
    if "{" not in text or text.lstrip().startswith("["):
        return []
    found: list[Tree] = []
    for row in _lines(text, done):
        if row.startswith("{"):
            try:
                found.append(jiter.from_json(row.rstrip(",").encode()))
            except ValueError:
                continue
    return found if len(found) > 1 else []


EXTRACTORS: dict[str, Extractor] = {
    "json": _json,
    "jsonl": _json_lines,
    "xml": _xml,
    "fenced": _found(r"```[\w+#.-]*[ \t\r]*\n(.*?)```", re.DOTALL),
    "numbered": _marked(_bold(_NUMBER)),
    "bullets": _marked(_bold(_BULLET)),
    "steps": _marked(_STEP),
    "lettered": _marked(_bold(_LETTER)),
    "lines": _lines,
    "unmarked": _unmarked,
    "keys": _keys,
    "pairs": _pairs,
    "sections": _sections,
    "headings": _headings,
    "numbered-wrapped": _wrapped(_bold(_NUMBER)),
    "bullets-wrapped": _wrapped(_bold(_BULLET)),
    "steps-wrapped": _wrapped(_STEP),
    "lettered-wrapped": _wrapped(_bold(_LETTER)),
    "commas": _commas,
    "listed": _listed,
    "semicolons": _split(";"),
    "pipes": _split(r"\|"),
    "tabs": _split(r"\t"),
    "slashes": _split(" / "),
    "arrows": _split("->|=>|→"),
    "paragraphs": _split(r"\n\s*\n"),
    "rules": _rules,
    "separated": _separated,
    "bold": _found(r"\*\*(.+?)\*\*"),
}
"""In order of preference where several explain the same items."""


@lru_cache(maxsize=256)  # every item of a text is followed on its own
def extract(name: str, text: str, done: bool = True) -> Tree:
    """The items of `text`; of an unfinished text only the closed ones, as an `Open` list. Not to be changed."""
    value = EXTRACTORS[name](text, done)
    if not done and isinstance(value, list) and not isinstance(value, Open):
        return Open(value)
    return value
