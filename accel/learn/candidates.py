"""What may explain a group of calls: one reading for every hole, and the level that the readings run over."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from ..graph.ir import Level
from ..text.steps import GATHERS, STAR, Clip, Step
from ..text.templates import Collect, Counter, Join, Leaf, Part, Ref, Template, Whole
from ..text.values import Tree
from .covers.cover import cost_of
from .covers.fold import Covered, skeletons
from .covers.holes import AnyPosition, Hole, Modes, Parts, Rank, Row, Skeleton
from .covers.readings import ALL, Readings
from .covers.shape import Shape, put_at
from .nothing import unless_told

MAX_COMBINATIONS = 24
MAX_OPTIONS = 4
"""Of one hole, that are combined with those of the others."""
MAX_GUIDES = 4
MAX_GUESSES = 4
MANY = -1
"""Stands for limits that differ."""
LAST = -1
"""Of what rounds hand on."""


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
    limit: int | Counter | None
    rank: Rank
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
        assert not isinstance(self.limit, Counter)  # see `_limit`
        return Collect(self.ref(), len(self.stars), self.distinct, self.limit)


@dataclass(slots=True)
class _Source:
    """Where a hole may come from in every call of the group, whichever rows are chosen."""

    skeleton: Skeleton
    clip: int | None
    choices: list[list[Row]]
    """By call, the rows at which its value stands."""
    join: Hole | None
    limit: int | Counter | None
    rank: Rank
    collect: bool
    distinct: tuple[str, ...] | None

    @property
    def cost(self) -> tuple[Any, ...]:
        """That it is cut off is a step like others, and where some values are whole, the skeleton doesn't show it."""
        node, path = self.skeleton
        return cost_of((node, path if self.clip is None else (*path, Clip(self.clip))), self.rank)

    @property
    def ambiguous(self) -> int:
        return sum(len(rows) > 1 for rows in self.choices)

    def is_unending(self, unending: Container[str]) -> bool:
        """Whether it is made of all outputs of such a node."""
        node, path = self.skeleton
        whole = path[:1] == (STAR,) or isinstance(path[0] if path else None, GATHERS)
        return whole and self.limit is None and node in unending

    def option(self, group: list[Covered], guide: list[Row] | None) -> _Option | None:
        """With one row per call; None if rows differ where no element of a trace does."""
        rows = _chosen_rows(group, self.choices, guide)
        stars = []
        for position in range(len(rows[0])):
            by_trace: dict[int, set[int]] = {}
            for covered, row in zip(group, rows, strict=True):
                by_trace.setdefault(covered.trace, set()).add(row[position])
            if any(len(places) > 1 for places in by_trace.values()):
                stars.append(position)
            elif len({row[position] for row in rows}) > 1:
                last = [[row for row in choice if row[position] == LAST] for choice in self.choices]
                if not all(last):
                    return None
                rows = [of[0] for of in last]
        return _Option(
            self.skeleton, self.clip, tuple(stars), rows, self.ambiguous, self.join, self.limit, self.rank,
            self.collect, self.distinct,
        )  # fmt: skip


def _options(
    sources: list[_Source], group: list[Covered], guide: list[Row] | None, most: int | None = None
) -> list[_Option]:
    """The readings of one hole that fit every call of the group, the cheapest first; so many at most."""
    fit = (option for source in sources if (option := source.option(group, guide)) is not None)
    return list(itertools.islice(fit, most))


def _sources(group: list[Covered], number: int, unending: Container[str]) -> list[_Source]:
    """What one hole may come from, the cheapest first; what no run knows to be all there is, last."""
    holes = [covered.holes()[number] for covered in group]
    joined = [hole for hole in holes if hole.joined]
    if len({(hole.sep, hole.column, hole.columns) for hole in joined}) > 1:
        return []
    ranks: dict[str, Rank] = {}
    for hole in holes:
        for (node, _), origin in hole.origins.items():
            ranks[node] = min(origin.rank, ranks.get(node, origin.rank))
    found: list[_Source] = []
    for skeleton in set.intersection(*map(skeletons, holes)):
        modes = _modes(holes, skeleton)
        if all(mode is not None for mode in modes) or (STAR in skeleton[1]) == bool(joined):
            source = _source(group, holes, skeleton, modes, joined[0] if joined else None, ranks[skeleton[0]])
            if source is not None:
                found.append(source)
    return sorted(found, key=lambda source: (source.is_unending(unending), source.cost))


def _limit(limits: list[int | None], loop: list[Covered] | None) -> int | Counter | None:
    """How many elements all calls have (None: all there are), or that each has one more than the one before it in a
    `loop` that gathers what its rounds made; `MANY` if neither is so."""
    different = set(limits) - {None}
    if len(different) > 1 or (different == {1} and None in limits):
        traces = [covered.trace for covered in loop or ()]
        counted = [(limit, at) for at, limit in enumerate(limits[: len(traces)]) if limit is not None]
        offsets = {limit - (at - traces.index(traces[at])) for limit, at in counted}
        if len(offsets) == 1:
            return Counter(offsets.pop())
    return next(iter(different), None) if len(different) < 2 else MANY


def _source(
    group: list[Covered],
    holes: list[Hole],
    skeleton: Skeleton,
    modes: list[Modes | None],
    join: Hole | None,
    rank: Rank,
) -> _Source | None:
    clips: set[int] = set()
    choices: list[list[Row]] = []
    for hole in holes:
        rows = hole.rows(skeleton)
        if not rows:
            for (node, path), clipped in hole.origins.items():
                if node == skeleton[0] and path and isinstance(path[-1], Clip) and path[:-1] == skeleton[1]:
                    rows = [*rows, *clipped.rows]
                    clips.add(path[-1].n)
        choices.append(rows)
    first, *others = modes
    collect = first is not None
    shared = [mode for mode in first or () if all(other is not None and mode in other for other in others)]
    known = [hole.origins.get(skeleton) for hole in holes]
    limits = [origin.limit if origin is not None else None for origin in known]
    limit = _limit(limits, None if collect else group)
    if len(clips) > 1 or limit == MANY or (collect and not shared):
        return None
    return _Source(
        skeleton,
        clips.pop() if clips else None,
        choices,
        join,
        limit,
        rank,
        collect,
        shared[0] if collect else None,
    )


