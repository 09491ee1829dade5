"""Rewrites of the learnt graph: each a short file with one function ``Graph -> Graph`` that may ask engines' profiles.

A pass that changes nothing returns the same object. The runner verifies before and after every pass; a failure carries
the graph before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..ir import Graph, GraphError, verify
from ..profile import Profile
from .decode import decode
from .depth import depth
from .pmap import in_order, pmap
from .prefill import prefill
from .prune import program_order, prune

Profiles = Mapping[str, Profile]
"""By kind of engine, as far as they are known."""
Pass = Callable[[Graph, Profiles], Graph]

PASSES: tuple[Pass, ...] = (pmap, prune, prefill, decode, depth)
"""In this order."""

_INSTEAD: dict[Pass, Pass] = {pmap: in_order, prune: program_order}
"""What holds without a pass whose work is to lift an order."""


def without(name: str) -> tuple[Pass, ...]:
    """The passes with one of them off, to see what it is worth. Raises KeyError for a name that is no pass."""
    off = {step.__name__: step for step in PASSES}[name]
    kept = tuple(_INSTEAD.get(step) if step is off else step for step in PASSES)
    return tuple(step for step in kept if step is not None)


def rewrite(graph: Graph, passes: tuple[Pass, ...] = PASSES, profiles: Profiles | None = None) -> Graph:
    """The e-graph of a p-graph. `profiles`: of the engines it will run on."""
    verify(graph)
    for step in passes:
        before = graph
        try:
            graph = step(graph, profiles or {})
            verify(graph)
        except GraphError as error:
            raise GraphError(f"pass {step.__name__}: {error.what}\nThe graph before it:\n{before}") from error
    return graph
