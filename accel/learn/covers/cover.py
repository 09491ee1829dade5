"""An input's text explained by what the run knew: the cheapest cover of it by known values and literal characters.

Prompts are built by pasting values into text, and those values were seen where they crossed a component boundary. So
almost every input is a template over earlier values, whatever code did the pasting. Where values stand in a text is
told by an index (`index`); of the places that overlap, those that leave the fewest characters literal are taken.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from os.path import commonprefix

from ...text.dumps import dumped, quoted, styles_of
from ...text.extract import EXTRACTORS
from ...text.steps import EDITS, QUOTED, STAR, UNIQUE, Clip, Each, Escape, Extract, Step
from .holes import ANY, Hole, OpenPath, Parts, Rank, Skeleton, Source, filled
from .index import SEED, SHORTEST, Ends, Values

EDITED = 0
"""Instead of the shortest value: those of the first try, and also as user code edits them (`EDITS`)."""
CHARACTER = 1
"""What each literal character costs,"""
HOLE = 1
"""each hole,"""
CUT = 8
"""and what more it costs that a value is cut off: the text around a whole value may go on as another value does, by a
line break, say. What of its sources a hole is taken to come from, costs by `cost_of`."""
AROUND = 2
"""Words on each side of a value by which its place is told to be the program's own text;"""
FAR = 80
"""they stand so near."""
_WORD = re.compile(r"\b[^\W_]+\b")
_EXTRACTORS = tuple(EXTRACTORS)


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a text that something gives."""

    at: int
    end: int
    sources: Sequence[Source] = ()
    """Nothing for a known text as it stands."""
    steps: Sequence[Step] = ()
    """Each of which gives it of each source; none where the sources give it as they are."""
    cost: int = HOLE

    def given(self) -> Iterable[Source]:
        """What gives it. Asked of the few places that are taken."""
        if not self.steps:
            return self.sources
        return (replace(source, path=(*source.path, step)) for source in self.sources for step in self.steps)


def cover(values: Values, text: str, before: int, shortest: int) -> Parts:
    """`text` as literals and holes, in turn; values known before `before`, at least `shortest` long."""
    exact = known(values, text, before)
    if exact is not None:
        return ["", exact, ""]
    parts: Parts = []
    done = 0
    for place in _but_said(values, text, list(_places(values, text, before, shortest))):
        hole = hole_of(values, place.given()) if place.sources else known(values, text[place.at : place.end], before)
        assert hole is not None
        parts.extend((text[done : place.at], hole))
        done = place.end
    parts.append(text[done:])
    return parts


def _but_said(values: Values, text: str, places: list[Place]) -> list[Place]:
    """The cheapest ones, without those where the program says the value itself, with the words before and after it: a
    known value may be a word of its prompt by chance."""
    while True:
        chosen = cheapest(places)
        said = [around for place in chosen if (around := _around(text, place)) and values.says(text[slice(*around)])]
        if not said:
            return chosen
        places = [place for place in places if not any(at <= place.at and place.end <= end for at, end in said)]


def _around(text: str, place: Place) -> tuple[int, int] | None:
    """From where to where a place stands with so many words before it and after it; None where there are fewer."""
    before = list(_WORD.finditer(text, max(0, place.at - FAR), place.at))[-AROUND:]
    after = list(islice(_WORD.finditer(text, place.end, place.end + FAR), AROUND))
    return (before[0].start(), after[-1].end()) if len(before) == len(after) == AROUND else None


def cheapest(places: Iterable[Place]) -> list[Place]:
    """Those that together cost the least, with all that they leave literal; none overlap."""
    places = sorted(places, key=lambda place: (place.end, place.at))
    ends = [place.end for place in places]
    best: list[tuple[int, int]] = [(0, -1)]
    """By number of places looked at: what the best ones save, and the last one of them."""
    for number, place in enumerate(places):
        saved = best[bisect_right(ends, place.at, hi=number)][0] + (place.end - place.at) * CHARACTER - place.cost
        best.append((saved, number) if saved > best[-1][0] else best[-1])
    chosen: list[Place] = []
    last = best[-1][1]
    while last >= 0:
        chosen.append(places[last])
        last = best[bisect_right(ends, places[last].at, hi=last)][1]
    return chosen[::-1]


# --- where values stand ---------------------------------------------------------------------------------------------


def _places(values: Values, text: str, before: int, shortest: int) -> Iterator[Place]:
    """All of them, values known before `before` and at least `shortest` long; they may overlap."""
    yield from _pasted(values, text, before, shortest or SHORTEST[0])
    if "quoted" in values.readings:
        yield from (place for place in _quoted(values, text, before) if place.end - place.at - 2 >= shortest)
    if "printed" in values.readings:
        yield from _printed(values, text, before)
    if shortest == EDITED and "edited" in values.readings:
        yield from edited(values, text, before)


def _pasted(values: Values, text: str, before: int, shortest: int) -> Iterator[Place]:
    """Values as they are, whole or cut off. One for each part of the text: what is found there later wins nothing."""
    begun: list[tuple[int, str, Ends]] = []
    whole: set[str] = set()
    found: set[tuple[int, int]] = set()
    for at, value, ends in values.beginning_in(text, shortest):
        end = at + len(value)
        if not text.startswith(value, at):
            begun.append((at, value, ends))
        elif value in whole or values.knows(value, before):
            whole.add(value)
            if len(value) >= SHORTEST[0] or stands_alone(text, at, end):
                found.add((at, end))
                yield Place(at, end)
    if shortest == SHORTEST[0] and "short" in values.readings:
        for at, value in values.given_in(text, before):
            if stands_alone(text, at, at + len(value)):
                yield Place(at, at + len(value))
    n = 0
    for at, value, ends in begun:
        # Where it stands whole, another text may begin like it by chance: then only what ends a part tells.
        clips = "clip" in values.readings and value not in whole
        n = in_common(text, at, value, n)
        end, steps = _cut(text, at, value, ends, clips, n)
        if steps and (at, end) not in found and (sources := values.seen(value, before)):
            found.add((at, end))
            yield Place(at, end, sources, steps, HOLE + CUT)


def _cut(text: str, at: int, value: str, ends: Ends, clips: bool, n: int) -> tuple[int, list[Step]]:
    """Where the beginning of a value that stands here ends, and how it may have been cut. `n`: so many characters of
    it stand here."""
    # What ends the first part may stand after it in the text, too.
    near = [(end, head) for end, head in ends if n - len(head.end) <= end <= n] if ends else []
    end = min((at_end for at_end, _ in near), default=n) if near else n
    steps: list[Step] = [head for at_end, head in near if at_end == end]
    if clips and end == n >= SEED:
        # A blank where the text goes on with a word is the text's: the value may have one there by chance.
        if value[n - 1].isspace() and not steps and text[at + n : at + n + 1].strip():
            end = len(value[:n].rstrip())
        steps.append(Clip(end))
    return at + end, steps


def in_common(text: str, at: int, value: str, likely: int = 0) -> int:
    """How many characters of a value stand at this place of a text. `likely`: as many as of another value, which may
    begin like this one."""
    low, high = 0, 1
    if likely and text.startswith(value[:likely], at):
        low, high = min(likely, len(value)), likely + 1
    while low < len(value) and text.startswith(value[low:high], at + low):
        low, high = min(high, len(value)), 2 * high
    high = min(high, len(value) + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if text.startswith(value[low:middle], at + low) else (low, middle)
    return low


def ends_alike(texts: Sequence[str]) -> str:
    """What all of these texts end with."""
    return commonprefix([text[::-1] for text in texts])[::-1]


def edited(values: Values, text: str, before: int, but: Container[str] = ()) -> Iterator[Place]:
    """Values in one of their edited forms; `but`: not these."""
    shifted = len(text.casefold()) != len(text)
    forms: dict[str, list[tuple[str, int, list[Source], list[Step]]]] = {}
    for at, value in values.edited_in(text) if len(text) >= SHORTEST[0] else ():
        if value in forms and shifted:
            continue
        if value not in forms:
            forms[value] = list(_forms(value, values.seen(value, before))) if value not in but else []
        for shown, lead, sources, steps in forms[value]:
            # Where folding makes the text longer, a position in the folded text tells nothing.
            for start in _all(text, shown) if shifted else (at - lead,):
                if start >= 0 and text.startswith(shown, start):
                    yield Place(start, start + len(shown), sources, steps)


def _forms(value: str, known: list[Source]) -> Iterator[tuple[str, int, list[Source], list[Step]]]:
    """A value as it may be edited, how much then stands before its first word, and what gives that."""
    forms: dict[str, list[Step]] = {}
    for edit in EDITS if known else ():
        forms.setdefault(edit.shown(value), []).append(edit)
    for shown, steps in forms.items():
        if shown:
            yield shown, shown.index(EDITS[-1].shown(shown)), known, steps


def holds_edited(values: Values, texts: Sequence[str], before: int, keys: Container[str]) -> bool:
    """Whether one of the texts holds a value that was known by then, and not as it is written there. `keys`: names of
    fields, which are values as well where dicts are printed."""
    return any(
        not values.seen(text[place.at : place.end], before)
        for text in texts
        for place in edited(values, text, before, keys)
    )


def _all(text: str, value: str) -> Iterator[int]:
    at = text.find(value)
    while at >= 0:
        yield at
        at = text.find(value, at + 1)


def stands_alone(text: str, at: int, end: int) -> bool:
    """Not part of a longer word or number."""
    return (at == 0 or not text[at - 1].isalnum() or not text[at].isalnum()) and (
        end == len(text) or not text[end].isalnum() or not text[end - 1].isalnum()
    )


def _quoted(values: Values, text: str, before: int) -> Iterator[Place]:
    """Known texts with their quotes in printed lists and dicts."""
    for at, end, value in quoted(text):
        seen = values.seen(value, before)
        sources = [source for source in seen if not source.path or not isinstance(source.path[-1], Escape)]
        if sources:
            yield Place(at, end, sources, (QUOTED,))


def _printed(values: Values, text: str, before: int) -> Iterator[Place]:
    """Lists and dicts."""
    for at, end, printed in dumped(text):
        held = values.seen_plain(printed, before)
        given = tuple(
            replace(source, path=(*source.path, dump))
            for dump in styles_of(text[at:end])
            for value, source in held
            if dump.shown(value) == text[at:end]
        )
        if given:
            yield Place(at, end, given)


# --- holes ----------------------------------------------------------------------------------------------------------


def cost_of(skeleton: Skeleton, rank: Rank) -> tuple[Rank, int, bool, tuple[int, ...], str]:
    """Of taking a hole's value from there: by its age first, then by each step, a number of characters last (texts of
    one length look cut off by it), then by the extractors' order."""
    _, path = skeleton
    extracted = tuple(_EXTRACTORS.index(step.name) for step in path if isinstance(step, Extract))
    steps = sum(1 + (len(step.path) if isinstance(step, Each) else 0) for step in path)
    return rank, steps, any(isinstance(step, Clip) for step in path), extracted, str(skeleton)


