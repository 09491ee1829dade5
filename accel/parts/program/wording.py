"""Whether words are a program's: pieces of what it says by itself, put together."""

from __future__ import annotations

import re
from bisect import bisect_left
from calendar import day_abbr, day_name, month_abbr, month_name
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from itertools import pairwise

FEWEST_WORDS = 2
"""A part of a program's text must have so many to be recognised by itself."""
MOST_WORDS = 200
"""Longer lines are not looked through from their end."""
_FIELDS = re.compile(r"\{\{|\}\}|\{[^{}]*\}|%\(\w+\)\w|%[sdrif]|\$\{?\w+\}?")
"""Where texts are formatted."""
_WORD = re.compile(r"[^\W_]+")
_SPACE = re.compile(r"\s+")
_COUNT = re.compile(r"\d{1,3}")
"""Programs compute how many words to ask for, and number items."""
_BEFORE_ITEM = re.compile(r"\n[-*#(\[ \t]*\Z|[\[(]\Z")
_AFTER_ITEM = re.compile(r"[.):\]]")
_DATES = (
    "%Y", "%B %Y", "%b %Y", "%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%m/%d/%y", "%d-%m-%Y",
    "%B %d, %Y", "%b %d, %Y", "%B %d %Y", "%b %d %Y", "%d %B %Y", "%d %b %Y", "%d-%b-%Y",
    "%A, %B %d, %Y", "%a, %b %d, %Y", "%A %B %d, %Y", "%a %b %d, %Y", "%A, %d %B %Y", "%a, %d %b %Y", "%A %d %B %Y",
)  # fmt: skip
"""How programs write the day on which they run, which names nobody."""
_PROTOCOL = frozenset(
    "string object integer number boolean array null function auto any none required text user assistant system human "
    "ai tool tool_call success error json json_object json_schema defs image_url ephemeral true false default".split()
)
"""What models are told in any case."""
_NAMES = {name.casefold() for name in (*month_name, *month_abbr, *day_name, *day_abbr) if name}
"""Beside them a number is part of another day."""


def today(now: Callable[[tzinfo | None], datetime] = datetime.now) -> set[str]:
    """The day, here and in UTC, as programs write it."""
    written = {now(zone).strftime(form) for zone in (None, UTC) for form in _DATES}
    return written | {re.sub(r"\b0(?=\d)", "", text) for text in written}


