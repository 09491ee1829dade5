"""Depth (Ayo, algorithm 2): how many primitives still depend on this one; the deepest is the most urgent."""

from __future__ import annotations

from collections.abc import Mapping

from ...engine.profile import Profile
from ..ir import Graph


def depth(graph: Graph, _: Mapping[str, Profile]) -> Graph:
    depths: dict[str, int] = {}
    for node in reversed(graph.nodes):
        below = [depths[name] for name in graph.consumers[node.name] if name in depths]  # of a loop, one round
        depths[node.name] = max(below) + 1 if below else 0
    return graph.map(lambda node: node.scheduled(depth=depths[node.name]))


def summary(graph: Graph, profiles: Mapping[str, Profile]) -> str:
    return "no primitive depends on another" if depth(graph, profiles) is graph else "the deepest is the most urgent"
