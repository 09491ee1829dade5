"""In which contexts a program was seen to do what it does.

What runs have in common may be their tenant's: a text of their own store, or the store itself. A context has
*dimensions* (`accel.run.ambient`), and a lesson is used in a run if each of its values is one that the runs which
taught it had, or if they show that this dimension does not matter: two values of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import sha256

from ..ir import Graph, Node, When
from ..run.ambient import Dimensions
from ..values import Tree
from .memory import asked_for

MAX_DIMENSIONS = 256
"""Of one lesson; one that was seen with more is used nowhere."""
MAX_VALUES = 8
"""Of one dimension; which of them were seen matters where two do not speak for all."""
ABSENT = "="
"""The value of a dimension that a run does not have."""
REMEDY = "give each tenant its own plan: accelerate(..., plan_scope=tenant)"


def key_of(dimension: str) -> str:
    """Names may be somebody's, too: evidence has digests of them."""
    return sha256(dimension.encode()).hexdigest()[:16]


@dataclass(slots=True)
class Evidence:
    """The values that runs had, by dimension."""

    runs: bool = False
    values: dict[str, list[str]] = field(default_factory=dict)
    free: set[str] = field(default_factory=set)
    """Dimensions of which two values were seen that can be compared."""

    def note(self, context: Dimensions) -> None:
        """A run in this context has shown it."""
        told = {key_of(name): value for name, value in context.items()}
        for key in {**self.values, **told}:
            seen = self.values.setdefault(key, [ABSENT] if self.runs else [])
            value = told.get(key, ABSENT)
            if value not in seen:
                seen.append(value)
                if sum(known.startswith("=") for known in seen) > 1:
                    self.free.add(key)
                del seen[:-MAX_VALUES]
        self.runs = True

    def differs_in(self, context: Dimensions, exactly: bool) -> str | None:
        """A dimension in which this context is none of them; None if there is none. `exactly`: other values prove
        nothing."""
        if not self.runs or len(self.values) > MAX_DIMENSIONS:
            return "whatever comes in beside the input"
        told = {key_of(name): (name, value) for name, value in context.items()}
        for key in {**self.values, **told}:
            name, value = told.get(key, ("a value that this run does not have", ABSENT))
            if value not in self.values.get(key, (ABSENT,)) and (exactly or key not in self.free):
                return name
        return None


@dataclass(slots=True)
class _Known:
    asked: object
    """What the node asks for, and what decides it."""
    tree: Tree
    evidence: Evidence
    foreign: bool | None = None
    """Whether its input holds text that is neither the program's nor a known value; None: nobody has looked."""


def _nothing_foreign(node: Node) -> bool:
    return False


class Contexts:
    """Thread-safe."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Known] = {}
        self._former: dict[str, object] = {}
        """What nodes ask for that a later lesson left out. A run may still follow them."""
        self._bindings: dict[str, Evidence] = {}
        """By call site, where its component was used."""
        self._lock = threading.RLock()

    # --- nodes

    def learnt(self, graph: Graph) -> None:
        """These are the nodes from now on; what is known of those that ask for the same stays."""
        with self._lock:
            before = {known.asked: known for known in self._nodes.values()}
            self._former |= {name: known.asked for name, known in self._nodes.items()}
            self._nodes = {
                node.name: before.get(_asked(node)) or _Known(_asked(node), node.input, Evidence())
                for node in graph.nodes
                if node.predictable
            }
            for node in graph.nodes:
                if node.name in self._nodes:
                    self._nodes[node.name].tree = node.input

    def note(
        self,
        graph: Graph,
        names: Iterable[str],
        context: Dimensions,
        foreign: Callable[[Node], bool] = _nothing_foreign,
    ) -> None:
        """A run in this context has made the calls of these nodes. `foreign`: see `_Known`; asked once, and only where
        there are contexts."""
        with self._lock:
            for name in names:
                node = graph.by_name[name]
                known = self._nodes.setdefault(name, _Known(_asked(node), node.input, Evidence()))
                known.evidence.note(context)
                if known.foreign is None and context:
                    known.foreign = foreign(node)

    def is_foreign(self, node: Node, foreign: Callable[[Node], bool]) -> bool:
        """See `_Known`; looked for now if nobody has."""
        known = self._nodes.get(node.name)
        if known is None or known.asked != _asked(node) or known.foreign is None:
            return foreign(node)
        return known.foreign

    def evidence(self, name: str) -> Evidence:
        """Where a node was seen."""
        return self._nodes[name].evidence if name in self._nodes else Evidence()

    def restore(self, name: str, evidence: Evidence) -> None:
        """Where a node of a saved plan was seen; what it holds is the program's."""
        self._nodes[name].evidence, self._nodes[name].foreign = evidence, False

    def refuses(self, node: Node, context: Dimensions) -> str:
        """Why a node may not be issued in this context; empty if it may. What finished runs have not taught (a loop
        that this run has shown, one that the framework announces) is this context's own."""
        name = node.stage_of or node.name
        with self._lock:
            known, former = self._nodes.get(name), self._former.get(name)
            if known is None:
                own = former is None or (not node.stage_of and former != _asked(node))
                return "" if own else "no longer what the program was last seen to do"
            if not node.stage_of and known.tree is not node.input and known.asked != _asked(node):
                return "no longer what the program was last seen to do"  # of a graph that a run may still follow
            dimension = known.evidence.differs_in(context, exactly=known.foreign is not False)
        if dimension is None:
            return ""
        if known.foreign:
            return (
                f"its prompt holds text that is neither the program's nor a known value, and {dimension} has a value "
                f"that it was not seen with; {REMEDY}"
            )
        return f"only seen with other values of {dimension}, or with one; {REMEDY}"

    # --- bindings

    def note_bindings(self, sites: Iterable[str], context: Dimensions) -> None:
        """The components of these sites were used in this context."""
        with self._lock:
            for site in sites:
                self._bindings.setdefault(site, Evidence()).note(context)

    def forget(self, site: str) -> None:
        """It is another component from now on."""
        with self._lock:
            self._bindings.pop(site, None)

    def allow_binding(self, site: str, context: Dimensions) -> bool:
        """Whether the component of earlier runs may be called in this context before the program calls it."""
        with self._lock:
            return self._bindings.get(site, Evidence()).differs_in(context, exactly=False) is None


def _asked(node: Node) -> tuple[object, tuple[When, ...]]:
    return asked_for(node), node.when
