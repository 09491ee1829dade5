"""What engines are told about the calls of a run: how urgent they are, when their run began, how deep they are, and
when what they begin with is used next.

The runs of a batch are one to an engine: what most work still waits for comes first, whichever run it is of, then what
was asked for first. The batch ends with the last of them: old runs before new ones would leave the last ones alone on
engines that could serve many.
"""

from __future__ import annotations

from ..engine import Priority
from ..graph.ir import Node
from ..process.clock import now_s
from .calls.call import Call
from .run import Run

EARLY = 1
"""Engine priority of early work. Demands have 0; lower is served first."""


def of_demand(run: Run, site: str, outer: Call | None) -> Priority:
    """As deep as the deepest node that predicts calls of this site, and as the call it is part of, if it is: that one
    waits for it. What it begins with is used again as soon as what any of these nodes does."""
    depth, next_use = outer.priority.depth if outer is not None else 0, 0
    for node in run.graph.by_site.get(site, ()):
        depth = max(depth, node.schedule.depth)
        next_use = min(next_use, node.schedule.next_use) or max(next_use, node.schedule.next_use)  # 0: nobody knows
    return _priority(0, run, depth, site, next_use)


def of_early(run: Run, node: Node) -> Priority:
    return _priority(EARLY, run, node.schedule.depth, node.site, node.schedule.next_use)


def _priority(value: int, run: Run, depth: int, site: str, next_use: int) -> Priority:
    heeds = run.settings.deadline_s is not None
    left_s = run.plan.deadlines.left_s(site, run.site_counts.get(site, 0)) if heeds else 0.0
    member = run.calls.batch
    if member is not None:
        batch = member.batch
        return Priority(value, batch.name, now_s(), depth, True, run.session, left_s, next_use, batch.outline)
    return Priority(value, run.name, run.trace.started_s, depth, False, run.session, left_s, next_use)
