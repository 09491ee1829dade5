"""What Accel knows about one program: the last traces, the graph learnt from them, live components by site.

A plan lives with an accelerated object (or a `plan_scope`). Saved plans hold the graph alone: templates and literals
that are equal across runs with different inputs; no component, no secret, no one's data (invariant 10).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .. import forks
from ..credentials import Keys
from ..intercept import METHODS, Method
from ..ir import Graph, Node
from ..passes import PASSES, Pass, rewrite
from ..profile import Profile
from ..record import Trace
from ..run.settings import Counts
from ..run.threads import learner
from ..run.topology import Topology
from ..values import Tree
from .carried import carried
from .check import judge
from .contexts import Contexts
from .foreign import Program
from .learner import Lesson, extend, lesson
from .memory import Memory, asked_for

if TYPE_CHECKING:
    from ..run.run import Run

MAX_HISTORY = 256
MAX_CALLS = 2_000
"""A run with more calls is not learnt from: the learner stays bounded."""
MAX_MIXED = 256
"""Components by site that are remembered for sites that call several."""
PATIENCE = 2
"""Lessons in a row that may explain no more than those before; then they get rarer."""
CALLS_A_RUN = 100
"""How many calls a lesson may look through for each run since the last one, if that one taught nothing."""
LEAST_GAIN = 0.01
"""How much more of all calls a lesson must explain to count as one that taught something."""
QUIET_AFTER = 2
"""A node that misses this often in a row is no longer predicted until it is relearnt."""


@dataclass(frozen=True, slots=True)
class _Rest:
    """A node with this input isn't predicted before so many runs are over: each time it keeps missing, twice as long.
    What it misses by may not show in the data (a tenant that is set just before the call)."""

    input: Tree = None
    times: int = 0
    until: int = 0


@dataclass(frozen=True, slots=True)
class SavedCall:
    """What a call site called in the process that saved the plan."""

    cls: str
    """The class of the component,"""
    family: str
    method: str
    like: str
    """and the first site that called the same component, maybe this one."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How well a node is known."""

    since: int
    """The run after which it was learnt; 0 for a loaded plan's."""
    made: int
    """Runs that made its calls,"""
    runs: int
    """of so many."""

    def __str__(self) -> str:
        since = f"since run {self.since}" if self.since else "since the plan was loaded"
        return since + (f", made in {self.made} of {self.runs} runs" if self.runs else "")


