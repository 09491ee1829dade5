"""pmap (Alto): what can't vary inside a level is no level of it.

The learner folds loops into levels. This pass drops levels that run over nothing (one repeat), so that later passes
see a plain node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...engine.profile import Profile
from ..ir import Graph, Node


def pmap(graph: Graph, _: Mapping[str, Profile]) -> Graph:
    def one(node: Node) -> Node:
        level = node.level
        if level is not None and level.domain is None and level.repeat == 1 and not _is_indexed(graph, node):
            return replace(node, level=None, many=False)
        return node

    return graph.map(one)


def _is_indexed(graph: Graph, node: Node) -> bool:
    return bool(graph.consumers[node.name])


def summary(graph: Graph, _: Mapping[str, Profile]) -> str:
    levels = [node for node in graph.nodes if node.level is not None]
    nested = sum(node.dims > 1 for node in levels)
    if not levels:
        return "no call is made for every element of something"
    inner = f", {nested} of them nested" if nested else ""
    return f"{len(levels)} level{'s' if len(levels) > 1 else ''}{inner}, whose elements run side by side"


def in_order(graph: Graph, _: Mapping[str, Profile]) -> Graph:
    """Without pmap: an element waits for the one before it."""
    return graph.map(lambda node: node.scheduled(in_order=node.level is not None))
