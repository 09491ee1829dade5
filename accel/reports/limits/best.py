"""How fast a recorded run could have been, as the graph that was learnt knows what hangs on what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...learn.check import ties
from ...parts.methods.methods import METHODS
from ...parts.methods.patches import has_leaf
from ...run.gains.soonest import Best, schedule
from ...run.issued.early import may_stand_in
from ...trace.flow import events_of
from ...trace.record import CallRecord, Trace

if TYPE_CHECKING:
    from ...run.plans.plan import Plan


def best(plan: Plan, trace: Trace) -> Best:
    """Of a completed run."""
    known = ties(plan.learnt, trace)
    return schedule(events_of(trace, plan.topology, known.deciding, known.using))


def could_stream(call: CallRecord) -> bool:
    """Whether it has a method that would, and that may stand in for its own."""
    method = METHODS.get((call.family, call.method))
    twin = METHODS.get((call.family, method.streamed)) if method is not None else None
    if method is None or twin is None or not has_leaf(call.component, twin.name):
        return False
    return may_stand_in(call.component, twin, method)
