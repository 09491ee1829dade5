"""Fold the calls of one site into one node: same literals, and holes that differ only in positions.

Calls of one loop give a node with a level (Alto's pmap); calls of several traces confirm or refute each place a value
may come from.
"""

from __future__ import annotations

import itertools
import os.path
from collections.abc import Container, Hashable, Iterator, Sequence
from dataclasses import dataclass

from ..ir import STAR, Clip, Collect, Join, Leaf, Level, Part, Ref, Step, Template, Whole
from ..record import CallRecord
from ..values import Tree, Vector, freeze, is_class_name, leaves, rebuild
from .joins import fold_joins
from .provenance import AnyPosition, Hole, Parts, Row, Skeleton, Values
from .shape import Shape, shape_of

MAX_COMBINATIONS = 24
MAX_GUIDES = 4
MAX_GUESSES = 4


@dataclass(slots=True, eq=False)
class Covered:
    """A call with its input covered: every text as parts, whole lists and vectors as holes, everything else literal."""

    trace: int
    call: CallRecord
    tree: Tree
    """The input with `_Slot`s at covered leaves."""
    slots: list[Parts | Hole]

    @property
    def structure(self) -> Hashable:
        """What must be equal for two calls to be compared at all: everything but the literal texts."""
        return freeze(
            rebuild(self.tree, lambda _, leaf: self._outline(leaf) if isinstance(leaf, _Slot) else ["literal", leaf])
        )

    def _outline(self, slot: _Slot) -> Tree:
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
            if not isinstance(leaf, _Slot):
                return leaf
            parts = self.slots[leaf.number]
            if not isinstance(parts, Hole) and len(parts) == 1:
                return parts[0]
            open_to.append(parts)
            return _Slot(len(open_to) - 1)

        return Covered(self.trace, self.call, rebuild(self.tree, settle), open_to)

    def texts(self) -> list[str]:
        """The literal texts, in order."""
        return [part for parts in self.slots if not isinstance(parts, Hole) for part in parts if isinstance(part, str)]


class _Slot:
    """A leaf that is covered."""

    def __init__(self, number: int) -> None:
        self.number = number


def cover(
    trace: int, call: CallRecord, values: Values, shortest: int, constant: Container[Hashable] = frozenset()
) -> Covered:
    """Cover every text of a call's input by what its trace knew before the call, but for `constant` lists."""
    slots: list[Parts | Hole] = []

    def slot(parts: Parts | Hole) -> _Slot:
        slots.append(parts)
        return _Slot(len(slots) - 1)

    def visit(tree: Tree) -> Tree:
        if isinstance(tree, dict):
            return {key: value if is_class_name(key, value) else visit(value) for key, value in tree.items()}
        if isinstance(tree, list) and tree:
            if constant and freeze(tree) in constant:
                return tree
            hole = values.whole(tree, call.start) if any(isinstance(leaf, str) for _, leaf in leaves(tree)) else None
            return slot(hole) if hole is not None else [visit(value) for value in tree]
        if isinstance(tree, Vector):
            return slot(values.vector(tree, call.start))
        if isinstance(tree, str) and tree:
            return slot(fold_joins(values, values.cover(tree, call.start, shortest), call.start))
        return tree

    tree = call.input
    if isinstance(tree, dict) and isinstance(tree.get("args"), list):
        # The list of positional arguments is the call's own: only what is in it can come from somewhere.
        args = [visit(value) for value in tree["args"]]
        return Covered(trace, call, {key: args if key == "args" else visit(tree[key]) for key in tree}, slots)
    return Covered(trace, call, visit(tree), slots)


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
    common = [_skeletons(hole) for hole in chosen[0].holes()]
    for other in split[1:]:
        narrowed = [left & _skeletons(hole) for left, hole in zip(common, other.holes(), strict=True)]
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


def _skeletons(hole: Hole) -> set[Skeleton]:
    """Skeletons without clips, so that values shorter than a clip count as clipped, too."""
    found = set()
    for node, path in hole.sources:
        found.add((node, path))
        if path and isinstance(path[-1], Clip):
            found.add((node, path[:-1]))
    return found