def known(values: Values, text: str, before: int) -> Hole | None:
    """A text that is a known value as it stands, however short."""
    key = (text, before, len(values.texts.get(text, ())), values.counted)
    if key not in values.holes:
        sources = values.seen(text, before)
        values.holes[key] = hole_of(values, sources) if sources else None
    return values.holes[key]


def known_edited(values: Values, text: str, before: int) -> Hole | None:
    """A text that is a known value in one of its edited forms, however short; none of mixed case."""
    found: list[Source] = []
    for plain in dict.fromkeys(edit.shown(text) for edit in EDITS):
        for shown, _, sources, steps in _forms(plain, values.seen(plain, before)):
            if shown == text:
                found += Place(0, len(text), sources, steps).given()
    return hole_of(values, found) if found else None


def hole_of(values: Values, sources: Iterable[Source]) -> Hole:
    """What comes from one of these."""
    hole = Hole()
    for source in sources:
        origin = hole.origin(source.skeleton, source.rank)
        if source.row not in origin.rows:
            origin.rows.append(source.row)
    for node, path in list(hole.origins):
        if ANY in path and STAR not in path:
            _add_single_joins(values, hole, node, path)
    return hole


def _add_single_joins(values: Values, hole: Hole, node: str, path: OpenPath) -> None:
    """A list of one, or of equal ones, joined, looks like its element: keep that reading open."""
    at = len(path) - 1 - path[::-1].index(ANY)
    starred = (*path[:at], STAR, *path[at + 1 :])
    origin = hole.origins[node, path]
    for row in origin.rows:
        single, equal = values.alike(node, filled(path[:at], row[:-1]), filled(path[at + 1 :], ()))
        for holds, open_path in ((single, starred), (equal, (*starred, UNIQUE))):
            if holds:
                hole.origin((node, open_path), origin.rank).rows.append(row[:-1])
        if values.growing and row[-1] == 0 and not single:
            begun = hole.origin((node, starred), origin.rank)
            begun.limit = 1
            begun.rows.append(row[:-1])
