"""The ordered record of one run: which calls it made, with what, and the values that entered and left its nodes."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..graph.rules import Reason
from ..graph.topology import ANEW, leg
from ..process.clock import now_s
from ..text.values import Tree

MAX_FOUND = 2_000


@dataclass(slots=True, eq=False)
class Inside:
    """One run of a graph inside a visit of a framework node."""

    visit: Visit
    number: int
    """How many graphs the visit had begun to run before."""
    start: int
    """Since its first node started,"""
    end: int | None = None
    """until the last one so far ended."""
    first: Visit | None = None
    """That node's visit, in a run that goes on after a pause."""

    @property
    def is_taken_up(self) -> bool:
        """Whether it goes on, as far as anybody can tell, where the run before was paused."""
        return self.number == 0 and self.visit.goes_on

    @property
    def beside(self) -> bool:
        """Whether graphs ran side by side in its visit, this or earlier ones: another time it has another number."""
        return self.number >= self.visit.in_order

    def note_order(self) -> None:
        """A node of it starts or ends."""
        if self.number + 1 < self.visit.graphs:
            self.visit.in_order = min(self.visit.in_order, self.number)


@dataclass(slots=True, eq=False)
class Visit:
    """One run of a framework node."""

    node: str
    """Its name; of one inside another, ``outer:inner``."""
    start: int
    entered: Tree
    started_s: float
    end: int | None = None
    left: Tree = None
    ended_s: float | None = None
    failed: bool = False
    interrupted: bool = False
    """It failed, as it paused the run: to ask somebody, as a rule."""
    answers: tuple[Tree, ...] = ()
    """What it finds answered of what it asked before, in the order in which it asked."""
    goes_on: bool = False
    """The run that it is part of goes on after a pause, and with it: from its own start, or in the graph inside it."""
    legs: list[str] = field(default_factory=list)
    """Of an outermost one that goes on: which of its legs this is (`accel.graph.topology`). More is known of it as the
    graph inside it goes on."""
    position: int = 0
    """How many times the node had run before, in the same run of its graph."""
    inside: Inside | None = None
    """The run of a graph that it is part of, where that is not the run itself."""
    graphs: int = 0
    """How many graphs ran in it."""
    in_order: float = math.inf
    """How many of these ended before the next one began."""
    outer: Visit | None = None
    """The visit of another node that it is a part of, and counted beside."""
    order: tuple[int, ...] = ()
    """Where its framework counts it among those that start side by side."""
    displaces: bool = False
    """Visits after it stand elsewhere now although they had their places."""

    @property
    def place(self) -> tuple[int, ...]:
        """Which of all visits with its name it is: its position, after that of the graph in the visit around it, after
        that visit's place."""
        inside = self.inside
        return (self.position,) if inside is None else (*inside.visit.place, inside.number, self.position)

    @property
    def outermost(self) -> Visit:
        """The one around it that is in no other; itself, if it is in none."""
        visit = self
        while visit.inside is not None:
            visit = visit.inside.visit
        return visit

    @property
    def under_way(self) -> bool:
        return self.end is None and not self.failed

    def leg(self) -> str:
        """Which of its legs it is, as far as is known by now."""
        return self.legs[-1] if self.legs else ANEW

    @property
    def line(self) -> tuple[Visit | Inside, ...]:
        """The outermost visit, the graph in it, and so on down to this visit."""
        inside = self.inside
        return (self,) if inside is None else (*inside.visit.line, inside, self)

    def holds(self, other: Visit | None) -> bool:
        """Whether another one is this one, or inside it."""
        while other is not None and other is not self:
            other = other.inside.visit if other.inside is not None else other.outer
        return other is self


@dataclass(slots=True)
class Begun:
    """Which ones of those that start side by side have started, in any order."""

    first_missing: int = 0
    _others: set[int] = field(default_factory=set)

    def add(self, number: int) -> None:
        self._others.add(number)
        while self.first_missing in self._others:
            self._others.discard(self.first_missing)
            self.first_missing += 1


