"""What a declaration or option would gain: the last run worked out anew (`replay`), without the rule that it lifts. Of
what Accel sees nothing of (tools that nobody declared, a node's own work), the time that it took.

That is a bound, and never more than the run took beyond its limit on engines of measured speed.
`compat_tests/test_advice.py` follows the lines of programs, and compares."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import kind_of
from ..graph.ops import OPS
from ..graph.rules import (
    CALLS_SIDE_BY_SIDE,
    LOCAL,
    METHOD,
    PURE,
    PURE_CONCURRENCY,
    PURE_FUNCTION,
    PURE_NODE,
    READONLY,
    READS_SIDE_BY_SIDE,
    Lift,
)
from ..parts.components import TOOL, facts_of, function_of, said_of, sort_of
from ..parts.methods.methods import METHODS
from ..parts.network.hosts import is_declared
from ..parts.network.recipients import endpoint_of
from ..run.gains.soonest import Best
from ..run.settings import Settings
from ..text.turns import CALLS, NAME
from ..text.values import Tree, texts_of
from ..trace.record import CallRecord, Outgoing, Trace, Use
from ..trace.sites import line_of
from . import computing
from .limits.held import EGRESS, MANY, Missing
from .limits.replay import Ran, Replay
from .rows import SLOW_S, foreign_uses, own_work, seconds_of

if TYPE_CHECKING:
    from ..run.plans.plan import Plan

MAX_CALLS = 400
"""Of a run: working it out takes time with the square of their number."""
LEAST_S, LEAST_SHARE = 0.005, 0.01
"""A declaration that gains less, or a smaller part of the run, is not worth a line."""
NOISE_S = 1e-6


@dataclass(frozen=True, slots=True)
class Declaration:
    """A line that would make the program faster, if what it says is true."""

    kind: str
    """The fact or option: readonly, pure, concurrency, twins, local, egress, likely, streaming, plan_scope or
    pure_nodes."""
    component: str
    """The class, tool or node that the line is about; several classes for options of `accelerate`."""
    line: str
    """To paste; a class stands for all of its instances."""
    calls: int
    """Calls of the last run that the program would have waited less for."""
    gain_s: float
    """By how much that run would have been shorter, at most."""
    together: bool
    """Only with the other lines, too: its calls are held back by more than this."""
    sure: str
    """What one must be sure of."""
    where: str
    """The user's file, function and line that makes most of these calls wait."""

    def __str__(self) -> str:
        count = f"{self.calls} call{'s' * (self.calls != 1)}"
        bound = f"up to {self.gain_s:.2f} s of the last run{', with the other lines' * self.together}"
        return f"{self.line}  # {bound}; {count}, {self.where}; be sure that {self.sure}"


@dataclass(frozen=True, slots=True)
class Undeclared:
    """A component class that is never called early, because nobody vouches for it."""

    component: str
    line: str
    """To paste."""
    calls: int
    """Of the last run,"""
    seconds: float
    """and how long they took in all."""

    def __str__(self) -> str:
        return f"{self.line}  # {self.calls} call{'s' * (self.calls != 1)}, {self.seconds:.2f} s of the last run"


def undeclared(plan: Plan) -> list[Undeclared]:
    """The classes of the last run's components that nobody vouches for, and nobody said no to; but for those that would
    go no sooner, as functions give them their keys."""
    found: dict[type, list[CallRecord]] = {}
    for call in plan.last.calls if plan.last is not None else ():
        if call.family == TOOL:
            continue  # what one tool of a class does says nothing about the others
        if OPS[call.op].issuable and not call.composite and not facts_of(call.component).pure:
            if said_of(call.component).pure is None and plan.keys.may_be_known(call.component):
                found.setdefault(type(call.component), []).append(call)
    rows = []
    for cls, calls in found.items():
        lift = READONLY if calls[0].op == "searching" else PURE
        line = lift.line.format(component=cls.__name__)
        rows.append(Undeclared(cls.__name__, line, len(calls), sum(c.took_s for c in calls)))
    return sorted(rows, key=lambda row: (-row.seconds, row.component))


@dataclass(frozen=True, slots=True)
class Advice:
    """What would have made the last run faster."""

    lines: tuple[Declaration, ...] = ()
    """The most useful first."""
    gain_s: float = 0.0
    """Of all lines together, at most: two that let the same calls go gain no more than one."""


def advice(
    plan: Plan,
    settings: Settings,
    nodes: bool = False,
    program: str = "graph",
    limit_s: float = 0.0,
    best: Best | None = None,
) -> Advice:
    """Nothing if there is nothing, or no such run. `nodes`: whether framework nodes can be declared; `program`: what
    lines call the accelerated object; `limit_s`: what the run takes at least, as far as its engines are known; `best`:
    its best schedule, if it was worked out."""
    trace = plan.last
    if trace is None or not trace.completed or len(trace.calls) > MAX_CALLS or settings.speculate == "off":
        return Advice()
    least_s = max(LEAST_S, LEAST_SHARE * seconds_of(trace))
    replayed, gain_s = _replayed(plan, trace, settings, program, limit_s)
    unknown = [*unseen(trace, least_s, nodes, program), *_computing(plan, trace, best, least_s)]
    lines = sorted([*replayed, *unknown], key=lambda each: (-each.gain_s, each.together, each.line))
    seen_s = gain_s if replayed else 0.0
    return Advice(tuple(lines), min(seen_s + sum(each.gain_s for each in unknown), seconds_of(trace)))


