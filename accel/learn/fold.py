"""Fold the calls of one site into one node: same literals, and holes that differ only in positions.

Calls of one loop give a node with a level (Alto's pmap); calls of several traces confirm or refute each place a value
may come from.
"""

from __future__ import annotations

import os.path
from collections.abc import Container, Hashable, Iterator, Sequence
from dataclasses import dataclass

from ..record import CallRecord
from ..templates import Clip, Join, Part, Template
from ..values import Tree, Vector, freeze, holds_number, is_class_name, leaves, rebuild
from .joins import fold_joins
from .provenance import Hole, Parts, Skeleton, Values


@dataclass(slots=True, eq=False)
class Covered:
    """A call with its input covered: every text as parts, whole lists and vectors as holes, everything else literal."""

    trace: int
    call: CallRecord
    tree: Tree
    """The input with `Slot`s at covered leaves."""
    slots: list[Parts | Hole]

    @property
    def structure(self) -> Hashable:
        """What must be equal for two calls to be compared at all: everything but the literal texts."""
        return freeze(
            rebuild(self.tree, lambda _, leaf: self._outline(leaf) if isinstance(leaf, Slot) else ["literal", leaf])
        )

    def _outline(self, slot: Slot) -> Tree:
        parts = self.slots[slot.number]
        return "list" if isinstance(parts, Hole) else len(parts)

    def holes(self) -> list[Hole]:
        return [
            part
            for parts in self.slots
            for part in ([parts] if isinstance(parts, Hole) else parts)
            if isinstance(part, Hole)
        ]

    def literals(self) -> Covered:
        """The same with texts that have no holes as what they are."""
        open_to: list[Parts | Hole] = []

        def settle(_: object, leaf: Tree) -> Tree:
            if not isinstance(leaf, Slot):
                return leaf
            parts = self.slots[leaf.number]
            if not isinstance(parts, Hole) and len(parts) == 1:
                return parts[0]
            open_to.append(parts)
            return Slot(len(open_to) - 1)

        return Covered(self.trace, self.call, rebuild(self.tree, settle), open_to)

    def texts(self) -> list[str]:
        """The literal texts, in order."""
        return [part for parts in self.slots if not isinstance(parts, Hole) for part in parts if isinstance(part, str)]


class Slot:
    """A leaf that is covered."""

    def __init__(self, number: int) -> None:
        self.number = number


def cover(
    trace: int, call: CallRecord, values: Values, shortest: int, constant: Container[Hashable] = frozenset()
) -> Covered:
    """Cover every text of a call's input by what its trace knew before the call, but for `constant` lists and dicts."""
    slots: list[Parts | Hole] = []

    def slot(parts: Parts | Hole) -> Slot:
        slots.append(parts)
        return Slot(len(slots) - 1)

    def visit(tree: Tree) -> Tree:
        if isinstance(tree, dict):
            # Texts may be pasted, numbers are handed on with what they are part of (what a message says of its usage).
            numbered = tree is not call.input and holds_number(tree) and freeze(tree) not in constant
            hole = values.record(tree, call.start) if numbered else None
            if hole is not None:
                return slot(hole)
            return {key: value if is_class_name(key, value) else visit(value) for key, value in tree.items()}
        if isinstance(tree, list) and tree:
            if constant and freeze(tree) in constant:
                return tree
            hole = values.whole(tree, call.start) if any(isinstance(leaf, str) for _, leaf in leaves(tree)) else None
            return slot(hole) if hole is not None else [visit(value) for value in tree]
        if isinstance(tree, Vector):
            return slot(values.vector(tree, call.start))
        if isinstance(tree, str) and tree:
            return slot(fold_joins(values, values.cover(tree, call.start, shortest)))
        return tree

    tree = call.input
    if isinstance(tree, dict) and isinstance(tree.get("args"), list):
        # The list of positional arguments is the call's own: only what is in it can come from somewhere.
        args = [visit(value) for value in tree["args"]]
        return Covered(trace, call, {key: args if key == "args" else visit(tree[key]) for key in tree}, slots)
    return Covered(trace, call, visit(tree), slots)


def literals_in(tree: Tree, constant: Container[Hashable]) -> Iterator[str]:
    """The texts of an input that no value was pasted into, but for `constant` lists and dicts."""
    if isinstance(tree, Template):
        for part in tree.parts:
            yield from _texts_of(part)
    elif isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict | list) and not (constant and freeze(tree) in constant):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        for key, value in items:
            if not is_class_name(str(key), value):
                yield from literals_in(value, constant)


def _texts_of(part: Part) -> Iterator[str]:
    texts = (*part.sep, *part.row) if isinstance(part, Join) else (part,)
    yield from (text for text in texts if isinstance(text, str))


# --- which calls share a template -----------------------------------------------------------------------------------


def mates(first: Covered, others: list[Covered], values: Sequence[Values]) -> list[Covered]:
    """Those that can share a template with `first`: equal literals, after values too short to be noticed alone have
    been found where literals differ, and a common source for every hole."""
    structure = first.structure
    group = [first]
    for other in others:
        if other is not first and other.structure == structure and _split_literals([first, other], values):
            group.append(other)
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


def _split_literals(group: list[Covered], values: Sequence[Values]) -> list[Covered] | None:
    """The group with holes where its literals differ; None if a difference is no known value."""
    columns = list(zip(*(covered.texts() for covered in group), strict=True))
    replaced: list[list[Parts]] = []  # per text, per call
    for column in columns:
        if len(set(column)) == 1:
            replaced.append([[text] for text in column])
            continue
        split = _split_column(column, group, values)
        if split is None:
            return None
        replaced.append(split)
    if all(len(parts) == 1 for column in replaced for parts in column):
        return group
    return [_with_parts(covered, [column[i] for column in replaced]) for i, covered in enumerate(group)]


def _split_column(column: Sequence[str], group: list[Covered], values: Sequence[Values]) -> list[Parts] | None:
    """Each text as beginning, hole, end: first cut at word boundaries, then exactly where they differ."""
    start = len(os.path.commonprefix(list(column)))
    end = len(os.path.commonprefix([text[start:][::-1] for text in column]))
    words_start, words_end, text = start, end, column[0]
    while words_start and text[words_start - 1].isalnum():
        words_start -= 1
    while words_end and text[len(text) - words_end].isalnum():
        words_end -= 1
    for cut, tail in ((words_start, words_end), (start, end)):
        middles = [text[cut : len(text) - tail] for text in column]
        holes = [values[c.trace].known(middle, c.call.start) for middle, c in zip(middles, group, strict=True)]
        if all(hole is not None for hole in holes):
            return [
                [text[:cut], hole, text[len(text) - tail :]]
                for text, hole in zip(column, holes, strict=True)
                if hole is not None
            ]
    return None


def _with_parts(covered: Covered, texts: list[Parts]) -> Covered:
    """A copy whose literal texts, in order, are replaced by these parts."""
    replacements = iter(texts)
    slots: list[Parts | Hole] = [
        parts
        if isinstance(parts, Hole)
        else [new for part in parts for new in (next(replacements) if isinstance(part, str) else [part])]
        for parts in covered.slots
    ]
    return Covered(covered.trace, covered.call, covered.tree, slots)


def skeletons(hole: Hole) -> set[Skeleton]:
    """Skeletons without clips, so that values shorter than a clip count as clipped, too."""
    found = set()
    for node, path in hole.sources:
        found.add((node, path))
        if path and isinstance(path[-1], Clip):
            found.add((node, path[:-1]))
    return found
