"""Traces in, p-graph out: a pure function, run off the hot path after runs that were not fully predicted.

Site by site in program order, calls are covered by known values, folded into nodes, and every candidate is checked by
evaluating it on all traces: a node is what predicts exactly the calls that were made. What no template explains becomes
an opaque node, whose output can still be a source for others.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from ..intercept import METHODS
from ..ir import OPS, Confidence, First, Graph, Level, Node, Ref, leads, verify
from ..record import CallRecord, Trace
from ..values import Tree, freeze, lists_of
from .candidates import candidates
from .decisions import decisions
from .fold import Covered, cover, mates
from .provenance import SHORTEST, Values
from .shape import Shape
from .view import Fit, View, repeated_nodes, sites_of

MAX_NODES_PER_SITE = 24
MAX_TRIES = 6
"""Calls of a site that may fail to give a node before the rest of the site is left opaque."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """What traces taught."""

    graph: Graph
    shapes: list[frozenset[str]]
    """For every trace the predictable nodes that explain its calls."""
    explained: float
    """The share of all calls that may be issued that verified nodes explain."""


def learn(traces: Sequence[Trace]) -> Graph:
    """The p-graph of finished `traces`."""
    return lesson(traces).graph


def lesson(traces: Sequence[Trace]) -> Lesson:
    """`learn`, and what it learnt from which trace."""
    views = [View(i, trace, True) for i, trace in enumerate(traces)]
    first: dict[Hashable, int] = {}
    for view in views:
        view.witness = first.setdefault(freeze(view.trace.input), view.number)
    builder = _Builder(views)
    for site in sites_of(views):
        builder.explain(site)
    graph = Graph(tuple(builder.nodes), runs=len(traces))
    verify(graph)
    return Lesson(graph, [frozenset(view.nodes) for view in views], builder.explained())


def extend(known: Graph, running: Trace, site: str) -> Graph:
    """`known` with what calls of one site show inside a run that is still going on: loops, as a rule. The same object
    if they show nothing."""
    view = View(0, running, False, Values(cautious=True))
    sites = sites_of([view])
    builder = _Builder([view], known)
    for node in known.nodes:
        if node.site and node.predictable:
            fit = view.follow(node)
            if node.confidence == "looped" and len(fit.calls) < 2:
                builder.doubt(node)
        elif node.site and node.site != site:
            view.take(node, list(view.open.get(node.site, ())))
    for other in sites:
        if other == site and not builder.explain_what_can_be(site):
            return known
        if other != site and other not in known.by_site:
            builder.leave_opaque(other)
    graph = Graph(tuple(builder.nodes), runs=known.runs)
    verify(graph)
    return graph


@dataclass(frozen=True, slots=True)
class _Best:
    """The best candidate for a call so far, and how it explains every trace."""

    node: Node | None
    fits: list[Fit]


class _Builder:
    def __init__(self, views: list[View], known: Graph | None = None) -> None:
        self.views = views
        self._covers: dict[tuple[int, int], Covered] = {}
        """Of the site at hand, until another node adds values."""
        self.nodes: list[Node] = list(known.nodes) if known is not None else []
        self._names: dict[str, int] = {}
        self._explained = 0
        self._constant: set[Hashable] = set()
        """Lists that are literals at the site at hand."""
        self._add_sources()

    def _add_sources(self) -> None:
        before = {node.name: node for node in self.nodes}
        for node in self.nodes:
            self._take_name(node.name)
        if not before:
            self.nodes.append(Node("input", OPS["input"]))
        many = repeated_nodes(self.views)
        for name in many:
            if f"{name}.in" in before:
                many[name] = before[f"{name}.in"].many
                continue
            self.nodes.append(Node(f"{name}.in", OPS["enter"], many=many[name]))
            self.nodes.append(Node(f"{name}.out", OPS["exit"], many=many[name]))
        for view in self.views:
            view.add_sources(many)

    def doubt(self, node: Node) -> None:
        """This loop was seen in another run alone."""
        self.nodes[self.nodes.index(node)] = replace(node, confidence="seen", reason="seen in one input only")

    # --- one site

    def explain(self, site: str) -> None:
        """Turn all calls of a site into nodes."""
        self.explain_what_can_be(site)
        self.leave_opaque(site)

    def explain_what_can_be(self, site: str) -> bool:
        """Turn the calls of a site into nodes as far as templates explain them; False if they explain none."""
        self._constant = self._constant_lists(site)
        before = len(self.nodes)
        for _ in range(MAX_NODES_PER_SITE):
            if not self._explain_some(site):
                break
        return len(self.nodes) > before

    def _constant_lists(self, site: str) -> set[Hashable]:
        """Lists of texts that every call of a site was given, in runs with different inputs: part of the program, also
        where an element happens to be a value the run has seen (the ids of all records, say)."""
        called = [view for view in self.views if view.open.get(site)]
        if len({freeze(view.trace.input) for view in called}) < 2:
            return set()
        calls = [call for view in called for call in view.open[site]]
        return set.intersection(*(set(map(freeze, lists_of(call.input))) for call in calls))

    def _explain_some(self, site: str) -> bool:
        """One more node at this site; False if there is none to be found."""
        tries = 0
        self._covers.clear()
        for view in self.views:
            for call in view.open.get(site, ()):
                if not OPS[call.op].issuable or call.composite:
                    continue
                best = self._best(site, view, call)
                if best.node is not None and best.node.confidence != "seen":
                    best = self._first_round(site, best.node) or best
                    assert best.node is not None
                    self._accept(*self._decided(best.node, best.fits))
                    return True
                tries += 1
                if tries == MAX_TRIES:
                    return False
        return False

    def _best(self, site: str, view: View, call: CallRecord) -> _Best:
        """The candidate that explains this call and most of the site's others in most traces."""
        best, best_score = _Best(None, []), (0, 0)
        most = (sum(1 for v in self.views if v.open.get(site)), sum(len(v.open.get(site, ())) for v in self.views))
        # Inside a first run two iterations may share a short value by chance: then rather a hole too many.
        first_run = not any(v.complete for v in self.views)
        for shortest in reversed(SHORTEST) if first_run else SHORTEST:
            for candidate in candidates(self._group(site, view, call, shortest)):
                shape = candidate.shape
                node = Node(
                    self._name(call), OPS[call.op], candidate.leaves, site, call.within, call.family, candidate.level,
                    many=candidate.level is not None,
                )  # fmt: skip
                node, fits = self._from_second(node, shape, [v.fit(node, shape) for v in self.views])
                if any(fit.skips for fit in fits):
                    node, fits = self._decided(node, fits, shape)
                if not any(call in fit.calls for fit in fits):
                    continue
                score = (sum(1 for fit in fits if fit.calls), sum(len(fit.calls) for fit in fits))
                done = score == most and not any(fit.partial for fit in fits)
                if score > best_score or done:
                    tree = candidate.input()
                    judged = replace(self._judge(node, fits), input=tree, first=_first(call, tree))
                    best, best_score = _Best(judged, fits), max(score, best_score)
                if done:
                    return best
            if best_score[0] == most[0]:
                break  # it explains every trace; the rest of the site is another node
        return best

    # --- loops of the framework: their first round is known earlier than the others

    def _first_round(self, site: str, node: Node) -> _Best | None:
        """Where all rounds of a loop are explained by what enters or leaves framework nodes, the first one alone, by
        what is known before; None if nothing explains it."""
        if not any(self._is_late(ref) for ref in node.refs()):
            return None
        calls = {view.number: view.first_round(site) for view in self.views if view.open.get(site)}
        if not all(calls.values()) or all(len(c) == len(self.views[n].open[site]) for n, c in calls.items()):
            return None
        covers = [self._cover(self.views[number], call, SHORTEST[0]) for number, of in calls.items() for call in of]
        for candidate in candidates(self._mates(covers[0], covers[1:])):
            level = candidate.level
            first = replace(node, input=candidate.leaves, level=level, many=level is not None, when=())
            if any(self._is_late(ref) for ref in first.refs()):
                continue
            fits = [view.fit(first, candidate.shape) for view in self.views]
            if all(fits[number].calls and not fits[number].skips for number in calls):
                judged = replace(self._judge(first, fits), input=candidate.input())
                if judged.confidence == "verified" and judged.always:
                    return _Best(judged, fits)
        return None

    def _is_late(self, ref: Ref) -> bool:
        return any(node.name == ref.node and node.at_boundary for node in self.nodes)

    def _from_second(self, node: Node, shape: Shape, fits: list[Fit]) -> tuple[Node, list[Fit]]:
        """The same from a loop's second round on, if that explains what all rounds don't."""
        level = node.level
        loops = level is not None and level.domain is not None and self._is_late(level.domain)
        if level is None or not loops or not any(fit.skips for fit in fits):
            return node, fits
        later = replace(node, level=replace(level, first=1))
        tried = [view.fit(later, shape) for view in self.views]
        return (node, fits) if any(fit.skips for fit in tried) else (later, tried)

    def _group(self, site: str, view: View, call: CallRecord, shortest: int) -> list[Covered]:
        first = self._cover(view, call, shortest)
        others = [
            self._cover(v, other, shortest)
            for v in self.views
            for other in v.open.get(site, ())[:64]
            if other is not call and other.family == call.family and other.identity == call.identity
        ]
        return self._mates(first, others)

    def _mates(self, first: Covered, others: list[Covered]) -> list[Covered]:
        """Those that can share a template with `first`, in program order."""
        group = mates(first, others, [view.values for view in self.views])
        return sorted(group, key=lambda covered: (covered.trace, covered.call.start))

    def _cover(self, view: View, call: CallRecord, shortest: int) -> Covered:
        key = (id(call), shortest)
        if key not in self._covers:
            self._covers[key] = cover(view.number, call, view.values, shortest, self._constant)
        return self._covers[key]

    # --- decisions

    def _decided(self, node: Node, fits: list[Fit], shape: Shape | None = None) -> tuple[Node, list[Fit]]:
        """The node with what decides whether its calls are made, if it sometimes isn't demanded and something tells."""
        if node.when or all(not fit.skips and not fit.partial for fit in fits):
            return node, fits
        outcomes = [outcome for view in self.views if view.complete for outcome in view.outcomes(node, shape)]
        tables = decisions(outcomes, self.nodes)
        if not tables:
            return node, fits
        decided = replace(node, when=tuple(table.seen_in(1) for table in tables))
        fits = [view.fit(decided, shape) for view in self.views]
        decided = self._judge(decided, fits)
        if not decided.always:
            return node, [view.fit(node, shape) for view in self.views]
        return replace(decided, when=tuple(table.seen_in(2) for table in tables)), fits

    def _judge(self, node: Node, fits: list[Fit]) -> Node:
        """Level bounds, confidence and whether it is always demanded."""
        level = node.level
        counts = [len(fit.calls) for fit in fits if fit.calls]
        complete = [(fit, view) for fit, view in zip(fits, self.views, strict=True) if view.complete and fit.calls]
        if level is not None and level.domain is not None:
            partial = [len(fit.calls) for fit, _ in complete if fit.partial]
            cap = min(partial) if partial else None
            seen = max((len(fit.calls) for fit, _ in complete), default=None)
            fixed = not partial or (len(set(partial)) == 1 and all(len(f.calls) <= partial[0] for f, _ in complete))
            level = replace(level, cap=cap, exact=fixed, seen=seen, distinct=any(fit.distinct for fit in fits))
        elif level is not None:
            level = Level(None, repeat=min(counts))
        inputs = {freeze(view.trace.input) for fit, view in zip(fits, self.views, strict=True) if fit.calls}
        confidence: Confidence = "seen"
        if len(inputs) > 1:
            confidence = "verified"
        elif any(len({freeze(call.input) for call in fit.calls}) > 1 for fit in fits):
            confidence = "looped"
        ran = [
            (bool(fit.calls) and not fit.skips) or bool(fit.predicted == 0 and (node.when or level is not None))
            for fit, view in zip(fits, self.views, strict=True)
            if view.complete and (node.when or not node.within or view.ran(node.within))
        ]
        reason = "" if confidence == "verified" else "seen in one input only"
        return replace(node, level=level, confidence=confidence, always=all(ran), reason=reason)

    def explained(self) -> float:
        """The share of all calls that may be issued that verified nodes explain."""
        calls = sum(OPS[call.op].issuable for view in self.views for call in view.trace.calls)
        return self._explained / calls if calls else 1.0

    def _accept(self, node: Node, fits: list[Fit]) -> None:
        self._take_name(node.name)
        self.nodes.append(node)
        if node.confidence == "verified":
            self._explained += sum(len(fit.calls) for fit in fits)
        for view, fit in zip(self.views, fits, strict=True):
            view.take(node, fit.calls, fit.places)

    def leave_opaque(self, site: str) -> None:
        """What no template explains: never issued, but its outputs feed others."""
        rest = [view.open.get(site, []) for view in self.views]
        if not any(rest):
            return
        call = next(calls[0] for calls in rest if calls)
        seen_once = len({freeze(view.trace.input) for view in self.views if view.complete}) < 2
        reason = (
            "seen with one input only"
            if OPS[call.op].issuable and seen_once
            else "its input holds text that no known value explains"
            if OPS[call.op].issuable
            else f"{call.op} is left to the program"
        )
        node = Node(
            self._name(call),
            OPS[call.op],
            site=site,
            within=call.within,
            method=call.family,
            many=max(map(len, rest)) > 1,
            reason=reason,
            first=_first(call),
        )
        self._take_name(node.name)
        self.nodes.append(node)
        for view, calls in zip(self.views, rest, strict=True):
            view.take(node, list(calls))

    # --- names

    def _name(self, call: CallRecord) -> str:
        base = f"{call.within or 'main'}.{call.op}"
        count = self._names.get(base, 0)
        return base if not count else f"{base}.{count + 1}"

    def _take_name(self, name: str) -> None:
        base = name.rstrip("0123456789").rstrip(".") if name.rsplit(".", 1)[-1].isdigit() else name
        self._names[base] = self._names.get(base, 0) + 1


def _first(call: CallRecord, tree: Tree = None) -> First | None:
    """What the call's component does first, as its adapter says; `tree`: the input's template, which must tell it."""
    method = METHODS.get((call.family, call.method))
    inner = method.inner if method is not None else None
    first = inner.first(call.component, call.input) if inner is not None else None
    return first if first is None or tree is None or leads(tree, first.path) else None