def _computing(plan: Plan, trace: Trace, best: Best | None, least_s: float) -> Iterator[Declaration]:
    """Functions that may compute what no known value explains."""
    undeclared_s = min((use.started_s for use in foreign_uses(trace)), default=math.inf)
    for each, calls, gain_s in computing.gains(plan, trace, best, undeclared_s) if best is not None else ():
        if gain_s >= least_s:
            sure = PURE_FUNCTION.sure.format(component=each.name)
            yield Declaration(PURE_FUNCTION.name, each.name, each.line, calls, gain_s, False, sure, each.where)


def unseen(trace: Trace, least_s: float, nodes: bool, program: str) -> Iterator[Declaration]:
    """Tools, clients and nodes that might be components."""
    uses: dict[str, list[Use]] = {}
    for use in foreign_uses(trace):
        uses.setdefault(use.name, []).append(use)
    said = [Said(trace.started_s, None, _words(trace.input))]
    said += [Said(call.ended_s, call, _words(call.output)) for call in trace.calls if call.ended_s is not None]
    for each in map(_as_calls, uses.values()):
        if any(_is_made_for(said, use) for use in each):
            continue
        took_s = sum(min(use.took_s, _sooner_s(said, use)) for use in each)
        if took_s >= max(least_s, SLOW_S):
            lift, called, made = _lift_of(each[0])
            if lift is None:
                continue
            if len(each) > 1:  # they would stand in line
                lift = {READONLY: READS_SIDE_BY_SIDE, METHOD: CALLS_SIDE_BY_SIDE}.get(lift, lift)
            yield _made(lift, program, called, len(each), took_s, line_of(each[0]) + made)
    busy = {visit.node for visit in trace.visits for call in trace.calls if visit.holds(call.visit)}
    busy |= {visit.node for visit in trace.visits for use in trace.uses if visit.holds(use.visit)}
    idle: dict[str, list[float]] = {}
    written = _written_s(trace) if nodes else {}
    for visit, seconds in own_work(trace) if nodes else ():
        if visit.inside is None and visit.node not in busy:
            known = (written.get(text, visit.started_s) for text in texts_of(visit.entered))
            sooner_s = visit.started_s - max(known, default=trace.started_s)
            idle.setdefault(visit.node, []).append(min(seconds, max(0.0, sooner_s)))
    for node, own_s in idle.items():
        if sum(own_s) >= max(least_s, SLOW_S):
            yield _made(PURE_NODE, program, node, len(own_s), sum(own_s), f"node {node}")


@dataclass(frozen=True, slots=True)
class Said:
    """What a call answered at this moment; without a call, what the run was given."""

    at_s: float
    call: CallRecord | None
    words: str


def _as_calls(uses: list[Use]) -> list[Use]:
    """Requests that one call of a client sends, one after the other, as one: they are given the same."""
    calls: list[Use] = []
    for use in uses:
        last = calls[-1] if calls else None
        if isinstance(use, Outgoing) and isinstance(last, Outgoing) and _goes_on(last, use):
            calls[-1] = replace(last, ended_s=use.ended_s)
        else:
            calls.append(use)
    return calls


def _goes_on(last: Outgoing, use: Outgoing) -> bool:
    as_before = last.visit is use.visit and (last.site, last.texts, last.held) == (use.site, use.texts, use.held)
    return as_before and last.ended_s is not None and last.ended_s <= use.started_s


def _is_made_for(said: Sequence[Said], use: Use) -> bool:
    """Whether the object of a client is made with what it is to find: no call of another one is like that, so that none
    can be made early."""
    texts = [text for text in use.held if len(_LONG.findall(text)) > 1] if isinstance(use, Outgoing) else []
    return any(text in each.words for text in texts for each in said if each.at_s <= use.started_s)


def _sooner_s(said: Sequence[Said], use: Use) -> float:
    """How much sooner a tool could have begun at most: not before the run, nor the end of the answer that calls it or
    first says what it is given. What nobody says is not known before the program has made it. A client is given much
    that the program says itself (addresses, settings): there the words count that somebody says."""
    before = [each for each in said if each.at_s <= use.started_s]
    ends = [said[0].at_s]
    ends += [each.at_s for each in before if each.call is not None and _calls(each.call.output, use.name)]
    unsaid_s = said[0].at_s if isinstance(use, Outgoing) else use.started_s
    parts = {word for text in use.texts for word in _LONG.findall(text)} if isinstance(use, Outgoing) else use.texts
    ends += [min((each.at_s for each in before if part in each.words), default=unsaid_s) for part in parts]
    return use.started_s - max(ends)