def _modes(holes: list[Hole], skeleton: Skeleton) -> list[Modes | None]:
    origins = (hole.origins.get(skeleton) for hole in holes)
    return [origin.modes if origin is not None else None for origin in origins]


def _chosen_rows(group: list[Covered], choices: list[list[Row]], guide: list[Row] | None) -> list[Row]:
    """One row per call: the one that goes with the guide, else one no other call of the trace has taken (equal values
    may stand at several places)."""
    used: set[tuple[int, Row]] = set()
    chosen = []
    for i, (covered, rows) in enumerate(zip(group, choices, strict=True)):
        guided = [row for row in rows if guide is not None and _agree(row, guide[i])]
        free = [row for row in rows if (covered.trace, row) not in used]
        row = (guided or free or rows)[0]
        used.add((covered.trace, row))
        chosen.append(row)
    return chosen


def _agree(row: Row, guide: Row) -> bool:
    """Whether they are the same as far as both go."""
    shared = min(len(row), len(guide))
    return row[:shared] == guide[:shared]


@dataclass(slots=True)
class Candidate:
    """An input with templates and a level that may explain a group of calls."""

    covered: Covered
    leaves: list[Leaf | str]
    """What stands at the places of the shape."""
    level: Level | None

    @property
    def shape(self) -> Shape:
        return self.covered.shape

    def input(self) -> Tree:
        """The whole tree."""
        return put_at(self.covered.call.input, self.shape.places, self.leaves)


def candidates(
    group: list[Covered],
    sparse: Container[str] = frozenset(),
    unending: Container[str] = frozenset(),
    readings: Readings = ALL,
) -> Iterator[Candidate]:
    """What may explain the group, best guess first; of a call alone, which proves little, only the best guesses.
    `sparse`: nodes that don't have an output for every element; `unending`: those that may always have one more."""
    found = _candidates(group, sparse, unending, readings)
    yield from itertools.islice(found, None if len(group) > 1 else MAX_GUESSES)


def _candidates(
    group: list[Covered], sparse: Container[str], unending: Container[str], readings: Readings
) -> Iterator[Candidate]:
    first = group[0].literals()
    count = len(first.holes())
    sources = [_sources(group, number, unending) for number in range(count)]
    free = [_options(each, group, None) for each in sources]
    if any(not options for options in free):
        return
    per_trace = [sum(1 for c in group if c.trace == trace) for trace in {c.trace for c in group}]
    for guide in _guides(free) if "guide" in readings else [None]:
        options = free if guide is None else [_options(each, group, guide, MAX_OPTIONS) for each in sources]
        for chosen in _by_total_index(options):
            domain = max(chosen, key=partial(_as_domain, sparse), default=None)
            level: Level | None = None
            if domain is not None and domain.stars:
                if not all(_goes_with(domain, option) for option in chosen):
                    continue
                level = Level(_domain(domain))
            elif max(per_trace) > 1 and "repeat" in readings:
                level = Level(None, repeat=min(per_trace))
            if _rows_agree(chosen):
                yield Candidate(first, _leaves(first, iter(chosen)), level)


def _guides(options: list[list[_Option]]) -> list[list[Row] | None]:
    """Rows of the least ambiguous readings that run over something: the other holes follow them."""
    starred = [option for hole in options for option in hole if option.stars]
    starred.sort(key=lambda option: (option.ambiguous, -len(option.stars), option.rank))
    found: list[list[Row] | None] = []
    for option in starred:
        if option.rows not in found:
            found.append(option.rows)
    return found[:MAX_GUIDES] or [None]


def _as_domain(sparse: Container[str], option: _Option) -> tuple[int, bool, bool]:
    """How well it tells which elements there are."""
    return len(option.stars), option.join is None and not option.collect, option.skeleton[0] in sparse


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
    for indices in _nearest(tuple(min(len(option), MAX_OPTIONS) for option in options)):
        yield tuple(options[i][index] for i, index in enumerate(indices))


@lru_cache(256)
def _nearest(counts: tuple[int, ...]) -> list[tuple[int, ...]]:
    combinations = itertools.islice(itertools.product(*map(range, counts)), 4096)
    return sorted(combinations, key=sum)[:MAX_COMBINATIONS]


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
        merged = [unless_told(merged, at) for at in range(len(merged))]
        literal = merged[0] if len(merged) == 1 and isinstance(merged[0], str) else None
        filled.append(literal if literal is not None else Template(tuple(merged)))
    return filled


def _as_limit(limit: int | Counter | None) -> int:
    return limit.offset if isinstance(limit, Counter) else limit or 0


def _parts(parts: Parts, chosen: Iterator[_Option]) -> Iterator[Part]:
    """The parts of a text with their holes filled; what stands in the row of a join, as one join."""
    row: list[str | Ref] = []
    limits: list[int | Counter | None] = []
    for part in parts:
        if isinstance(part, str):
            if row:
                row.append(part)
            else:
                yield part
            continue
        if isinstance(part, Counter):
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
            limit = None if None in limits else max(limits, key=_as_limit)
            yield Join(first, option.join.sep, limit, len(option.stars), tuple(rest))
            row, limits = [], []
