"""What Accel knows about one program: the last traces, the graph learnt from them, live components by site.

A plan lives with an accelerated object (or a `plan_scope`). Saved plans hold the graph alone: templates and literals
that are equal across runs with different inputs; no component, no secret, no one's data (invariant 10).
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections import Counter, deque
from collections.abc import Hashable, Mapping, Set
from dataclasses import replace
from functools import partial
from time import thread_time

from ...engine.profile import Profile
from ...errors import ConfigurationError
from ...graph.ir import Graph, Node
from ...graph.passes import PASSES, Pass, rewrite
from ...graph.rules import Reason
from ...graph.topology import ANY, Topology
from ...learn.carried import carried
from ...learn.check import judge
from ...learn.contexts.contexts import Contexts
from ...learn.memory import Memory
from ...learn.program import Program
from ...parts.identities.credentials import Keys
from ...parts.references import References
from ...process import forks
from ...process.threads import learner, while_kept
from ...trace.record import Trace
from ..calls.batch import Batch
from ..deadline import Deadlines
from ..gains.caps import Caps
from ..gains.chances import Chances, Standing
from ..gains.changes import Changes
from ..gains.familiar import Familiar, kind_of
from ..gains.hopes import Hopes, held_sites
from ..gains.pace import HOPE, UNREAD, Pace
from ..gains.patience import Patience
from ..gains.reliance import Asked, asked_of
from ..gains.worth import Worth
from ..settings import Counts
from . import telemetry
from .compiled import Compiled
from .lived import Lived
from .says import Says
from .tally import Tally
from .used import Used
from .which import Identity
from .within_runs import WithinRuns

MAX_HISTORY = 256
MAX_WAITING = 8
FIRST = 8
"""So many runs of a program are learnt from before all that waits of others that have had theirs."""
ENOUGH, LONG = 4, 8
"""So many runs wait for the first lesson, and no more are followed before it; after so many more, it is said."""
UNSAID = "its input holds words of the saved plan that this program does not say"
MAX_CALLS = 2_000
"""A run with more calls is not learnt from: the learner stays bounded."""
MAX_SITES = 4_000
"""A program with more call sites is not followed any more: what is kept for each, its last component among it, would
grow for as long as it runs."""


class Plan:
    """What was learnt of a program; thread-safe, and shared by concurrent runs."""

    def __init__(self, passes: tuple[Pass, ...] = PASSES) -> None:
        self.passes = passes
        self.made_for: Identity | None = None
        """Which program it is about,"""
        self.scope: str | None = None
        """whose it is, where objects of one `plan_scope` share it,"""
        self.says = Says()
        """and what operators are told of it."""
        self._rewritten_for: dict[str, Profile] = {}
        self.graph = Graph()
        """The e-graph runs follow."""
        self.learnt = Graph()
        """The p-graph it was rewritten from."""
        self.used = Used()
        """The components that it has used."""
        self.chances = Chances()
        self.worth = Worth()
        """What calls are worth that may not be demanded."""
        self.deadlines = Deadlines()
        self.caps = Caps()
        self.contexts = Contexts()
        """In which contexts nodes and bindings were seen."""
        self.keys = Keys()
        """The credentials that its components had before it ran."""
        self.program = Program()
        """Its own texts."""
        self.saved = Graph()
        """What was learnt before this process began."""
        self.barriers: dict[str, dict[str, dict[str, int]]] = {}
        """Framework nodes that ever stopped a run (`topology.Barriers`)."""
        self.topology: Topology | None = None
        """Where control may go in the program, set by the adapter."""
        self.disqualified: dict[Hashable, str] = {}
        self.guarded: dict[str, Reason] = {}
        """By call site, who was asked before a call of it, and may have stopped it (`Host.guard`)."""
        self.moved: dict[str, str] = {}
        """By call site, a ContextVar that the program sets in a run before a call of it, which may read that."""
        self.delaying: set[Hashable] = set()
        """Kinds of components whose early calls were in the way of the program's own."""
        self.pace = Pace()
        self.hopes = Hopes()
        self.changes, self.familiar = Changes(), Familiar()
        self.tally = Tally()
        """What became of its runs and of the calls of every line."""
        self.runs = 0
        """That were followed."""
        self.total = Counts()
        self.own_s = 0.0
        """Processor time that Accel took for itself: following its runs, predicting, learning."""
        self.history: deque[Counts] = deque(maxlen=MAX_HISTORY)
        """Counts of the last runs."""
        self.last: Trace | None = None
        self.batch: Batch | None = None
        """The last one."""
        self.reasons: dict[str, Reason | None] = {}
        self._compiled: Compiled | None = None
        self._memory = Memory()
        self._waiting: deque[Lived] = deque(maxlen=MAX_WAITING)
        """Runs to be learnt from: of too many, the last ones;"""
        self._learner = learner.number
        """and by which learner."""
        self._within = WithinRuns()
        self._composites: set[str] = set()
        self._revisited: set[str] = set()
        self._lock = forks.lock()
        self._patience = Patience()

    def make_for(self, program: Identity) -> None:
        """Raises ConfigurationError if it is about another program."""
        if self.made_for is not None and program.is_other(self.made_for):
            raise ConfigurationError(
                f"The plan is of another program: of a {self.made_for}, not of a {program}.",
                "Give the plan of this program, or none.",
            )
        self.made_for = program
        self.says.call_it(program.kind, program.nodes)

    def follow(self, learnt: Graph) -> None:
        """Predict with a p-graph from elsewhere (a saved plan)."""
        self.learnt, self.graph = learnt, self._rewritten(learnt)

    def look(self, references: References) -> None:
        """A program is accelerated with it. A node of a saved plan whose words that doesn't say is as good as unseen:
        the process that saved it may have had them from a file, as somebody's."""
        unsaid = self.program.look(references, self.saved.nodes)
        if unsaid:
            doubted = partial(Node.proven, confidence="seen", reason=UNSAID)
            self.saved = self.saved.map(lambda node: doubted(node) if node.name in unsaid else node)
            self.follow(self.saved)

    # --- what runs ask and tell

    @property
    def repeated(self) -> Set[str]:
        """The framework nodes that were ever run more than once in a run."""
        return self._revisited

    def is_composite(self, site: str) -> bool:
        return site in self._composites

    def note_composite(self, site: str) -> None:
        self._composites.add(site)

    def note_barrier(
        self,
        node: str,
        made: Mapping[str, int],
        error: BaseException | None = None,
        leg: str = ANY,
        pauses: bool = False,
    ) -> None:
        """A framework node raised, waits, or `pauses` the run, in this leg. `made`: by call site, the calls it had made
        by then."""
        with self._lock:
            stops = self.barriers.get(node, {})
            before = stops.get(leg, made)
            least = {site: min(before[site], made[site]) for site in before.keys() & made}
            self.barriers = {**self.barriers, node: {**stops, **({} if pauses else {ANY: {}}), leg: least}}
        self.says.barrier(node, error)

    def note_delay(self, kind: Hashable) -> None:
        """An early call was in the way of the program's own."""
        self.delaying.add(kind)

    @property
    def traces(self) -> list[Trace]:
        return self._memory.traces

    def standing(self, node: Node) -> Standing:
        """Since when a node is known, and how often it was demanded."""
        return self.chances.standing(self.learnt.by_name.get(node.learnt_as, node))

    def asked(self, node: Node) -> Asked:
        """What a node of the e-graph asks for, by what it was rewritten from; and when, and how often: a lesson that
        says that anew makes another node of it."""
        asked = asked_of(self.learnt.by_name.get(node.learnt_as, node))
        return asked if asked.site == node.site else Asked(node.site, asked.what)

    def share(self, node: Node) -> float:
        """Of the calls at its site, how many a node of the e-graph makes."""
        return self.chances.share(self.learnt.by_name.get(node.learnt_as, node))

    def compiled(self, graph: Graph) -> Compiled:
        """For runs to follow: once for all of them, as long as they follow the same graph."""
        compiled = self._compiled
        if compiled is None or compiled.graph is not graph:
            compiled = self._compiled = Compiled(graph)
        return compiled

    def follows(self, loop: AbstractEventLoop | None = None) -> bool:
        """Whether the run that begins is followed (`Pace.follows`): as long as nothing was learnt, only so many."""
        enough = not self.graph.nodes and len(self._waiting) >= ENOUGH
        if enough and self.pace.passed_for[UNREAD] >= LONG:
            self.says.waits()
        return self.pace.follows(loop, enough)

    def learn_from(self, run: Lived) -> None:
        """A run is over: count it and, off the program's path, learn what it showed."""
        unread = self.familiar.passes(_kind_of(run))
        if unread:
            self._is_last(run.trace)
        with self._lock:
            self.runs, self.total, self.own_s = self.runs + 1, self.total + run.counts, self.own_s + run.own_s
            self.history.append(run.counts)
            self.deadlines.note(run.trace, run.settings.deadline_s)
            if self._learner != learner.number:  # in a forked child: nobody will come for them
                self._learner = learner.number
                self._waiting.clear()
                self._within.forget_coming()
            if not unread:
                unread = len(self._waiting) == MAX_WAITING  # another one goes unread for it
                self._waiting.append(run)
            if self.runs == 1:
                learner.welcome()
        self.caps.ended(run)
        self.worth.settle(run.trace, run.counts, run.staked, run.calls.tried, 1 + self.pace.let_pass())
        if self.pace.ended(run.trace, run.own_s):
            self.says.rests(self.pace.every)
        ended_s = run.trace.ended_s or run.trace.started_s
        self.says.ended(run.name, run.counts, ended_s - run.trace.started_s, run.reasons)
        telemetry.ended(self.says.program, run.trace, run.counts, run.entry)
        if not unread:
            learner.post(while_kept(self, Plan._learn_from_next), first=self.runs <= FIRST)

    def learn_within(self, run: Lived, site: str) -> None:
        """A loop is going on at a site nobody predicts: two iterations may be enough for the rest of them."""
        if self._within.asks(run, site):
            learner.post(while_kept(self, Plan._learn_within, site))

    # --- on the learner thread

    def _learn_from_next(self) -> None:
        with self._lock:
            run = self._waiting.popleft() if self._waiting else None
        if run is not None:
            self._learn_from(run)

    def _learn_from(self, run: Lived) -> None:
        began_s, trace = thread_time(), run.trace
        times = self.familiar.stands_for(_kind_of(run))
        saved_s = self.tally.note(trace, times)
        self.pace.saved(trace, saved_s)
        try:
            self._learn(run, trace, times)
            self._hope(run, trace, saved_s)
        finally:
            with self._lock:
                self.own_s += thread_time() - began_s

    def _learn(self, run: Lived, trace: Trace, times: int) -> None:
        self._note_facts(run)
        self.program.ran(run.host.references)
        self._is_last(trace)
        self.reasons |= run.reasons
        self._within.answered(run.learnt_at, {call.site for call in trace.calls if call.retired})
        if len(trace.calls) > MAX_CALLS:
            what = f"a run with more than {MAX_CALLS} calls is not learnt from"
            self.says.stands_down("calls", what, "accelerate the parts of the program that such runs are made of")
            return
        if not trace.completed or not trace.calls:
            return
        run.host.references.ran(call.component for call in trace.calls)
        self.worth.note(trace, times)
        self.deadlines.learn(trace)
        judged = judge(self.learnt, trace)
        self.chances.note(self.learnt, judged.made, trace.sites, times)
        made_here = [name for name, made in judged.made.items() if made]
        asked = {name: asked_of(self.learnt.by_name[name]) for name in judged.made}
        left_out = set(asked.values()) - (made := {asked[name] for name in made_here})
        self.worth.foresaw(made, left_out, run.calls.tried)
        self.contexts.note(self.learnt, made_here, trace, self.program.holds_others, self.used.made_with(trace))
        foreseen = bool(self.learnt.nodes) and judged.complete and not self._patience.takes_one_more()
        self.familiar.looked(_kind_of(run), foreseen)
        if self.changes.note(trace.sites, foreseen) and self.pace.every > 1:
            self.pace.news()
            self.hopes.renew()
            self.worth.forget()
            self._within.hope()
            self._patience.hope()
        if foreseen:
            self._memory.explained()
            staged = any(node.schedule.stage_of for node in self.graph.nodes)
            if not (staged or run.counts.issued or run.counts.prefills or self.total.retired or trace.paused):
                self.pace.idle()
            if self.chances.kept_missing() or self.learnt.map(self.chances.widened) is not self.learnt:
                self._adopt(self.learnt)
            else:
                self._look_at_profiles()
            return
        if not self._memory.add(trace):
            return
        if not self._patience.is_over(self._memory.calls) or self.hopes.lost:
            return
        if self.used.saved and len(self._memory.traces) < 2:
            return  # one run proves less than what was saved
        learnt, changed = self._memory.taught(self.program, self._patience.passed_over())
        ran = {visit.node for kept in self._memory.traces for visit in kept.visits}
        learnt = replace(learnt, graph=carried(learnt.graph, self.saved, ran))
        called = [kept.sites for kept in self._memory.traces]
        self.chances.learnt(learnt, self.tally.runs, called)  # others may wait to be looked at
        self.program.changed()
        self.used.whose = learnt.whose
        self.program.note(learnt.graph.nodes)
        self.contexts.learnt(learnt.graph, self.program.lost)
        for shape, seen in zip(learnt.shapes, self._memory.traces, strict=True):
            self.contexts.note(learnt.graph, shape, seen, self.program.holds_others, self.used.made_with(seen))
        self._adopt(learnt.graph)
        self.says.learnt(learnt.graph, learnt.explained)
        if self._patience.learnt(learnt, judge(self.learnt, trace).complete, changed):
            self.pace.news()
            self._within.hope()

    def _is_last(self, trace: Trace) -> None:
        with self._lock:
            before, newer = self.last, self.last is None or self.last.started_s <= trace.started_s
            self.last = trace if newer else before
        if newer:
            self._memory.supersede(before)

    def _hope(self, run: Lived, trace: Trace, saved_s: float | None) -> None:
        """A program that has nothing to gain rests; with hope, it is followed again."""
        if run.settings.speculate == "off" or not trace.completed or not trace.calls:
            return
        if self.hopes.note(self.learnt, trace, run.own_s, held_sites(run.learnt, run.reasons), saved_s):
            self.pace.news(HOPE)
        elif self.hopes.unsaid and self.pace.rest():
            lost = "no input of a call is there before the program makes it"
            self.says.rests(self.pace.every, lost if self.hopes.lost else "what could be early may not go early")

    def _note_facts(self, run: Lived) -> None:
        trace, seen = run.trace, self.contexts.bindings
        counts = Counter(visit.node for visit in trace.visits)
        self._revisited |= {node for node, count in counts.items() if count > 1}
        self.used.note(trace, run.host, run.identities, seen.forget)
        seen.note(set(trace.sites), trace.ambient)
        if len(self.used.at) > MAX_SITES:
            self.pace.stop()
            what = f"more than {MAX_SITES} call sites were seen, as if each run had its own: no more runs are followed"
            self.says.stands_down("sites", what, "give nodes and functions names that stay")

    def _learn_within(self, site: str) -> None:
        """In the run that is to be learnt in, if it is still going on when there is time for a lesson."""
        run = self._within.take(site)
        if run is not None and not run.closed and len(run.trace.calls) <= MAX_CALLS:
            self._note_facts(run)
            if self._within.learns(run, site, self._memory.traces[::-1]):
                run.adopt(self._rewritten(run.learnt), learnt_here=True)

    def _rewritten(self, learnt: Graph) -> Graph:
        self._rewritten_for = self.used.profiles()
        return rewrite(learnt, self.passes, self._rewritten_for)

    def _look_at_profiles(self) -> None:
        """Engines may have been measured since; a loaded plan knows of none before its first run."""
        if self.used.profiles() != self._rewritten_for:
            self.graph = self._rewritten(self.learnt)

    def _adopt(self, learnt: Graph) -> None:
        """Follow a new graph."""
        old = self.learnt.by_name
        learnt = self.chances.hushed(learnt, self.learnt, self.runs).map(self.chances.widened)
        with self._lock:
            kept = {node.name for node in learnt.nodes if node.name in old and old[node.name].input == node.input}
            self.reasons = {name: reason for name, reason in self.reasons.items() if name in kept}
            graph = self._rewritten(learnt)
            self.learnt, self.graph = learnt, graph  # at once: a child that is forked meanwhile has both or neither


def _kind_of(run: Lived) -> Hashable | None:
    """None where it showed a loop of its own."""
    return kind_of(run.trace, run.counts, run.reasons.values()) if not run.learnt_at else None
