"""Where the text of an input comes from: covered by the longest values the run knew when the call was made.

Prompts are built by pasting values into text, and those values were seen where they crossed a component boundary. So
almost every input is a template over earlier values, whatever code did the pasting.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..evaluate import UNKNOWN, enumerate_stars, follow
from ..extract import EXTRACTORS, extract
from ..ir import ESCAPES, ITEMS, STAR, STRIP, Clip, Counter, Extract, Star, Step
from ..values import Tree, Vector, freeze, is_class_name, is_view, leaves


@dataclass(frozen=True, slots=True)
class AnyPosition:
    """In a skeleton: an open position."""

    def __repr__(self) -> str:
        return "#"


ANY = AnyPosition()
Path = tuple[Step, ...]
OpenPath = tuple[Step | AnyPosition, ...]
Skeleton = tuple[str, OpenPath]
"""A node and a path whose positions are left open: `ANY` where a coordinate has an int."""

MAX_VALUES = 6_000
MAX_CANDIDATES = 96
MAX_COLLECTED = 200
"""Elements of a list whose origin is looked for one by one."""
SHORTEST = (8, 3)
"""The shortest value that counts as pasted, first try and second. Shorter ones are only looked for where literals of
one site differ (`fold.mates`)."""
_SEED = 20
"""A clipped value is recognised by its first characters, this many at least."""


@dataclass(slots=True)
class Source:
    """One place where a value was seen."""

    node: str
    path: Path
    known: int
    """Position in the trace from which on it was known."""
    rank: tuple[int, int]
    """Earlier is better: what can be known before its program order first."""


Row = tuple[int, ...]
"""The positions of one value along a skeleton."""


@dataclass(slots=True)
class Hole:
    """A covered part of a text with every place it may come from."""

    sources: dict[Skeleton, list[tuple[int, ...]]]
    rank: dict[Skeleton, tuple[int, int]]
    sep: tuple[str | Counter, ...] | None = None
    limits: dict[Skeleton, int | None] = field(default_factory=dict)
    """For joins: how many elements, where it isn't all of them."""
    joined: bool = False
    column: int = 0
    """For joins of rows: which of a row's values it is,"""
    columns: int = 1
    """of so many."""
    collects: dict[Skeleton, list[tuple[str, ...] | None]] = field(default_factory=dict)
    """For lists made of elements: by what equal ones may have been dropped (`Collect.distinct`)."""


Parts = list[str | Hole]
"""Literals at even places, holes at odd ones."""


def is_mapping(value: dict[str, Tree]) -> bool:
    """Whether a dict looks like one from names to things of one kind, not like a record."""
    kinds = {type(item) for item in value.values()}
    return len(value) > 1 and len(kinds) == 1 and kinds <= {str, dict, list} and not is_view(value)


