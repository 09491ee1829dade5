"""Traces in, p-graph out: a pure function, run off the hot path after runs that were not fully predicted.

Site by site in program order, calls are covered by known values, folded into nodes, and every candidate is checked by
evaluating it on all traces: a node is what predicts exactly the calls that were made. What no template explains becomes
an opaque node, whose output can still be a source for others.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

from ..evaluate import UNKNOWN, Index, enumerate_stars, has_gap, nested, predict
from ..intercept import METHODS
from ..ir import OPS, STAR, Confidence, First, Graph, Level, Node, leads, verify
from ..record import CallRecord, Trace
from ..values import Opaque, Tree, freeze, lists_of
from .fold import Covered, cover, mates, templates
from .provenance import SHORTEST, Values

MAX_NODES_PER_SITE = 24
MAX_TRIES = 6
"""Calls of a site that may fail to give a node before the rest of the site is left opaque."""


@dataclass(slots=True, eq=False)
class _View:
    """One trace while the graph is built: its values so far and the calls not explained yet."""

    number: int
    trace: Trace
    complete: bool
    values: Values = field(default_factory=Values)
    open: dict[str, list[CallRecord]] = field(default_factory=dict)


@dataclass(slots=True)
class _Fit:
    """How a candidate explains one trace."""

    calls: list[CallRecord]
    """By position."""
    predicted: int
    distinct: bool
    places: list[Index] = field(default_factory=list)
    """What each of the calls is bound to."""

    @property
    def partial(self) -> bool:
        return self.predicted > len(self.calls)


def learn(traces: Sequence[Trace], running: Trace | None = None) -> Graph:
    """The p-graph of finished `traces`; `running`, a trace still going on, may confirm templates or add loops."""
    views = [_View(i, trace, True) for i, trace in enumerate(traces)]
    if running is not None:
        views.append(_View(len(views), running, False, Values(cautious=not views)))
    builder = _Builder(views)
    for site in _sites(views):
        builder.explain(site)
    graph = Graph(tuple(builder.nodes), runs=len(traces))
    verify(graph)
    return graph


def explains(graph: Graph, trace: Trace) -> bool:
    """Whether verified nodes of `graph` predict every issuable call of the trace, and no more: nothing to learn."""
    view = _View(0, trace, True)
    _sites([view])
    builder = _Builder([view], graph)
    for node in graph.nodes:
        if not node.site:
            continue
        places: list[Index] = []
        if not node.predictable:
            calls = list(view.open.get(node.site, ())) if not node.op.issuable else []
        else:
            fit = builder.fit(node, view)
            if node.confidence != "verified" or (fit.predicted > len(fit.calls) and node.always):
                return False
            calls, places = fit.calls, fit.places
        builder.publish(view, node, calls, places)
    return not any(view.open.values())


def _sites(views: list[_View]) -> list[str]:
    """All call sites in the order of their first demand; calls that are composites stay, as sources."""
    order: dict[str, None] = {}
    for view in views:
        for call in view.trace.calls:
            if call.parent is not None and not call.parent.composite:
                continue  # embedding the query is part of the search
            if call.ok or (call.end is None and not view.complete):
                view.open.setdefault(call.site, []).append(call)
                order.setdefault(call.site)
    return list(order)


class _Builder:
    def __init__(self, views: list[_View], known: Graph | None = None) -> None:
        self.views = views
        self._known = known or Graph()
        self._covers: dict[tuple[int, int], Covered] = {}
        """Of the site at hand, until another node adds values."""
        self.nodes: list[Node] = []
        self._names: dict[str, int] = {}
        self._constant: set[Hashable] = set()
        """Lists that are literals at the site at hand."""
        self._add_sources()

    def _add_sources(self) -> None:
        """Run input and everything that entered or left framework nodes."""
        self.nodes.append(Node("input", OPS["input"]))
        many: dict[str, bool] = {}
        for view in self.views:
            counts: dict[str, int] = {}
            for visit in view.trace.visits:
                counts[visit.node] = counts.get(visit.node, 0) + 1
            for name, count in counts.items():
                many[name] = many.get(name, False) or count > 1
        for name in many:
            before = self._known.by_name.get(f"{name}.in")
            many[name] = many[name] or (before is not None and before.many)
        for name, repeated in many.items():
            self.nodes.append(Node(f"{name}.in", OPS["enter"], many=repeated))
            self.nodes.append(Node(f"{name}.out", OPS["exit"], many=repeated))
        for view in self.views:
            view.values.outputs["input"] = view.trace.input
            view.values.add("input", (), view.trace.input, 0, early=True, texts=True)
            for name, repeated in many.items():
                visits = [visit for visit in view.trace.visits if visit.node == name]
                for suffix, values in (
                    ("in", [(v.start, v.entered) for v in visits]),
                    ("out", [(v.end, v.left) for v in visits]),
                ):
                    outputs = [value for _, value in values]
                    view.values.outputs[f"{name}.{suffix}"] = (
                        outputs if repeated else outputs[0] if outputs else UNKNOWN
                    )
                    for position, (known, value) in enumerate(values):
                        if known is not None:
                            path = (position,) if repeated else ()
                            view.values.add(f"{name}.{suffix}", path, value, known, early=False, texts=False)

    # --- one site

    def explain(self, site: str) -> None:
        """Turn all calls of a site into nodes."""
        self._constant = self._constant_lists(site)
        for _ in range(MAX_NODES_PER_SITE):
            if not self._explain_some(site):
                break
        self._leave_opaque(site)

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
                node, fits = self._best(site, view, call)
                if node is not None and node.confidence != "seen":
                    self._accept(node, fits)
                    return True
                tries += 1
                if tries == MAX_TRIES:
                    return False
        return False

    def _best(self, site: str, view: _View, call: CallRecord) -> tuple[Node | None, list[_Fit]]:
        """The candidate that explains this call and most of the site's others in most traces."""
        best: tuple[tuple[int, int], Node | None, list[_Fit]] = ((0, 0), None, [])
        most = (sum(1 for v in self.views if v.open.get(site)), sum(len(v.open.get(site, ())) for v in self.views))
        # Inside a first run two iterations may share a short value by chance: then rather a hole too many.
        first_run = not any(v.complete for v in self.views)
        for shortest in reversed(SHORTEST) if first_run else SHORTEST:
            for tree, level in templates(self._group(site, view, call, shortest)):
                node = Node(
                    self._name(call), OPS[call.op], tree, site, call.within, call.family, level,
                    many=level is not None, first=_first(call, tree),
                )  # fmt: skip
                fits = [self.fit(node, v) for v in self.views]
                if not any(call in fit.calls for fit in fits):
                    continue
                score = (sum(1 for fit in fits if fit.calls), sum(len(fit.calls) for fit in fits))
                if score > best[0]:
                    best = (score, self._judge(node, fits), fits)
                if score == most and not any(fit.partial for fit in fits):
                    return best[1], best[2]
            if best[0][0] == most[0]:
                break  # it explains every trace; the rest of the site is another node
        return best[1], best[2]

    def _group(self, site: str, view: _View, call: CallRecord, shortest: int) -> list[Covered]:
        first = self._cover(view, call, shortest)
        others = [
            self._cover(v, other, shortest)
            for v in self.views
            for other in v.open.get(site, ())[:64]
            if other is not call and other.family == call.family and other.identity == call.identity
        ]
        group = mates(first, others, [v.values for v in self.views])
        return sorted(group, key=lambda covered: (covered.trace, covered.call.start))

    def _cover(self, view: _View, call: CallRecord, shortest: int) -> Covered:
        key = (id(call), shortest)
        if key not in self._covers:
            self._covers[key] = cover(view.number, call, view.values, shortest, self._constant)
        return self._covers[key]

    def fit(self, node: Node, view: _View) -> _Fit:
        """Which of the view's open calls the node predicts, in its order; empty unless they are a beginning of it."""
        prediction = predict(node, view.values)
        known = [(freeze(t), b) for t, b in zip(prediction.inputs, prediction.bindings, strict=True) if not has_gap(t)]
        inputs = [tree for tree, _ in known]
        calls = [c for c in view.open.get(node.site, ()) if c.family == node.method]
        plain = _assign(inputs, calls)
        unique = list(dict.fromkeys(inputs))
        if len(unique) < len(inputs) and (plain is None or len(plain) < len(inputs)):
            assigned = _assign(unique, calls)
            # Dropping duplicates explains more than stopping early, if then nothing is left over.
            if assigned is not None and (plain is None or len(assigned) == len(unique)):
                first = {tree: binding for tree, binding in reversed(known)}
                return _Fit(assigned, len(unique), True, [first[tree] for tree in unique[: len(assigned)]])
        plain = plain or []
        return _Fit(plain, len(inputs), False, [binding for _, binding in known[: len(plain)]])

    def _judge(self, node: Node, fits: list[_Fit]) -> Node:
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
            bool(fit.calls) or bool(fit.predicted == 0 and level is not None)
            for fit, view in zip(fits, self.views, strict=True)
            if view.complete and (not node.within or any(v.node == node.within for v in view.trace.visits))
        ]
        reason = "" if confidence == "verified" else "seen in one input only"
        return replace(node, level=level, confidence=confidence, always=all(ran), reason=reason)

    def _accept(self, node: Node, fits: list[_Fit]) -> None:
        self._take_name(node.name)
        self.nodes.append(node)
        for view, fit in zip(self.views, fits, strict=True):
            self.publish(view, node, fit.calls, fit.places)

    def _leave_opaque(self, site: str) -> None:
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
            self.publish(view, node, list(calls))

    def publish(self, view: _View, node: Node, calls: list[CallRecord], bindings: Sequence[Index] = ()) -> None:
        """Make the outputs of explained calls sources for later sites."""
        outputs = [call.output if call.end is not None else UNKNOWN for call in calls]
        paths: list[Index] = [(position,) if node.many else () for position in range(len(calls))]
        if node.dims > 1:
            view.values.outputs[node.name] = nested(bindings, outputs, node.dims, True)
            paths, _ = enumerate_stars(view.values.outputs[node.name], (STAR,) * node.dims)
        else:
            view.values.outputs[node.name] = outputs if node.many else outputs[0] if outputs else UNKNOWN
        taken = set(map(id, calls))
        held = view.open.get(node.site)
        if held is not None:
            view.open[node.site] = [call for call in held if id(call) not in taken]
        for path, call in zip(paths, calls, strict=True):
            if call.end is not None and not isinstance(call.output, Opaque):
                view.values.add(node.name, path, call.output, call.end, early=True, texts=node.op.streams)

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


def _assign(inputs: list[Tree], calls: list[CallRecord]) -> list[CallRecord] | None:
    """A call for each of the first predicted inputs; None unless the calls made are a beginning of the prediction."""
    by_input: dict[Tree, list[CallRecord]] = {}
    for call in calls:
        by_input.setdefault(freeze(call.input), []).append(call)
    assigned: list[CallRecord] = []
    missing = False
    for key in inputs:
        found = by_input.get(key)
        if found:
            if missing:
                return None  # a gap in the middle: the program skips elements by a rule we don't know
            assigned.append(found.pop(0))
        else:
            missing = True
    return assigned
