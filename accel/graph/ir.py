"""The graph of primitives: learnt as p-graph, rewritten by passes into the e-graph.

Everything here is frozen and says nothing about a run: no values, no measurements, no components. Data edges are
stored once, as the `Ref`s inside a node's input; consumers are derived. ``str(graph)`` is stable and readable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ..process.properties import cached_property
from ..text.relay import Relay
from ..text.steps import STAR, Verdict
from ..text.templates import Bound, Field, Leaf, Ref, Spread, leaves_in, refs_in
from ..text.turns import Called
from ..text.values import Opaque, Tree
from .first import First
from .ops import Op

Confidence = Literal["opaque", "seen", "looped", "verified"]
"""opaque: no template. seen: agrees with one trace. looped: two iterations of one loop agree. verified: two traces
with different inputs agree (or provenance is exact)."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level of pmap: an element for every value of `domain`, or `repeat` equal elements.

    `distinct`: the program drops equal elements.
    """

    domain: Ref | None
    repeat: int = 0
    cap: int | Bound | None = None
    """The program was seen to stop after this many, with more at hand."""
    exact: bool = True
    """It always stopped there, so the number of elements is known ahead."""
    seen: int | None = None
    """The most elements any run had: no more are issued early."""
    distinct: bool = False
    repeats: bool = False
    """Elements that are equal were seen to have a call each: until then, and as long as none was dropped, only one of
    them is made early."""
    first: int = 0
    """Of the outermost list, the first position that counts: those before are another node's (a loop's first round)."""
    sparse: bool = False
    """Elements of the domain may have none: outputs stand where those of the domain do."""

    @property
    def keeps(self) -> bool:
        """Whether the program is known to make the calls of equal elements."""
        return self.domain is None or self.repeats

    def __str__(self) -> str:
        what = str(self.domain) if self.domain is not None else f"{self.repeat} times"
        return (
            what
            + (f" from {self.first} on" if self.first else "")
            + (f" first {self.cap}" if self.cap is not None else "")
            + ("" if self.exact else " at most")
            + (f" up to {self.seen}" if self.seen is not None else "")
            + (" distinct" if self.distinct else "")
        )


DECIDING = (Verdict, Called)
"""Steps that give the short values that decide."""


@dataclass(frozen=True, slots=True)
class When:
    """A decision by a short value of the run (a router's, a judge's, a choice of tools): a call is made if it is one of
    `yes` and not if it is one of `no`; what other values mean isn't known yet."""

    ref: Ref
    """Ends in one of `DECIDING`."""
    yes: frozenset[str]
    no: frozenset[str] = frozenset()
    only: bool = False
    """All other values are `no`, whatever further decisions say."""

    def __str__(self) -> str:
        return f"{self.ref} is {' or '.join(sorted(self.yes))}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """How far traces show that a node is what it says, and what else they show of its calls."""

    confidence: Confidence = "opaque"
    always: bool = False
    """Demanded in every trace in which its framework node ran, or in which its `when` says so."""
    at_once: bool = False
    """Its input is complete no sooner than the program makes the call: nothing is gained by making it early."""
    unreplaced: tuple[Field, ...] = ()
    """Fields of the run's input in its templates that the program's state had held unchanged whenever the calls were
    made: whether they go by the input or by the state, nobody has seen."""
    twins: tuple[tuple[Field, Field], ...] = ()
    """Fields of the run's input in its templates, with others that were the same in all runs that made its calls."""
    usual: tuple[When, ...] = ()
    """Flags in what it is made of that were the same whenever the calls were made: with others it is in doubt. Not
    saved: a model, or whoever it quotes, may have named them."""
    reason: str = ""
    """Why no more than that."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """What passes add to a node: what it waits for, in which parts it goes, how urgent it is."""

    after: tuple[str, ...] = ()
    """Nodes that must be finished first although no data flows (hazards)."""
    in_order: bool = False
    """Its elements go one after the other."""
    begins_with: str = ""
    """The node that does what comes `first`,"""
    pipelined: bool = False
    """and whose micro-batches it takes in as they come: its end is their aggregate, and nothing shows before."""
    stage_of: str = ""
    """The node that begins with this one: nobody demands it for itself, and its component is that node's to tell."""
    batch_tokens: int = 0
    """It works in micro-batches of so many tokens (0: all at once),"""
    under_way: int = 0
    """with so many calls at a time."""
    needs_partial: bool = False
    """A consumer can start on a part of this output: decode it as a stream."""
    prefills: tuple[int, ...] = ()
    """Hole boundaries (index of the part) up to which a known prefix of the last text is prefilled early."""
    prefill_tokens: int = 0
    """How much more must be known for another partial prefill."""
    depth: int = 0
    """Of the primitives that still depend on it; the deepest is the most urgent."""
    next_use: int = 0
    """So many calls later another prompt of the run begins as this one does; 0: none does, or nobody knows."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Node:
    """One primitive, or with a `level` one for every element of it: what was learnt, the evidence, the schedule."""

    name: str
    op: Op
    input: Tree = None
    """JSON tree whose leaves are literals or `Leaf`s, unused unless the node is predictable; or a `Relay`."""
    site: str = ""
    """Call site: node path, method family and user frames."""
    within: str = ""
    """The framework node the call is made in."""
    method: str = ""
    level: Level | None = None
    many: bool = False
    """Addressed by position: it has a level, or happened more than once in a trace."""
    when: tuple[When, ...] = ()
    """What decides whether it is demanded, or which elements of its level are; all of these must agree."""
    first: First | None = None
    """What its component does first, and could do on its own."""
    evidence: Evidence = Evidence()
    schedule: Schedule = Schedule()
    ancestry: tuple[bool, ...] = ()
    """Of what enters or leaves a framework node: which numbers of a visit's `place` say which value is meant; the
    others were always 0."""

    def proven(self, **changes: Any) -> Node:
        """With other evidence."""
        return replace(self, evidence=replace(self.evidence, **changes))

    def scheduled(self, **changes: Any) -> Node:
        """With another schedule; the same object if that changes nothing."""
        schedule = replace(self.schedule, **changes)
        return self if schedule == self.schedule else replace(self, schedule=schedule)

    @property
    def dims(self) -> int:
        """How many positions say which output is meant: those of nested levels are lists in lists (Alto's ancestry)."""
        if self.ancestry or not self.many:
            return sum(self.ancestry)
        domain = self.level.domain if self.level is not None else None
        return max(1, domain.stars if domain is not None else 0)

    @property
    def is_sparse(self) -> bool:
        """Whether it may have no output for some elements of its level."""
        return self.level is not None and self.level.sparse

    @property
    def is_placed(self) -> bool:
        """Whether its outputs stand where its elements' bindings say, not one after the other."""
        return self.dims > 1 or self.is_sparse

    @property
    def at_boundary(self) -> bool:
        """What enters or leaves a framework node: known when the program gets there, and no sooner."""
        return self.op.name in ("enter", "exit")

    @property
    def gathers(self) -> bool:
        """What several calls gave, as one value: no call, but what its input is made of."""
        return self.op.name == "aggregate"

    @property
    def relay(self) -> Relay | None:
        """What it hands on, where that is all it does."""
        return self.input if isinstance(self.input, Relay) else None

    @property
    def predictable(self) -> bool:
        return self.evidence.confidence != "opaque"

    @property
    def learnt_as(self) -> str:
        """The node of the p-graph that it comes from: a stage was learnt as a part of the one that begins with it."""
        return self.schedule.stage_of or self.name

    def given(self) -> set[Field]:
        """The fields of the run's input that its templates refer to."""
        return {field for ref in self.refs() if ref.node == "input" and (field := ref.field)}

    def leaves(self) -> Iterator[Leaf]:
        return leaves_in(self.input)

    def refs(self) -> Iterator[Ref]:
        """Every reference in the input and the level, in order; equal ones may repeat."""
        yield from self.taken()
        if self._counts is not None:
            yield self._counts

    def taken(self) -> Iterator[Ref]:
        """Those of which it takes the values; a domain of bare calls only says how many elements there are."""
        if self.relay is not None:
            yield from self.relay.refs
        if not self.predictable:
            return
        for leaf in self.leaves():
            yield from refs_in(leaf)
        if self.level is not None and self.level.domain is not None and self._counts is None:
            yield self.level.domain
        if self.level is not None and isinstance(self.level.cap, Bound):
            yield self.level.cap.ref
        yield from (when.ref for when in self.when)

    @property
    def _counts(self) -> Ref | None:
        domain = self.level.domain if self.level is not None and self.predictable else None
        return domain if domain is not None and domain.path == (STAR,) else None

    @property
    def head(self) -> str:
        return f"{self.name}{'[*]' if self.many else ''} = {self.op.name}"

    @property
    def notes(self) -> list[str]:
        """All there is to say about it, but for its input."""
        if self.op.engine == "none":
            return [str(self.input)] if self.relay is not None else []
        evidence, schedule = self.evidence, self.schedule
        notes = [evidence.confidence if evidence.always else f"{evidence.confidence}, sometimes"]
        if self.level is not None:
            notes.append(f"for {self.level}")
        if self.when:
            notes.append("when " + " and ".join(map(str, self.when)))
        if evidence.usual:
            notes.append("so far with " + " and ".join(map(str, evidence.usual)))
        if evidence.at_once:
            notes.append("at once")
        if schedule.in_order:
            notes.append("in order")
        if schedule.after:
            notes.append("after " + ", ".join(schedule.after))
        if schedule.stage_of:
            notes.append(f"stage of {schedule.stage_of}")
        if schedule.batch_tokens:
            notes.append(f"micro-batches of {schedule.batch_tokens} tokens, {schedule.under_way} under way")
        if schedule.pipelined:
            notes.append(f"takes in {schedule.begins_with} as it comes, aggregate at the end")
        elif schedule.begins_with:
            notes.append(f"begins with {schedule.begins_with}")
        elif self.first is not None:
            notes.append(f"begins with {self.first}")
        if schedule.needs_partial:
            notes.append("partial decodes")
        if schedule.prefills:
            notes.append(f"{len(schedule.prefills)} partial prefills of {schedule.prefill_tokens} tokens at least")
        if schedule.depth:
            notes.append(f"depth {schedule.depth}")
        if schedule.next_use:
            notes.append(f"begun with again in {schedule.next_use}")
        return notes

    def __str__(self) -> str:
        notes = self.notes
        if not notes and not self.gathers:
            return self.head
        lines = [f"{self.head}  # {'; '.join(notes)}" if notes else self.head]
        if self.predictable:
            lines += [f"    {line}" for line in input_text(self.input)]
        elif self.evidence.reason:
            lines.append(f"    ? {self.evidence.reason}")
        return "\n".join(lines)


def input_text(tree: Tree, key: str = "") -> list[str]:
    """An input, a line per leaf; empty containers and nulls are left out."""
    if isinstance(tree, Leaf | Spread):
        return [f"{key}: {tree}"]
    if isinstance(tree, dict):
        return [line for k, v in tree.items() for line in input_text(v, f"{key}.{k}" if key else k)]
    if isinstance(tree, list):
        return [line for i, v in enumerate(tree) for line in input_text(v, f"{key}[{i}]")]
    if tree is None:
        return []
    return [f"{key}: {tree!r}" if isinstance(tree, Opaque) else f"{key}: {json.dumps(tree)}"]


@dataclass(frozen=True)
class Graph:
    """Nodes in the order in which they were first demanded; a node refers to earlier nodes only, but for what a relay
    has from the round before."""

    nodes: tuple[Node, ...] = ()
    runs: int = field(default=0, compare=False)
    """How many traces it was learnt from."""

    @cached_property
    def by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def consumers(self) -> dict[str, tuple[str, ...]]:
        """Who needs a node's output or its end, in graph order."""
        found: dict[str, dict[str, None]] = {node.name: {} for node in self.nodes}
        for node in self.nodes:
            for ref in node.refs():
                found[ref.node][node.name] = None
            for name in (*node.schedule.after, node.schedule.begins_with):
                if name:
                    found[name][node.name] = None
        return {name: tuple(names) for name, names in found.items()}

    @cached_property
    def producers(self) -> dict[str, frozenset[str]]:
        """Whose outputs a node refers to, also where they are gathered."""
        found: dict[str, frozenset[str]] = {}
        for node in self.nodes:
            named = frozenset(ref.node for ref in node.refs())
            gathered = (found.get(name, frozenset()) for name in named if self.by_name[name].gathers)
            found[node.name] = named.union(*gathered)
        return found

    @cached_property
    def by_site(self) -> dict[str, tuple[Node, ...]]:
        sites: dict[str, list[Node]] = {}
        for node in self.nodes:
            if node.site:
                sites.setdefault(node.site, []).append(node)
        return {site: tuple(nodes) for site, nodes in sites.items()}

    def is_round(self, node: Node) -> bool:
        """Whether its elements are the rounds of a loop, of which the program may make any number."""
        domain = node.level.domain if node.level is not None else None
        source = self.by_name[domain.node] if domain is not None else None
        return source is not None and (source.relay is not None or self.is_round(source))

    def is_laid_out(self, node: Node) -> bool:
        """Whether an element of it is there before the program makes its call, as it goes by a visit of a framework
        node, or by a call that does: one beyond them is another node's."""
        domain = node.level.domain if node.level is not None else None
        if domain is None:
            return False
        source = self.by_name[domain.node]
        if source.at_boundary:
            return len(source.ancestry) > 1 or (source.many and domain.path[:1] == (STAR,))
        return self.is_laid_out(source)

    def map(self, change: Any) -> Graph:
        """Every node through `change(node)`; the same object if none changed."""
        nodes = tuple(change(node) for node in self.nodes)
        if all(new is old for new, old in zip(nodes, self.nodes, strict=True)):
            return self
        return replace(self, nodes=nodes)

    def __str__(self) -> str:
        return "\n".join(str(node) for node in self.nodes) or "(nothing learnt yet)"
