"""Where the text of an input comes from: covered by the longest values the run knew when the call was made.

Prompts are built by pasting values into text, and those values were seen where they crossed a component boundary. So
almost every input is a template over earlier values, whatever code did the pasting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from ..evaluate import DROPPED, UNKNOWN, enumerate_stars, follow
from ..extract import EXTRACTORS, extract
from ..templates import COUNT, ESCAPES, ITEMS, STAR, STRIP, UNIQUE, Counter, Extract, Ref, Star, Step
from ..values import Tree, Vector, containers, freeze, holds_number, is_class_name, is_handed_on, is_view, leaves
from .decisions import Said
from .places import Path, Place, Source, longest_first, places


@dataclass(frozen=True, slots=True)
class AnyPosition:
    """In a skeleton: an open position."""

    def __repr__(self) -> str:
        return "#"


ANY = AnyPosition()
OpenPath = tuple[Step | AnyPosition, ...]
Skeleton = tuple[str, OpenPath]
"""A node and a path whose positions are left open: `ANY` where a coordinate has an int."""

MAX_VALUES = 6_000
MAX_CANDIDATES = 96
MAX_COLLECTED = 200
"""Elements of a list whose origin is looked for one by one."""
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
        self.late = True
        """Whether values that are known late count as sources."""
        self.outputs: dict[str, Tree] = {}
        """What each node put out: a list for a node with many outputs."""
        self.texts: dict[str, list[Source]] = {}
        """Where every text was seen."""
        self._lists: dict[object, list[Source]] = {}
        self._objects: dict[object, list[Source]] = {}
        self._plain: dict[object, list[tuple[Tree, Source]]] = {}
        """Lists and dicts that may have been printed;"""
        self._printable: list[tuple[Tree, Source]] = []
        """those that are not in `_plain` yet: few texts hold any."""
        self._since: dict[str, dict[Path, int]] = {}
        """By node, since when the value at a path was known."""
        self._holes: dict[tuple[str, int, int, bool], Hole | None] = {}
        """What `known` has said, by text, moment, the number of sources there were, and whether late ones counted."""
        self._count = 0
        self.found: set[str] = set()
        self.said: dict[tuple[str, Row], dict[Ref, Said]] = {}
        """See `decisions.Known` for both."""

    def value(self, node: str) -> Tree:
        """`Env`: the recorded outputs."""
        return self.outputs.get(node, UNKNOWN)

    def since(self, node: str, path: tuple[str | int, ...]) -> int:
        """The position in the trace from which on this value was known."""
        known = self._since.get(node, {})
        return next((known[path[:n]] for n in range(len(path) + 1) if path[:n] in known), 0)

    def note(self, node: str, path: Path, known: int) -> None:
        """The value at this path was known from this position of the trace on."""
        self._since.setdefault(node, {})[path] = known

    def add(self, node: str, prefix: Path, tree: Tree, known: int, early: bool, texts: bool) -> None:
        """Index a value. `early`: it may be known ahead of program order; `texts`: look for lists inside texts."""
        self.note(node, prefix, known)
        rank = (int(early), -known) if self.cautious else (int(not early), known)
        source = partial(Source, node, known=known, rank=rank, late=not early)
        stack: list[tuple[Path, Tree]] = [(prefix, tree)]
        while stack and self._count < MAX_VALUES:
            path, value = stack.pop()
            if isinstance(value, dict | list) and value:
                self._printable.append((value, source(path)))
            if isinstance(value, dict):
                if (path and (isinstance(path[-1], int) or is_handed_on(path[-1]))) or holds_number(value):
                    self._objects.setdefault(freeze(value), []).append(source(path))
                if path and is_handed_on(path[-1]):
                    continue
                items = [item for item in value.items() if not is_class_name(*item)]
                stack.extend(((*path, key), item) for key, item in reversed(items))
                if path and ITEMS not in path and is_mapping(value):
                    stack.append(((*path, ITEMS), ITEMS.shown(value)))
            elif isinstance(value, list):
                if value:
                    self._lists.setdefault(freeze(value), []).append(source(path))
                    self._add_text(COUNT.shown(value), source((*path, COUNT)))
                stack.extend(((*path, i), value[i]) for i in range(len(value) - 1, -1, -1))
            elif isinstance(value, str):
                self._add_text(value, source(path))
                if value != value.strip():
                    self._add_text(value.strip(), source((*path, STRIP)))
                for shown, escape in {escape.shown(value): escape for escape in reversed(ESCAPES)}.items():
                    if shown != value:
                        self._add_text(shown, source((*path, escape)))
                if texts and len(value) > 2:
                    self._add_extracted(path, value, source)
            elif isinstance(value, int | float) and not isinstance(value, bool):
                self._add_text(str(value), source(path))
            elif isinstance(value, Vector):
                self._lists.setdefault(value, []).append(source(path))

    def _add_extracted(self, path: Path, text: str, source: Callable[[Path], Source]) -> None:
        for name in EXTRACTORS:
            found = extract(name, text)
            if not isinstance(found, list | dict) or not found or (name != "json" and len(found) > 200):
                continue
            base = (*path, Extract(name))
            if name == "json":
                self._printable += [(value, source((*base, *steps))) for steps, value in containers(found)]
            if isinstance(found, list) and len(found) > 1:
                self._lists.setdefault(freeze(found), []).append(source(base))
            for steps, leaf in leaves(found):
                if isinstance(leaf, str) or (isinstance(leaf, int | float) and not isinstance(leaf, bool)):
                    self._add_text(str(leaf), source((*base, *steps)))

    def _add_text(self, text: str, source: Source) -> None:
        if text:
            self._count += text not in self.texts
            sources = self.texts.setdefault(text, [])
            if len(sources) < MAX_CANDIDATES:
                sources.append(source)

    # --- covering

    def seen(self, sources: Iterable[Source], before: int) -> list[Source]:
        """Those that were known by then."""
        return [source for source in sources if self._counts(source, before)]

    def _counts(self, source: Source, before: int) -> bool:
        return source.known < before and (self.late or not source.late)

    def vector(self, value: Vector, before: int) -> Hole:
        """Where a vector comes from; without sources if it isn't known."""
        return self._hole(self.seen(self._lists.get(value, ()), before))

    def record(self, value: Tree, before: int) -> Hole | None:
        """A dict that is a known one as it stands."""
        hole = self._hole(self.seen(self._objects.get(freeze(value), ()), before))
        return hole if hole.sources else None

    def whole(self, value: Tree, before: int) -> Hole | None:
        """A list that is a known list as it stands, or made of the elements of known lists."""
        hole = self._hole(self.seen(self._lists.get(freeze(value), ()), before))
        self._add_collects(hole, value, before)
        return hole if hole.sources else None

    def _add_collects(self, hole: Hole, value: list[Tree], before: int) -> None:
        """Readings of a list as all elements of some list of lists, or all different ones, or the first of them."""
        if not 0 < len(value) <= MAX_COLLECTED or not isinstance(value[0], dict):
            return
        first = self.seen(self._objects.get(freeze(value[0]), ()), before)
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
        held = self.texts.get(text, ())
        key = (text, before, len(held), self.late)
        if key not in self._holes:
            sources = self.seen(held, before)
            self._holes[key] = self._hole(sources) if sources else None
        return self._holes[key]

    def cover(self, text: str, before: int, shortest: int) -> Parts:
        """`text` as literals and holes, in turn; values known before `before`, at least `shortest` long."""
        exact = self.known(text, before)
        if exact is not None:
            return ["", exact, ""]
        return self._holes_in(text, places(self, text, before, shortest), before)

    def plain(self, value: Tree, before: int) -> list[tuple[Tree, Source]]:
        """Lists and dicts equal to this one, as they are and where they were seen."""
        while self._printable:
            held, source = self._printable.pop()
            self._plain.setdefault(freeze(held), []).append((held, source))
        return [(held, source) for held, source in self._plain.get(freeze(value), ()) if self._counts(source, before)]

    def _holes_in(self, text: str, found_at: list[Place], before: int) -> Parts:
        """The longest places as holes, the rest as literals."""
        found: list[tuple[int, int, Hole]] = []
        taken = bytearray(len(text))
        for at, end, given in sorted(found_at, key=longest_first):
            if any(taken[at:end]):
                continue
            hole = self._hole(given) if given else self.known(text[at:end], before)
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
        """A list of one, or of equal ones, joined, looks like its element: keep that reading open."""
        for (node, path), rows in list(hole.sources.items()):
            places = [i for i, step in enumerate(path) if step is ANY]
            if not places or STAR in path:
                continue
            at = places[-1]
            for row in rows:
                items = follow(self.outputs[node], filled(path[:at], row[:-1]))
                if not isinstance(items, list) or DROPPED in items:
                    continue
                starred = (*path[:at], STAR, *path[at + 1 :])
                readings: list[OpenPath] = [starred] if len(items) == 1 else []
                rest = filled(path[at + 1 :], ())
                inside = (follow(item, rest) for item in items)
                first = next(inside, UNKNOWN)
                if all(item == first for item in inside):
                    readings.append((*starred, UNIQUE))
                for reading in readings:
                    skeleton = (node, reading)
                    hole.sources.setdefault(skeleton, []).append(row[:-1])
                    hole.rank[skeleton] = hole.rank[(node, path)]
                    hole.limits[skeleton] = None


def filled(path: OpenPath, row: tuple[int, ...]) -> Path:
    """The path with its open positions set, in order; stars stay."""
    values = iter(row)
    return tuple(next(values) if isinstance(step, AnyPosition) else step for step in path)


__all__ = ["ANY", "Hole", "Parts", "Path", "Skeleton", "Star", "Values"]
