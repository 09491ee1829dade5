"""Elements of nested lists behind a list that is still open: their inputs are known, their places are not.

Their calls are issued without a place (`drive`). They get one when the list before them closes (`Forecast._expect`), or
a demand takes them by their key.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...graph.ir import Node
from ...text.paths import DROPPED, Index, enumerate_stars, step_into
from ...text.steps import Star, Step
from ...text.templates import Counter, Template
from ...text.values import Tree


def may_go_ahead(node: Node) -> bool:
    """Whether which elements there are, and what they ask for, doesn't depend on those before them."""
    level = node.level
    if level is None or level.domain is None or level.domain.stars < 2 or level.cap is not None or level.distinct:
        return False
    numbered = any(isinstance(h, Counter) for leaf in node.leaves() if isinstance(leaf, Template) for h in leaf.holes)
    return not (node.when or node.schedule.in_order or node.schedule.stage_of or numbered)


def behind_gaps(value: Tree, path: tuple[Step, ...]) -> Iterator[Index]:
    """The index tuples of the path's stars that `enumerate_stars` leaves out because something before them isn't known
    yet."""
    before = set(enumerate_stars(value, path)[0])

    def visit(value: Tree, at: int, index: Index) -> Iterator[Index]:
        while at < len(path) and not isinstance(path[at], Star):
            value = step_into(value, path[at])
            at += 1
        if at == len(path):
            yield index
        elif isinstance(value, list):
            for position, item in enumerate(value):
                if item is not DROPPED:
                    yield from visit(item, at + 1, (*index, position))

    return (index for index in visit(value, 0, ()) if index not in before)
