"""Rewrites of the learnt graph: each a short file with one function ``Graph -> Graph`` that may ask engines' profiles.

A pass that changes nothing returns the same object. The runner verifies before and after every pass; a failure carries
the graph before it. Beside its pass a file says in one line what there was to do (`SUMMARIES`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ...engine.profile import Profile
from ..ir import Graph
from ..verify import GraphError, verify
from . import decode as _decode
from . import depth as _depth
from . import next_use as _next_use
from . import pmap as _pmap
from . import prefill as _prefill
from . import prune as _prune
from . import stage as _stage

Profiles = Mapping[str, Profile]
"""By kind of engine, as far as they are known."""
Pass = Callable[[Graph, Profiles], Graph]
Summary = Callable[[Graph, Profiles], str]
"""Of the graph before the pass."""

pmap, stage, prune = _pmap.pmap, _stage.stage, _prune.prune
prefill, decode, depth, next_use = _prefill.prefill, _decode.decode, _depth.depth, _next_use.next_use

PASSES: tuple[Pass, ...] = (pmap, stage, prune, prefill, decode, depth, next_use)
"""In this order: what `stage` takes apart gets an order of its own."""

SUMMARIES: dict[Pass, Summary] = {
    pmap: _pmap.summary,
    stage: _stage.summary,
    prune: _prune.summary,
    prefill: _prefill.summary,
    decode: _decode.summary,
    depth: _depth.summary,
    next_use: _next_use.summary,
}

INSTEAD: dict[Pass, Pass] = {pmap: _pmap.in_order, prune: _prune.program_order}
"""What holds without a pass whose work is to lift an order."""


def without(*names: str) -> tuple[Pass, ...]:
    """The passes with some of them off, to see what they are worth. Raises KeyError for a name that is no pass."""
    by_name = {step.__name__: step for step in PASSES}
    off = {by_name[name] for name in names}
    kept = tuple(INSTEAD.get(step) if step in off else step for step in PASSES)
    return tuple(step for step in kept if step is not None)


def only(*names: str) -> tuple[Pass, ...]:
    """These passes alone (none at all: what the program is without any). Raises KeyError for a name that is no pass."""
    by_name = {step.__name__: step for step in PASSES}
    on = {by_name[name] for name in names}
    return without(*(name for name, step in by_name.items() if step not in on))


def rewrite(graph: Graph, passes: tuple[Pass, ...] = PASSES, profiles: Profiles | None = None) -> Graph:
    """The e-graph of a p-graph. `profiles`: of the engines it will run on."""
    verify(graph)
    for _, _, after in steps(graph, passes, profiles or {}):
        graph = after
    return graph


def steps(graph: Graph, passes: tuple[Pass, ...], profiles: Profiles) -> Iterator[tuple[Pass, Graph, Graph]]:
    """Every pass with the graph before and after it."""
    for step in passes:
        before = graph
        try:
            graph = step(graph, profiles)
            verify(graph)
        except GraphError as error:
            raise GraphError(f"pass {step.__name__}: {error.what}\nThe graph before it:\n{before}") from error
        yield step, before, graph