class Values:
    """All values one trace has seen, by text, growing as nodes are learnt."""

    def __init__(self, cautious: bool = False) -> None:
        self.cautious = cautious
        """Prefer what the framework node was given over what may be known earlier: little has been seen yet."""
        self.outputs: dict[str, Tree] = {}
        """What each node put out: a list for a node with many outputs."""
        self._texts: dict[str, list[Source]] = {}
        self._lists: dict[object, list[Source]] = {}
        self._objects: dict[object, list[Source]] = {}
        self._since: dict[str, dict[Path, int]] = {}
        """By node, since when the value at a path was known."""
        self._holes: dict[tuple[str, int, int], Hole | None] = {}
        """What `known` has said, by text, moment, and the number of sources there were."""
        self._count = 0

    def value(self, node: str) -> Tree:
        """`Env`: the recorded outputs."""
        return self.outputs.get(node, UNKNOWN)

    def since(self, node: str, path: tuple[str | int, ...]) -> int:
        """The position in the trace from which on this value was known."""
        known = self._since.get(node, {})
        return next((known[path[:n]] for n in range(len(path) + 1) if path[:n] in known), 0)

    def add(self, node: str, prefix: Path, tree: Tree, known: int, early: bool, texts: bool) -> None:
        """Index a value. `early`: it may be known ahead of program order; `texts`: look for lists inside texts."""
        self._since.setdefault(node, {})[prefix] = known
        rank = (int(early), -known) if self.cautious else (int(not early), known)
        stack: list[tuple[Path, Tree]] = [(prefix, tree)]
        while stack and self._count < MAX_VALUES:
            path, value = stack.pop()
            if isinstance(value, dict):
                if path and isinstance(path[-1], int):
                    self._objects.setdefault(freeze(value), []).append(Source(node, path, known, rank))
                items = [item for item in value.items() if not is_class_name(*item)]
                stack.extend(((*path, key), item) for key, item in reversed(items))
                if path and ITEMS not in path and is_mapping(value):
                    stack.append(((*path, ITEMS), ITEMS.shown(value)))
            elif isinstance(value, list):
                if value:
                    self._lists.setdefault(freeze(value), []).append(Source(node, path, known, rank))
                stack.extend(((*path, i), value[i]) for i in range(len(value) - 1, -1, -1))
            elif isinstance(value, str):
                self._add_text(value, Source(node, path, known, rank))
                if value != value.strip():
                    self._add_text(value.strip(), Source(node, (*path, STRIP), known, rank))
                for shown, escape in {escape.shown(value): escape for escape in reversed(ESCAPES)}.items():
                    if shown != value:
                        self._add_text(shown, Source(node, (*path, escape), known, rank))
                if texts and len(value) > 2:
                    self._add_extracted(node, path, value, known, rank)
            elif isinstance(value, int | float) and not isinstance(value, bool):
                self._add_text(str(value), Source(node, path, known, rank))
            elif isinstance(value, Vector):
                self._lists.setdefault(value, []).append(Source(node, path, known, rank))

    def _add_extracted(self, node: str, path: Path, text: str, known: int, rank: tuple[int, int]) -> None:
        for name in EXTRACTORS:
            found = extract(name, text)
            if not isinstance(found, list | dict) or not found or (name != "json" and len(found) > 200):
                continue
            base = (*path, Extract(name))
            if isinstance(found, list) and len(found) > 1:
                self._lists.setdefault(freeze(found), []).append(Source(node, base, known, rank))
            for steps, leaf in leaves(found):
                if isinstance(leaf, str) or (isinstance(leaf, int | float) and not isinstance(leaf, bool)):
                    self._add_text(str(leaf), Source(node, (*base, *steps), known, rank))

    def _add_text(self, text: str, source: Source) -> None:
        if text:
            self._count += 1
            sources = self._texts.setdefault(text, [])
            if len(sources) < MAX_CANDIDATES:
                sources.append(source)

    # --- covering

    def vector(self, value: Vector, before: int) -> Hole:
        """Where a vector comes from; without sources if it isn't known."""
        return self._hole([s for s in self._lists.get(value, ()) if s.known < before])

    def whole(self, value: Tree, before: int) -> Hole | None:
        """A list that is a known list as it stands, or made of the elements of known lists."""
        hole = self._hole([s for s in self._lists.get(freeze(value), ()) if s.known < before])
        self._add_collects(hole, value, before)
        return hole if hole.sources else None

    def _add_collects(self, hole: Hole, value: list[Tree], before: int) -> None:
        """Readings of a list as all elements of some list of lists, or all different ones, or the first of them."""
        if not 0 < len(value) <= MAX_COLLECTED or not isinstance(value[0], dict):
            return
        first = [s for s in self._objects.get(freeze(value[0]), ()) if s.known < before]
        frozen = [freeze(item) for item in value]
        tried: set[tuple[Skeleton, Row]] = set()
        for source in first:
            places = [i for i, step in enumerate(source.path) if isinstance(step, int)]
            row = tuple(step for step in source.path if isinstance(step, int))
            for fixed in range(len(places)):
                open_path = tuple(ANY if i in places[:fixed] else STAR if i in places else step
                                  for i, step in enumerate(source.path))  # fmt: skip
                skeleton: Skeleton = (source.node, open_path)
                if (skeleton, row[:fixed]) in tried:
                    continue
                tried.add((skeleton, row[:fixed]))
                modes, limit = self._modes(filled(open_path, row[:fixed]), source.node, value, frozen, before)
                if modes:
                    hole.sources.setdefault(skeleton, []).append(row[:fixed])
                    hole.rank[skeleton] = min(hole.rank.get(skeleton, source.rank), source.rank)
                    held = hole.collects.get(skeleton)
                    hole.collects[skeleton] = [m for m in modes if held is None or m in held]
                    hole.limits[skeleton] = limit

    def _modes(
        self, path: Path, node: str, value: list[Tree], frozen: list[object], before: int
    ) -> tuple[list[tuple[str, ...] | None], int | None]:
        """In which ways the elements along a path give the list."""
        tuples, _ = enumerate_stars(self.outputs[node], path)
        items = [follow(self.outputs[node], path, index) for index in tuples]
        if len(items) < len(value):
            return [], None
        fields = [(key,) for key, held in value[0].items() if isinstance(held, str)]
        found: dict[tuple[str, ...] | None, int | None] = {}
        for mode in (None, (), *fields):
            kept: dict[object, Tree] = {}
            for number, item in enumerate(items):
                kept.setdefault(number if mode is None else freeze(follow(item, mode)), item)
            got = [freeze(item) for item in kept.values()]
            if got[: len(frozen)] == frozen:
                found[mode] = len(frozen) if len(got) > len(frozen) else None
        complete = [mode for mode, limit in found.items() if limit is None]
        return (complete, None) if complete else (list(found), len(frozen))

    def known(self, text: str, before: int) -> Hole | None:
        """A text that is a known value as it stands, however short."""
        held = self._texts.get(text, ())
        key = (text, before, len(held))
        if key not in self._holes:
            sources = [s for s in held if s.known < before]
            self._holes[key] = self._hole(sources) if sources else None
        return self._holes[key]

    def cover(self, text: str, before: int, shortest: int) -> Parts:
        """`text` as literals and holes, in turn; values known before `before`, at least `shortest` long."""
        exact = self.known(text, before)
        if exact is not None:
            return ["", exact, ""]
        found: list[tuple[int, int, Hole]] = []
        taken = bytearray(len(text))
        near = [v for v in self._texts if len(v) >= shortest and (v if len(v) <= _SEED else v[:_SEED]) in text]
        places = [place for value in near for place in self._places(text, value, before)]
        for at, end, clipped in sorted(places, key=_longest_first):
            if any(taken[at:end]):
                continue
            hole = self._hole(clipped) if clipped else self.known(text[at:end], before)
            if hole is not None:
                taken[at:end] = b"\1" * (end - at)
                found.append((at, end, hole))
        parts: Parts = []
        position = 0
        for at, end, hole in sorted(found, key=lambda item: item[0]):
            parts.extend((text[position:at], hole))
            position = end
        parts.append(text[position:])
        return parts

    def _places(self, text: str, value: str, before: int) -> Iterator[tuple[int, int, list[Source]]]:
        """Where a value stands in the text, whole or, if it is nowhere whole, cut off at its end: then with its
        sources."""
        at = text.find(value)
        if at >= 0:
            known = any(s.known < before for s in self._texts[value])
            while at >= 0 and known:
                end = at + len(value)
                if len(value) >= SHORTEST[0] or stands_alone(text, at, end):
                    yield at, end, []
                at = text.find(value, end)
        elif len(value) > _SEED and (at := text.find(value[:_SEED])) >= 0:
            n = len(os.path.commonprefix([text[at : at + len(value)], value]))
            clipped = [
                Source(s.node, (*s.path, Clip(n)), s.known, s.rank) for s in self._texts[value] if s.known < before
            ]
            if clipped:
                yield at, at + n, clipped

    def _hole(self, sources: list[Source]) -> Hole:
        hole = Hole({}, {})
        for source in sources:
            skeleton = (source.node, tuple(ANY if isinstance(s, int) else s for s in source.path))
            index = tuple(s for s in source.path if isinstance(s, int))
            rows = hole.sources.setdefault(skeleton, [])
            if index not in rows:
                rows.append(index)
            hole.rank[skeleton] = min(hole.rank.get(skeleton, source.rank), source.rank)
        self._add_single_joins(hole)
        return hole

    def _add_single_joins(self, hole: Hole) -> None:
        """A list of one, joined, looks like its element: keep that reading open."""
        for (node, path), rows in list(hole.sources.items()):
            places = [i for i, step in enumerate(path) if step is ANY]
            if not places or STAR in path:
                continue
            at = places[-1]
            for row in rows:
                items = follow(self.outputs[node], filled(path[:at], row[:-1]))
                if isinstance(items, list) and len(items) == 1:
                    skeleton = (node, (*path[:at], STAR, *path[at + 1 :]))
                    hole.sources.setdefault(skeleton, []).append(row[:-1])
                    hole.rank[skeleton] = hole.rank[(node, path)]
                    hole.limits[skeleton] = None


def _longest_first(place: tuple[int, int, list[Source]]) -> tuple[int, bool]:
    """Of equally long ones, those that are cut off last."""
    at, end, clipped = place
    return at - end, bool(clipped)


def filled(path: OpenPath, row: tuple[int, ...]) -> Path:
    """The path with its open positions set, in order; stars stay."""
    values = iter(row)
    return tuple(next(values) if isinstance(step, AnyPosition) else step for step in path)


def stands_alone(text: str, at: int, end: int) -> bool:
    """Not part of a longer word or number."""
    return (at == 0 or not text[at - 1].isalnum() or not text[at].isalnum()) and (
        end == len(text) or not text[end].isalnum() or not text[end - 1].isalnum()
    )


__all__ = ["ANY", "Hole", "Parts", "Path", "Skeleton", "Star", "Values"]