_LONG = re.compile(r"\w{4,}")
"""Words that are not in every text."""


def _written_s(trace: Trace) -> dict[str, float]:
    """When each text was first in the run's state: it came in, or a node left it there."""
    found = dict.fromkeys(texts_of(trace.input), trace.started_s)
    ended = [(visit.ended_s, visit) for visit in trace.visits if visit.ended_s is not None]
    for ended_s, visit in sorted(ended, key=lambda each: each[0]):
        for text in texts_of(visit.left):
            found.setdefault(text, ended_s)
    return found


def _words(tree: Tree) -> str:
    return "\n".join(texts_of(tree))


def _calls(answer: Tree, name: str) -> bool:
    return isinstance(answer, dict) and any(each.get(NAME) == name for each in answer.get(CALLS) or ())


def _lift_of(use: Use) -> tuple[Lift | None, str, str]:
    """What lets a tool go that is no component; what the line calls it, its class or the variable that holds it; and
    of a variable where that is made: the line can be pasted there. Of a client that sent a request, the method that the
    user calls, or the host; None where neither shows."""
    if isinstance(use, Outgoing):
        if use.owner and use.method:
            return METHOD, f'{use.owner}, methods=["{use.method}"]', ""
        new = use.host and use.verb == "GET" and use.can_be_made and not is_declared(use.host)
        return (METHOD, f'"{use.host}"', "") if new else (None, "", "")
    cls = type(use.tool)
    if not any(method.family == TOOL and hasattr(cls, method.name) for method in METHODS.values()):
        return PURE_FUNCTION, use.name, ""
    function = function_of(use.tool)
    if function is None or sort_of(use.tool) is cls:
        return READONLY, cls.__name__, ""
    found = (name for name, value in list(function.__globals__.items()) if value is use.tool)
    called = next(found, use.name if use.name.isidentifier() else "tool")
    code = function.__code__
    return READONLY, called, f", made of {Path(code.co_filename).name}:{code.co_qualname}:{code.co_firstlineno}"


def _made(lift: Lift, program: str, component: str, calls: int, gain_s: float, place: str) -> Declaration:
    told = {"component": component, "program": program, "calls": MANY}
    line, sure = lift.line.format(**told), lift.sure.format(**told)
    return Declaration(lift.name, component, line, calls, gain_s, False, sure, place)


def _replayed(
    plan: Plan, trace: Trace, settings: Settings, program: str, limit_s: float
) -> tuple[list[Declaration], float]:
    """The lines, and what all of them gain."""
    replay = Replay(plan, trace, settings)
    rules = replay.rules()
    if not rules:
        return [], 0.0
    now, best = replay.run(frozenset()), replay.run(rules)
    least_s, took_s = max(LEAST_S, LEAST_SHARE * now.end_s), seconds_of(trace)

    def gained_s(before: Ran, after: Ran) -> float:
        return min(before.end_s, took_s) - max(after.end_s, limit_s)

    found = []
    for rule in rules:
        # Values may go to a machine of the user's own by declaring that one: only what is left needs more.
        beside = frozenset(other for other in rules if rule == EGRESS and other[0] is LOCAL)
        before = replay.run(beside) if beside else now
        after, together = replay.run(beside | {rule}), False
        if gained_s(before, after) < least_s:
            before, after, together = replay.run(rules - {rule}), best, True
        gain_s = gained_s(before, after)
        if gain_s >= least_s:
            spared_s = [wait - less for wait, less in zip(before.waits_s, after.waits_s, strict=True)]
            freed = [(n, call) for n, call in replay.held_by(rule) if spared_s[n] > NOISE_S]
            if freed:
                found.append(_declaration(rule, program, freed, spared_s, gain_s, together))
    return found, gained_s(now, best)


def _declaration(
    rule: Missing,
    program: str,
    freed: list[tuple[int, CallRecord]],
    spared_s: list[float],
    gain_s: float,
    together: bool,
) -> Declaration:
    """`freed`: the calls that the program waits less for, by event."""
    lift, cls = rule
    assert lift is not None
    component = _name_of(cls) if cls else ", ".join(sorted({type(call.component).__name__ for _, call in freed}))
    address = endpoint_of(freed[0][1].component)
    told = {"component": component, "program": program, "calls": MANY, "address": address}
    line, sure = lift.line.format(**told), lift.sure.format(**told)
    if lift is PURE_CONCURRENCY and not component.isidentifier():
        line = f"accel.pure(..., concurrency={MANY}) around {component}, where it is made"
    most = max(freed, key=lambda event: spared_s[event[0]])[1]
    return Declaration(lift.name, component, line, len(freed), gain_s, together, sure, line_of(most))


def _name_of(declared: Any) -> str:
    """Of a class, or of a declared function."""
    name: str = getattr(declared, "__name__", "")
    return name if isinstance(declared, type) or name.isidentifier() else f"the {name.strip('<>') or kind_of(declared)}"
