"""Joins in covered texts: runs of holes over consecutive elements of lists, row by row, with even text between them.

A row may have one value or several (``1. step -> result``), each from a list of its own; the lists go side by side.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from ...process.spare import breathe
from ...text.paths import DROPPED
from ...text.steps import STAR, UNIQUE
from ...text.templates import Counter
from .beside import MAX_COLUMNS
from .cover import stands_alone
from .holes import ANY, Hole, OpenPath, Origin, Parts, Rank, Row, Skeleton, Start, filled
from .index import Values

Separator = tuple[str | Counter, ...]


def fold_joins(values: Values, parts: Parts) -> Parts:
    """`parts` with the longest joins as joined holes, one for each value of a row."""
    done = 1 if "join" in values.readings else len(parts)
    widest = MAX_COLUMNS if "rows" in values.readings else 1
    while done < len(parts) - 1:
        best: _Found | None = None
        first = parts[done]
        begins = isinstance(first, Hole) and _begins_list(values, first)
        holes = list(takewhile(lambda hole: not hole.joined, _holes_from(parts, done))) if begins else []
        for columns in range(1, min(widest, len(holes) // 2) + 1):
            found = _Search(values, parts, done, columns, holes).best()
            if found is not None and (best is None or found.covered > best.covered):
                best = found
        if best is not None:
            parts = [*parts[: done - 1], *best.parts, *parts[best.end + 2 :]]
            done += 2 * (best.columns - 1)
        done += 2
    return parts


@dataclass(slots=True)
class _Found:
    parts: Parts
    """What stands instead, with the literals before and after it."""
    end: int
    """The last hole it covers."""
    covered: int
    """How many holes."""
    columns: int
    """Holes in `parts`."""


@dataclass(slots=True)
class _Reading:
    """One place where a column may come from: a skeleton with stars, by the row before them."""

    skeleton: Skeleton
    row: Row
    rank: Rank
    count: int
    """How many holes, from the first on, hold its elements one after the other."""
    length: int


@dataclass(slots=True)
class _Search:
    """Rows of so many holes from `start` on."""

    values: Values
    parts: Parts
    start: int
    columns: int
    holes: list[Hole]
    """From there on; two rows at least."""

    def best(self) -> _Found | None:
        if self._inner(0) != self._inner(1):
            return None
        readings: list[list[_Reading]] = []
        for column in range(self.columns):
            readings.append(list(self._readings(column)))
            if not readings[-1]:
                return None
        rows = min(max(reading.count for reading in found) for found in readings)
        sep, rows = self._even(rows)
        return self._join(sep, rows, readings) if rows > 1 else None

    def _readings(self, column: int) -> Iterator[_Reading]:
        """Every list that the holes of a column may run over, from its first element on, the second one included."""
        holes = self.holes[column :: self.columns]
        may_be_unique = self.columns == 1 and "unique" in self.values.readings
        for skeleton, origin in holes[0].origins.items():
            second = holes[1].rows(skeleton)
            if not second or STAR in skeleton[1]:
                continue
            for row in origin.rows:
                breathe()
                for start in _starts(self.values, skeleton, row):
                    if start.rows[1] in second and (may_be_unique or not start.unique):
                        pairs = zip(holes, start.rows, strict=False)
                        count = _leading(element in hole.rows(skeleton) for hole, element in pairs)
                        before = row[: start.fixed]
                        yield _Reading(start.skeleton, before, origin.rank, count, len(start.rows))

    def _even(self, rows: int) -> tuple[Separator, int]:
        """How many of the rows have the same texts inside and between them, and what stands between."""
        inner = self._inner(0)
        between: list[str] = []
        for row in range(1, rows):
            if self._inner(row) != inner:
                break
            between.append(self._text(row * self.columns - 1))
        if not between:
            return (), 0
        counted = _counted(between[0], 1)
        seps = [counted, (between[0],)]
        even = [_leading(_counted(text, row) == counted for row, text in enumerate(between, 1)),
                _leading(text == between[0] for text in between)]  # fmt: skip
        best = 0 if even[0] >= even[1] and "counted" in self.values.readings else 1
        return seps[best], 1 + even[best]

    def _join(self, sep: Separator, rows: int, readings: list[list[_Reading]]) -> _Found:
        parts: Parts = [self.parts[self.start - 1]]
        for column, found in enumerate(readings):
            joined = Hole({}, sep, True, column, self.columns)
            for reading in found:
                if reading.count >= rows:
                    _add(joined, reading, rows)
            parts += [joined, self._text(column)]
        end = self.start + 2 * (rows * self.columns - 1)
        parts[-1] = self.parts[end + 1]
        return _Found(parts, end, rows * self.columns, self.columns)

    def _inner(self, row: int) -> list[str]:
        """The texts inside a row."""
        return [self._text(row * self.columns + column) for column in range(self.columns - 1)]

    def _text(self, hole: int) -> str:
        """What stands after a hole."""
        text = self.parts[self.start + 2 * hole + 1]
        assert isinstance(text, str)
        return text


def _starts(values: Values, skeleton: Skeleton, row: Row) -> list[Start]:
    """The lists that begin with the value at this row, from each of its positions on."""
    known = values.lists.get((skeleton, row))
    if known is None:
        known = values.lists[skeleton, row] = list(_lists_from(values, skeleton, row))
    return known


def _lists_from(values: Values, skeleton: Skeleton, row: Row) -> Iterator[Start]:
    if not row or not _is_first(values, skeleton, row):
        return
    node, path = skeleton
    places = [i for i, step in enumerate(path) if step is ANY]
    for fixed, unique in itertools.product(range(len(row)), (False, True)):
        before = row[:fixed]
        starred: OpenPath = tuple(STAR if i in places[fixed:] else step for i, step in enumerate(path))
        starred = (*starred, UNIQUE) if unique else starred
        elements = values.elements(node, filled(starred, before))
        if len(elements) > 1 and elements[0] == row[fixed:]:
            yield Start((node, starred), [(*before, *element) for element in elements], fixed, unique)


def _begins_list(values: Values, hole: Hole) -> bool:
    origins = hole.origins.items()
    return not hole.joined and any(_is_first(values, skeleton, row) for skeleton, o in origins for row in o.rows if row)


def _is_first(values: Values, skeleton: Skeleton, row: Row) -> bool:
    """Whether it is the first element of a list, or the first output that a node has: there may be none for elements
    before."""
    if row[-1] == 0:
        return True
    node, path = skeleton
    outputs = values.outputs[node]
    listed = len(row) == 1 and path[0] is ANY and isinstance(outputs, list)
    return listed and all(output is DROPPED for output in outputs[: row[0]])


def _holes_from(parts: Parts, start: int) -> Iterator[Hole]:
    for part in parts[start::2]:
        assert isinstance(part, Hole)
        yield part


def _add(join: Hole, reading: _Reading, rows: int) -> None:
    """Lists that are joined to their end are the better readings."""
    limit = rows if reading.length > rows else None
    origin = join.origins.get(reading.skeleton)
    if origin is None or (limit is None and origin.limit is not None):
        join.origins[reading.skeleton] = Origin(reading.rank, [reading.row], limit)
    elif (limit is None) == (origin.limit is None):
        origin.rank, origin.limit = reading.rank, limit
        if reading.row not in origin.rows:
            origin.rows.append(reading.row)


def _leading(held: Iterable[bool]) -> int:
    """How many of the first ones hold."""
    return sum(takewhile(bool, held))


def _counted(text: str, position: int) -> Separator:
    """A separator before the element at `position`: a number that follows the count becomes a `Counter`."""
    for offset in (1, 0):
        number = str(position + offset)
        at = text.find(number)
        if at >= 0 and stands_alone(text, at, at + len(number)):
            return tuple(p for p in (text[:at], Counter(offset), text[at + len(number) :]) if p != "")
    return (text,)
