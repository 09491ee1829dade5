"""Which elements of a node a change may touch: most see one position of each list, and a change touches one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...graph.ir import Graph, Level, Node
from ...text.steps import STAR
from ...text.templates import Collect, Join, Ref, Template, Whole

Places = set[int] | None
"""Positions of a node's output; None for any of them, or for what has no positions."""
Changed = dict[str, Places]
"""By node, what changed of its output. No positions: only whether more may come."""


def note(changed: Changed, name: str, places: Iterable[int]) -> None:
    """This has changed, too."""
    before = changed.setdefault(name, set())
    if before is not None:
        before.update(places)


class Reach:
    """How far changes reach into one node of a graph."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self._refs = [(ref, is_listed(graph.by_name[ref.node])) for ref in dict.fromkeys(node.refs())]
        self._own = frozenset(_own(node))
        self._first = node.level.first if node.level is not None else 0
        self.joins = {ref for hole in _joins(node) if not hole.bound and hole.limit is None for ref in _alone(hole)}
        """What it takes all elements of, so that nothing is known before the last one is."""

    def touched(self, changed: Changed) -> Places:
        """The elements that may be other ones now; None for all of them."""
        found: set[int] = set()
        for ref, listed in self._refs:
            if ref.node not in changed:
                continue
            places = changed[ref.node]
            if places is None or not listed:
                return None
            first = ref.path[0]
            if ref in self._own:
                found |= {place - self._first for place in places if place >= self._first}
            elif not isinstance(first, int) or first < 0 or first in places:
                return None
        return found

    def waits_for(self, changed: Changed) -> list[str]:
        """Of what changed, the lists that it joins as a whole; none if it sees any of that in another way."""
        seen = [(ref, listed) for ref, listed in self._refs if ref.node in changed]
        whole = all(ref in self.joins and listed and ref.path[0] == STAR for ref, listed in seen)
        return [ref.node for ref, _ in seen] if whole else []


def is_listed(node: Node) -> bool:
    """Whether its outputs are one list, one after the other."""
    return node.dims == 1 and not node.is_placed


def _own(node: Node) -> set[Ref]:
    """References of which an element sees its own position alone: those whose first star its level binds, where an
    element's position is that star's, less the level's first."""
    level = node.level
    if level is None or level.domain is None or level.domain.stars != 1 or node.when:
        return set()
    usual = Level(level.domain, cap=level.cap, exact=level.exact, seen=level.seen, first=level.first)
    if level != replace(usual, repeats=level.repeats, sparse=level.first > 0 and level.sparse):
        return set()  # elements may drop out, and positions move
    found: set[Ref] = {level.domain}
    free: set[Ref] = set()
    for leaf in node.leaves():
        if isinstance(leaf, Whole):
            found.add(leaf.ref)
        elif isinstance(leaf, Template):
            found |= {hole for hole in leaf.holes if isinstance(hole, Ref)}
    for hole in _joins(node):
        (found if hole.bound else free).update(hole.refs if isinstance(hole, Join) else (hole.ref,))
    return {ref for ref in found - free if ref.path and ref.path[0] == STAR}


def _alone(hole: Join | Collect) -> tuple[Ref, ...]:
    """The list that it goes over to its end; of several, the shortest one says where that is."""
    return () if isinstance(hole, Join) and hole.rest else (hole.ref,)


def _joins(node: Node) -> list[Join | Collect]:
    found: list[Join | Collect] = []
    for leaf in node.leaves() if node.predictable else ():
        if isinstance(leaf, Collect):
            found.append(leaf)
        elif isinstance(leaf, Template):
            found += [hole for hole in leaf.holes if isinstance(hole, Join)]
    return found
