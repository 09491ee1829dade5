"""What became of the last run's calls, by the user's lines: how many were early, and why the others were not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..graph.ops import OPS
from ..graph.rules import AT_ONCE, FIRST_SEEN, JUST_LEARNT, LATE, NOTHING_EARLY, OTHERWISE, UNLEARNT, Reason
from ..learn.check import ties
from ..run.settings import Settings
from ..trace.flow import events_of
from ..trace.record import CallRecord, Trace, where
from .limit import best_of, latencies
from .workload import Unbatched

if TYPE_CHECKING:
    from ..run.plan import Plan

MAX_CALLS = 400
"""Of a run: a schedule takes time with the square of their number."""
SOONER_S = 0.005
"""To begin with a call less sooner gains nothing."""


@dataclass(frozen=True, slots=True)
class Late:
    """Calls of one line that were not early, for one reason."""

    rule: str
    why: str
    calls: int
    sooner_s: float
    """How much sooner they could have begun, in all: what the run could have gained at most."""

    def __str__(self) -> str:
        bound = f" (up to {self.sooner_s:.2f} s sooner)" if self.sooner_s else ""
        return f"{self.calls} not: {self.why}{bound}"


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the user's and the calls that it made in the last run."""

    where: str
    """File, function and line."""
    component: str
    calls: int
    early: int
    """Answered by a call that had begun before the program made it,"""
    saved_s: float
    """which spared the program so many seconds of waiting, in all."""
    late: tuple[Late, ...]
    """The others."""
    known: str
    """Since when such calls are predicted, and how often they were made; empty if they are not."""

    def __str__(self) -> str:
        count = f"{self.calls} call{'s' * (self.calls != 1)}"
        early = f"{self.early} early ({self.saved_s:.2f} s saved)" if self.early else ""
        said = "; ".join([*([early] if early else []), *map(str, self.late)])
        known = f"; predicted {self.known}" if self.known else ""
        return f"{self.where}  {self.component}: {count}, {said}{known}"


def rows(plan: Plan, settings: Settings) -> list[Row]:
    """In the order of the program; empty where no run has ended, or the last one was too long."""
    trace = plan.last
    if trace is None or not trace.completed or not 0 < len(trace.calls) <= MAX_CALLS:
        return []
    sooner_s = _sooner_s(plan, trace)
    found: dict[tuple[str, str], list[CallRecord]] = {}
    for call in trace.calls:
        if call.parent is None and OPS[call.op].issuable:
            found.setdefault((where(call.site), type(call.component).__name__), []).append(call)
    return [_row(plan, settings, line, component, calls, sooner_s) for (line, component), calls in found.items()]


def _sooner_s(plan: Plan, trace: Trace) -> dict[CallRecord, float]:
    """By call, how long before the program made it its input was complete, if nothing had held it."""
    known = ties(plan.learnt, trace)
    events = events_of(trace, plan.topology, known.deciding, known.using)
    schedule = best_of(Unbatched(events, {}, {}, latencies([trace]))).schedule
    return {placed.call: placed.sooner_s for placed in schedule}


def _row(
    plan: Plan,
    settings: Settings,
    line: str,
    component: str,
    calls: list[CallRecord],
    sooner_s: dict[CallRecord, float],
) -> Row:
    late: dict[str, tuple[Reason, list[float]]] = {}
    saved_s = 0.0
    for call in calls:
        if call.retired:
            saved_s += _saved_s(call)
            continue
        gain_s = sooner_s.get(call, 0.0)
        gain_s = gain_s if gain_s > SOONER_S else 0.0
        reason = why(plan, settings, call, gain_s)
        late.setdefault(str(reason), (reason, []))[1].append(gain_s)
    nodes = [node for site in {call.site for call in calls} for node in plan.graph.by_site.get(site, ())]
    standing = Counter(str(plan.standing(node)) for node in nodes if node.evidence.confidence == "verified")
    return Row(
        line,
        component,
        len(calls),
        sum(call.retired for call in calls),
        saved_s,
        tuple(Late(reason.rule.name, why, len(gains), sum(gains)) for why, (reason, gains) in late.items()),
        standing.most_common(1)[0][0] if standing else "",
    )


def _saved_s(call: CallRecord) -> float:
    """What the program would have waited for it, less what it did wait."""
    if call.issued_s is None or call.answered_s is None or call.ended_s is None:
        return 0.0
    return max(0.0, (call.answered_s - call.issued_s) - (call.ended_s - call.started_s))


def why(plan: Plan, settings: Settings, call: CallRecord, gain_s: float) -> Reason:
    """Why a call of the last run was not early; `gain_s`: how much sooner it could have begun."""
    return _held(plan, settings, call) or (_missed(plan, call) if gain_s else AT_ONCE())


def _held(plan: Plan, settings: Settings, call: CallRecord) -> Reason | None:
    """What held such calls in the last run, or keeps them from being predicted."""
    if settings.speculate == "off":
        return NOTHING_EARLY()
    for node in plan.graph.by_site.get(call.site, ()):
        held = plan.reasons.get(node.name)
        if held is not None and held.rule is not LATE:
            return held
        if node.evidence.reason:
            return UNLEARNT(why=node.evidence.reason)
    return None


def _missed(plan: Plan, call: CallRecord) -> Reason:
    """Why a call was not early that nothing held."""
    nodes = plan.graph.by_site.get(call.site, ())
    if not nodes:
        return FIRST_SEEN()
    return JUST_LEARNT() if all(plan.standing(node).since == plan.runs for node in nodes) else OTHERWISE()
