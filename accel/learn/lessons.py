"""Traces in, p-graph out: a pure function, run off the hot path after runs that were not fully predicted.

In program order, calls are covered by known values, folded into nodes by site, and every candidate is checked by
evaluating it on all traces: a node is what predicts exactly the calls that were made. What no template explains becomes
an opaque node, whose output can still be a source for others.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

from ..graph.ir import Graph
from ..graph.verify import verify
from ..text.constants import Constants
from ..text.values import freeze
from ..trace.record import Trace
from .check import refuted
from .covers.foreign import Data, Wording
from .covers.index import Values
from .covers.readings import ALL, Readings
from .learner import Builder
from .relays import Proposal, Refuted
from .view import View, sites_of
from .witness import witness

MAX_BEFORE = 1_000
"""Calls of finished runs that a lesson inside another one looks at."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """What traces taught."""

    graph: Graph
    shapes: list[frozenset[str]]
    """For every trace the predictable nodes that explain its calls."""
    explained: float
    """The share of all calls that may be issued that verified nodes explain."""
    whose: dict[str, Hashable]
    """By node, the identity of the component that all of its calls went to; those that went to several are missing."""
    lacks_runs: bool = False
    """Whether another run with another input may show that what framework nodes hand on is computed of what is known
    before."""
    in_vain: frozenset[str] = frozenset()
    """Call sites for which functions were tried that explained nothing."""


def learn(traces: Sequence[Trace]) -> Graph:
    """The p-graph of finished `traces`."""
    return lesson(traces).graph


def lesson(
    traces: Sequence[Trace],
    program: Wording | None = None,
    readings: Readings | None = None,
    passed_over: Container[str] = (),
) -> Lesson:
    """`learn`, and what it learnt from which trace. `program`: None if nobody knows what it says by itself;
    `passed_over`: call sites for which no functions are tried."""
    readings = ALL if readings is None else readings
    constants = cache(lambda: Constants.among(program.constants(), program.tables()) if program else Constants())
    refuted: set[Proposal] = set()
    while True:
        views = [
            View(i, trace, True, Values(readings=readings, program=program, constants=constants))
            for i, trace in enumerate(traces)
        ]
        first: dict[Hashable, int] = {}
        for view in views:
            view.witness = first.setdefault(witness(view.trace.given), view.number)
        builder = Builder(views, data=Data(traces, program), refuted=refuted, passed_over=passed_over)
        try:
            builder.explain(sites_of(views))
        except Refuted as error:
            refuted.add(error.proposal)
            continue
        graph = Graph(tuple(builder.nodes), runs=len(traces))
        verify(graph)
        shapes = [frozenset(view.nodes) for view in views]
        in_vain = builder.in_vain()
        return Lesson(graph, shapes, builder.explained(), builder.whose, builder.lacks_runs, in_vain)


def extend(
    known: Graph, running: Trace, site: str, readings: Readings | None = None, before: Sequence[Trace] = ()
) -> Graph:
    """`known` with what calls of one site show inside a run that is still going on: loops, as a rule. The same object
    if they show nothing, or what finished runs (`before`) did not do: who is asked about may hang on who asks."""
    readings = ALL if readings is None else readings
    view = View(0, running, False, Values(True, readings))
    sites = sites_of([view])
    builder = Builder([view], known)
    confirmed = False
    for node in known.nodes:
        view.work_out(node, known)
        if node.site and node.predictable:
            fit = view.follow(node)
            if node.evidence.confidence != "verified":
                here = len({freeze(call.input) for call in fit.calls}) > 1
                builder.judge_again(node, here)
                confirmed |= here and node.site == site
        elif node.site and node.site != site:
            view.take(node, list(view.open.get(node.site, ())))
    for other in sites:
        if other == site and not builder.explain_what_can_be(site) and not confirmed:
            return known
        if other != site and other not in known.by_site:
            builder.leave_opaque(other)
    graph = Graph(tuple(builder.nodes), runs=known.runs)
    verify(graph)
    new = {node.name for node in graph.nodes if node.site == site and node.predictable and node not in known.nodes}
    calls = accumulate(len(trace.calls) for trace in before)
    looked = (trace for trace, so_far in zip(before, calls, strict=True) if so_far <= MAX_BEFORE)
    return known if any(refuted(graph, new, trace) for trace in looked if site in trace.sites) else graph
