"""What became of the last request, by the user's lines: how many calls were early, and why the others were not.

Every line that made calls has one row, and every call is counted in one: what a call of the line made inside its
component, a search's embedding, is part of it, and early or not with it. Tools that nobody vouches for, and framework
nodes that work for long by themselves, have rows of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from types import FunctionType
from typing import TYPE_CHECKING

from ..graph.ops import OPS
from ..graph.rules import (
    AT_ONCE,
    BEHIND,
    BROKEN_OFF,
    COMPOSITE,
    FAILED,
    FED,
    FIRST_SEEN,
    GIVEN_TOOL,
    JUST_LEARNT,
    LATE,
    LIMITED,
    NOTHING_EARLY,
    OTHERWISE,
    OWN_WORK,
    PART,
    TOO_LONG,
    UNDECLARED_TOOL,
    UNLEARNT,
    UNSEEN_CLIENT,
    WRITES,
    Reason,
)
from ..learn.learner import UNEXPLAINED
from ..parts.components import TOOL, facts_of, is_declared
from ..run.gains.soonest import Best
from ..run.plans.tally import Line
from ..run.settings import Settings
from ..text.objects import is_a
from ..trace.record import CallRecord, Outgoing, Trace, Use, Visit
from ..trace.sites import function_of, line_of
from .computing import SOONER_S, computed

if TYPE_CHECKING:
    from ..run.plans.plan import Plan

MAX_CALLS = 400
"""Of a run: a schedule takes time with the square of their number."""
SLOW_S, SLOW_SHARE = 0.02, 0.02
"""A node that works less by itself, or for a smaller part of the run, has no row."""


@dataclass(frozen=True, slots=True)
class Late:
    """Calls that one line itself made and that were not early, for one reason."""

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
    """A line of the user's and what it did in the last run."""

    where: str
    """File, function and line; where the framework itself calls, what it calls and in which node."""
    nodes: tuple[str, ...]
    """The framework nodes that it ran in."""
    what: str
    """The classes of the components that it called, and the tools that it used; of a node, "own work"."""
    calls: int
    """Of components, also those that one of them made of another;"""
    made: int
    """those that the line itself made, of which are early, saved, took and late below."""
    uses: int
    """Of tools that are no components."""
    early: int
    """Answered, themselves or a call inside, by one that had begun before the program made it,"""
    saved_s: float
    """which spared the program so many seconds of waiting, in all."""
    took_s: float
    """All calls together, in their components, as long as they would have taken without early ones."""
    late: tuple[Late, ...]
    """The others."""
    since: int = 0
    """The first request in which a call of this line was early, counted from 1; 0: none yet."""
    early_runs: int = 0
    """Requests in which at least one of its calls was early,"""
    made_runs: int = 0
    """of those that made any,"""
    runs: int = 0
    """of all that were looked at."""

    @property
    def has_line(self) -> bool:
        """Whether a line of the user's made its calls."""
        return self.where.rpartition(":")[2].isdigit()

    @property
    def place(self) -> str:
        """In short."""
        return place_of(self.where)

    @property
    def function(self) -> str:
        """The user's function, by its own name; empty where there is none."""
        return function_of(self.where)

    @property
    def standing(self) -> str:
        """Since when, and how often."""
        if not self.since:
            return ""
        return f"early since request {self.since}, in {self.early_runs} of {self.made_runs} requests that made it"

    def __str__(self) -> str:
        count = f"{self.made} call{'s' * (self.made != 1)}"
        early = f"{self.early} early ({self.saved_s:.2f} s saved)" if self.early else ""
        said = "; ".join([*([early] if early else []), *map(str, self.late)])
        return f"{self.where}  {self.what}: {count}, {said}{'; ' * bool(self.standing)}{self.standing}"


def place_of(line: str) -> str:
    """The file and the line alone."""
    file, number = line.partition(":")[0], line.rpartition(":")[2]
    return f"{file}:{number}" if number.isdigit() else line


def rows(plan: Plan, trace: Trace, settings: Settings, best: Best | None) -> list[Row]:
    """Of one of the last runs, in the order of the program. `best`: how much sooner its calls could have been."""
    found: dict[str, list[CallRecord]] = {}
    for call in trace.calls:
        found.setdefault(line_of(call), []).append(call)
    uses: dict[str, list[Use]] = {}
    for use in foreign_uses(trace):
        uses.setdefault(line_of(use), []).append(use)
    placed = []
    for line in dict.fromkeys((*found, *uses)):
        calls, used = found.get(line, []), uses.get(line, [])
        begun_s = min([call.started_s for call in calls] + [use.started_s for use in used])
        placed.append((begun_s, _row(plan, trace, settings, line, calls, used, best)))
    own: dict[str, list[tuple[Visit, float]]] = {}
    for visit, seconds in own_work(trace):
        own.setdefault(visit.node, []).append((visit, seconds))
    least_s = max(SLOW_S, SLOW_SHARE * seconds_of(trace))
    placed += [
        (visits[0][0].started_s, _node_row(node, [s for _, s in visits], plan.tally.runs))
        for node, visits in own.items()
        if sum(s for _, s in visits) >= least_s
    ]
    return [row for _, row in sorted(placed, key=lambda each: each[0])]


