"""Whether a program has anything to gain: whether the input of any call is complete before the program makes it.

A bound from above, by the values of recorded runs: whatever is learnt, and whoever decides. Where each call waits for
the one before, or all begin together anyway, there is nothing behind the bound, and following the program only costs.
The bound is drawn twice: as if everything might be called early, and without the calls that only a declaration of the
user's would let go.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from ...graph.ir import Graph
from ...graph.rules import EGRESS, NOTHING_BEHIND, UNMET, UNSENT, UNVOUCHED, Reason
from ...learn.check import ties
from ...parts.components import facts_of
from ...parts.methods.methods import METHODS
from ...process.clock import now_s
from ...trace.flow import events_of
from ...trace.order import Event
from ...trace.record import CallRecord, Trace
from .gained import AWAKENING, PAUSE_S, cost_s, gains, pays
from .pace import load
from .soonest import schedule

IN_A_ROW = 2
"""Runs that had nothing to gain, and their program has none for the time being."""
LEAST_S = 0.01
"""Calls that take less than this together are a trial, and say nothing about time."""
MAX_CALLS = 128
"""More are not looked through: where there are so many, there is hope."""
MOST_TRUST = 16
"""Of so many runs at least one is looked at, even if there was hope in all before."""


UNSAID = frozenset({EGRESS, UNMET, UNSENT, UNVOUCHED, NOTHING_BEHIND})
"""What holds a call in every run as long as the user says nothing more."""


class Hopes:
    """Of one program."""

    def __init__(self) -> None:
        self.lost = False
        """It has nothing to gain, as far as its last runs show,"""
        self.unsaid = False
        """or nothing without a declaration."""
        self._in_vain = self._held = 0
        self._trust = self._left = 0
        """So many runs with hope have been looked at in a row, and so many more go without."""

    def renew(self) -> None:
        """The program does something new."""
        self.lost = self.unsaid = False
        self._in_vain = self._held = self._left = 0

    def note(
        self,
        graph: Graph,
        trace: Trace,
        own_s: float,
        held: AbstractSet[str] = frozenset(),
        saved_s: float | None = None,
    ) -> bool:
        """A run is over. `graph`: what is known of the program; `own_s`: the processor time that following it took;
        `held`: the call sites of which the user has to say something (`held_sites`); `saved_s`: what early calls made
        the run shorter by, if that is known. True if there is hope again."""
        if self._left:
            self._left -= 1
            return False
        own_s = cost_s(trace, own_s)
        hope = hopeful(graph, trace, own_s, saved_s=saved_s, times=AWAKENING if self.lost else 1.0)
        if not hope and trace.paused:
            return False  # what follows the answer may gain
        again = AWAKENING if self.unsaid else 1.0
        allowed = hope and (not (held or self.unsaid) or hopeful(graph, trace, own_s, held, saved_s, again))
        self._in_vain = 0 if hope else self._in_vain + 1
        self._held = 0 if allowed else self._held + 1
        self._trust = min(MOST_TRUST, self._trust + 1) if allowed else 0
        self._left = max(0, self._trust - 1)
        before, self.lost, self.unsaid = self.unsaid, self._in_vain >= IN_A_ROW, self._held >= IN_A_ROW
        return before and not self.unsaid


def held_sites(graph: Graph, reasons: Mapping[str, Reason | None]) -> frozenset[str]:
    """The call sites of which no call went early in a run, and none may as long as the user says nothing more.
    `graph`: what the run followed; `reasons`: by its nodes, what held them last."""
    found: dict[str, bool] = {}
    for name, reason in reasons.items():
        if name in graph.by_name:
            site = graph.by_name[name].site
            found[site] = found.get(site, True) and reason is not None and reason.rule in UNSAID
    return frozenset(site for site, held in found.items() if held)


def hopeful(
    graph: Graph,
    trace: Trace,
    own_s: float,
    held: AbstractSet[str] = frozenset(),
    saved_s: float | None = None,
    times: float = 1.0,
) -> bool:
    """Whether a completed run gained by calls that are early or shared, or could have. `held`: the call sites of which
    no call may be early; `saved_s`: what it gained by early ones, if somebody knows better than their sum; `times`: so
    many times over it must pay."""
    calls = trace.calls
    if _says_nothing(trace) or any(_is_more_than_early(call) for call in calls):
        return True
    events = _events(graph, trace)
    for event in events:
        if event.call is not None and event.call.site in held:
            event.needs = None
    best_s = schedule(events).seconds
    for event in events:
        event.needs = None
    seconds = schedule(events).seconds
    if saved_s is not None and trace.ended_s is not None:  # early ones end at once, as if none were made side by side
        seconds = min(seconds, trace.ended_s - trace.started_s + saved_s)
    early = [*map(min, gains(trace))]
    # That an early call began before the program's turn had come is no gain (`Pace.ended`).
    together_s = sum(early) if saved_s is None else min(sum(early), saved_s)
    gained_s = together_s - len(early) * load.lag_s + _shared_s(calls)
    return pays(max(gained_s, seconds - best_s) / times, seconds, own_s)


def _says_nothing(trace: Trace) -> bool:
    return len(trace.calls) > MAX_CALLS or sum(call.took_s for call in trace.calls) < LEAST_S


def _is_more_than_early(call: CallRecord) -> bool:
    """Whether its engine does more with what is foreseen: keeps the beginnings of prompts, serves by what is urgent."""
    return hasattr(type(call.component), "__accel__") or bool(facts_of(call.component).prefix_caching)


def _shared_s(calls: Sequence[CallRecord]) -> float:
    """What calls took, or would have taken, that an earlier one of the same run answers."""
    longest: dict[Hashable, float] = {}
    times = Counter(call.key for call in calls if _is_shared(call))
    for call in calls:
        if times.get(call.key, 0) > 1:
            longest[call.key] = max(call.took_s, longest.get(call.key, 0.0))
    return sum((times[key] - 1) * seconds for key, seconds in longest.items())


def _is_shared(call: CallRecord) -> bool:
    """Whether its result answers an equal call of the same run."""
    method = METHODS.get((call.family, call.method))
    return method is not None and method.copy is not None


def hopeful_at(graph: Graph, running: Trace, site: str) -> bool:
    """Whether a call of this site could have begun sooner in a run that is going on."""
    if _says_nothing(running):
        return True
    known = replace(running, calls=[call if call.end is not None else _as_ended(call) for call in running.calls])
    sooner = schedule(_events(graph, known)).sooner_s
    return any(seconds > 0.0 for call, seconds in sooner.items() if call.site == site)


def _as_ended(call: CallRecord) -> CallRecord:
    return replace(call, end=sys.maxsize, ended_s=max(call.started_s, now_s()))


def _events(graph: Graph, trace: Trace) -> list[Event]:
    """Without pauses that are none of the program's."""
    events = events_of(trace, using=ties(graph, trace).using)
    for event in events:
        event.think_s = event.think_s if event.think_s >= PAUSE_S else 0.0
    return events
