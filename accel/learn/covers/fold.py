"""Fold the calls of one site into one node: same literals, and holes that differ only in positions.

Calls of one loop give a node with a level (Alto's pmap); calls of several traces confirm or refute each place a value
may come from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Hashable, Sequence
from dataclasses import dataclass, replace

from ...process.spare import breathe
from ...text.steps import Clip
from ...text.templates import Counter
from ...text.values import Tree, Vector, freeze, holds_number, is_class_name, leaves
from ...trace.record import CallRecord
from .beside import beside
from .cover import cover, in_common, known, known_edited
from .holes import Hole, Parts, Skeleton
from .index import Values
from .joins import fold_joins
from .labels import labelled
from .shape import Place, Shape, outline_of, split_at
from .wholes import spread, whole

_NUMBER = re.compile(r"[1-9]?[0-9]")
"""Of a call, as a text counts them."""


@dataclass(slots=True, eq=False)
class Covered:
    """A call with its input covered: texts as parts, values that are handed on as holes, everything else literal."""

    trace: int
    call: CallRecord
    shape: Shape
    slots: list[Parts | Hole]
    """What stands at the places of the shape."""

    @property
    def structure(self) -> Hashable:
        """What must be equal for two calls to be compared at all: everything but the literal texts."""
        return self.shape, tuple(0 if isinstance(parts, Hole) else len(parts) for parts in self.slots)

    def holes(self) -> list[Hole]:
        return [
            part
            for parts in self.slots
            for part in ([parts] if isinstance(parts, Hole) else parts)
            if isinstance(part, Hole)
        ]

    def literals(self) -> Covered:
        """The same with texts that have no holes as what they are."""
        slots = zip(self.shape.places, self.slots, strict=True)
        return covered(
            self.trace, self.call, [(at, parts) for at, parts in slots if isinstance(parts, Hole) or parts[1:]]
        )

    def texts(self) -> list[str]:
        """The literal texts, in order."""
        return [part for parts in self.slots if not isinstance(parts, Hole) for part in parts if isinstance(part, str)]


def covered(trace: int, call: CallRecord, slots: Sequence[tuple[Place, Parts | Hole]]) -> Covered:
    places = tuple(place for place, _ in slots)
    split = split_at(call.input, places)
    assert split is not None
    outline = outline_of(call.input) if not any(isinstance(parts, Hole) for _, parts in slots) else None
    return Covered(trace, call, Shape(places, split[0], outline), [parts for _, parts in slots])


def cover_like(
    first: Covered, trace: int, call: CallRecord, there: Sequence[Tree], values: Values, shortest: int
) -> Covered | None:
    """Another call, which has these values where the first one's leaves are; None where they are of another kind."""
    slots: list[Parts | Hole] = []
    for parts, value in zip(first.slots, there, strict=True):
        found: Parts | Hole | None = None
        if isinstance(parts, Hole):
            found = whole(values, value, call.start) if isinstance(value, list | dict | Vector) else None
        elif isinstance(value, str) and value:
            found = cover_text(values, value, call.start, shortest)
        if found is None:
            return None
        slots.append(found)
    return Covered(trace, call, first.shape, slots)


def cover_call(
    trace: int,
    call: CallRecord,
    values: Values,
    shortest: int,
    constant: Container[Hashable] = frozenset(),
    varying: Container[Place] = frozenset(),
) -> Covered:
    """Cover every text of a call's input by what its trace knew before the call, but for what is `constant`: lists and
    dicts, and texts at their places. `varying`: where lists stand that have more elements in some calls."""
    slots: list[tuple[Place, Parts | Hole]] = []

    def visit(tree: Tree, path: Place) -> None:
        breathe()
        if isinstance(tree, str) and tree:
            if (path, tree) not in constant:
                slots.append((path, cover_text(values, tree, call.start, shortest)))
            return
        is_constant = isinstance(tree, dict | list) and bool(constant) and freeze(tree) in constant
        hole = whole(values, tree, call.start) if not is_constant and _may_be_handed_on(tree, path) else None
        if hole is not None:
            slots.append((path, hole))
        elif (path in varying or _is_list(tree, values)) and (found := spread(values, tree, call.start)) is not None:
            span, hole = found
            for at, value in enumerate(tree[: span.front]):
                visit(value, (*path, at))
            slots.append(((*path, span), hole))
            for at in range(-span.back, 0):
                visit(tree[at], (*path, at))
        elif isinstance(tree, dict) or (isinstance(tree, list) and not is_constant):
            for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
                if not is_class_name(str(key), value):
                    visit(value, (*path, key))

    visit(call.input, ())
    return covered(trace, call, slots)


def _is_list(tree: Tree, values: Values) -> bool:
    """Whether functions may have chosen the elements of a list, and not each of them."""
    return values.computed and isinstance(tree, list) and len(tree) > 2 and all(isinstance(one, dict) for one in tree)


def _may_be_handed_on(tree: Tree, path: Place) -> bool:
    """Texts may be pasted, numbers are handed on with what they are part of (what a message says of its usage). The
    input and its list of positional arguments are the call's own: only what is in them can come from somewhere."""
    if isinstance(tree, dict):
        return bool(path) and holds_number(tree)
    if isinstance(tree, list):
        return path != ("args",) and any(isinstance(leaf, str) for _, leaf in leaves(tree))
    return isinstance(tree, Vector)


