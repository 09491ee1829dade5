"""pmap (Alto): what can't vary inside a level is no level of it.

The learner folds loops into levels. This pass drops levels that run over nothing (one repeat), so that later passes
see a plain node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..ir import Graph, Node
from ..profile import Profile


def pmap(graph: Graph, _: Mapping[str, Profile]) -> Graph:
    def one(node: Node) -> Node:
        level = node.level
        if level is not None and level.domain is None and level.repeat == 1 and not _is_indexed(graph, node):
            return replace(node, level=None, many=False)
        return node

    return graph.map(one)


def _is_indexed(graph: Graph, node: Node) -> bool:
    return bool(graph.consumers[node.name])


def in_order(graph: Graph, _: Mapping[str, Profile]) -> Graph:
    """Without pmap: an element waits for the one before it."""
    return graph.map(lambda node: replace(node, in_order=True) if node.level is not None else node)
