"""In which contexts (ContextVars, configuration) a program was seen to do what it does.

What two runs of one tenant have in common may be that tenant's: a text of their own store, or the store itself. In
another context it is used once a run there has shown the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from .. import forks
from ..ir import Graph, Node
from ..values import Tree
from .memory import asked_for

ENOUGH = 2
"""What so many contexts have shown holds in any."""


class Contexts:
    """By fingerprint (`accel.run.ambient`). Thread-safe."""

    def __init__(self) -> None:
        self._nodes: dict[str, tuple[object, Tree, set[str]]] = {}
        """By name, what the node asks for, its input, and where it was seen."""
        self._former: dict[str, object] = {}
        """The same of nodes that a later lesson left out: what they ask for. A run may still follow them."""
        self._bindings: dict[str, set[str]] = {}
        """By call site, where its component was used."""
        self._lock = forks.lock()

    # --- nodes

    def learnt(self, graph: Graph) -> None:
        """These are the nodes from now on; what is known of those that ask for the same stays."""
        with self._lock:
            before = {asked: seen for asked, _, seen in self._nodes.values()}
            self._former |= {name: asked for name, (asked, _, _) in self._nodes.items()}
            predictable = {node.name: (asked_for(node), node.input) for node in graph.nodes if node.predictable}
            self._nodes = {n: (asked, tree, before.get(asked, set())) for n, (asked, tree) in predictable.items()}

    def note(self, graph: Graph, names: Iterable[str], ambient: str) -> None:
        """A run in this context has made the calls of these nodes."""
        with self._lock:
            for name in names:
                node = graph.by_name[name]
                seen = self._nodes.setdefault(name, (asked_for(node), node.input, set()))[2]
                if len(seen) < ENOUGH:
                    seen.add(ambient)

    def seen(self, name: str) -> set[str]:
        """Where a node was seen, as far as that matters."""
        return self._nodes[name][2] if name in self._nodes else set()

    def allow(self, node: Node, ambient: str) -> bool:
        """Whether a node may be issued in this context. What finished runs have not taught (a loop that this run has
        shown, one that the framework announces) is this context's own."""
        name = node.stage_of or node.name
        with self._lock:
            known, former = self._nodes.get(name), self._former.get(name)
        if known is None:
            return former is None or (not node.stage_of and former != asked_for(node))
        asked, tree, seen = known
        if not node.stage_of and tree is not node.input and asked != asked_for(node):
            return False  # of a graph from before, which a run may still follow
        return ambient in seen or len(seen) >= ENOUGH

    # --- bindings

    def note_binding(self, site: str, ambient: str) -> None:
        """The component of this site was used in this context."""
        with self._lock:
            seen = self._bindings.setdefault(site, set())
            if len(seen) < ENOUGH:
                seen.add(ambient)

    def forget(self, site: str) -> None:
        """It is another component from now on."""
        with self._lock:
            self._bindings.pop(site, None)

    def allow_binding(self, site: str, ambient: str) -> bool:
        """Whether the component of earlier runs may be called in this context before the program calls it."""
        seen = self._bindings.get(site, ())
        return ambient in seen or len(seen) >= ENOUGH
