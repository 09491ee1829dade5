"""What every graph holds to: its own rules, checked where one is made, loaded or rewritten."""

from __future__ import annotations

from typing import Any

from ..errors import AccelError
from ..text.steps import GATHERS, Star
from ..text.templates import Ref, Whole
from .first import leads
from .ir import DECIDING, Graph, Node
from .ops import OPS


class GraphError(AccelError):
    """A graph that breaks its own rules; a defect in Accel, never in user code."""


def verify(graph: Graph) -> None:
    """Raise `GraphError` unless names are unique, references point backwards and stars fit the node's level."""
    seen: dict[str, Node] = {}
    for node in graph.nodes:
        if node.name in seen:
            raise GraphError(f"two nodes are named {node.name}")
        for ref in node.refs():
            known = graph.by_name if node.relay is not None and ref is node.relay.later else seen
            if ref.node not in known:
                raise GraphError(f"{node.name} refers to {ref.node}, which is not an earlier node")
            dims = known[ref.node].dims
            # A level may run over the outer lists of a nested output; a value is one of its elements.
            least = min(1, dims) if node.level is not None and ref == node.level.domain else dims
            leading = ref.path[:dims]
            other = next((step for step in leading if not isinstance(step, int | Star)), None)
            told = len(leading) >= least and other is None
            if not (told or isinstance(other, GATHERS)):  # these take all that is there
                raise GraphError(f"{node.name}: {ref} must say which element of {ref.node} it means")
        for name in node.schedule.after:
            if name not in seen:
                raise GraphError(f"{node.name} comes after {name}, which is not an earlier node")
        if node.first is not None and (
            node.first.op not in OPS or (node.predictable and not leads(node.input, node.first.path))
        ):
            raise GraphError(f"{node.name} has no {node.first} to begin with")
        stage = node.schedule.begins_with
        if stage and (stage not in seen or seen[stage].schedule.stage_of != node.name):
            raise GraphError(f"{node.name} begins with {stage}, which is not an earlier stage of it")
        if node.predictable and not node.op.issuable:
            raise GraphError(f"{node.name} is a {node.op.name} and can't be predicted")
        if node.level is not None and not node.many:
            raise GraphError(f"{node.name} has a level but only one output")
        levels = node.level.domain.stars if node.level is not None and node.level.domain is not None else 0
        for leaf in node.leaves() if node.predictable else ():
            holes: tuple[Any, ...] = (leaf.ref,) if isinstance(leaf, Whole) else getattr(leaf, "holes", ())
            for hole in holes:
                if isinstance(hole, Ref) and hole.stars > levels:
                    raise GraphError(f"{node.name}: {hole} has more levels than the node")
        for when in node.when:
            if when.ref.stars > levels or not when.ref.path or not isinstance(when.ref.path[-1], DECIDING):
                raise GraphError(f"{node.name}: {when} decides nothing")
        seen[node.name] = node
