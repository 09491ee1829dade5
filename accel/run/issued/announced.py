"""Calls that are certain before the program makes them: a loop of the framework's own has begun.

Nothing is learnt for these. The adapter, which knows the loop, says what it is going to send, in order; what is issued
is issued under the rules of every early call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from ...graph.ir import Evidence, Node
from ...graph.ops import OPS
from ...graph.rules import Reason
from ...parts.methods.methods import Method
from ...text.values import Tree
from ..egress import texts_sent
from ..foresight.permits import foretold, refuses
from ..run import Run
from ..scope import Scope
from .early import issue


class Announced:
    """The inputs of one loop that have not been sent yet. Lives in the run's inbox."""

    def __init__(self, run: Run, node: Node) -> None:
        self._run = run
        self._node = node
        self._coming = deque[Tree]()

    def add(self, inputs: Iterable[Tree]) -> None:
        """What the loop is going to send after what is known already."""
        self._coming.extend(inputs)
        self._run.inbox.post(self.advance)

    def advance(self) -> None:
        """Issue as many as may be, in order."""
        run = self._run
        if self._coming and not run.closed and self.advance not in run.announced:
            run.announced.append(self.advance)
        bound = run.bindings.now(self._node, {})
        while self._coming and bound is not None and not run.closed:
            tree = self._coming[0]
            key = bound.key(tree)
            if not run.calls.has(key):
                if refuses(run, self._node, texts_sent(tree)):
                    return
                asked = foretold(run, self._node, decided=True)
                if isinstance(issue(run, self._node, bound, tree, key, asked), Reason):
                    return
            self._coming.popleft()
        if not self._coming and self.advance in run.announced:
            run.announced.remove(self.advance)


def announce(run: Run, here: Scope, component: Any, method: Method, inputs: Iterable[Tree]) -> Announced:
    """The code at `here` is about to call `component`, which it is using already, or may call before it has, with these
    inputs, in this order. The loop, which may turn out to have more of them (`add`)."""
    site = f"{here.within}|announced {method.family}|{type(component).__qualname__}|{id(component)}"
    run.bindings.note(site, component, method, run.identities.of(component, method.by_object))
    name = f"{here.within or 'main'}.announced"
    certain = Evidence("verified", always=True)
    node = Node(name, OPS[method.op], site=site, within=here.within, method=method.family, evidence=certain)
    loop = Announced(run, node)
    loop.add(inputs)
    return loop
