"""Elements of nested lists behind a list that is still open: their inputs are known, their places are not.

Their calls are issued without a place. They get one when the list before them closes (`Forecast._expect`), or a demand
takes them by their key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..evaluate import DROPPED, Index, enumerate_stars, evaluate, has_gap, pasted, step_into
from ..ir import Node
from ..templates import Counter, Star, Step, Template
from ..values import Tree

if TYPE_CHECKING:
    from .forecast import Forecast
    from .outlook import Outlook
    from .settings import Bound


def issue_ahead(forecast: Forecast, state: Outlook, bound: Bound) -> None:
    """Issue what is known of the node's elements behind a gap, and may be issued; of a node that `may_go_ahead`."""
    node, run = state.node, forecast.run
    level = node.level
    if level is None or level.domain is None or level.seen is None or forecast.held(node):
        return
    judged = not bound.facts.local and run.settings.egress == "known"
    state.ahead = [call for call in state.ahead if call.bound is None]
    for binding in behind_gaps(forecast.value(level.domain.node), level.domain.path):
        if state.count + len(state.ahead) >= level.seen:
            return
        tree = evaluate(node.input, binding, 0, forecast) if binding[0] >= level.first else None
        if tree is None or has_gap(tree) or run.calls.has(key := bound.key(tree)):
            continue
        if not judged or not forecast.refused(node, pasted(node.input, binding, 0, forecast)):
            call = run.issue(node, tree, key)
            if isinstance(call, str):
                return
            state.ahead.append(call)


def may_go_ahead(node: Node) -> bool:
    """Whether which elements there are, and what they ask for, doesn't depend on those before them."""
    level = node.level
    if level is None or level.domain is None or level.domain.stars < 2 or level.cap is not None or level.distinct:
        return False
    numbered = any(isinstance(h, Counter) for leaf in node.leaves() if isinstance(leaf, Template) for h in leaf.holes)
    return not (node.when or node.in_order or node.stage_of or numbered)


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
