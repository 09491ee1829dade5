"""Decode streaming (Ayo, pass 4): a node whose consumers can start on a part of its output decodes in parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..ir import Clip, Extract, Graph, Node, Ref
from ..profile import Profile


def decode(graph: Graph, _: Mapping[str, Profile]) -> Graph:
    wanted: set[str] = set()
    for node in graph.nodes:
        wanted.update(ref.node for ref in node.refs() if _sees_parts(ref))

    def stream(node: Node) -> Node:
        needed = node.op.streams and node.name in wanted
        return node if node.needs_partial == needed else replace(node, needs_partial=needed)

    return graph.map(stream)


def _sees_parts(ref: Ref) -> bool:
    """Whether a beginning of the text is enough for some value of this reference."""
    inside = False
    for step in ref.path:
        if inside or isinstance(step, Clip):
            return True
        inside = isinstance(step, Extract)
    return False
