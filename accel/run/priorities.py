"""What engines are told about the calls of a run: how urgent they are, when their run began, and how deep they are."""

from __future__ import annotations

from ..engine import Priority
from ..graph.ir import Node
from .call import Call
from .run import Run

EARLY = 1
"""Engine priority of early work. Demands have 0; lower is served first."""


def of_demand(run: Run, site: str, outer: Call | None) -> Priority:
    """As deep as the node that predicts calls of this site, and as the call it is part of, if it is: that one waits for
    it."""
    depth = run.graph.depths.get(site, 0)
    if outer is not None:
        depth = max(depth, outer.priority.depth)
    return Priority(0, run.name, run.trace.started_s, depth)


def of_early(run: Run, node: Node) -> Priority:
    return Priority(EARLY, run.name, run.trace.started_s, node.schedule.depth)
