"""What goes into an input as it stands: vectors, records, lists, and lists made of the elements of others."""

from __future__ import annotations

from collections.abc import Hashable

from ...text.steps import STAR
from ...text.values import Tree, Vector, freeze
from .cover import hole_of
from .holes import ANY, Hole, Modes, OpenPath, Path, Row, Skeleton, filled
from .index import Values
from .shape import Span

MAX_COLLECTED = 200
"""Elements of a list whose origin is looked for one by one."""
MAX_AROUND = 2
"""Elements before a list that is spread in another one, and as many behind it."""
_AROUND = sorted(
    ((front, back) for front in range(MAX_AROUND + 1) for back in range(MAX_AROUND + 1) if front or back),
    key=lambda both: (sum(both), both[1]),
)


def whole(values: Values, value: Tree, before: int) -> Hole | None:
    """A list, dict or vector that is a known one, or a list that is made of the elements of known lists."""
    hole = hole_of(values, values.seen_whole(value, before))
    if isinstance(value, list) and "collect" in values.readings and 0 < len(value) <= MAX_COLLECTED:
        _add_collects(values, hole, value, before)
    return hole if hole.origins or isinstance(value, Vector) else None


def spread(values: Values, items: list[Tree], before: int) -> tuple[Span, Hole] | None:
    """The longest known list that stands in one, with few elements around it."""
    for front, back in _AROUND:
        part = items[front : len(items) - back] if front + back < len(items) else []
        hole = hole_of(values, values.seen_whole(part, before)) if part else None
        if hole is not None and hole.origins:
            return Span(front, back), hole
    return None


def _add_collects(values: Values, hole: Hole, value: list[Tree], before: int) -> None:
    """Readings of a list as all elements of some list of lists, or all different ones, or the first of them."""
    if not isinstance(value[0], dict):
        return
    frozen = [freeze(item) for item in value]
    tried: set[tuple[Skeleton, Row]] = set()
    for source in values.seen_whole(value[0], before):
        places = [i for i, step in enumerate(source.path) if isinstance(step, int)]
        for fixed in range(len(places)):
            row = source.row[:fixed]
            open_path: OpenPath = tuple(
                step if i not in places else ANY if i in places[:fixed] else STAR for i, step in enumerate(source.path)
            )
            skeleton: Skeleton = (source.node, open_path)
            if (skeleton, row) in tried:
                continue
            tried.add((skeleton, row))
            modes, limit = _modes(values, source.node, filled(open_path, row), value, frozen)
            if modes:
                origin = hole.origin(skeleton, source.rank)
                origin.rows.append(row)
                origin.modes = [mode for mode in modes if origin.modes is None or mode in origin.modes]
                origin.limit = limit


def _modes(
    values: Values, node: str, path: Path, value: list[Tree], frozen: list[Hashable]
) -> tuple[Modes, int | None]:
    """In which ways the elements along a path give the list, and how many of them."""
    known = values.frozen(node, path)
    if len(known) < len(frozen) or known[0] != frozen[0]:
        return [], None
    fields = [(key,) for key, held in value[0].items() if isinstance(held, str)]
    found: dict[tuple[str, ...] | None, int | None] = {}
    for mode in (None, (), *fields) if "distinct collect" in values.readings else (None,):
        got = values.frozen(node, path, mode)
        if got[: len(frozen)] == frozen:
            found[mode] = len(frozen) if len(got) > len(frozen) else None
    complete: Modes = [mode for mode, limit in found.items() if limit is None]
    return (complete, None) if complete else (list(found), len(frozen))
