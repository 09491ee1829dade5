"""Decode streaming (Ayo, pass 4): a node whose consumers can start on a part of its output decodes in parts."""

from __future__ import annotations

from collections.abc import Mapping

from ...engine.profile import Profile
from ...text.steps import STAR, Clip, Extract
from ...text.templates import Ref
from ...text.turns import CALLS
from ..ir import Graph, Node


def decode(graph: Graph, _: Mapping[str, Profile]) -> Graph:
    streams = {node.name for node in graph.nodes if node.op.streams}
    seen = {node.name: streams & {ref.node for ref in node.refs() if _sees_parts(ref)} for node in graph.nodes}
    wanted = frozenset[str]().union(*seen.values())

    def stream(node: Node) -> Node:
        after = tuple(name for name in node.schedule.after if name not in seen[node.name])  # a part of it is enough
        return node.scheduled(needs_partial=node.name in wanted, after=after)

    return graph.map(stream)


def summary(graph: Graph, profiles: Mapping[str, Profile]) -> str:
    return "no call can begin with a part of an answer" if decode(graph, profiles) is graph else ""


def _sees_parts(ref: Ref) -> bool:
    """Whether a beginning of the answer is enough for some value of this reference."""
    inside = ref.path[:2] == (CALLS, STAR)
    for step in ref.path:
        if inside or isinstance(step, Clip):
            return True
        inside = isinstance(step, Extract)
    return False
