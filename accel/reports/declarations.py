"""What a declaration would gain: the last run worked out anew (`replay`), without the rule that the declaration lifts.

That is a bound, not a promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..graph.ops import OPS
from ..graph.rules import LOCAL
from ..parts.components import TOOL, endpoint_of, facts_of, said_of
from ..run.settings import Settings
from ..trace.record import CallRecord, where
from .replay import EGRESS, MANY, Missing, Replay

if TYPE_CHECKING:
    from ..run.plan import Plan

MAX_CALLS = 400
"""Of a run: working it out takes time with the square of their number."""
LEAST_S, LEAST_SHARE = 0.005, 0.01
"""A declaration that gains less, or a smaller part of the run, is not worth a line."""
NOISE_S = 1e-6


@dataclass(frozen=True, slots=True)
class Declaration:
    """A line that would make the program faster, if what it says is true."""

    kind: str
    """The fact or option: readonly, pure, concurrency, local or egress."""
    component: str
    """The class that the line is about; several for `egress`."""
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
    """The classes of the last run's components that nobody vouches for, and nobody said no to."""
    found: dict[type, list[CallRecord]] = {}
    for call in plan.last.calls if plan.last is not None else ():
        if call.family == TOOL:
            continue  # what one tool of a class does says nothing about the others
        if OPS[call.op].issuable and not call.composite and not facts_of(call.component).pure:
            if said_of(call.component).pure is None:
                found.setdefault(type(call.component), []).append(call)
    rows = [
        Undeclared(cls.__name__, f"accel.register({cls.__name__}, pure=True)", len(calls), sum(call.took_s for call in calls))
        for cls, calls in found.items()
    ]
    return sorted(rows, key=lambda row: (-row.seconds, row.component))


def declarations(plan: Plan, settings: Settings) -> list[Declaration]:
    """What would have made the last run faster, the most useful first; empty if there is nothing, or no such run."""
    trace = plan.last
    if trace is None or not trace.completed or len(trace.calls) > MAX_CALLS or settings.speculate == "off":
        return []
    replay = Replay(plan, trace, settings)
    rules = replay.rules()
    if not rules:
        return []
    now, best = replay.run(frozenset()), replay.run(rules)
    least_s = max(LEAST_S, LEAST_SHARE * now.end_s)
    found = []
    for rule in rules:
        # Values may go to a machine of the user's own by declaring that one: only what is left needs more.
        beside = frozenset(other for other in rules if rule == EGRESS and other[0] is LOCAL)
        before = replay.run(beside) if beside else now
        after, together = replay.run(beside | {rule}), False
        if before.end_s - after.end_s < least_s:
            before, after, together = replay.run(rules - {rule}), best, True
        gain_s = before.end_s - after.end_s
        if gain_s >= least_s:
            spared_s = [wait - less for wait, less in zip(before.waits_s, after.waits_s, strict=True)]
            freed = [(n, call) for n, call in replay.held_by(rule) if spared_s[n] > NOISE_S]
            if freed:
                found.append(_declaration(rule, freed, spared_s, gain_s, together))
    return sorted(found, key=lambda each: (-each.gain_s, each.together, each.line))


def _declaration(
    rule: Missing, freed: list[tuple[int, CallRecord]], spared_s: list[float], gain_s: float, together: bool
) -> Declaration:
    """`freed`: the calls that the program waits less for, by event."""
    lift, cls = rule
    assert lift is not None
    component = cls.__name__ if cls else ", ".join(sorted({type(call.component).__name__ for _, call in freed}))
    told = {"component": component, "calls": MANY, "address": endpoint_of(freed[0][1].component)}
    line, sure = lift.line.format(**told), lift.sure.format(**told)
    most = max(freed, key=lambda event: spared_s[event[0]])[1]
    return Declaration(lift.name, component, line, len(freed), gain_s, together, sure, where(most.site))
