"""Which framework nodes are certain to run, and what stands in the way: the control edges of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace

from ..process.properties import cached_property
from .rules import BARRIER, BRANCH, CACHED, CACHING, OUTSIDE, PAUSES, PAUSES_AFTER, STOPS, Reason

START, END = "__start__", "__end__"

ANEW = ""
"""The leg of a visit that begins anew. A visit that a pause has cut into several is begun again after each: its *leg*
says where it goes on, and how many answers it finds. Call sites are told apart by it."""
ANY = "any"
"""All legs of which nothing else is known."""
Barriers = Mapping[str, Mapping[str, Mapping[str, int]]]
"""Framework nodes that ever raised, paused the run or wait: in which leg (in `ANY`, too, unless they paused), and by
call site, how many calls each had made by then."""


def leg(node: str, answers: int) -> str:
    """Of a visit that goes on in this node, the innermost one, which finds so many answers."""
    return f"{node} {answers}"


def leg_in(node: str, leg_: str) -> str:
    """The leg of a visit, for what a node does in it. One that goes on from its own start, and finds no answer, does
    what it does anew; what ran in a graph inside it does not."""
    return ANEW if leg_ == leg(node, 0) else leg_


def site_of(node: str, leg_: str, *called: str) -> str:
    """A call site: node path, method family, class, the leg of the visit if it goes on, user frames."""
    *what, frames = called
    return "|".join([node, *what, *filter(None, [leg_in(node, leg_)]), frames])


def leg_of(site: str) -> str:
    """The leg that calls of a site are made in."""
    parts = site.split("|")
    return parts[3] if len(parts) > 4 else ANEW


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
    goes_on: bool = False
    """For a run that goes on somewhere."""

    @cached_property
    def from_within(self) -> Topology:
        """For a run that goes on somewhere: nothing is certain from its start."""
        starts = {START: frozenset[str]()}
        return replace(self, successors={**self.successors, **starts}, always={**self.always, **starts}, goes_on=True)

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

    @cached_property
    def leads_to(self) -> Mapping[str, frozenset[str]]:
        """The same for every node."""
        return {node: self.reachable(node) for node in self.successors}

    def inevitable(self, start: str) -> frozenset[str]:
        """Nodes that will run once `start` has, given that the run ends: what follows it in any case, and what follows
        whichever way it takes."""
        return self._inevitable.get(start, frozenset())

    @cached_property
    def _inevitable(self) -> Mapping[str, frozenset[str]]:
        """The largest solution: a loop ends, so what comes after it comes."""
        found = {node: reached - {END} for node, reached in self.leads_to.items()}
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
        self._barriers = {**barriers, **dict.fromkeys(topology.guards, {ANY: {}})}
        self._before = set(topology.pauses_before) | set(pauses_before)
        self._after = set(topology.pauses_after) | set(pauses_after)
        self._certain = set(topology.inevitable(START))
        self._decided: dict[str, str] = {}
        """By node of the p-graph that a known value decides, the framework node that its calls are made in."""
        self._reach = {node: topology.reachable(node) for node in {*self._barriers} | self._before | self._after}
        self._coming: set[str] = set()
        """Of a run that goes on somewhere, the nodes that can come at all."""
        self._legs: dict[str, list[Callable[[], str]]] = {}
        """By framework node, as far as is known by now, those of its visits that are running and go on."""
        self.running: dict[str, int] = {}
        self.passed: set[str] = set()
        self.paused = ""
        """The framework node that has paused the run. Those beside it go on, or are about to start."""

    def enter(self, node: str, leg: Callable[[], str] | None = None) -> None:
        """`leg`: of a visit that goes on."""
        if not self.running.get(node):
            self._legs.pop(node, None)
        if leg is not None:
            self._legs.setdefault(node, []).append(leg)
        self.running[node] = self.running.get(node, 0) + 1
        self._certain |= self._topology.inevitable(node)
        if self._topology.goes_on:
            self._coming |= {node, *self._topology.reachable(node)}

    def legs(self, node: str, inner: str = "") -> set[str]:
        """Of the visits of a framework node that are running, or of the next one, for what the node does; or one inside
        it."""
        running = self._legs.get(node, ()) if self.running.get(node, 0) > 0 else ()
        return {leg_in(inner or node, leg()) for leg in running} or {ANEW}

    def stop(self, node: str, pauses: bool = False) -> None:
        """It raised, or `pauses` the run."""
        self.running[node] = self.running.get(node, 1) - 1
        self.paused = node if pauses else self.paused

    def leave(self, node: str) -> None:
        self.stop(node)
        self.passed.add(node)

    def behind(self, nodes: Set[str]) -> Set[str]:
        """Of these, those that have run, and that no way leads back to from what is running."""
        if not nodes or not nodes & self.passed:
            return frozenset()
        running = {node for node, visits in list(self.running.items()) if visits > 0}
        leads_to = self._topology.leads_to
        if not running or not running <= leads_to.keys():
            return frozenset()
        return (nodes & self.passed) - running.union(*(leads_to[node] for node in running))

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
        """How many calls of a site each visit of a node is known to make before it stops the run; None if it never
        did."""
        return min((made.get(site, 0) for made in self._stops(node)), default=None)

    def _stops(self, node: str) -> list[Mapping[str, int]]:
        """What a node had made when it stopped a run in a leg that it is in now, or anywhere."""
        stops = self._barriers.get(node)
        found = [stops.get(leg, stops.get(ANY)) for leg in self.legs(node)] if stops else []
        return [made for made in found if made is not None]

    def refuses(self, node: str, certain_only: bool, within_reach: bool = False) -> Reason | None:
        """Why a call inside `node` may not be issued now. `within_reach`: it comes before the node ever raised."""
        if not node:
            return None
        if not within_reach and self._stops(node):
            return BARRIER(node=node)
        if node in self._topology.caching:
            return CACHING(node=node)
        if self.running.get(node, 0) > 0:
            return None
        if self.paused:
            return STOPS(node=self.paused)
        if node in self._topology.cached:
            return CACHED(node=node)
        if self._topology.goes_on and node not in self._coming:
            return BRANCH(node=node)
        if certain_only and not self._is_certain(node):
            return BRANCH(node=node)
        if node not in self._topology.successors:
            return OUTSIDE(node=node)
        if node in self._before:
            return PAUSES(node=node)
        for barrier in self._barriers:
            own = within_reach and barrier == node  # its next visit comes before what it may stop then
            if not own and node in self._reach[barrier] and self._may_come(barrier) and self._stops(barrier):
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
