"""Prefill split (Ayo, pass 3): a prompt whose beginning is known before its end is prefilled up to a hole boundary.

Marks the boundaries; whether a prefix is long enough to pay is the engine's to say while running.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir import Graph, Join, Node, Ref, Template


def prefill(graph: Graph) -> Graph:
    def split(node: Node) -> Node:
        if not (node.predictable and node.op.splittable):
            return node
        last = None
        for leaf in node.leaves():
            if isinstance(leaf, Template):
                last = leaf
        if last is None:
            return node
        holes = [i for i, part in enumerate(last.parts) if isinstance(part, Ref | Join)]
        # The first hole may be known long before the others; nothing is gained in front of the only one.
        cuts = tuple(holes if any(isinstance(part, Join) for part in last.parts) else holes[1:])
        return node if cuts == node.prefills else replace(node, prefills=cuts)

    return graph.map(split)
