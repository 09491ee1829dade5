"""Values of several calls as one list, in the order in which the program made them.

The calls of one loop are a list already (a node with a level). Others are nodes of their own: the calls of a site whose
texts differ, several sites that ask about the same, all calls of one framework node. Which of them a program puts
together, nothing tells but what it computes of them (`computed`): each group that comes into question is a node that
gathers, and those that something refers to stay.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import chain, pairwise

from ...graph.ir import Evidence, Level, Node
from ...graph.ops import OPS
from ...text.extract import extract
from ...text.paths import UNKNOWN, as_text, follow
from ...text.steps import STAR
from ...text.templates import Collect, Leaf, Ref, Whole
from ...text.values import texts_of
from ..covers.foreign import literals
from ..view import View
from .computed import FEWEST, agrees

MOST_PARTS = 24
"""Nodes of one list."""
MOST_GROUPS = 12
ALIKE = 0.3
"""Of all words of two prompts, the share that is in both."""
SHORT = 32
"""Characters of an answer that says a word or a number."""


class Gathered:
    """The lists that come into question so far. Each has a value in the runs that made all of its calls."""

    def __init__(self, views: Sequence[View]) -> None:
        self._views = views
        self._found: dict[Hashable, Node] = {}

    def among(self, nodes: Sequence[Node]) -> list[Node]:
        """All of them, with those of these nodes; none before functions are tried."""
        runs = len({view.witness for view in self._views})
        if runs < FEWEST or "gathered" not in self._views[0].values.readings:
            return []
        for parts, side_by_side in _groups(nodes, self._views):
            key = (side_by_side, *(part.name for part in parts))
            new = key not in self._found and len(self._found) < MOST_GROUPS
            if new and _in_order(self._views, parts, side_by_side):
                self._found[key] = node = _node(parts, side_by_side, len(self._found))
                for view in self._views:
                    view.gather(node)
        return list(self._found.values())

    def around(self, node: Node, nodes: Sequence[Node]) -> dict[str, frozenset[str]]:
        """By name, the lists of three or more calls of which a node refers to the short answer of one, with the nodes
        that each gathers."""
        calls = {one.name for one in nodes if one.site}
        single = {ref.node for ref in node.refs() if ref.node in calls and self._is_short(ref)}
        lists = self.among(nodes) if single and not agrees(node) else []
        parts = {one.name: frozenset(ref.node for ref in one.refs()) for one in lists if not one.many}
        return {name: held for name, held in parts.items() if len(held) > 2 and len(single & held) == 1}

    def _is_short(self, ref: Ref) -> bool:
        """Whether it is a short text in all runs."""
        known = [view.values.value(ref.node) for view in self._views]
        texts = [as_text(follow(value, ref.path)) for value in known if value is not UNKNOWN and not ref.stars]
        return bool(texts) and all(text is not None and 0 < len(text) <= SHORT for text in texts)

    def used(self, node: Node) -> list[Node]:
        """Those that a node refers to."""
        named = {ref.node for ref in node.refs()}
        return [one for one in self._found.values() if one.name in named]


def _groups(nodes: Sequence[Node], views: Sequence[View]) -> Iterator[tuple[list[Node], bool]]:
    """Nodes that have something in common; whether it is for each of their elements that they go together."""
    calls = [node for node in nodes if node.site and not node.is_placed]
    alike_to = dict(_asking_alike(calls))
    alike: tuple[Callable[[Node], Hashable], ...] = (
        lambda node: node.site,
        lambda node: alike_to.get(node.name),
        lambda node: (node.op.name, node.within),
        lambda node: (node.op.name, _answers(node, views)),
        lambda node: node.op.name,
    )
    for of in alike:
        yield from ((group, False) for group in _by(calls, of))
    yield from (
        (group, True) for group in _by(calls, lambda node: (node.op.name, node.level) if _loops(node) else None)
    )


def _asking_alike(nodes: Sequence[Node]) -> Iterator[tuple[str, Hashable]]:
    """By name of those that ask about the same, the first one that does it in nearly the same words."""
    firsts: list[tuple[Node, frozenset[Ref], set[str]]] = []
    for node in nodes:
        if node.predictable:
            refs, words = frozenset(node.refs()), {word for text in literals(node.input) for word in text.split()}
            for first, own, others in firsts:
                if first.op == node.op and own == refs and len(words & others) >= ALIKE * len(words | others):
                    break
            else:
                first = node
                firsts.append((node, refs, words))
            yield node.name, first.name


def _by(nodes: Sequence[Node], of: Callable[[Node], Hashable]) -> Iterator[list[Node]]:
    groups: dict[Hashable, list[Node]] = {}
    for node in nodes:
        groups.setdefault(of(node), []).append(node)
    return (group for common, group in groups.items() if common is not None and 1 < len(group) <= MOST_PARTS)


def _answers(node: Node, views: Sequence[View]) -> Hashable:
    """What all answers have in common: fields, numbers, that they are short."""
    texts = [next(texts_of(call.output), "") for view in views for call in view.made.get(node.name, ())]
    objects = (extract("json", text) for text in texts)
    keys = [frozenset(held) if isinstance(held, dict) else frozenset() for held in objects]
    common = frozenset[str].intersection(*keys) if keys else frozenset[str]()
    return common, all(len(text) <= SHORT for text in texts), all(any(map(str.isdigit, text)) for text in texts)


def _loops(node: Node) -> bool:
    """Whether it has an element for each of a list."""
    level = node.level
    return level is not None and level.domain is not None and not (node.when or level.distinct)


def _in_order(views: Sequence[View], parts: Sequence[Node], side_by_side: bool) -> bool:
    """Whether the runs that made these calls made them one after the other, and no others there."""
    sites, any_run = {part.site for part in parts}, False
    for view in views:
        calls = [view.made.get(part.name, []) for part in parts]
        if not all(calls):
            continue
        any_run = True
        rows = list(zip(*calls, strict=False)) if side_by_side else [tuple(chain(*calls))]
        there = sum(call.site in sites and call.ok for call in view.trace.calls)
        if sum(map(len, rows)) != there or not all(
            one.start < other.start for row in rows for one, other in pairwise(row)
        ):
            return False
    return any_run


def _node(parts: Sequence[Node], side_by_side: bool, number: int) -> Node:
    first, within = parts[0], parts[-1].within or "main"
    items: list[Leaf] = []
    for part in parts:
        if side_by_side:
            items.append(Whole(Ref(part.name, (STAR,))))
        else:
            items.append(Collect(Ref(part.name, (STAR,))) if part.many else Whole(Ref(part.name)))
    return Node(
        f"{within}.aggregate{f'.{number + 1}' if number else ''}",
        OPS["aggregate"],
        items,
        level=Level(Ref(first.name, (STAR,))) if side_by_side else None,
        many=side_by_side,
        evidence=Evidence("verified", always=True),
    )
