"""Where known values stand in a text: whole, cut off, edited, quoted, or printed as part of a list or dict."""

from __future__ import annotations

import os.path
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ..dumps import dumped, quoted, styles_of
from ..templates import EDITS, HEADS, QUOTED, Clip, Escape, Head, Step

if TYPE_CHECKING:
    from .provenance import Values

Path = tuple[Step, ...]

SHORTEST = (8, 3)
"""The shortest value that counts as pasted, first try and second. Shorter ones are only looked for where literals of
one site differ (`fold.mates`)."""
EDITED = 0
"""Instead of the shortest value: those of the first try, and also as user code edits them (`EDITS`)."""
_SEED = 20
"""A clipped value is recognised by its first characters, this many at least;"""
_BEGUN = 8
"""one that was cut at the end of its first sentence or line, by so many."""


@dataclass(slots=True)
class Source:
    """One place where a value was seen."""

    node: str
    path: Path
    known: int
    """Position in the trace from which on it was known."""
    rank: tuple[int, int]
    """Earlier is better: what can be known before its program order first."""
    late: bool = False
    """It is known when the program gets there, and no sooner."""


Place = tuple[int, int, list[Source]]
"""Beginning and end, and what gives that; empty for a known text as it stands."""


def places(values: Values, text: str, before: int, shortest: int) -> list[Place]:
    """All of them, values known before `before` and at least `shortest` long; they may overlap."""
    if shortest == EDITED:
        return [*places(values, text, before, SHORTEST[0]), *_edited(values, text, before, _near(values, text))]
    near = [value for value in values.texts if len(value) >= shortest and value[:_BEGUN] in text]
    found = [place for value in near for place in _whole_or_cut(values, text, value, before)]
    found += [(at, end, given) for at, end, given in _quoted(values, text, before) if end - at - 2 >= shortest]
    return [*found, *_printed(values, text, before)]


def _whole_or_cut(values: Values, text: str, value: str, before: int) -> Iterator[Place]:
    """Where a value stands in the text, whole or cut off: then with its sources."""
    starts = [at for at, _ in occurrences(text, value)]
    cut = list(_cut(text, value, starts)) if len(value) > _BEGUN else []
    known = values.seen(values.texts[value], before) if starts or cut else []
    if not known:
        return
    for at in starts:
        end = at + len(value)
        if len(value) >= SHORTEST[0] or stands_alone(text, at, end):
            yield at, end, []
    for at, end, steps in cut:
        yield at, end, [replace(source, path=(*source.path, step)) for source in known for step in steps]


def _cut(text: str, value: str, starts: list[int]) -> Iterator[tuple[int, int, list[Step]]]:
    """Where only the beginning of a value stands, and how it may have been cut."""
    heads = _heads(value)
    # Where it stands whole, another text may begin like it by chance: then only what ends a part tells.
    if not heads and (starts or len(value) <= _SEED or value[:_SEED] not in text):
        return
    for at, _ in occurrences(text, value[:_BEGUN]):
        if at in starts:
            continue
        n = len(os.path.commonprefix([text[at : at + len(value)], value]))
        # What ends the first part may stand after it in the text, too.
        near = [(end, head) for end, head in heads if n - len(head.end) <= end <= n]
        end = min((at_end for at_end, _ in near), default=n)
        steps: list[Step] = [head for at_end, head in near if at_end == end]
        if end == n >= _SEED and not starts:
            steps.append(Clip(n))
        if steps:
            yield at, at + end, steps


@lru_cache(10_000)
def _heads(value: str) -> tuple[tuple[int, Head], ...]:
    """Where the first parts of a text end, those that are long enough to be recognised."""
    ends = ((value.find(head.end), head) for head in HEADS)
    return tuple((end, head) for end, head in ends if end >= _BEGUN)


def _edited(values: Values, text: str, before: int, near: Iterable[str]) -> Iterator[Place]:
    """Where these values stand in the text in one of their edited forms, with what gives them."""
    for value in near:
        known = values.seen(values.texts[value], before)
        for shown in {edit.shown(value) for edit in EDITS} if known else ():
            given = [
                replace(source, path=(*source.path, edit))
                for source in known
                for edit in EDITS
                if edit.shown(value) == shown
            ]
            if shown:
                yield from ((at, end, given) for at, end in occurrences(text, shown))


def _near(values: Values, text: str) -> list[str]:
    """The values that may stand in the text, edited or not."""
    if len(text) < SHORTEST[0]:
        return []
    folded = text.casefold()
    return [value for value in values.texts if len(value) >= SHORTEST[0] and _bare(value) in folded]


def holds_edited(values: Values, texts: Sequence[str], before: int, keys: Container[str]) -> bool:
    """Whether one of the texts holds a value that was known by then, and not as it is written there. `keys`: names of
    fields, which are values as well where dicts are printed."""
    texts = [text for text in texts if len(text) >= SHORTEST[0]]
    near = [value for value in _near(values, "\0".join(texts)) if value not in keys]
    return any(
        not values.seen(values.texts.get(text[at:end], ()), before)
        for text in texts
        for at, end, _ in _edited(values, text, before, near)
    )


@lru_cache(10_000)
def _bare(value: str) -> str:
    """What no edit changes."""
    return EDITS[-1].shown(value).casefold()


def _quoted(values: Values, text: str, before: int) -> Iterator[Place]:
    """Where known texts stand with their quotes in printed lists and dicts."""
    for at, end, value in quoted(text):
        known = values.seen(values.texts.get(value, ()), before)
        given = [
            replace(source, path=(*source.path, QUOTED))
            for source in known
            if not source.path or not isinstance(source.path[-1], Escape)
        ]
        if given:
            yield at, end, given


def _printed(values: Values, text: str, before: int) -> Iterator[Place]:
    """Where lists and dicts are printed in the text, with what gives them."""
    for at, end, printed in dumped(text):
        held = values.plain(printed, before)
        given = [
            replace(source, path=(*source.path, dump))
            for dump in styles_of(text[at:end])
            for value, source in held
            if dump.shown(value) == text[at:end]
        ]
        if given:
            yield at, end, given


def longest_first(place: Place) -> int:
    """Those that are cut off count for less: the text around a whole value may go on as another value does, by a line
    break, say."""
    at, end, given = place
    return at - end + (SHORTEST[0] if given and isinstance(given[0].path[-1], Clip | Head) else 0)


def occurrences(text: str, value: str) -> Iterator[tuple[int, int]]:
    """Beginning and end of each, one after the other."""
    at = text.find(value)
    while at >= 0:
        yield at, at + len(value)
        at = text.find(value, at + len(value))


def stands_alone(text: str, at: int, end: int) -> bool:
    """Not part of a longer word or number."""
    return (at == 0 or not text[at - 1].isalnum() or not text[at].isalnum()) and (
        end == len(text) or not text[end].isalnum() or not text[end - 1].isalnum()
    )
