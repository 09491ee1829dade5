"""Fold the calls of one site into one node: same literals, and holes that differ only in positions.

Calls of one loop give a node with a level (Alto's pmap); calls of several traces confirm or refute each place a value
may come from.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from ..ir import STAR, Clip, Counter, Join, Leaf, Level, Part, Ref, Step, Template, Whole
from ..record import CallRecord
from ..values import Opaque, Tree, freeze, leaves, rebuild
from .provenance import AnyPosition, Hole, Parts, Path, Skeleton, Values

MAX_COMBINATIONS = 60


@dataclass(slots=True, eq=False)
class Covered:
    """A call with its input covered: texts as parts, whole lists as holes, everything else literal."""

    trace: int
    call: CallRecord
    tree: Tree
    """The input with `_Slot`s at covered leaves."""
    slots: list[Parts | Hole]

    @property
    def literals(self) -> Hashable:
        """What must be equal for two calls to share a template."""
        return freeze(
            rebuild(self.tree, lambda _, leaf: self._skeleton(leaf) if isinstance(leaf, _Slot) else ["literal", leaf])
        )

    def _skeleton(self, slot: _Slot) -> Tree:
        parts = self.slots[slot.number]
        return ["whole"] if isinstance(parts, Hole) else ["text", *(p if isinstance(p, str) else None for p in parts)]

    def holes(self) -> Iterator[Hole]:
        for parts in self.slots:
            if isinstance(parts, Hole):
                yield parts
            else:
                yield from (part for part in parts if isinstance(part, Hole))


class _Slot:
    """A leaf that is covered."""

    def __init__(self, number: int) -> None:
        self.number = number


def cover(trace: int, call: CallRecord, values: Values, shortest: int) -> Covered:
    """Cover every text of a call's input by what its trace knew before the call."""
    slots: list[Parts | Hole] = []

    def slot(parts: Parts | Hole) -> _Slot:
        slots.append(parts)
        return _Slot(len(slots) - 1)

    def visit(tree: Tree) -> Tree:
        if isinstance(tree, dict):
            return {key: visit(value) for key, value in tree.items()}
        if isinstance(tree, list) and tree:
            hole = values.whole(tree, call.start) if any(isinstance(leaf, str) for _, leaf in leaves(tree)) else None
            return slot(hole) if hole is not None else [visit(value) for value in tree]
        if isinstance(tree, str) and tree:
            parts = values.cover(tree, call.start, shortest)
            return tree if len(parts) == 1 and isinstance(parts[0], str) else slot(parts)
        return tree

    return Covered(trace, call, visit(call.input), slots)


def mates(first: Covered, others: list[Covered]) -> list[Covered]:
    """Those that can share a template with `first`: equal literals, and a common source for every hole."""
    group = [first]
    common = [_skeletons(hole) for hole in first.holes()]
    literals = first.literals
    for other in others:
        if other is first or other.literals != literals:
            continue
        narrowed = [left & _skeletons(hole) for left, hole in zip(common, other.holes(), strict=True)]
        if all(narrowed):
            common = narrowed
            group.append(other)
    return group


def _skeletons(hole: Hole) -> set[Skeleton]:
    """Skeletons without clips, so that values shorter than a clip count as clipped, too."""
    found = set()
    for node, path in hole.sources:
        found.add((node, path))
        if path and isinstance(path[-1], Clip):
            found.add((node, path[:-1]))
    return found


@dataclass(slots=True)
class _Option:
    """One reading of a hole over the whole group."""

    skeleton: Skeleton
    clip: int | None
    stars: tuple[int, ...]
    """Which open positions vary inside a trace."""
    rows: list[tuple[int, ...]]
    """For every call of the group its star positions."""
    fixed: dict[int, int]
    sep: tuple[str | Counter, ...] | None
    limit: int | None
    rank: tuple[int, int]

    def ref(self) -> Ref:
        node, path = self.skeleton
        steps: list[Step] = []
        open_at = -1
        for step in path:
            if isinstance(step, AnyPosition):
                open_at += 1
                steps.append(STAR if open_at in self.stars else self.fixed[open_at])
            else:
                steps.append(step)
        if self.clip is not None:
            steps.append(Clip(self.clip))
        return Ref(node, tuple(steps))

    def part(self) -> Part:
        if self.sep is None:
            return self.ref()
        return Join(self.ref(), self.sep, self.limit, bound=len(self.stars))


