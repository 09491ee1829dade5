"""Traces in, p-graph out: a pure function, run off the hot path after runs that were not fully predicted.

In program order, calls are covered by known values, folded into nodes by site, and every candidate is checked by
evaluating it on all traces: a node is what predicts exactly the calls that were made. What no template explains becomes
an opaque node, whose output can still be a source for others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeGuard

from ..graph.ir import Evidence, Graph, Node
from ..graph.ops import OPS
from ..graph.verify import verify
from ..text.constants import Constants
from ..text.templates import Ref
from ..text.values import freeze
from ..trace.record import CallRecord, Trace
from .computed import FEWEST, compute, late_values
from .foreign import Data, Wording
from .gathered import Gathered
from .index import Values
from .judging import decided
from .readings import ALL, Readings
from .rounds import Rounds
from .search import Best, Search, counting, first_of, given_always
from .usual import usual
from .view import Fit, View, ancestries, sites_of, still_given
from .witness import witness

UNEXPLAINED = "its input holds text that no known value explains"
MAX_NODES_PER_SITE = 24
MAX_MATES = 64
"""Calls of one site in one trace that are compared."""
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
    lacks_runs: bool = False
    """Whether another run with another input may show that what framework nodes hand on is computed of what is known
    before."""


def learn(traces: Sequence[Trace]) -> Graph:
    """The p-graph of finished `traces`."""
    return lesson(traces).graph


def lesson(traces: Sequence[Trace], program: Wording | None = None, readings: Readings | None = None) -> Lesson:
    """`learn`, and what it learnt from which trace. `program`: None if nobody knows what it says by itself."""
    readings = ALL if readings is None else readings
    constants = cache(lambda: Constants.among(program.constants(), program.tables()) if program else Constants())
    views = [
        View(i, trace, True, Values(readings=readings, program=program, constants=constants))
        for i, trace in enumerate(traces)
    ]
    first: dict[Hashable, int] = {}
    for view in views:
        view.witness = first.setdefault(witness(view.trace.given), view.number)
    builder = _Builder(views, data=Data(traces, program))
    builder.explain(sites_of(views))
    graph = Graph(tuple(builder.nodes), runs=len(traces))
    verify(graph)
    shapes = [frozenset(view.nodes) for view in views]
    return Lesson(graph, shapes, builder.explained(), builder.whose, builder.lacks_runs)


def extend(known: Graph, running: Trace, site: str, readings: Readings | None = None) -> Graph:
    """`known` with what calls of one site show inside a run that is still going on: loops, as a rule. The same object
    if they show nothing."""
    readings = ALL if readings is None else readings
    view = View(0, running, False, Values(True, readings))
    sites = sites_of([view])
    builder = _Builder([view], known)
    confirmed = False
    for node in known.nodes:
        if node.gathers:
            view.gather(node)
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
    return graph


class _Builder:
    def __init__(self, views: list[View], known: Graph | None = None, data: Data | None = None) -> None:
        self.views = views
        self._data = data or Data()
        self.nodes: list[Node] = list(known.nodes) if known is not None else []
        self._names: dict[str, int] = {}
        self._explained = 0
        self._constant: dict[str, set[Hashable]] = {}
        """By site, `given_always`."""
        self.whose: dict[str, Hashable] = {}
        self.lacks_runs = False
        self._ordinal: set[str] = set()
        """Sites of which no loop explains the calls."""
        self._asked: set[tuple[str, bool | None]] = set()
        self._computed: set[str] = set()
        """Sites for which functions give something, as far as that was asked."""
        self._gathered = Gathered(views)
        self._found: Counter[str] = Counter()
        """By site, its nodes."""
        self._rounds = Rounds(views, self.nodes)
        self._add_sources()

    def _add_sources(self) -> None:
        before = {node.name: node for node in self.nodes}
        for node in self.nodes:
            self._take_name(node.name)
        if not before:
            self.nodes.append(Node("input", OPS["input"]))
        found = ancestries(self.views)
        for name, ancestry in found.items():
            if f"{name}.in" in before:
                found[name] = before[f"{name}.in"].ancestry
                continue
            for suffix, op in (("in", "enter"), ("out", "exit")):
                self.nodes.append(Node(f"{name}.{suffix}", OPS[op], many=any(ancestry), ancestry=ancestry))
        for view in self.views:
            view.add_sources(found)

    def judge_again(self, node: Node, here: bool) -> None:
        """A loop that another run showed: whether this one does, too."""
        judged = node.proven(confidence="looped" if here else "seen", reason="seen in one input only")
        self.nodes[self.nodes.index(node)] = judged

    def explain(self, sites: Sequence[str]) -> None:
        """Turn all calls into nodes. A site waits with calls of which earlier ones elsewhere aren't explained: what a
        round of a loop asks may come from other sites in the round before. Models come last: what they are told may be
        the results of several tools, of which each run has used some."""
        sites = sorted(sites, key=lambda site: any(OPS[call.op].streams for _, call in self._open(site)[:1]))
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
            elif self._compute(site):
                tried.pop(site, None)
            elif len(calls) == len(self._open(site)):
                self.leave_opaque(site)
            else:
                tried[site] = len(calls)

    def _open(self, site: str) -> list[tuple[View, CallRecord]]:
        return [(view, call) for view in self.views for call in view.open.get(site, ())]

    # --- one site

    def _compute(self, site: str) -> bool:
        """Whether functions give something of what no known value explains; asked once."""
        asked = (site, False)
        if asked in self._asked or not any(
            OPS[call.op].issuable and not call.composite for _, call in self._open(site)[:1]
        ):
            return False
        self._asked.add(asked)
        found = compute(self.views, site, self.views[0].values.constants(), self._gathered.among(self.nodes))
        self._computed |= {site} if found else set()
        return found

    def _look_up(self, site: str) -> None:
        """Whether dicts of the program have what stands in the calls; asked once."""
        asked = (site, None)
        constants = self.views[0].values.constants()
        if asked not in self._asked and constants.tables:
            self._asked.add(asked)
            self._computed |= {site} if compute(self.views, site, constants, tables=True) else set()

    def _compute_early(self, site: str, best: Best, late: Sequence[Ref]) -> None:
        """The same of what framework nodes hand on, by what is known before."""
        asked = (site, True)
        self.lacks_runs |= len({view.witness for view in self.views if view.complete}) < FEWEST
        if asked not in self._asked:
            self._asked.add(asked)
            wanted = late_values(self.views, best.fits, late)
            with counting(self.views, late=False):
                lists = self._gathered.among(self.nodes)
                found = compute(self.views, site, self.views[0].values.constants(), lists, wanted)
            self._computed |= {site} if found else set()

    def explain_what_can_be(self, site: str) -> bool:
        """Turn the calls of a site into nodes as far as templates explain them; False if they explain none."""
        before = len(self.nodes)
        while self._explain_some(site, self._open(site)):
            pass
        return len(self.nodes) > before

    def _explain_some(self, site: str, calls: Sequence[tuple[View, CallRecord]]) -> bool:
        """One more node at this site, that explains one of these calls; False if there is none to be found."""
        if self._found[site] == MAX_NODES_PER_SITE:
            return False
        if site not in self._constant:
            self._constant[site] = given_always(self.views, site)
        if self._explain_round(calls):
            return True
        if site not in self._ordinal and self._explain_one(site, calls, ordinal=False):
            return True
        if not self._has_places(site) or not self._explain_one(site, calls, ordinal=True):
            return False
        self._ordinal.add(site)
        return True

    def _has_places(self, site: str) -> bool:
        """Whether runs make several calls there, which may be told by their place."""
        several = any(len(view.open.get(site, ())) > 1 for view in self.views)
        return (several or site in self._ordinal) and "ordinal" in self.views[0].values.readings

    def _explain_one(self, site: str, calls: Sequence[tuple[View, CallRecord]], ordinal: bool) -> bool:
        tries, hopeless = 0, set[int]()
        for view, call in calls:
            if not OPS[call.op].issuable or call.composite or id(call) in hopeless:
                continue
            search = Search(self.views, self.nodes, self._name(call), self._constant[site], ordinal)
            best = search.best(view, call)
            if self._may_be_computed(search, site, best):
                with counting(self.views, computed=True):
                    best = self._better(search, best, search.best(view, call))
            if self._is_known(best.node):
                ended = self._rounds.ended(best.node, best.fits)
                node, fits = decided(ended.node, ended.fits, self.views, self.nodes)
                self._accept(node, fits, search.late(node))
                self._found[site] += 1
                return True
            tries += 1
            hopeless.update(map(id, search.alike))
            if tries == (1 if ordinal else MAX_TRIES):
                break
        return False

    def _is_known(self, node: Node | None) -> TypeGuard[Node]:
        return node is not None and node.evidence.confidence != "seen" and not self._data.is_in(node)

    def _may_be_computed(self, search: Search, site: str, best: Best) -> bool:
        """Whether functions may give something for a site: where nothing else explains it, or what does is equal in
        some runs or some of its calls, or handed on by a framework's node."""
        if self._is_known(best.node):
            late = search.late(best.node)
            partly = best.score[0] < sum(bool(view.open.get(site)) for view in self.views)
            if partly:
                self._compute(site)
            if late:
                self._compute_early(site, best, late)
            few = best.score[1] < len(self._open(site))
            if few:
                self._look_up(site)
            if not (partly or late or few):
                return False
        return site in self._computed

    def _better(self, search: Search, plain: Best, computed: Best) -> Best:
        """The one with functions if it explains more, or as much by what is known early."""
        if not self._is_known(computed.node):
            return plain
        if not self._is_known(plain.node) or computed.score > plain.score:
            return computed
        earlier = len(search.late(computed.node)) < len(search.late(plain.node))
        return computed if earlier and computed.score == plain.score else plain

    def _explain_round(self, calls: Sequence[tuple[View, CallRecord]]) -> bool:
        """One more node that explains one of these calls by an answer before it."""
        for view, call in calls if "rounds" in self.views[0].values.readings else ():
            if OPS[call.op].issuable and not call.composite:
                found = self._rounds.explain(view, call, self._name(call))
                if found is not None and found.node.evidence.confidence != "seen" and not self._data.is_in(found.node):
                    self._accept(found.node, found.fits, ())
                    self._found[call.site] += 1
                    return True
        return False

    def explained(self) -> float:
        """The share of all calls that may be issued that verified nodes explain. Of those inside others, either."""
        made = (call for view in self.views for call in view.trace.calls if not call.composite)
        calls = sum(OPS[call.op].issuable and (call.parent is None or call.parent.composite) for call in made)
        return self._explained / calls if calls else 1.0

    def _accept(self, node: Node, fits: list[Fit], late: Sequence[Ref]) -> None:
        by_view = list(zip(self.views, fits, strict=True))
        at_once = bool(late) and all(view.gains_nothing(fit, late) for view, fit in by_view)
        made = [(view, call) for view, fit in by_view for call in fit.calls]
        node = node.proven(
            at_once=at_once,
            unreplaced=still_given(sorted(node.given(), key=str), made),
            usual=usual(node, fits, self.views, self.nodes),
        )
        self.nodes += [gathered for gathered in self._gathered.used(node) if gathered not in self.nodes]
        self._take_name(node.name)
        self.nodes.append(node)
        identities = {call.identity for fit in fits for call in fit.calls}
        if len(identities) == 1:
            self.whose[node.name] = identities.pop()
        if node.evidence.confidence == "verified":
            self._explained += sum(len(fit.calls) for fit in fits)
        self._rounds.note(node, fits)
        for view, fit in by_view:
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
            else UNEXPLAINED
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
            first=first_of(call),
            evidence=Evidence(reason=reason),
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