# --- templates ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Option:
    """One reading of a hole over the whole group."""

    skeleton: Skeleton
    clip: int | None
    stars: tuple[int, ...]
    """Which open positions vary inside a trace."""
    rows: list[Row]
    """For every call of the group."""
    ambiguous: int
    """How many calls had a choice of rows."""
    join: Hole | None
    """Where the hole is joined: one that tells how."""
    limit: int | None
    rank: tuple[int, int]
    collect: bool = False
    distinct: tuple[str, ...] | None = None

    def starred(self) -> list[Row]:
        """For every call of the group its star positions."""
        return [tuple(row[position] for position in self.stars) for row in self.rows]

    def ref(self) -> Ref:
        node, path = self.skeleton
        steps: list[Step] = []
        open_at = -1
        for step in path:
            if isinstance(step, AnyPosition):
                open_at += 1
                steps.append(STAR if open_at in self.stars else self.rows[0][open_at])
            else:
                steps.append(step)
        if self.clip is not None:
            steps.append(Clip(self.clip))
        return Ref(node, tuple(steps))

    def leaf(self) -> Leaf:
        """For a whole list."""
        if not self.collect:
            return Whole(self.ref())
        return Collect(self.ref(), len(self.stars), self.distinct, self.limit)


def _options(group: list[Covered], number: int, guide: list[Row] | None) -> list[_Option]:
    """All readings of one hole that fit every call of the group, earliest value first."""
    holes = [covered.holes()[number] for covered in group]
    joined = [hole for hole in holes if hole.joined]
    if len({(hole.sep, hole.column, hole.columns) for hole in joined}) > 1:
        return []
    found: list[_Option] = []
    for skeleton in set.intersection(*map(_skeletons, holes)):
        collected = all(skeleton in hole.collects for hole in holes)
        if collected or (STAR in skeleton[1]) == bool(joined):
            option = _option(group, holes, skeleton, joined[0] if joined else None, guide)
            if option is not None:
                found.append(option)
    return sorted(found, key=lambda option: (option.rank, len(option.skeleton[1]), str(option.skeleton)))


def _option(
    group: list[Covered],
    holes: list[Hole],
    skeleton: Skeleton,
    join: Hole | None,
    guide: list[Row] | None,
) -> _Option | None:
    clips: set[int] = set()
    choices: list[list[Row]] = []
    for hole in holes:
        rows = list(hole.sources.get(skeleton, ()))
        if not rows:
            for (node, path), clipped in hole.sources.items():
                if node == skeleton[0] and path and isinstance(path[-1], Clip) and path[:-1] == skeleton[1]:
                    rows += clipped
                    clips.add(path[-1].n)
        choices.append(rows)
    collect = skeleton in holes[0].collects
    modes = [mode for mode in holes[0].collects.get(skeleton, ()) if all(mode in h.collects[skeleton] for h in holes)]
    limits = {hole.limits.get(skeleton) for hole in holes if hole.joined or collect} - {None}
    if len(clips) > 1 or len(limits) > 1 or (collect and not modes):
        return None
    rows = _chosen_rows(group, choices, guide)
    stars = []
    for position in range(len(rows[0])):
        by_trace: dict[int, set[int]] = {}
        for covered, row in zip(group, rows, strict=True):
            by_trace.setdefault(covered.trace, set()).add(row[position])
        if any(len(places) > 1 for places in by_trace.values()):
            stars.append(position)
        elif len({row[position] for row in rows}) > 1:
            return None
    rank = min(hole.rank[s] for hole in holes for s in hole.rank if s[0] == skeleton[0])
    ambiguous = sum(len(rows) > 1 for rows in choices)
    clip = clips.pop() if clips else None
    limit = next(iter(limits)) if limits else None
    distinct = modes[0] if collect else None
    return _Option(skeleton, clip, tuple(stars), rows, ambiguous, join, limit, rank, collect, distinct)


def _chosen_rows(group: list[Covered], choices: list[list[Row]], guide: list[Row] | None) -> list[Row]:
    """One row per call: the one that goes with the guide, else one no other call of the trace has taken (equal values
    may stand at several places)."""
    used: set[tuple[int, Row]] = set()
    chosen = []
    for i, (covered, rows) in enumerate(zip(group, choices, strict=True)):
        guided = [row for row in rows if guide is not None and row == guide[i][: len(row)]]
        free = [row for row in rows if (covered.trace, row) not in used]
        row = (guided or free or rows)[0]
        used.add((covered.trace, row))
        chosen.append(row)
    return chosen


@dataclass(slots=True)
class Candidate:
    """An input with templates and a level that may explain a group of calls."""

    covered: Covered
    shape: Shape
    leaves: list[Leaf | str]
    """What stands at the places of the shape."""
    level: Level | None

    def input(self) -> Tree:
        """The whole tree."""
        return rebuild(self.covered.tree, lambda _, leaf: self.leaves[leaf.number] if isinstance(leaf, _Slot) else leaf)