def cover_text(values: Values, text: str, before: int, shortest: int) -> Parts:
    """With its joins."""
    key = (text, before, shortest, values.counted)
    if key not in values.covers:
        values.covers[key] = fold_joins(
            values, labelled(values, beside(values, cover(values, text, before, shortest), before))
        )
    return values.covers[key]


# --- which calls share a template -----------------------------------------------------------------------------------


def mates(first: Covered, others: list[Covered], values: Sequence[Values]) -> list[Covered]:
    """Those that can share a template with `first`: equal literals, after values too short to be noticed alone have
    been found where literals differ, and a common source for every hole."""
    alike = [other for other in others if other is not first and other.structure == first.structure]
    group = [first, *(other for other in alike if _split_literals([first, other], values, counted=True))]
    split = _split_literals(group, values, counted=True, in_order=True) if len(group) > 1 else None
    if split is None:
        group = [first, *(other for other in alike if _split_literals([first, other], values))]
        split = _split_literals(group, values)
    if split is None:
        texts = first.texts()
        split = [covered for covered in group if covered.texts() == texts]
    chosen = split[:1]
    common = [skeletons(hole) for hole in chosen[0].holes()]
    for other in split[1:]:
        narrowed = [left & skeletons(hole) for left, hole in zip(common, other.holes(), strict=True)]
        if all(narrowed):
            common = narrowed
            chosen.append(other)
    return chosen


def _split_literals(
    group: list[Covered], values: Sequence[Values], counted: bool = False, in_order: bool = False
) -> list[Covered] | None:
    """The group with holes where its literals differ; None if a difference is no known value. `counted`: it may be the
    number of a call, which is looked at if they are all there, `in_order`."""
    columns = list(zip(*(covered.texts() for covered in group), strict=True))
    replaced: list[list[Parts]] = []  # per text, per call
    for column in columns:
        if len(set(column)) == 1:
            replaced.append([[text] for text in column])
            continue
        split = _split_column(column, group, values, counted, in_order)
        if split is None:
            return None
        replaced.append(split)
    if all(len(parts) == 1 for column in replaced for parts in column):
        return group
    return [_with_parts(covered, [column[i] for column in replaced]) for i, covered in enumerate(group)]


def _split_column(
    column: Sequence[str], group: list[Covered], values: Sequence[Values], counted: bool, in_order: bool
) -> list[Parts] | None:
    """Each text as beginning, hole, end: first cut at word boundaries, then exactly where they differ."""
    start = _in_common(column)
    end = _in_common([text[start:][::-1] for text in column])
    words_start, words_end, text = start, end, column[0]
    while words_start and text[words_start - 1].isalnum():
        words_start -= 1
    while words_end and text[len(text) - words_end].isalnum():
        words_end -= 1
    for cut, tail in ((words_start, words_end), (start, end)):
        middles = [text[cut : len(text) - tail] for text in column]
        for given in _given(values[0]):
            holes = [given(values[c.trace], middle, c.call.start) for middle, c in zip(middles, group, strict=True)]
            if all(hole is not None for hole in holes):
                return [
                    [text[:cut], hole, text[len(text) - tail :]]
                    for text, hole in zip(column, holes, strict=True)
                    if hole is not None
                ]
        if counted and "position" in values[0].readings and all(map(_NUMBER.fullmatch, middles)):
            offsets = _offsets(middles, group) if in_order else {0}
            if len(offsets) == 1:
                counter = Counter(offsets.pop())
                return [[text[:cut], counter, text[len(text) - tail :]] for text in column]
    return None


def _given(values: Values) -> list[Callable[[Values, str, int], Hole | None]]:
    """Whether a text that differs from call to call is a known value: as it stands, or edited in all of them."""
    if "differing" not in values.readings:
        return []
    return [known, known_edited] if "edited" in values.readings else [known]


def _offsets(numbers: Sequence[str], group: list[Covered]) -> set[int]:
    """How much greater each number is than the position of its call among those of its trace."""
    starts = sorted((covered.trace, covered.call.start) for covered in group)
    first = {trace: at for at, (trace, _) in reversed(list(enumerate(starts)))}
    return {
        int(number) - (starts.index((covered.trace, covered.call.start)) - first[covered.trace])
        for number, covered in zip(numbers, group, strict=True)
    }


def _in_common(texts: Sequence[str]) -> int:
    """How many characters they begin with alike."""
    first, *others = texts
    return min(in_common(other, 0, first) for other in others)


def _with_parts(covered: Covered, texts: list[Parts]) -> Covered:
    """A copy whose literal texts, in order, are replaced by these parts."""
    replacements = iter(texts)
    slots: list[Parts | Hole] = [
        parts
        if isinstance(parts, Hole)
        else [new for part in parts for new in (next(replacements) if isinstance(part, str) else [part])]
        for parts in covered.slots
    ]
    return replace(covered, slots=slots)


def skeletons(hole: Hole) -> set[Skeleton]:
    """Skeletons without clips, so that values shorter than a clip count as clipped, too."""
    found = set()
    for node, path in hole.origins:
        found.add((node, path))
        if path and isinstance(path[-1], Clip):
            found.add((node, path[:-1]))
    return found
