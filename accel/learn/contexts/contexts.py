"""In which contexts a program was seen to do what it does.

What runs have in common may be their tenant's: a text of their own store, or the store itself. A lesson is used in a
run if, in every dimension, its value is one that the runs which taught it had, or if they show two values of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...graph.ir import Graph, Node
from ...graph.rules import CONTEXT, FOREIGN, FORMER, Reason
from ...process import forks
from ...trace.ambient import Dimensions
from ...trace.record import Trace
from ..covers.foreign import has_flags
from ..memory import asked_for
from .addressed import fields
from .seen_in import Known, Places


class Contexts:
    """Thread-safe."""

    def __init__(self) -> None:
        self._nodes: dict[str, Known] = {}
        self._former: dict[str, object] = {}
        """What nodes ask for that a later lesson left out. A run may still follow them."""
        self.bindings = Places()
        """By call site, where its component was used."""
        self._lock = forks.lock()

    def learnt(self, graph: Graph, lost: Callable[[Node], bool] = lambda node: False) -> None:
        """These are the nodes from now on; what is known of those that ask for the same stays, but for whether their
        text is foreign: other nodes may show that it is not, or no longer (`lost`)."""
        with self._lock:
            before = {known.asked: known for known in self._nodes.values()}
            self._former |= {name: known.asked for name, known in self._nodes.items()}
            nodes = [node for node in graph.nodes if node.predictable]
            self._nodes = {
                node.name: before.get(asked := _asked(node)) or Known(asked, has_flags(node)) for node in nodes
            }
            for node in nodes:
                held = self._nodes[node.name]
                if held.foreign or (held.foreign is False and lost(node)):
                    held.foreign = None

    def note(
        self,
        graph: Graph,
        names: Iterable[str],
        trace: Trace,
        foreign: Callable[[Node], bool] | None = None,
        components: Callable[[Node], Iterable[Dimensions]] = lambda node: (),
    ) -> None:
        """This run has made the calls of these nodes. `foreign`: see `Known`; asked once, and only where runs differ
        in more than a question. `components`: the fields of those with which it made them."""
        unasked: dict[str, Known] = {}
        given, made = fields(trace.given), {name: list(components(graph.by_name[name])) for name in names}
        with self._lock:
            for name, those in made.items():
                known = self._nodes.setdefault(name, Known(_asked(graph.by_name[name])))
                if known.note(trace.ambient, given, those):
                    unasked[name] = known
        if foreign is None:
            return
        # Not under the lock, which runs wait for: it looks through the whole program.
        found = [(known, foreign(graph.by_name[name])) for name, known in unasked.items()]
        with self._lock:
            for known, is_foreign in found:
                known.foreign = is_foreign

    def known(self, name: str) -> Known:
        """Of a node: where it was seen, and whether its text is the program's."""
        return self._nodes.get(name) or Known(None)

    def refuses(self, node: Node, trace: Trace) -> Reason | None:
        """Why a node may not be issued in this run. What finished runs have not taught (a loop
        that this run has shown, one that the framework announces) is this context's own."""
        name = node.learnt_as
        asked = _asked(node) if name == node.name else None
        with self._lock:
            known, former = self._nodes.get(name), self._former.get(name)
            if known is None:
                return FORMER() if former is not None and asked in (None, former) else None
            if asked is not None and known.asked != asked:
                return FORMER()  # of a graph from before, which a run may still follow
            dimension = known.differs_in(trace.ambient, lambda: fields(trace.given))
        if dimension is None:
            return None
        if known.foreign:
            return FOREIGN(dimension=dimension)
        return CONTEXT(dimension=dimension)

    def is_other(self, node: Node, component: Dimensions) -> str | None:
        """In what a component that a node's calls would go to differs from all with which runs have made them."""
        with self._lock:
            known = self._nodes.get(node.learnt_as)
            return known.is_other(component) if known is not None else None


def _asked(node: Node) -> object:
    return asked_for(node), node.when