def seconds_of(trace: Trace) -> float:
    return (trace.ended_s if trace.ended_s is not None else trace.started_s) - trace.started_s


def _row(
    plan: Plan, trace: Trace, settings: Settings, line: str, calls: list[CallRecord], uses: list[Use],
    best: Best | None,
) -> Row:  # fmt: skip
    made: dict[CallRecord, list[CallRecord]] = {}
    for call in calls:
        made.setdefault(_outermost(call, line), []).append(call)
    late: dict[str, tuple[Reason, list[float]]] = {}
    named = cache(partial(computed, trace))
    early, saved_s = 0, 0.0
    for parts in made.values():
        if any(part.retired for part in parts):
            early += 1
            saved_s += sum(part.saved_s for part in parts if part.retired)
        else:
            reason, sooner_s = _held_back(plan, trace, settings, parts, best, named)
            late.setdefault(str(reason), (reason, []))[1].append(sooner_s)
    for use in uses:
        reason = _unseen(use)
        late.setdefault(str(reason), (reason, []))[1].append(0.0)
    nodes = [call.within for call in calls] + [use.within for use in uses]
    names = [_called(call) for call in calls] + [_named(use) for use in uses]
    past = plan.tally.lines.get(line, Line())
    return Row(
        line,
        tuple(dict.fromkeys(within for within in nodes if within)),
        " + ".join(dict.fromkeys(names)),
        len(calls),
        len(made),
        len(uses),
        early,
        saved_s,
        sum(_alone_s(parts) for parts in made.values()) + sum(use.took_s for use in uses),
        tuple(Late(reason.rule.name, text, len(gains), sum(gains)) for text, (reason, gains) in late.items()),
        past.since,
        past.early_runs,
        past.runs,
        plan.tally.runs,
    )


def _called(call: CallRecord) -> str:
    """The class of its component; a tool and a declared function by their own names."""
    component = call.component
    if call.family == TOOL and is_a(name := getattr(component, "name", None), str):
        return f"tool {name}"
    return component.__name__ if isinstance(component, FunctionType) else type(component).__name__


def _outermost(call: CallRecord, line: str) -> CallRecord:
    """The call of the same line that it is inside of; itself, if the line made it."""
    while call.parent is not None and line_of(call.parent) == line:
        call = call.parent
    return call


def _alone_s(parts: list[CallRecord]) -> float:
    """What a call, the first one, would have taken without early ones; the others are those inside it."""
    call, *inside = parts
    return call.took_s + sum(part.saved_s for part in inside if part.retired)


def _held_back(
    plan: Plan,
    trace: Trace,
    settings: Settings,
    parts: list[CallRecord],
    best: Best | None,
    named: Callable[[str], Reason | None],
) -> tuple[Reason, float]:
    """Why a call, the first one, was not early, and how much sooner it could have begun. One that is made of those
    inside it says less than they do. `named`: by call site, which functions may compute what nothing explains."""
    found = []
    for part in parts:
        gain_s = best.sooner_s.get(part, 0.0) if best is not None else 0.0
        gain_s = gain_s if gain_s > SOONER_S else 0.0
        reason = why(plan, trace, settings, part, gain_s, best)
        if reason.rule is UNLEARNT and str(reason) == UNEXPLAINED:
            reason = named(part.site) or reason
        found.append((reason, 0.0 if reason.rule is AT_ONCE else gain_s))
    telling = [(reason, gain_s) for reason, gain_s in found if reason.rule not in (COMPOSITE, PART)]
    reason, _ = max(telling or found, key=lambda each: each[1])
    return reason, sum(gain_s for _, gain_s in found)


# --- what is no component


def _unseen(use: Use) -> Reason:
    if not isinstance(use, Outgoing):
        return (GIVEN_TOOL if is_declared(use.tool) else UNDECLARED_TOOL)(component=use.name)
    return use.let_be or UNSEEN_CLIENT(
        component=use.name, requests=f"{use.verb} requests", host=use.host or "somewhere"
    )


def _named(use: Use) -> str:
    return use.name if isinstance(use, Outgoing) else f"tool {use.name}"


