"""A learnt graph against a trace: what it explains, and what decides whether calls are made at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..evaluate import Index
from ..ir import Graph, Node
from ..record import CallRecord, Trace
from .view import Fit, View, repeated_nodes, sites_of


@dataclass(frozen=True, slots=True)
class Judgement:
    """How a graph explains a trace."""

    complete: bool
    """Verified nodes predict every issuable call, and no more: nothing to learn."""
    made: dict[str, bool]
    """For every predictable node whether its calls were made."""


def judge(graph: Graph, trace: Trace) -> Judgement:
    """How verified nodes of `graph` explain a trace."""
    view, fits = _followed(graph, trace)
    sure = all(node.confidence == "verified" and fit.decided and not fit.partial for node, fit in fits)
    return Judgement(sure and not any(view.open.values()), {node.name: bool(fit.calls) for node, fit in fits})


def deciding(graph: Graph, trace: Trace) -> dict[CallRecord, list[CallRecord]]:
    """For every call that the program does not make in any case: the calls whose outputs decide it. Where `graph`
    does not know which do, all that had ended before."""
    view, fits = _followed(graph, trace)
    made = {node.name: dict(zip(fit.places, fit.calls, strict=True)) for node, fit in fits}
    found: dict[CallRecord, list[CallRecord]] = {}
    for node, fit in fits:
        for binding, call in zip(fit.places, fit.calls, strict=True):
            if node.when:
                found[call] = [by for when in node.when for by in _calls_of(when.ref.node, binding, made)]
            elif not node.always:
                found[call] = [c for c in trace.calls if c.ok and c.end is not None and c.end < call.start]
    return found


def _followed(graph: Graph, trace: Trace) -> tuple[View, list[tuple[Node, Fit]]]:
    """Every node with the calls it predicts; the view has those that none does."""
    view = View(0, trace, True, indexed=False)
    sites_of([view])
    view.add_sources({name: many or _is_many(graph, name) for name, many in repeated_nodes([view]).items()})
    fits = []
    for node in graph.nodes:
        if not node.site:
            continue
        if node.predictable:
            fits.append((node, view.follow(node)))
        else:
            view.take(node, list(view.open.get(node.site, ())) if not node.op.issuable else [])
    return view, fits


def _is_many(graph: Graph, framework_node: str) -> bool:
    source = graph.by_name.get(f"{framework_node}.in")
    return source is not None and source.many


def _calls_of(name: str, binding: Index, made: dict[str, dict[Index, CallRecord]]) -> Iterator[CallRecord]:
    """The calls of a node that belong to an element, or all of them."""
    for index, call in made.get(name, {}).items():
        if index[: len(binding)] == binding[: len(index)]:
            yield call
