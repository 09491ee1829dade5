"""A learnt graph against a trace: what it explains, and what decides whether calls are made at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace

from ..graph.ir import Graph, Node
from ..text.paths import Index
from ..text.steps import Extract, Star
from ..text.templates import Ref
from ..trace.record import CallRecord, Trace
from .view import Ancestry, Fit, View, ancestries, either, sites_of, still_given


@dataclass(frozen=True, slots=True)
class Judgement:
    """How a graph explains a trace."""

    complete: bool
    """Verified nodes predict every issuable call, and no more: nothing to learn."""
    made: dict[str, int]
    """For every predictable node how many of its calls were made."""


def judge(graph: Graph, trace: Trace) -> Judgement:
    """How verified nodes of `graph` explain a trace."""
    view, fits = followed(graph, trace)
    sure = all(node.evidence.confidence == "verified" and fit.decided and not fit.partial for node, fit in fits)
    same = all(
        node.evidence.unreplaced == still_given(node.evidence.unreplaced, [(view, call) for call in fit.calls])
        for node, fit in fits
    )
    known = all(node.level is None or node.level.keeps or not fit.repeats for node, fit in fits)
    complete = sure and same and known and not any(view.open.values())
    return Judgement(complete, {node.name: len(fit.calls) for node, fit in fits})


def refuted(graph: Graph, names: Container[str], trace: Trace) -> bool:
    """Whether a finished run made some of the calls that nodes of these names expect, and not all of them."""
    _, fits = followed(graph, trace, beyond=True)
    return any(node.name in names and (fit.skips or (fit.calls and fit.partial)) for node, fit in fits)


@dataclass(frozen=True, slots=True)
class Ties:
    """What a graph knows of a trace's calls beside their texts."""

    deciding: dict[CallRecord, list[CallRecord]]
    """For every call that the program does not make in any case: the calls whose outputs decide it. Where the graph
    does not know which do, all that had ended before."""
    using: dict[CallRecord, dict[int, float]]
    """For every call: the calls whose outputs its template holds, in whatever form, and the framework nodes that gave
    it what it has from them, as positions in the trace; from what share of the output on that is there (of the second
    of four items, a half)."""


def ties(graph: Graph, trace: Trace, fewest: Mapping[str, int] | None = None) -> Ties:
    """How the calls of a trace hang together as `graph` knows it. `fewest`: by call site, how many calls every run has
    made; of those that no node explains, further ones are decided by something, too."""
    view, fits = followed(graph, trace, beyond=True, unexplained=True)
    made = handed(graph, {node.name: dict(zip(fit.places, fit.calls, strict=True)) for node, fit in fits})
    found = Ties({}, {})
    for node, fit in fits:
        refs = list(dict.fromkeys(node.taken()))
        refs += [part for ref in refs if (source := graph.by_name[ref.node]).gathers for part in source.refs()]
        for number, (binding, call) in enumerate(zip(fit.places, fit.calls, strict=True)):
            using = found.using[call] = {}
            for ref in refs:
                share = _share(ref, binding, fit.places)
                passed = [view.known_at(ref, binding)] if graph.by_name[ref.node].at_boundary else []
                for at in [*passed, *(by.start for by in _calls_of(ref.node, binding, made))]:
                    if at < call.start:
                        using[at] = max(share, using.get(at, 0.0))
            if node.when:
                found.deciding[call] = [by for when in node.when for by in _calls_of(when.ref.node, binding, made)]
            elif not node.evidence.always or _is_beyond(node, number):
                found.deciding[call] = _before(call, trace)
    counts: Counter[str] = Counter()
    for call in trace.calls:
        if fewest is not None and call not in found.using and counts[call.site] >= fewest.get(call.site, 0):
            found.deciding[call] = _before(call, trace)
        counts[call.site] += 1
    return found


def handed(graph: Graph, made: dict[str, dict[Index, CallRecord]]) -> dict[str, dict[Index, CallRecord]]:
    """By node, its calls by what they are bound to; with those whose outputs each relay hands on."""
    found = dict(made)
    for node in graph.nodes:
        if node.relay is not None:
            start = node.relay.start
            rounds = list(made.get(node.relay.later.node, {}).values())
            first = node.relay.first + (start is not None)
            found[node.name] = {(at,): call for at, call in enumerate(rounds, first)}
            for call in list(_calls_of(start.node, (), made))[:1] if start is not None else ():
                found[node.name][(node.relay.first,)] = call
    return found


def _before(call: CallRecord, trace: Trace) -> list[CallRecord]:
    return [other for other in trace.calls if other.ok and other.end is not None and other.end < call.start]


def followed(
    graph: Graph, trace: Trace, beyond: bool = False, unexplained: bool = False
) -> tuple[View, list[tuple[Node, Fit]]]:
    """Every node with the calls it predicts; the view has those that none does. `beyond`: also with those that are
    like them, of loops that went on after the program was seen to stop. `unexplained`: what calls gave is known of
    those as well that nothing explains, where a site has no others; else nothing that is made of it is."""
    view = View(0, trace, True, indexed=False)
    sites_of([view])
    found = {name: either(here, _ancestry(graph, name)) for name, here in ancestries([view]).items()}
    view.add_sources(found, {name for name in found if f"{name}.answers" in graph.by_name})
    fits = []
    for node in graph.nodes:
        view.work_out(node, graph)
        if not node.site:
            continue
        if node.predictable:
            level = node.level
            further = level is not None and not level.exact and (beyond or graph.is_round(node))
            held = replace(node, level=replace(level, cap=None)) if further and level is not None else node
            fits.append((node, view.follow(held)))
        else:  # what nobody could foresee, or its inner calls stand for
            calls = view.open.get(node.site, [])
            taken = [call for call in calls if call.composite or not node.op.issuable]
            if unexplained and not taken and graph.by_site[node.site] == (node,):
                view.take(node, calls)
                view.open[node.site] = calls
            else:
                view.take(node, taken)
    return view, fits


def _is_beyond(node: Node, number: int) -> bool:
    """Whether the program was seen to stop before this element."""
    level = node.level
    return level is not None and isinstance(level.cap, int) and number >= level.cap


def _ancestry(graph: Graph, framework_node: str) -> Ancestry:
    source = graph.by_name.get(f"{framework_node}.in")
    return source.ancestry if source is not None else ()


def _share(ref: Ref, binding: Index, places: list[Index]) -> float:
    """Of the output, up to the element that this binding refers to; all of it unless that is one item of a text."""
    texts = [at for at, step in enumerate(ref.path) if isinstance(step, Extract)]
    star = sum(isinstance(step, Star) for step in ref.path[: texts[0]]) if texts else len(binding)
    if star >= min(len(binding), ref.stars):
        return 1.0
    items = [place[star] for place in places if place[:star] == binding[:star]]
    return (binding[star] + 1) / (max(items) + 1)


def _calls_of(name: str, binding: Index, made: dict[str, dict[Index, CallRecord]]) -> Iterator[CallRecord]:
    """The calls of a node that belong to an element, or all of them."""
    for index, call in made.get(name, {}).items():
        if index[: len(binding)] == binding[: len(index)]:
            yield call