@dataclass(slots=True, eq=False)
class CallRecord:
    """One demand. Positions count the events of the run: what ended before a call started was known to it."""

    site: str
    within: str
    method: str
    family: str
    op: str
    component: Any
    """The live component; traces stay in memory, plans never hold it."""
    identity: Hashable
    input: Tree
    key: Hashable
    start: int
    started_s: float
    parent: CallRecord | None = None
    visit: Visit | None = None
    """The run of the framework node that it was made in; others may be under way beside it."""
    end: int | None = None
    ended_s: float | None = None
    output: Tree = None
    failed: bool = False
    composite: bool = False
    """It made calls of its own that are primitives themselves (more than embedding its query)."""
    tokens: tuple[int, int] = (0, 0)
    """Prompt and output tokens, where the component tells."""
    delayed_s: float = 0.0
    """While early calls were in its way."""
    retired: bool = False
    issued_s: float | None = None
    """When the early call that answered it started, and"""
    answered_s: float | None = None
    """when it had its result."""
    first: object = None
    """What its component does first, once it is let go (`released`)."""

    @property
    def ok(self) -> bool:
        return self.end is not None and not self.failed

    @property
    def took_s(self) -> float:
        """Inside its component, early or not."""
        if self.retired and self.issued_s is not None and self.answered_s is not None:
            return self.answered_s - self.issued_s
        return max(0.0, self.waited_s - self.delayed_s)

    @property
    def waited_s(self) -> float:
        """The program, for its answer."""
        return self.ended_s - self.started_s if self.ended_s is not None else 0.0

    @property
    def saved_s(self) -> float:
        """What the program would have waited for it, less what it did wait."""
        return max(0.0, self.took_s - self.waited_s) if self.ended_s is not None else 0.0


@dataclass(slots=True, eq=False)
class Use:
    """A tool that the program used and that is no component, because nobody vouches for it: seen, and let be."""

    tool: Any
    name: str
    site: str
    within: str
    visit: Visit | None
    started_s: float
    ended_s: float | None = None
    texts: frozenset[str] = frozenset()
    """What it was given, as far as that is text."""

    @property
    def took_s(self) -> float:
        return self.ended_s - self.started_s if self.ended_s is not None else 0.0


@dataclass(slots=True, eq=False)
class Outgoing(Use):
    """A request that the program sent, and that is part of no call: seen where its client sends. `tool` refers to that
    client, which it does not keep; `name` is what the user's line calls, as far as that shows: class and method, or
    package and function."""

    host: str = ""
    """Its scheme, host and port."""
    verb: str = ""
    owner: str = ""
    """The class of that method, if it is one,"""
    method: str = ""
    """and its name, if it might be declared."""
    held: frozenset[str] = frozenset()
    """The texts that its object holds."""
    can_be_made: bool = True
    """By Accel itself: GETs of its host can be declared."""
    let_be: Reason | None = None
    """Why it is no call of its host, if that is declared and it reads."""


