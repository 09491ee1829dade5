"""What a saved plan knows beyond the runs since: the framework nodes that none of them has entered."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from ..graph.ir import Graph, Node


def carried(learnt: Graph, saved: Graph, ran: Container[str]) -> Graph:
    """`learnt` with the nodes of `saved` inside framework nodes that did not run, as far as what they refer to is
    still there and the same."""
    kept: dict[str, Node] = {}

    def is_known(name: str) -> bool:
        before, now = saved.by_name[name], learnt.by_name.get(name)
        return name in kept or (now is not None and (now.input, now.dims) == (before.input, before.dims))

    for node in saved.nodes:
        within = node.within or node.name.rpartition(".")[0]
        if within and within not in ran and node.name not in learnt.by_name:
            if all(is_known(ref.node) for ref in node.refs()):
                kept[node.name] = node
    return replace(learnt, nodes=(*learnt.nodes, *kept.values())) if kept else learnt
