"""How fast a recorded run could have been, as the graph that was learnt knows what hangs on what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...learn.check import ties
from ...run.gains.soonest import Best, schedule
from ...trace.flow import events_of
from ...trace.record import Trace

if TYPE_CHECKING:
    from ...run.plans.plan import Plan


def best(plan: Plan, trace: Trace) -> Best:
    """Of a completed run."""
    known = ties(plan.learnt, trace)
    return schedule(events_of(trace, plan.topology, known.deciding, known.using))
