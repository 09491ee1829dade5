"""What Accel knows about one program: the last traces, the graph learnt from them, live components by site.

A plan lives with an accelerated object (or a `plan_scope`). Saved plans hold the graph alone: templates and literals
that are equal across runs with different inputs; no component, no secret, no one's data (invariant 10).
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Hashable, Mapping, Set
from functools import partial

from ...engine.profile import Profile
from ...errors import ConfigurationError
from ...graph.ir import Graph, Node
from ...graph.passes import PASSES, Pass, rewrite
from ...graph.rules import Reason
from ...graph.topology import ANY, Topology
from ...learn.contexts.contexts import Contexts
from ...learn.memory import Memory
from ...learn.program import Program
from ...parts.identities.credentials import Keys
from ...parts.references import References
from ...process import forks
from ...process.threads import learner
from ...trace.record import Trace
from ..calls.batch import Batch
from ..deadline import Deadlines
from ..gains.caps import Caps
from ..gains.chances import Chances, Standing
from ..gains.changes import Changes
from ..gains.hopes import Hopes
from ..gains.pace import UNREAD, Pace
from ..gains.patience import Patience
from ..gains.reliance import Asked, asked_of
from ..gains.worth import Worth
from ..settings import Counts
from .compiled import Compiled
from .lived import Lived
from .says import Says
from .tally import Tally
from .used import Used
from .which import Identity
from .within_runs import WithinRuns

MAX_HISTORY = 256
MAX_WAITING = 8
ENOUGH, LONG = 4, 8
"""So many runs wait for the first lesson, and no more are followed before it; after so many more, it is said."""
UNSAID = "its input holds words of the saved plan that this program does not say"


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
        self.changes = Changes()
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
        self.mute = -1
        """Nobody vouches for anything that it calls, after so many declarations: nothing may be early. Else -1."""
        self._compiled: Compiled | None = None
        self.memory = Memory()
        self._waiting: deque[Lived] = deque(maxlen=MAX_WAITING)
        """Runs to be learnt from: of too many, the last ones;"""
        self._learner = learner.number
        """and by which learner."""
        self.within = WithinRuns()
        self._composites: set[str] = set()
        self._repeated: set[str] = set()
        self._lock = forks.lock()
        self.patience = Patience()

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
        self.learnt, self.graph = learnt, self.rewritten(learnt)

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
        return self._repeated

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
        return self.memory.traces

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

    # --- what finished runs tell (`learning`)

    def count(self, run: Lived) -> bool:
        """A run is over, and waits to be learnt from. False if nobody is to be sent for it: of too many, another one
        goes unread in its place."""
        with self._lock:
            self.runs += 1
            self.total, self.own_s = self.total + run.counts, self.own_s + run.own_s
            self.history.append(run.counts)
            self.deadlines.note(run.trace, run.settings.deadline_s)
            if self._learner != learner.number:  # in a forked child: nobody will come for them
                self._learner = learner.number
                self._waiting.clear()
                self.within.forget_coming()
            missed = len(self._waiting) == MAX_WAITING
            self._waiting.append(run)
            if self.runs == 1:
                learner.welcome()
            return not missed

    def next_waiting(self) -> Lived | None:
        """A run that nobody has learnt from yet, which waits no longer."""
        with self._lock:
            return self._waiting.popleft() if self._waiting else None

    def took(self, seconds: float) -> None:
        """So much processor time of Accel's own."""
        with self._lock:
            self.own_s += seconds

    def is_last(self, trace: Trace) -> None:
        """A run is looked at, the last one so far."""
        self.memory.supersede(self.last)
        self.last = trace

    def note_repeated(self, nodes: Set[str]) -> None:
        """These were run more than once in a run."""
        self._repeated |= nodes

    def rewritten(self, learnt: Graph) -> Graph:
        """The e-graph of a p-graph."""
        self._rewritten_for = self.used.profiles()
        return rewrite(learnt, self.passes, self._rewritten_for)

    def look_at_profiles(self) -> None:
        """Engines may have been measured since; a loaded plan knows of none before its first run."""
        if self.used.profiles() != self._rewritten_for:
            self.graph = self.rewritten(self.learnt)

    def adopt(self, learnt: Graph) -> None:
        """Follow a new graph."""
        old = self.learnt.by_name
        learnt = self.chances.hushed(learnt, self.learnt, self.runs).map(self.chances.widened)
        with self._lock:
            kept = {node.name for node in learnt.nodes if node.name in old and old[node.name].input == node.input}
            self.reasons = {name: reason for name, reason in self.reasons.items() if name in kept}
            graph = self.rewritten(learnt)
            self.learnt, self.graph = learnt, graph  # at once: a child that is forked meanwhile has both or neither
