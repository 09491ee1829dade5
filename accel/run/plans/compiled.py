"""What following a graph takes that no run changes: worked out once for all runs that follow it."""

from __future__ import annotations

from ...graph.ir import Graph, Node
from ...graph.predict import making
from .ahead import may_go_ahead
from .touched import Reach, is_listed


class Compiled:
    """A graph, with its nodes numbered in its order."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        order = {node.name: place for place, node in enumerate(graph.nodes)}
        self.make = {node.name: making(node) for node in graph.nodes if node.predictable}
        """How the inputs of its elements are made."""
        self.reach = {node.name: Reach(graph, node) for node in graph.nodes}
        self.listed = [is_listed(node) for node in graph.nodes]
        self.consumers: dict[str, list[int]] = {}
        """By name, the nodes whose inputs refer to it; `Graph.consumers` also has those that only come after it."""
        for node in graph.nodes:
            for name in graph.producers[node.name]:
                self.consumers.setdefault(name, []).append(order[node.name])
        self.givers = {node.name: _givers(graph, node) for node in graph.nodes}
        """By name, the nodes whose calls give it its input: what loops hand on comes from these, too."""
        predictable = [node for node in graph.nodes if node.predictable]
        self.by_urgency = sorted(
            (node.name for node in predictable),
            key=lambda name: order[name] - 10_000 * graph.by_name[name].schedule.depth,
        )
        self.at_start = [node for node in predictable if node.schedule.prefills or not graph.producers[node.name]]
        """Of which something may be known before anything is published."""
        self.given = frozenset(field for node in graph.nodes for field in node.evidence.unreplaced)
        self.gathered: dict[str, list[str]] = {}
        """By call site, what gathers the answers of its calls: all of them."""
        for node in graph.nodes:
            for site in {graph.by_name[name].site for name in graph.producers[node.name]} if node.gathers else ():
                self.gathered.setdefault(site, []).append(node.name)
        self.nested = frozenset(node.name for node in graph.nodes if may_go_ahead(node))


def _givers(graph: Graph, node: Node) -> frozenset[str]:
    producers = [graph.by_name[name] for name in graph.producers[node.name]]
    handed = (graph.producers[source.name] for source in producers if source.relay is not None)
    return frozenset(source.name for source in producers).union(*handed)