class Plan:
    """Thread-safe; concurrent runs share it."""

    def __init__(self, passes: tuple[Pass, ...] = PASSES) -> None:
        self.passes = passes
        self._rewritten_for: dict[str, Profile] = {}
        self.graph = Graph()
        """The e-graph runs follow."""
        self.learnt = Graph()
        """The p-graph it was rewritten from."""
        self.bindings: dict[str, tuple[Any, Method]] = {}
        self.contexts = Contexts()
        """In which contexts nodes and bindings were seen."""
        self.keys = Keys()
        """The credentials that its components had before it ran."""
        self.program = Program()
        """Its own texts."""
        self.mixed: set[str] = set()
        """Call sites that one run called several components from (tasks without a frame of the user's):"""
        self.at_mixed: dict[tuple[str, Hashable], tuple[Any, Method]] = {}
        """those, by identity,"""
        self.whose: dict[str, Hashable] = {}
        """and by node the identity of the one that it calls."""
        self.methods: dict[tuple[str, bool], Method] = {}
        """By call site and whether somebody listened to tokens (then frameworks stream): the method it last called."""
        self.saved_calls: dict[str, SavedCall] = {}
        """Of a loaded plan, by call site."""
        self.saved = Graph()
        """What was learnt before this process began."""
        self.varying: set[str] = set()
        """Call sites seen with different components (a model per user): which one a run takes shows when it uses it."""
        self.barriers: set[str] = set()
        """Framework nodes that ever raised or interrupted."""
        self.topology: Topology | None = None
        """Where control may go in the program, set by the adapter."""
        self.disqualified: dict[Hashable, str] = {}
        self.delaying: set[Hashable] = set()
        """Kinds of components whose early calls were in the way of the program's own."""
        self.runs = 0
        self.total = Counts()
        self.history: deque[Counts] = deque(maxlen=MAX_HISTORY)
        """Counts of the last runs."""
        self.last: Trace | None = None
        self.reasons: dict[str, str] = {}
        self._identities: dict[str, Hashable] = {}
        self._memory = Memory()
        self._composites: set[str] = set()
        self._revisited: set[str] = set()
        self._misses: Counter[str] = Counter()
        self._widest: Counter[tuple[str, str]] = Counter()
        self._made: Counter[object] = Counter()
        self._runs: Counter[object] = Counter()
        """By what nodes ask for: the runs that made their calls, and all."""
        self._since: dict[object, int] = {}
        """By what nodes ask for: the run after which they were learnt."""
        self._resting: dict[str, _Rest] = {}
        """Nodes that kept missing, by name."""
        self._hopeless: Counter[str] = Counter()
        """By call site: attempts to learn it inside a run that taught nothing."""
        self._lock = forks.lock()
        self._unexplained = 0
        """Runs since the last relearn that the graph didn't fully explain."""
        self._in_vain = 0
        """Lessons in a row that explained no more than one before."""
        self._explained = 0.0
        """The largest share of calls that a lesson explained."""

    def follow(self, learnt: Graph) -> None:
        """Predict with a p-graph from elsewhere (a saved plan)."""
        self.learnt, self.graph = learnt, self._rewritten(learnt)

    # --- what runs ask and tell

    def binding(self, node: Node, mixed: bool) -> tuple[Any, Method] | None:
        """The component and method that calls of a node went to in earlier runs; `mixed`: its site calls several."""
        if mixed:
            return self.at_mixed.get((node.site, self.whose.get(node.stage_of or node.name)))
        return self.bindings.get(node.site)

    def repeats(self, framework_node: str) -> bool:
        """Whether a framework node was ever run more than once in a run."""
        return framework_node in self._revisited

    def is_composite(self, site: str) -> bool:
        return site in self._composites

    def note_composite(self, site: str) -> None:
        self._composites.add(site)

    def note_barrier(self, framework_node: str) -> None:
        self.barriers.add(framework_node)

    def note_miss(self, name: str) -> None:
        with self._lock:
            self._misses[name] += 1

    def note_hit(self, name: str) -> None:
        with self._lock:
            self._misses.pop(name, None)

    def note_delay(self, kind: Hashable) -> None:
        """An early call was in the way of the program's own."""
        self.delaying.add(kind)

    def _kept_missing(self) -> set[str]:
        with self._lock:
            return {name for name, count in self._misses.items() if count >= QUIET_AFTER}

    def chance(self, node: Node) -> float:
        """How likely a node is demanded, as long as nothing decides it: by all runs since it was learnt. After few runs
        nothing is as good as sure."""
        asked = asked_for(node)
        with self._lock:
            return (self._made[asked] + 1) / (self._runs[asked] + 2)

    def standing(self, node: Node) -> Standing:
        """Since when a node is known, and how often it was demanded."""
        asked = asked_for(self.learnt.by_name.get(node.stage_of or node.name, node))
        with self._lock:
            return Standing(self._since.get(asked, 0), self._made[asked], self._runs[asked])

    def profiles(self) -> dict[str, Profile]:
        """By kind of engine, what the components that were used know about theirs; the first one of a kind."""
        found: dict[str, Profile] = {}
        for component, _ in list(self.bindings.values()):
            ask = getattr(type(component), "accel_profiles", None)
            for profile in ask(component) if ask is not None else ():
                found.setdefault(profile.engine, profile)
        return found

    def learn_from(self, run: Run) -> None:
        """A run is over: count it and, off the program's path, learn what it showed."""
        with self._lock:
            self.runs += 1
            self.total += run.counts
            self.history.append(run.counts)
        learner.post(lambda: self._learn_from(run))

    def learn_within(self, run: Run, site: str) -> None:
        """A loop is going on at a site nobody predicts: two iterations may be enough for the rest of them."""
        if self._hopeless[site] < QUIET_AFTER:
            learner.post(lambda: self._learn_within(run, site))

    def _widen(self, node: Node) -> Node:
        """Remember the most elements any run had, also of runs whose traces are gone."""
        level = node.level
        if level is None or level.seen is None:
            return node
        most = self._widest[node.site, str(level.domain)] = max(level.seen, self._widest[node.site, str(level.domain)])
        return node if most == level.seen else replace(node, level=replace(level, seen=most))

    # --- on the learner thread

    def _learn_from(self, run: Run) -> None:
        trace = run.trace
        self._note_facts(run)
        self.program.ran(run.host.references)
        self.last = trace
        if run.forecast is not None:
            self.reasons |= run.forecast.reasons
        if not trace.completed or len(trace.calls) > MAX_CALLS or not trace.calls:
            return
        judged = judge(self.learnt, trace)
        self._note_made(judged.made)
        made_here = (name for name, made in judged.made.items() if made)
        self.contexts.note(self.learnt, made_here, trace.ambient, self.program.lacks)
        if self.learnt.nodes and judged.complete:
            self._memory.explained()
            if self._kept_missing() or self.learnt.map(self._widen) is not self.learnt:
                self._adopt(self.learnt)
            else:
                self._look_at_profiles()
            return
        self._unexplained += 1
        self._memory.add(trace)
        if self._unexplained < self._runs_between_lessons():
            return
        if self.saved_calls and len(self._memory.traces) < 2:
            return  # one run proves less than what was saved
        learnt = lesson(self._memory.traces, self.program.own)
        changed = self._memory.changed(learnt)
        if changed:
            learnt = lesson(self._memory.traces, self.program.own)
        ran = {visit.node for kept in self._memory.traces for visit in kept.visits}
        learnt = replace(learnt, graph=carried(learnt.graph, self.saved, ran))
        self._note_learnt(learnt)
        self.program.changed()
        self.whose = learnt.whose
        self.contexts.learnt(learnt.graph)
        for shape, seen in zip(learnt.shapes, self._memory.traces, strict=True):
            self.contexts.note(learnt.graph, shape, seen.ambient, self.program.lacks)
        self._adopt(learnt.graph)
        self._unexplained = 0
        better = learnt.explained > self._explained + LEAST_GAIN or judge(self.learnt, trace).complete
        self._in_vain = 0 if better else self._in_vain + 1
        self._explained = max(self._explained, learnt.explained) if not changed else learnt.explained

    def _runs_between_lessons(self) -> int:
        """If the last lesson taught nothing, it depends on how much there is to look through; if several didn't, ever
        more."""
        if not self._in_vain:
            return 1
        rarely: int = 2 ** min(max(0, self._in_vain - PATIENCE), 6)
        return max(self._memory.calls // CALLS_A_RUN, rarely)

    def _note_made(self, made: dict[str, int]) -> None:
        with self._lock:
            for name, count in made.items():
                node = self.learnt.by_name[name]
                asked = asked_for(node)
                self._made[asked] += count > 0
                self._runs[asked] += 1
                if node.level is not None:
                    fan_out = (node.site, str(node.level.domain))
                    self._widest[fan_out] = max(self._widest[fan_out], count)

    def _note_learnt(self, learnt: Lesson) -> None:
        """Nodes that are new were made in the runs that they were learnt from, and in no others."""
        with self._lock:
            made, runs, since = self._made, self._runs, self._since
            self._made, self._runs, self._since = Counter(), Counter(), {}
            for node in learnt.graph.nodes:
                if node.predictable:
                    asked = asked_for(node)
                    self._made[asked] = made.get(asked, sum(node.name in shape for shape in learnt.shapes))
                    self._runs[asked] = runs.get(asked, self.runs)
                    self._since[asked] = since.get(asked, self.runs)

    def _note_facts(self, run: Run) -> None:
        trace = run.trace
        self._note_mixed(trace)
        counts = Counter(visit.node for visit in trace.visits)
        self._revisited |= {node for node, count in counts.items() if count > 1}
        for call in trace.calls:
            method = METHODS[(call.family, call.method)]
            before, _ = self.bindings.get(call.site, (call.component, method))
            if before is not call.component and self._identities[call.site] != call.identity:
                self.varying.add(call.site)
                self.contexts.bindings.forget(call.site)
            self._identities[call.site] = call.identity
            self.bindings[call.site] = (call.component, method)
            self.methods[call.site, run.host.streaming] = method
        self.contexts.bindings.note({call.site for call in trace.calls}, trace.ambient)

    def _note_mixed(self, trace: Trace) -> None:
        identities: dict[str, Hashable] = {}
        for call in trace.calls:
            if identities.setdefault(call.site, call.identity) != call.identity:
                self.mixed.add(call.site)
        for call in trace.calls:
            if call.site in self.mixed:
                self.at_mixed[call.site, call.identity] = (call.component, METHODS[(call.family, call.method)])
        while len(self.at_mixed) > MAX_MIXED:
            del self.at_mixed[next(iter(self.at_mixed))]

    def _learn_within(self, run: Run, site: str) -> None:
        if run.closed or len(run.trace.calls) > MAX_CALLS:
            return
        self._note_facts(run)
        learnt = extend(run.learnt, _so_far(run.trace), site)
        if learnt is run.learnt:
            self._hopeless[site] += 1
            return
        run.learnt = learnt
        run.adopt(self._rewritten(learnt), learnt_here=True)

    def _rewritten(self, learnt: Graph) -> Graph:
        self._rewritten_for = self.profiles()
        return rewrite(learnt, self.passes, self._rewritten_for)

    def _look_at_profiles(self) -> None:
        """Engines may have been measured since; a loaded plan knows of none before its first run."""
        if self.profiles() != self._rewritten_for:
            self.graph = self._rewritten(self.learnt)

    def _adopt(self, learnt: Graph) -> None:
        """Follow a new graph; nodes that kept missing are not predicted until a later trace explains them."""
        quiet = self._kept_missing()
        old = self.learnt.by_name

        def hush(node: Node) -> Node:
            before, rest = old.get(node.name), self._resting.get(node.name, _Rest())
            if node.name in quiet and before is not None and before.input == node.input and node.predictable:
                times = rest.times + 1 if rest.input == node.input else 0
                rest = self._resting[node.name] = _Rest(node.input, times, self.runs + 2 ** min(times + 2, 8))
            if rest.input == node.input and self.runs < rest.until and node.predictable:
                return replace(node, confidence="seen", reason="kept missing")
            return node

        learnt = learnt.map(hush).map(self._widen)
        with self._lock:
            for name in list(self._misses):
                if name in quiet:
                    del self._misses[name]
            kept = {node.name for node in learnt.nodes if node.name in old and old[node.name].input == node.input}
            self.reasons = {name: reason for name, reason in self.reasons.items() if name in kept}
            graph = self._rewritten(learnt)
            self.learnt, self.graph = learnt, graph  # at once: a child that is forked meanwhile has both or neither


def _so_far(trace: Trace) -> Trace:
    """A copy of a running trace that won't grow under the learner's hands."""
    copy = Trace(trace.input, list(trace.calls), list(trace.visits), trace.started_s)
    return copy
