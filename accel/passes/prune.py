"""Dependency pruning (Ayo, pass 1): program order falls unless data, hazard or control needs it.

Data edges are the references themselves and control is decided while running (`run.topology`). What is left to say is
the hazard: a read comes after every earlier write to what may be the same resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..ir import Graph, Node
from ..profile import Profile


def prune(graph: Graph, _: Mapping[str, Profile]) -> Graph:
    writes: list[str] = []
    after: dict[str, tuple[str, ...]] = {}
    for node in graph.nodes:
        if node.op.effect == "reads":
            after[node.name] = tuple(writes)
        if node.op.effect == "writes":
            writes.append(node.name)

    def order(node: Node) -> Node:
        wanted = after.get(node.name, ())
        return node if node.after == wanted else replace(node, after=wanted)

    return graph.map(order)


def program_order(graph: Graph, _: Mapping[str, Profile]) -> Graph:
    """Without pruning: a node waits for all that the program demands before it."""
    before: list[str] = []
    after: dict[str, tuple[str, ...]] = {}
    for node in graph.nodes:
        if node.op.engine != "none":
            after[node.name] = tuple(before)
            before.append(node.name)
    return graph.map(lambda node: replace(node, after=after[node.name]) if after.get(node.name) else node)