def candidates(group: list[Covered]) -> Iterator[Candidate]:
    """What may explain the group, best guess first; of a call alone, which proves little, only the best guesses."""
    yield from itertools.islice(_candidates(group), None if len(group) > 1 else MAX_GUESSES)


def _candidates(group: list[Covered]) -> Iterator[Candidate]:
    first = group[0].literals()
    shape = shape_of(first.tree, _Slot)
    count = len(first.holes())
    free = [_options(group, number, None) for number in range(count)]
    if any(not options for options in free):
        return
    per_trace = [sum(1 for c in group if c.trace == trace) for trace in {c.trace for c in group}]
    for guide in _guides(free):
        options = free if guide is None else [_options(group, number, guide) for number in range(count)]
        for chosen in _by_total_index(options):
            domain = max(
                chosen, key=lambda option: (len(option.stars), option.join is None and not option.collect), default=None
            )
            level: Level | None = None
            if domain is not None and domain.stars:
                if not all(_goes_with(domain, option) for option in chosen):
                    continue
                level = Level(_domain(domain))
            elif max(per_trace) > 1:
                level = Level(None, repeat=min(per_trace))
            if _rows_agree(chosen):
                yield Candidate(first, shape, _leaves(first, iter(chosen)), level)


def _guides(options: list[list[_Option]]) -> list[list[Row] | None]:
    """Rows of the least ambiguous readings that run over something: the other holes follow them."""
    starred = [option for hole in options for option in hole if option.stars]
    starred.sort(key=lambda option: (option.ambiguous, -len(option.stars), option.rank))
    found: list[list[Row] | None] = []
    for option in starred:
        if option.rows not in found:
            found.append(option.rows)
    return found[:MAX_GUIDES] or [None]


def _goes_with(domain: _Option, option: _Option) -> bool:
    """Whether the option's star positions are the leading ones of the domain's, for every call."""
    n = len(option.stars)
    return all(row[:n] == own for row, own in zip(domain.starred(), option.starred(), strict=True))


def _rows_agree(chosen: Sequence[_Option]) -> bool:
    """Whether the columns of every join run over lists side by side."""
    return all(
        option.join is None or option.join.column == 0 or len(option.stars) == len(before.stars)
        for before, option in itertools.pairwise(chosen)
    )


def _domain(option: _Option) -> Ref:
    """The list the group runs over: the path up to its last star, what follows belongs to the element."""
    ref = option.ref()
    if option.join is None and not option.collect:
        return ref
    # A join inside an element: only the leading stars are the element's.
    bound, steps = len(option.stars), []
    for step in ref.path:
        if step is STAR and bound == 0:
            break
        bound -= step is STAR
        steps.append(step)
    return Ref(ref.node, tuple(steps))


def _by_total_index(options: list[list[_Option]]) -> Iterator[tuple[_Option, ...]]:
    """Combinations of one option per hole, those nearest to every first choice first; bounded."""
    narrow = [option[:4] for option in options]
    ranges = [range(len(option)) for option in narrow]
    combinations = itertools.islice(itertools.product(*ranges), 4096)
    for indices in sorted(combinations, key=sum)[:MAX_COMBINATIONS]:
        yield tuple(narrow[i][index] for i, index in enumerate(indices))


def _leaves(covered: Covered, chosen: Iterator[_Option]) -> list[Leaf | str]:
    filled: list[Leaf | str] = []
    for parts in covered.slots:
        if isinstance(parts, Hole):
            filled.append(next(chosen).leaf())
            continue
        merged: list[Part] = []
        for part in _parts(parts, chosen):
            if isinstance(part, str) and merged and isinstance(merged[-1], str):
                merged[-1] += part
            elif part != "":
                merged.append(part)
        literal = merged[0] if len(merged) == 1 and isinstance(merged[0], str) else None
        filled.append(literal if literal is not None else Template(tuple(merged)))
    return filled


def _parts(parts: Parts, chosen: Iterator[_Option]) -> Iterator[Part]:
    """The parts of a text with their holes filled; what stands in the row of a join, as one join."""
    row: list[str | Ref] = []
    limits: list[int | None] = []
    for part in parts:
        if isinstance(part, str):
            if row:
                row.append(part)
            else:
                yield part
            continue
        option = next(chosen)
        if option.join is None:
            yield option.ref()
            continue
        row.append(option.ref())
        limits.append(option.limit)
        if option.join.column == option.join.columns - 1:
            first, *rest = row
            assert isinstance(first, Ref) and option.join.sep is not None
            limit = None if None in limits else max(n for n in limits if n is not None)
            yield Join(first, option.join.sep, limit, len(option.stars), tuple(rest))
            row, limits = [], []