@dataclass(slots=True, eq=False)
class Trace:
    """What happened in one run, in program order."""

    input: Tree = None
    calls: list[CallRecord] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)
    """Those inside others, too."""
    started_s: float = field(default_factory=now_s)
    ended_s: float | None = None
    completed: bool = False
    """Ran to its end, or until it paused: not raised or abandoned."""
    raised: bool = False
    """It ended by an error, that nobody else's cancelling or leaving was."""
    beside: Tree = None
    """The values that came in beside the input (`accel.trace.beside`)."""
    ambient: Mapping[str, str] = field(default_factory=dict)
    """The dimensions of the context it ran in (`accel.trace.ambient`)."""
    found: set[str] = field(default_factory=set)
    """Texts of documents that the program read, where the framework tells."""
    drawn: bool = True
    """The framework tells which nodes run; else only runs show it, and a node that some went without is not certain."""
    chosen: frozenset[str] = frozenset()
    """Nodes of which it tells all the same: they run if somebody chooses them."""
    resumed: bool = False
    """It goes on from where another run paused."""
    on_loop: bool = True
    """It ran on an event loop, where coroutines may run early."""
    crowded: bool = False
    """Several others of its program were under way meanwhile; known when it is over."""
    clock: itertools.count[int] = field(default_factory=itertools.count)
    rows: dict[tuple[str, Inside | None], list[Visit]] = field(default_factory=dict)
    """By node, and the run of its graph, the visits in their order."""
    graphs: dict[tuple[int, str], Inside] = field(default_factory=dict)
    """The runs of graphs inside visits, by when those started and what the framework calls them."""
    begun: dict[tuple[Inside | None, tuple[int, ...]], Begun] = field(default_factory=dict)
    """By the run of a graph and its superstep."""
    uses: list[Use] = field(default_factory=list)
    """Of tools that are no components, and requests that are part of no call."""

    def enter(
        self,
        node: str,
        value: Tree,
        around: Visit | None = None,
        graph: str = "",
        order: tuple[int, ...] = (),
        outer: Visit | None = None,
        answers: tuple[Tree, ...] = (),
    ) -> Visit:
        """A framework node starts with this value. `around`: the visit that it is inside of, which may run several
        graphs; `graph`: in which of them. `order`: where its framework counts it, which starts side by side in any
        order; others move on. `outer`: the visit of another node of the same graph that it is a part of. `answers`:
        what it finds, if it is one that goes on."""
        named = node if around is None else f"{around.node}:{node}"
        visit = Visit(named, self.tick(), value, now_s(), outer=outer, order=order)
        if around is not None:
            inside = self.graphs.get((around.start, graph))
            if inside is None:
                inside = self.graphs[around.start, graph] = Inside(around, around.graphs, visit.start)
                around.graphs += 1
            visit.inside = inside
            inside.note_order()
        row = self.rows.setdefault((visit.node, visit.inside), [])
        visit.position = len(row)
        while visit.position and order and row[visit.position - 1].order > order:
            visit.position -= 1
        visit.displaces = any(map(self.has_place, row[visit.position :]))
        row.insert(visit.position, visit)
        for position in range(visit.position + 1, len(row)):
            row[position].position = position
        if order[1:]:
            self.begun.setdefault((visit.inside, order[:-1]), Begun()).add(order[-1])
        self.visits.append(visit)
        if self.resumed:
            self._go_on(visit, answers)
        return visit

    def _go_on(self, visit: Visit, answers: tuple[Tree, ...]) -> None:
        """Of a run that goes on after a pause, and of every graph inside the visits that go on with it, the visits do
        that start first. The first of all, and of each graph, tells in which leg."""
        inside = visit.inside
        if inside is None:
            visit.goes_on = tells = visit.order[:1] == self.visits[0].order[:1]
        else:
            inside.first = inside.first or visit
            visit.goes_on = inside.is_taken_up and visit.order[:1] == inside.first.order[:1]
            tells = visit.goes_on and inside.first is visit
        if visit.goes_on:
            visit.answers = answers
        if tells:
            visit.outermost.legs.append(leg(visit.node, len(answers)))

    def has_place(self, visit: Visit) -> bool:
        """Whether all have started that its framework counts before it, and before those around it. As long as not,
        its place is that of another one."""
        inside, order = visit.inside, visit.order
        if inside is not None and not self.has_place(inside.visit):
            return False
        begun = self.begun.get((inside, order[:-1])) if order[1:] else None
        return begun is None or order[-1] < begun.first_missing

    def leave(self, visit: Visit, value: Tree) -> None:
        """It ends with this value."""
        visit.left, visit.end, visit.ended_s = value, self.tick(), now_s()
        if visit.inside is not None:
            visit.inside.end = visit.end
            visit.inside.note_order()

    def read(self, text: str) -> None:
        """The program has read a document."""
        if len(self.found) < MAX_FOUND:
            self.found.add(text)

    def made_in(self, visit: Visit) -> Counter[str]:
        """By site, the calls of an outermost visit."""
        return Counter(call.site for call in self.calls if call.visit and call.visit.outermost is visit)

    @property
    def sites(self) -> Counter[str]:
        """Where it made calls, and how many."""
        return Counter(call.site for call in self.calls)

    def so_far(self) -> Trace:
        """A copy that won't grow under a learner's hands; without what has no place yet."""
        visits = [visit for visit in list(self.visits) if self.has_place(visit)]
        calls = [call for call in list(self.calls) if call.visit is None or self.has_place(call.visit)]
        return Trace(self.input, calls, visits, self.started_s, beside=self.beside)

    @property
    def paused(self) -> bool:
        """Whether a framework node has paused it."""
        return any(visit.interrupted for visit in self.visits if visit.inside is None)

    @property
    def outermost(self) -> list[Visit]:
        """The visits that are in no other."""
        return [visit for visit in self.visits if visit.inside is None]

    @property
    def given(self) -> Tree:
        """What the run is about: its input, and what it goes on with."""
        if not self.resumed:
            return self.input
        return [self.input, *(given for visit in self.visits[:1] for given in (visit.entered, *visit.answers))]

    def tick(self) -> int:
        """The position of the next event; `next` on a count is atomic."""
        return next(self.clock)

    def failed(self, record: CallRecord | None) -> None:
        """A call ends with an error."""
        if record is not None:
            record.failed = True
            record.end, record.ended_s = self.tick(), now_s()
