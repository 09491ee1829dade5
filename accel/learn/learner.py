"""Traces in, p-graph out: a pure function, run off the hot path after runs that were not fully predicted.

In program order, calls are covered by known values, folded into nodes by site, and every candidate is checked by
evaluating it on all traces: a node is what predicts exactly the calls that were made. What no template explains becomes
an opaque node, whose output can still be a source for others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ..intercept import METHODS
from ..ir import First, Graph, Node, leads, verify
from ..ops import OPS
from ..record import CallRecord, Trace
from ..templates import Ref
from ..values import Tree, freeze, wholes_of
from .candidates import candidates
from .fold import Covered, cover, literals_in, mates
from .foreign import Data
from .judging import decided, judged
from .places import EDITED, SHORTEST, holds_edited
from .provenance import Values
from .shape import Shape
from .view import Fit, View, repeated_nodes, sites_of, still_given
from .witness import witness

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
    whose: dict[str, Hashable]
    """By node, the identity of the component that all of its calls went to; those that went to several are missing."""


def learn(traces: Sequence[Trace]) -> Graph:
    """The p-graph of finished `traces`."""
    return lesson(traces).graph


def lesson(traces: Sequence[Trace], own: Callable[[str], bool] = lambda text: False) -> Lesson:
    """`learn`, and what it learnt from which trace. `own`: whether a text is the program's."""
    views = [View(i, trace, True) for i, trace in enumerate(traces)]
    first: dict[Hashable, int] = {}
    for view in views:
        view.witness = first.setdefault(witness(view.trace.input), view.number)
    builder = _Builder(views, data=Data(traces, own))
    builder.explain(sites_of(views))
    graph = Graph(tuple(builder.nodes), runs=len(traces))
    verify(graph)
    return Lesson(graph, [frozenset(view.nodes) for view in views], builder.explained(), builder.whose)


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

    @property
    def score(self) -> tuple[int, int]:
        """In how many traces it explains calls, and how many."""
        return sum(1 for fit in self.fits if fit.calls), sum(len(fit.calls) for fit in self.fits)