def _options(group: list[Covered], number: int) -> list[_Option]:
    """All readings of one hole that fit every call of the group, earliest value first."""
    holes = [next(itertools.islice(covered.holes(), number, None)) for covered in group]
    joined = [hole for hole in holes if hole.joined]
    seps = {hole.sep for hole in joined}
    if len(seps) > 1:
        return []
    found: list[_Option] = []
    common = set.intersection(*map(_skeletons, holes))
    for skeleton in common:
        if (STAR in skeleton[1]) != bool(joined):
            continue
        option = _option(group, holes, skeleton, next(iter(seps)) if seps else None)
        if option is not None:
            found.append(option)
    return sorted(found, key=lambda option: (option.rank, len(option.skeleton[1]), str(option.skeleton)))


def _option(
    group: list[Covered], holes: list[Hole], skeleton: Skeleton, sep: tuple[str | Counter, ...] | None
) -> _Option | None:
    clips: set[int] = set()
    rows_of: list[list[tuple[int, ...]]] = []
    for hole in holes:
        rows = list(hole.sources.get(skeleton, ()))
        if not rows:
            for (node, path), clipped in hole.sources.items():
                if node == skeleton[0] and path and isinstance(path[-1], Clip) and path[:-1] == skeleton[1]:
                    rows += clipped
                    clips.add(path[-1].n)
        rows_of.append(rows)
    if len(clips) > 1:
        return None
    limits = {hole.limits.get(skeleton) for hole in holes if hole.joined}
    known = {limit for limit in limits if limit is not None}
    if len(known) > 1:
        return None
    rows = _distinct_rows(group, rows_of)
    width = len(rows[0])
    stars = []
    for position in range(width):
        by_trace: dict[int, set[int]] = {}
        for covered, row in zip(group, rows, strict=True):
            by_trace.setdefault(covered.trace, set()).add(row[position])
        if any(len(values) > 1 for values in by_trace.values()):
            stars.append(position)
        elif len({row[position] for row in rows}) > 1:
            return None
    rank = min(hole.rank[s] for hole in holes for s in hole.rank if s[0] == skeleton[0])
    return _Option(
        skeleton,
        clips.pop() if clips else None,
        tuple(stars),
        [tuple(row[position] for position in stars) for row in rows],
        {position: rows[0][position] for position in range(width) if position not in stars},
        sep,
        known.pop() if known else None,
        rank,
    )


def _distinct_rows(group: list[Covered], rows_of: list[list[tuple[int, ...]]]) -> list[tuple[int, ...]]:
    """One row per call; calls of one trace take different ones where equal values stand at several places."""
    used: set[tuple[int, tuple[int, ...]]] = set()
    chosen = []
    for covered, rows in zip(group, rows_of, strict=True):
        row = next((r for r in rows if (covered.trace, r) not in used), rows[0])
        used.add((covered.trace, row))
        chosen.append(row)
    return chosen


def templates(group: list[Covered]) -> Iterator[tuple[Tree, Level | None]]:
    """Inputs (with templates) and levels that may explain the group, best guess first."""
    first = group[0]
    count = sum(1 for _ in first.holes())
    options = [_options(group, number) for number in range(count)]
    if any(not option for option in options):
        return
    repeats = {trace: sum(1 for c in group if c.trace == trace) for trace in {c.trace for c in group}}
    for chosen in _by_total_index(options):
        domain = max(chosen, key=lambda option: (len(option.stars), option.sep is None), default=None)
        if domain is not None and domain.stars:
            if not all(
                row[: len(option.stars)] == own
                for option in chosen
                for row, own in zip(domain.rows, option.rows, strict=True)
            ):
                continue
            level: Level | None = Level(_domain(domain))
        elif max(repeats.values()) > 1:
            level = Level(None, repeat=min(repeats.values()))
        else:
            level = None
        yield _input(first, iter(chosen)), level


def _domain(option: _Option) -> Ref:
    """The list the group runs over: the path up to its last star, what follows belongs to the element."""
    ref = option.ref()
    if option.sep is None:
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


def _input(covered: Covered, chosen: Iterator[_Option]) -> Tree:
    filled: list[Leaf] = []
    for parts in covered.slots:
        if isinstance(parts, Hole):
            filled.append(Whole(next(chosen).ref()))
        else:
            merged = [part if isinstance(part, str) else next(chosen).part() for part in parts]
            filled.append(Template(tuple(part for part in merged if part != "")))
    return rebuild(covered.tree, lambda _, leaf: filled[leaf.number] if isinstance(leaf, _Slot) else leaf)


def literal_texts(tree: Tree) -> Iterator[str]:
    for _, leaf in leaves(tree):
        if isinstance(leaf, str):
            yield leaf


__all__ = ["Covered", "Opaque", "Path", "cover", "mates", "templates"]