def foreign_uses(trace: Trace) -> list[Use]:
    """Uses of tools that are no components: what is one has calls of its own, and one use inside another is a part. So
    is a request that a tool sends."""
    known = {id(call.component) for call in trace.calls}
    declared = [call for call in trace.calls if type(call.component) is FunctionType]
    found: list[Use] = []
    for use in trace.uses:
        if any(call.visit is use.visit and use.started_s <= call.started_s <= _over(use) for call in declared):
            continue  # its function is one
        inside = any(
            (other.tool is use.tool or _may_be_sent_by(other, use))
            and other.started_s <= use.started_s
            and _over(other) >= _over(use)
            for other in found
        )
        if id(use.tool) not in known and not inside:
            found.append(use)
    return found


def _may_be_sent_by(tool: Use, use: Use) -> bool:
    return isinstance(use, Outgoing) and not isinstance(tool, Outgoing) and tool.visit is use.visit


def _over(use: Use) -> float:
    return use.ended_s if use.ended_s is not None else use.started_s


def own_work(trace: Trace) -> list[tuple[Visit, float]]:
    """By run of a framework node, how long it worked without waiting for a call, a tool, or a node inside it."""
    found: list[tuple[Visit, float]] = []
    uses = foreign_uses(trace)
    if len(trace.calls) + len(trace.visits) > 2 * MAX_CALLS:
        return found
    for visit in trace.visits:
        if visit.ended_s is None:
            continue
        spans = [(c.started_s, c.ended_s) for c in trace.calls if c.ended_s is not None and visit.holds(c.visit)]
        spans += [(u.started_s, u.ended_s) for u in uses if u.ended_s is not None and visit.holds(u.visit)]
        spans += [
            (v.started_s, v.ended_s)
            for v in trace.visits
            if v is not visit and v.ended_s is not None and visit.holds(v)
        ]
        at, idle_s = visit.started_s, 0.0
        for begin, end in sorted(spans):
            idle_s += max(0.0, min(begin, visit.ended_s) - at)
            at = max(at, end)
        found.append((visit, idle_s + max(0.0, visit.ended_s - at)))
    return found


def _node_row(node: str, own_s: list[float], runs: int) -> Row:
    reason = OWN_WORK()
    late = Late(reason.rule.name, str(reason), len(own_s), 0.0)
    return Row(f"node {node}", (node,), "own work", 0, 0, 0, 0, 0.0, sum(own_s), (late,), runs=runs)


# --- reasons


def why(plan: Plan, trace: Trace, settings: Settings, call: CallRecord, gain_s: float, best: Best | None) -> Reason:
    """Why a call of a run was not early; `gain_s`: how much sooner it could have begun; `best`: None where that was not
    worked out."""
    if not OPS[call.op].issuable:
        return WRITES()
    if settings.speculate == "off":
        return NOTHING_EARLY()
    if call.failed:
        return FAILED()
    if call.parent is not None and not call.parent.composite:
        return PART(component=type(call.parent.component).__name__)
    if call.composite:
        return COMPOSITE()
    held = _held(plan, call)
    if held is not None and held.rule is AT_ONCE and gain_s and best is not None:
        missed = _missed(plan, call, best)  # what it waits for could have been there sooner
        return missed if missed.rule is BEHIND else held
    if held is not None and (gain_s or best is None or held.rule is not LIMITED):
        return held
    if not trace.completed:
        return BROKEN_OFF()
    if best is None:
        return TOO_LONG(calls=MAX_CALLS)
    return _missed(plan, call, best) if gain_s else AT_ONCE()


def _held(plan: Plan, call: CallRecord) -> Reason | None:
    """What held such calls in the last run, or keeps them from being predicted: of several nodes, of one that is."""
    for node in sorted(plan.graph.by_site.get(call.site, ()), key=lambda node: bool(node.evidence.reason)):
        held = plan.reasons.get(node.name)
        if held is not None and held.rule is not LATE:
            return held
        if node.evidence.reason:
            return UNLEARNT(why=node.evidence.reason)
    return None


def _missed(plan: Plan, call: CallRecord, best: Best) -> Reason:
    """Why a call was not early that nothing held."""
    facts = facts_of(call.component)
    if call.op == "searching" and not (facts.readonly or facts.owned):
        return FED(component=type(call.component).__name__)
    source, before_s = best.last.get(call, (None, 0.0))
    if source is not None and before_s <= SOONER_S:
        return BEHIND(line=place_of(line_of(source)))
    nodes = plan.graph.by_site.get(call.site, ())
    if not nodes:
        return FIRST_SEEN()
    return JUST_LEARNT() if all(plan.standing(node).since == plan.tally.runs for node in nodes) else OTHERWISE()