class _Builder:
    def __init__(self, views: list[View], known: Graph | None = None, data: Data | None = None) -> None:
        self.views = views
        self._data = data or Data()
        self._covers: dict[tuple[int, int, bool], Covered] = {}
        """By call, shortest value, and whether late values count; until another node adds values."""
        self.nodes: list[Node] = list(known.nodes) if known is not None else []
        self._names: dict[str, int] = {}
        self._explained = 0
        self._constant: set[Hashable] = set()
        """Lists and dicts that are literals at the site at hand."""
        self._always: dict[str, set[Hashable]] = {}
        """The same by site."""
        self._sparse = {node.name for node in self.nodes if node.is_sparse}
        """Nodes that don't have an output for every element."""
        self.whose: dict[str, Hashable] = {}
        self._found: Counter[str] = Counter()
        """By site, its nodes."""
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

    def explain(self, sites: Sequence[str]) -> None:
        """Turn all calls into nodes. A site waits with calls of which earlier ones elsewhere aren't explained: what a
        round of a loop asks may come from other sites in the round before."""
        tried: dict[str, int] = {}
        while open_sites := [site for site in sites if self._open(site)]:
            ready = [(view, view.ready()) for view in self.views]
            for site in open_sites:
                calls = [(view, call) for view, by_site in ready for call in by_site.get(site, ())]
                if len(calls) > tried.get(site, 0):
                    break
            else:
                site = open_sites[0]
                calls = self._open(site)
            if self._explain_some(site, calls):
                tried.pop(site, None)
            elif len(calls) == len(self._open(site)):
                self.leave_opaque(site)
            else:
                tried[site] = len(calls)

    def _open(self, site: str) -> list[tuple[View, CallRecord]]:
        return [(view, call) for view in self.views for call in view.open.get(site, ())]

    # --- one site

    def explain_what_can_be(self, site: str) -> bool:
        """Turn the calls of a site into nodes as far as templates explain them; False if they explain none."""
        before = len(self.nodes)
        while self._explain_some(site, self._open(site)):
            pass
        return len(self.nodes) > before

    def _literals(self, site: str) -> set[Hashable]:
        """Lists and dicts that every call of a site was given, in runs with different inputs: part of the program, also
        where an element happens to be a value the run has seen (the ids of all records, say)."""
        if site not in self._always:
            self._always[site] = self._given_always(site)
        return self._always[site]

    def _given_always(self, site: str) -> set[Hashable]:
        called = [view for view in self.views if view.open.get(site)]
        if len({view.witness for view in called}) < 2:
            return set()
        calls = [call for view in called for call in view.open[site]]
        return set.intersection(*(set(map(freeze, wholes_of(call.input))) for call in calls))

    def _explain_some(self, site: str, calls: Sequence[tuple[View, CallRecord]]) -> bool:
        """One more node at this site, that explains one of these calls; False if there is none to be found."""
        if self._found[site] == MAX_NODES_PER_SITE:
            return False
        tries = 0
        self._constant = self._literals(site)
        for view, call in calls:
            if not OPS[call.op].issuable or call.composite:
                continue
            best = self._best(site, view, call)
            if best.node is not None and best.node.confidence != "seen" and not self._data.is_in(best.node):
                best = self._first_round(site, best.node) or best
                assert best.node is not None
                self._accept(*decided(best.node, best.fits, self.views, self.nodes))
                self._found[site] += 1
                return True
            tries += 1
            if tries == MAX_TRIES:
                break
        return False

    def _best(self, site: str, view: View, call: CallRecord) -> _Best:
        """What explains this call and most of the site's others in most traces; of that, what is known early."""
        best = self._search(site, view, call)
        if best.node is not None and any(map(self._is_late, best.node.refs())):
            with self._early_values():
                early = self._search(site, view, call)
            if early.node is not None and early.score >= best.score and not self._holds_edited(early):
                return early
        return best

    @contextmanager
    def _early_values(self) -> Iterator[None]:
        """Look for what is known early alone: a text of a framework node's may be made of such values."""
        for view in self.views:
            view.values.late = False
        try:
            yield
        finally:
            for view in self.views:
                view.values.late = True

    def _search(self, site: str, view: View, call: CallRecord) -> _Best:
        """The candidate that explains this call and most of the site's others in most traces."""
        best, best_score = _Best(None, []), (0, 0)
        most = (sum(1 for v in self.views if v.open.get(site)), sum(len(v.open.get(site, ())) for v in self.views))
        # Inside a first run two iterations may share a short value by chance: then rather a hole too many.
        first_run = not any(v.complete for v in self.views)
        for shortest in (*(reversed(SHORTEST) if first_run else SHORTEST), EDITED):
            for candidate in candidates(self._group(site, view, call, shortest), self._sparse):
                shape = candidate.shape
                node = Node(
                    self._name(call), OPS[call.op], candidate.leaves, site, call.within, call.family, candidate.level,
                    many=candidate.level is not None,
                )  # fmt: skip
                node = self._like_its_domain(node)
                own = view.fit(node, shape)
                if not own.skips and call not in own.calls:
                    continue
                node, fits = self._from_second(
                    node, shape, [own if v is view else v.fit(node, shape) for v in self.views]
                )
                if any(fit.skips for fit in fits):
                    node, fits = decided(node, fits, self.views, self.nodes, shape)
                if not any(call in fit.calls for fit in fits):
                    continue
                score = _Best(node, fits).score
                done = score == most and not any(fit.partial for fit in fits)
                if score > best_score or done:
                    tree = candidate.input()
                    known = replace(judged(node, fits, self.views), input=tree, first=_first(call, tree))
                    best, best_score = _Best(known, fits), max(score, best_score)
                if done:
                    break
            if shortest != EDITED and self._holds_edited(best):
                best, best_score = _Best(None, []), (0, 0)
            elif best_score[0] == most[0]:
                break  # it explains every trace; the rest of the site is another node
        return best

    def _holds_edited(self, best: _Best) -> bool:
        """Whether a text that is equal in all calls holds a value that every one of these runs knew, edited on its way:
        somebody's data, which all of them happened to find."""
        if best.node is None or not any(view.complete for view in self.views):
            return False  # what one run teaches stays with that run
        texts = list(literals_in(best.node.input, self._constant))
        fits = zip(self.views, best.fits, strict=True)
        made = [(view.values, fit.calls[0].start) for view, fit in fits if fit.calls]
        # What the template refers to by name is the program's: it says "Title:" before what is under "title".
        keys = {step for ref in best.node.refs() for step in ref.path if isinstance(step, str)}
        return all(holds_edited(values, texts, before, keys) for values, before in made)

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
                known = replace(judged(first, fits, self.views), input=candidate.input())
                best = _Best(known, fits)
                if known.confidence == "verified" and known.always and not self._holds_edited(best):
                    return best
        return None

    def _is_late(self, ref: Ref) -> bool:
        return any(node.name == ref.node and node.at_boundary for node in self.nodes)

    def _like_its_domain(self, node: Node) -> Node:
        """Where a domain has no element, neither has the node."""
        level = node.level
        if level is None or level.domain is None:
            return node
        is_sparse = level.domain.node in self._sparse and node.dims == 1
        return replace(node, level=replace(level, sparse=True)) if is_sparse else node

    def _from_second(self, node: Node, shape: Shape, fits: list[Fit]) -> tuple[Node, list[Fit]]:
        """The same from the second element on (a loop's second round, what follows a heading), if that explains what
        all of them don't."""
        level = node.level
        if level is None or level.domain is None or not any(fit.skips for fit in fits):
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
        key = (id(call), shortest, view.values.late)
        if key not in self._covers:
            self._covers[key] = cover(view.number, call, view.values, shortest, self._constant)
        return self._covers[key]

    def explained(self) -> float:
        """The share of all calls that may be issued that verified nodes explain."""
        calls = sum(OPS[call.op].issuable for view in self.views for call in view.trace.calls)
        return self._explained / calls if calls else 1.0

    def _accept(self, node: Node, fits: list[Fit]) -> None:
        late = [ref for ref in node.refs() if self._is_late(ref)]
        if late and all(view.gains_nothing(fit, late) for view, fit in zip(self.views, fits, strict=True)):
            node = replace(node, at_once=True)
        made = [(view, call) for view, fit in zip(self.views, fits, strict=True) for call in fit.calls]
        node = replace(node, unreplaced=still_given(sorted(node.given(), key=str), made))
        self._take_name(node.name)
        self.nodes.append(node)
        if node.is_sparse:
            self._sparse.add(node.name)
        identities = {call.identity for fit in fits for call in fit.calls}
        if len(identities) == 1:
            self.whose[node.name] = identities.pop()
        if node.confidence == "verified":
            self._explained += sum(len(fit.calls) for fit in fits)
        self._covers.clear()
        for view, fit in zip(self.views, fits, strict=True):
            view.take(node, fit.calls, fit.places)

    def leave_opaque(self, site: str) -> None:
        """What no template explains: never issued, but its outputs feed others."""
        rest = [view.open.get(site, []) for view in self.views]
        if not any(rest):
            return
        call = next(calls[0] for calls in rest if calls)
        seen_once = len({view.witness for view in self.views if view.complete}) < 2
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
        self._covers.clear()
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
