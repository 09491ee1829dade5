"""What a program says by itself that functions may be given: where it splits, the patterns that it searches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from time import thread_time

LONGEST_SEARCHED = 4_000
"""A text of more characters is not searched."""
SLOW_S = 0.001
"""A pattern that takes longer on a part of a text is not tried on more of it: the interpreter cannot be had back from
it, and it may take many times as long on twice as many characters."""
FIRST_PART = 32
"""Characters of the first part; each further one is twice as long."""
MOST_REPEATS = 12
"""In one pattern."""
MOST = 200
"""Constants of one kind."""
_LITERAL = re.compile(r"(?:[\w#:<>/=\"' -](?![*?{])){2,}")
_SPECIAL = re.compile(r"\\[dwsSDWbn]|\.[*+]|[\])][*+?{]|\((?:\?:)?[^()]*\|")
_MARK = re.compile(r"(?<!\w)(?:[#$@%]\w{1,24}|\[[A-Z_]{2,24}\]|</?[a-z_]{2,24}>|<<\w{1,24}>>|\{\{\w{1,24}\}\})")
"""Where texts have a place for something, as prompts tell a model: results called #E1, names in brackets, tags."""
_PIECE = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<open>\((?:\?(?:P<\w+>|[:=!]|<[=!]))?)|(?P<close>\))|(?P<repeat>[*+]|\{\d*,\d*\})"
    r"|(?P<choice>\|)", re.DOTALL,
)  # fmt: skip
_REPEAT = re.compile(r"[*+]|\{\d")
SPEC = re.compile(r"(?:\{\w*:)?(,?(?:\.\d)?[fdgeE%]|,|0\d{1,2}d?)\}?")
_IN_TEMPLATE = re.compile(r"\{\w+:[^{}]{1,8}\}")
_DIRECTIVE = re.compile(r"%[YmdBbyAajUH]")
NUMBER = re.compile(r"\s*[-+]?\d+(?:\.\d+)?\s*")


Table = tuple[tuple[str, str], ...]
"""A dict of texts, as its items."""


@dataclass(frozen=True)
class Constants:
    """What a program says, by what it may be for."""

    separators: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    specs: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    whole: tuple[int, ...] = ()
    numbers: tuple[float, ...] = ()
    tables: tuple[Table, ...] = ()

    @classmethod
    def among(cls, texts: Iterable[str], tables: Iterable[Table] = ()) -> Constants:
        """Those among a program's texts; numbers are written as texts, too."""
        said = sorted(set(texts), key=lambda text: (len(text), text))
        marks = sorted({mark for text in said for mark in _MARK.findall(text)})
        specs = (spec for text in said for spec in (text, *_IN_TEMPLATE.findall(text)))
        numbers = [text for text in said if NUMBER.fullmatch(text) and len(text) <= 8]
        return cls(
            separators=tuple(dict.fromkeys((*marks[:MOST], *filter(_may_part, said))))[: 2 * MOST],
            patterns=tuple(text for text in said if _may_search(text))[:MOST],
            specs=tuple(dict.fromkeys(m[1] for text in specs if (m := SPEC.fullmatch(text))))[:MOST],
            dates=tuple(text for text in said if _DIRECTIVE.search(text) and len(text) <= 40)[:MOST],
            whole=tuple(sorted({abs(int(text)) for text in numbers if text.strip().lstrip("+-").isdecimal()}))[:MOST],
            numbers=tuple(sorted({float(text) for text in numbers}))[:MOST],
            tables=tuple(dict.fromkeys(tables))[:MOST],
        )

    def searching(self, text: str) -> Iterator[str]:
        """The patterns that may be found in a text."""
        if len(text) > LONGEST_SEARCHED:
            return
        for pattern in self.patterns:
            literal = max(_LITERAL.findall(re.sub(r"\\.|\[[^\]]*\]", "\0", pattern)), key=len, default="")
            if literal.strip("\0").casefold() in text.casefold():
                with suppress(LookupError):
                    if compiled_on(text, pattern, int(re.DOTALL)).search(text) is not None:
                        yield pattern


_slow: set[str] = set()
"""Patterns that took too long once."""


def compiled_on(text: str, pattern: str, flags: int) -> re.Pattern[str]:
    """The pattern, if it takes no time on this text. Raises LookupError."""
    if len(text) > LONGEST_SEARCHED or pattern in _slow:
        raise LookupError("too long a text, or a pattern that takes too long")
    compiled, part = re.compile(pattern, flags), FIRST_PART
    while part < 2 * len(text):
        began_s = thread_time()
        compiled.search(text[:part])
        if thread_time() - began_s > SLOW_S:
            _slow.add(pattern)
            raise LookupError("a pattern that takes too long")
        part *= 2
    return compiled


def _may_part(text: str) -> bool:
    return 0 < len(text) <= 32 and not NUMBER.fullmatch(text)


def _may_search(text: str) -> bool:
    """Whether a text is a pattern that may be tried: in none of its groups that repeat does anything repeat or is there
    a choice, which may take twice as long with every character."""
    if not _SPECIAL.search(text) or len(text) > 200 or re.search(r"\\[1-9]", text):
        return False
    groups, repeats, unbounded = [False], 0, False
    for piece in _PIECE.finditer(text):
        if piece["open"]:
            groups.append(False)
        elif piece["close"] and len(groups) > 1:
            unbounded = groups.pop()
            if unbounded and _REPEAT.match(text, piece.end()):
                return False
            groups[-1] = groups[-1] or unbounded
        elif piece["repeat"] or piece["choice"]:
            groups[-1] = True
            repeats += 1
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return False
    return repeats <= MOST_REPEATS
