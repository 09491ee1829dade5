"""Dependency pruning (Ayo, pass 1): program order falls unless data, hazard or control needs it.

Data edges are the references themselves and control is decided while running (`run.topology`). What is left to say is
the hazard: a read comes after every earlier write to what may be the same resource.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...engine.profile import Profile
from ..ir import Graph


def prune(graph: Graph, _: Mapping[str, Profile]) -> Graph:
    writes: list[str] = []
    after: dict[str, tuple[str, ...]] = {}
    for node in graph.nodes:
        if node.op.effect == "reads":
            after[node.name] = tuple(writes)
        if node.op.effect == "writes":
            writes.append(node.name)
    return graph.map(lambda node: node.scheduled(after=after.get(node.name, ())))


def summary(graph: Graph, profiles: Mapping[str, Profile]) -> str:
    """Counts the edges between a call and the one the program makes before it."""
    calls = [node for node in prune(graph, profiles).nodes if node.op.engine != "none" and not node.schedule.stage_of]
    pairs = list(zip(calls, calls[1:], strict=False))
    if not pairs:
        return "two calls are needed to have an order"
    by_data = sum(one.name in graph.producers[other.name] for one, other in pairs)
    by_hazard = sum(one.name in other.schedule.after for one, other in pairs)
    why = [f"{by_data} by data"] * bool(by_data) + [f"{by_hazard} by a write before a read"] * bool(by_hazard)
    kept = f"; kept: {', '.join(why)}" if why else ""
    return f"{len(pairs) - by_data - by_hazard} of {len(pairs)} program-order edges fall{kept}"


def program_order(graph: Graph, _: Mapping[str, Profile]) -> Graph:
    """Without pruning: a node waits for all that the program demands before it."""
    before: list[str] = []
    after: dict[str, tuple[str, ...]] = {}
    for node in graph.nodes:
        if node.op.engine != "none":
            after[node.name] = tuple(before)
            if not node.schedule.stage_of:
                before.append(node.name)
    return graph.map(lambda node: node.scheduled(after=after.get(node.name, ())))
