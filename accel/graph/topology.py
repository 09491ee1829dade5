"""Which framework nodes are certain to run, and what stands in the way: the control edges of a program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from .rules import BARRIER, BRANCH, CACHED, CACHING, OUTSIDE, PAUSES, PAUSES_AFTER, STOPS, Reason

START, END = "__start__", "__end__"

Barriers = Mapping[str, Mapping[str, int]]
"""Framework nodes that ever raised or interrupted; by call site, how many calls each had made by then."""
_NO_CALLS: Mapping[str, int] = {}


@dataclass(frozen=True)
class Topology:
    """Framework nodes and where control may go next; `START` is the beginning, `END` the end of a run."""

    successors: Mapping[str, frozenset[str]]
    """Control goes to one of these at least."""
    always: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Those of them to which control goes in any case: branches of a program that run side by side."""
    joins: tuple[tuple[frozenset[str], str], ...] = ()
    """Nodes that run once all of some others have run."""
    guards: frozenset[str] = frozenset()
    """Nodes declared to be guards: nothing past them is issued until they have let the run pass."""
    cached: frozenset[str] = frozenset()
    """Nodes whose result a cache may give: they may not run."""
    caching: frozenset[str] = frozenset()
    """Nodes with caches inside, which may answer for any part of them."""
    pauses_before: frozenset[str] = frozenset()
    pauses_after: frozenset[str] = frozenset()

    @cached_property
    def from_within(self) -> Topology:
        """For a run that goes on somewhere: nothing is certain from its start."""
        return replace(
            self, successors={**self.successors, START: frozenset()}, always={**self.always, START: frozenset()}
        )

    def reachable(self, start: str) -> frozenset[str]:
        """Nodes that control may reach after `start`."""
        seen: set[str] = set()
        stack = [start]
        while stack:
            for node in self.successors.get(stack.pop(), frozenset()):
                if node not in seen:
                    seen.add(node)
                    stack.append(node)
        return frozenset(seen)

    def inevitable(self, start: str) -> frozenset[str]:
        """Nodes that will run once `start` has, given that the run ends: what follows it in any case, and what follows
        whichever way it takes."""
        return self._inevitable.get(start, frozenset())

    @cached_property
    def _inevitable(self) -> Mapping[str, frozenset[str]]:
        """The largest solution: a loop ends, so what comes after it comes."""
        found = {node: self.reachable(node) - {END} for node in self.successors}
        while True:
            better = {node: self._follows(node, found) & found[node] for node in found}
            if better == found:
                return found
            found = better

    def _follows(self, node: str, found: Mapping[str, frozenset[str]]) -> frozenset[str]:
        def from_(after: str) -> frozenset[str]:
            return found.get(after, frozenset()) | {after}

        always = self.always.get(node, frozenset())
        sure = frozenset[str]().union(*map(from_, always))
        either = self.successors[node] - always
        if either:
            sure |= frozenset.intersection(*map(from_, either))
        for awaited, join in self.joins:
            if awaited <= sure | {node}:
                sure |= from_(join)
        return sure - {END}


class Control:
    """What a run has done so far, against the topology."""

    def __init__(
        self, topology: Topology, barriers: Barriers, pauses_before: Iterable[str], pauses_after: Iterable[str]
    ) -> None:
        self._topology = topology
        self._barriers = set(barriers) | topology.guards
        self._reached = {node: calls for node, calls in barriers.items() if node not in topology.guards}
        self._before = set(topology.pauses_before) | set(pauses_before)
        self._after = set(topology.pauses_after) | set(pauses_after)
        self._certain = set(topology.inevitable(START))
        self._decided: dict[str, str] = {}
        """By node of the p-graph that a known value decides, the framework node that its calls are made in."""
        self._reach = {node: topology.reachable(node) for node in self._barriers | self._before | self._after}
        self.running: dict[str, int] = {}
        self.passed: set[str] = set()

    def enter(self, node: str) -> None:
        self.running[node] = self.running.get(node, 0) + 1
        self._certain |= self._topology.inevitable(node)

    def leave(self, node: str) -> None:
        self.running[node] = self.running.get(node, 1) - 1
        self.passed.add(node)

    def decide(self, name: str, node: str, comes: bool) -> None:
        """A known value says that a node of the p-graph has its calls made, in this framework node; or no longer."""
        if comes:
            self._decided[name] = node
        else:
            self._decided.pop(name, None)

    def _is_certain(self, node: str) -> bool:
        if node in self._certain:
            return True
        return any(node == sure or node in self._topology.inevitable(sure) for sure in {*self._decided.values()})

    def reached(self, node: str, site: str) -> int | None:
        """How many calls of a site a node is known to make before it raises; None if it never raised."""
        return self._reached.get(node, _NO_CALLS).get(site, 0) if node in self._barriers else None

    def refuses(self, node: str, certain_only: bool, within_reach: bool = False) -> Reason | None:
        """Why a call inside `node` may not be issued now. `within_reach`: it comes before the node ever raised."""
        if not node:
            return None
        if node in self._barriers and not within_reach:
            return BARRIER(node=node)
        if node in self._topology.caching:
            return CACHING(node=node)
        if self.running.get(node, 0) > 0:
            return None
        if node in self._topology.cached:
            return CACHED(node=node)
        if certain_only and not self._is_certain(node):
            return BRANCH(node=node)
        if node not in self._topology.successors:
            return OUTSIDE(node=node)
        if node in self._before:
            return PAUSES(node=node)
        for barrier in self._barriers:
            if node in self._reach[barrier] and self._may_come(barrier):
                return STOPS(node=barrier)
        for barrier in self._after:
            if node in self._reach[barrier]:
                return PAUSES_AFTER(node=barrier)
        for barrier in self._before:
            if node in self._reach[barrier] and not self.running.get(barrier) and self._may_come(barrier):
                return PAUSES(node=barrier)
        return None

    def _may_come(self, barrier: str) -> bool:
        """Whether the run may still meet this barrier: not passed yet, or part of a loop."""
        return barrier not in self.passed or barrier in self._reach[barrier]