class Texts:
    """What a program says by itself, in pieces."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        pieces = {_normal(piece) for text in texts for piece in (text, *_FIELDS.split(text))}
        self._pieces: dict[str, list[str]] = {}
        """By first word."""
        for piece in sorted(pieces | _PROTOCOL, key=len, reverse=True):
            words = list(_WORD.finditer(piece))
            if words:
                trimmed = piece[words[0].start() : words[-1].end()]
                self._pieces.setdefault(words[0].group(), []).append(trimmed)
        self._all = "\0".join(pieces)
        days = "|".join(map(re.escape, sorted(today(), key=len, reverse=True)))
        self._day = re.compile(rf"(?<![\w./-])(?:{days})(?![\w/-]|\.\d)", re.IGNORECASE)

    def cover(self, text: str) -> bool:
        """Whether all words of a text are the program's: pieces one after the other, and at its ends also parts of
        pieces. What is not a word may stand between them, and what a program computes: see `_computed`."""
        reached, count = self._reached(text, list(_WORD.finditer(text)))
        return count in reached

    def says(self, text: str) -> bool:
        """Whether the program says this as it stands, in one piece."""
        return self._holds(_normal(text))

    def beyond(self, text: str) -> str:
        """What is left of a text without the program's words at its beginning and its end. A number is a part of what
        it stands beside, and so is all that no space parts from it."""
        words = list(_WORD.finditer(text))
        reached, count = self._reached(text, words)
        first = max(reached)
        if first >= count:
            return ""
        if count != len(words):  # some letters are other words in the other case
            return text
        while first and _is_slight(words[first - 1].group()):
            first -= 1
        end, computed = len(text), self._computed(text, words)
        for number in range(first + 1, min(len(words), MOST_WORDS)):
            if not _is_slight(words[number].group()):
                later = {at - number: behind - number for at, behind in computed.items() if at >= number}
                reached, count = self._reached(text[words[number].start() :], words[number:], later)
                if count in reached:
                    end = words[number].start()
                    break
        parted = [0, *(space.end() for space in _SPACE.finditer(text)), len(text)]
        start = words[first].start() if first else 0
        return text[max(at for at in parted if at <= start) : min(at for at in parted if at >= end)].strip()

    def _reached(
        self, raw: str, as_written: Sequence[re.Match[str]], computed: Mapping[int, int] | None = None
    ) -> tuple[set[int], int]:
        """How many words from the beginning on pieces cover, one after the other; and how many there are. `as_written`:
        its words; `computed`: those of `_computed`, if that was asked."""
        text = _normal(raw)
        words = list(_WORD.finditer(text))
        if computed is None:  # unless some letters are other words in the other case
            computed = self._computed(raw, as_written) if len(words) == len(as_written) else {}
        ends = {word.end(): number for number, word in enumerate(words, 1)}
        reached = {0, *range(FEWEST_WORDS, self._longest(text, words, 0) + 1)}
        for number, word in enumerate(words):
            if number not in reached:
                continue
            if number in computed:
                reached.add(computed[number])
            for piece in self._pieces.get(word.group(), ()):
                end = word.start() + len(piece)
                if end in ends and text.startswith(piece, word.start()):
                    reached.add(ends[end])
        # What is part of a piece up to the end is so from every later word on: the last one tells of all.
        last = max((number for number in reached if len(words) - number >= FEWEST_WORDS), default=len(words))
        if last < len(words) and self._holds(text[words[last].start() : words[-1].end()]):
            reached.add(len(words))
        return reached, len(words)

    def _computed(self, text: str, words: Sequence[re.Match[str]]) -> dict[int, int]:
        """By word, the word behind what begins there and programs compute, and that names nobody: a letter, how many
        words to ask for, the number of an item, the day. A number that stands beside another one, or that no word of
        the same text is on both sides of, may be somebody's."""
        found = {number: number + 1 for number in range(len(words)) if _is_slight_at(text, words, number)}
        starts, ends = ({at(word): n for n, word in enumerate(words)} for at in (re.Match.start, re.Match.end))
        for day in self._day.finditer(text):
            first, last = starts.get(day.start()), ends.get(day.end())
            if first is None or last is None:
                continue  # a locale writes it with other marks
            beside = (*words[max(0, first - 1) : first], *words[last + 1 : last + 2])
            if not any(word.group().isdigit() or word.group().casefold() in _NAMES for word in beside):
                found[first] = last + 1
        return found

    def _longest(self, text: str, words: list[re.Match[str]], first: int) -> int:
        """How many words from this one on are part of one piece; none, if they are too few to tell."""
        few = words[first : first + FEWEST_WORDS]
        # Most texts that are looked at are somebody's, and no piece begins like them.
        if len(few) < FEWEST_WORDS or not self._holds(text[few[0].start() : few[-1].end()]):
            return 0
        start = words[first].start()
        return bisect_left(words, True, key=lambda last: not self._holds(text[start : last.end()]))

    def _holds(self, part: str) -> bool:
        at = self._all.find(part)
        while at >= 0:
            before, after = self._all[max(0, at - 1) : at], self._all[at + len(part) : at + len(part) + 1]
            if not before.isalnum() and not after.isalnum():
                return True
            at = self._all.find(part, at + 1)
        return False


def _is_slight(word: str) -> bool:
    """A single letter, or a count."""
    return len(word) == 1 or _COUNT.fullmatch(word) is not None


def _is_slight_at(text: str, words: Sequence[re.Match[str]], number: int) -> bool:
    """A single letter; a count between two words, one blank from each; the number of an item; a small one by itself."""
    word = words[number]
    if not word.group().isdigit():
        return len(word.group()) == 1
    if _COUNT.fullmatch(word.group()) is None:
        return False
    is_item = _BEFORE_ITEM.search(text, 0, word.start()) and _AFTER_ITEM.match(text, word.end())
    if is_item or text == word.group():
        return len(word.group()) < 3
    if not 0 < number < len(words) - 1:
        return False
    before, after = words[number - 1], words[number + 1]
    blanks = text[before.end() : word.start()], text[word.end() : after.start()]
    return blanks == (" ", " ") and before.group().isalpha() and after.group().isalpha()


def shared(texts: Iterable[str], among: Iterable[str]) -> list[str]:
    """Which of a program's texts may have a part in these: two words in a row, or a piece of one word."""
    words = [tuple(_WORD.findall(_normal(text))) for text in texts]
    singles = {word for row in words for word in row}
    rows = {pair for row in words for pair in pairwise(row)}
    found = []
    for text in among:
        pieces = [_WORD.findall(_normal(piece)) for piece in (text, *_FIELDS.split(text))]
        if any((len(piece) == 1 and piece[0] in singles) or not rows.isdisjoint(pairwise(piece)) for piece in pieces):
            found.append(text)
    return found


def whole_in(texts: Sequence[str], among: Iterable[str]) -> list[str]:
    """Which of these stand in the texts as they are, but for where they are formatted: one word, only by itself."""
    everything = "\0".join(texts)

    def stands(part: str) -> bool:
        return part in texts or (len(_WORD.findall(part)) >= FEWEST_WORDS and part in everything)

    found = []
    for text in among:
        parts = [part for piece in _FIELDS.split(text) if _WORD.search(part := piece.strip())]
        if stands(text.strip()) or (parts and all(map(stands, parts))):
            found.append(text)
    return found


def _normal(text: str) -> str:
    return " ".join(text.casefold().split())
