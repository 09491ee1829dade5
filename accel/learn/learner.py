"""How the calls of traces become nodes: candidates are tried site by site, checked on all traces, and judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Sequence, Set
from typing import TypeGuard

from ..graph.ir import Evidence, Graph, Node
from ..graph.ops import OPS
from ..text.functions import ORDERS
from ..text.templates import Ref
from ..trace.beside import BESIDE
from ..trace.record import CallRecord
from .computing.computed import AGREED, FEWEST, TABLES, agrees, compute, computes, late_values
from .computing.gathered import Gathered
from .covers.foreign import Data
from .covers.shape import Place
from .given import asked_instead, first_of, given_always, twins, varying
from .judging import decided
from .relays import Proposal, Relays
from .rounds import Rounds
from .search import Best, Search, counting
from .usual import usual
from .view import Fit, View, ancestries, still_given

UNEXPLAINED = "its input holds text that no known value explains"
MAX_NODES_PER_SITE = 24
MAX_MATES = 64
"""Calls of one site in one trace that are compared."""
MAX_TRIES = 6
"""Calls of a site that may fail to give a node before the rest of the site is left opaque."""


class Builder:
    def __init__(
        self,
        views: list[View],
        known: Graph | None = None,
        data: Data | None = None,
        refuted: Container[Proposal] = (),
        passed_over: Container[str] = (),
    ) -> None:
        self.views = views
        self._passed_over = passed_over
        """Sites for which no functions are tried."""
        self._data = data or Data()
        self.nodes: list[Node] = list(known.nodes) if known is not None else []
        self._names: dict[str, int] = {}
        self._explained = 0
        self._constant: dict[str, set[Hashable]] = {}
        """By site, `given_always`,"""
        self._varying: dict[str, Set[Place]] = {}
        """and `varying`."""
        self.whose: dict[str, Hashable] = {}
        self.lacks_runs = False
        self._ordinal: set[str] = set()
        """Sites of which no loop explains the calls."""
        self._asked: set[tuple[str, Sequence[str] | None]] = set()
        """Sites, and the functions that were tried: (): all; None: all, on what is known early."""
        self._computed: set[str] = set()
        """Sites for which functions give something, as far as that was asked;"""
        self._lacking: set[str] = set()
        """and those for which more runs must show what they give."""
        self._gathered = Gathered(views)
        self._instead = set[int]().union(*(asked_instead(view.trace.calls) for view in views))
        self._found: Counter[str] = Counter()
        """By site, its nodes."""
        self._rounds = Rounds(views, self.nodes)
        self._relays = Relays(views, self.nodes, refuted)
        self._add_sources()

    def _add_sources(self) -> None:
        before = {node.name: node for node in self.nodes}
        for node in self.nodes:
            self._take_name(node.name)
        if not before:
            self.nodes.append(Node("input", OPS["input"]))
        if BESIDE not in before and any(view.trace.beside is not None for view in self.views):
            self.nodes.append(Node(BESIDE, OPS["input"]))
        found = ancestries(self.views)
        answered = {visit.node for view in self.views for visit in view.trace.visits if visit.answers}
        answered = {name for name in answered if f"{name}.in" not in before or f"{name}.answers" in before}
        for name, ancestry in found.items():
            if f"{name}.in" in before:
                found[name] = before[f"{name}.in"].ancestry
                continue
            for suffix, op in (("in", "enter"), ("out", "exit"), *([("answers", "enter")] if name in answered else [])):
                self.nodes.append(Node(f"{name}.{suffix}", OPS[op], many=any(ancestry), ancestry=ancestry))
        for view in self.views:
            view.add_sources(found, answered)

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
            elif self._look_up(site) or self._compute(site):
                tried.pop(site, None)
            elif len(calls) == len(self._open(site)):
                self.leave_opaque(site)
            else:
                tried[site] = len(calls)

    def _open(self, site: str) -> list[tuple[View, CallRecord]]:
        return [(view, call) for view in self.views for call in view.open.get(site, ())]

    # --- one site

    def _compute(self, site: str) -> bool:
        """Whether functions give something of what no known value explains; each is asked once. First the few that put
        a list in order, or choose of it: these count if all calls of the site are explained."""
        if site in self._passed_over or not any(self._may_be_early(call) for _, call in self._open(site)[:1]):
            return False
        return self._ask(site, ORDERS) or self._ask(site, ())

    def _look_up(self, site: str) -> bool:
        """The same of the program's dicts, before all functions are tried, as it takes next to nothing."""
        return bool(self.views[0].values.constants().tables) and self._ask(site, TABLES)

    def _ask(self, site: str, only: Sequence[str]) -> bool:
        asked = (site, only)
        if asked in self._asked:
            return False
        self._asked.add(asked)
        lists = self._gathered.among(self.nodes) if only is not TABLES else ()
        found = compute(self.views, site, self.views[0].values.constants(), lists, only=only)
        self._computed |= {site} if found else set()
        return found

    def _compute_early(self, site: str, best: Best, late: Sequence[Ref]) -> None:
        """The same of what framework nodes hand on, by what is known before."""
        asked = (site, None)
        self.lacks_runs |= len({view.witness for view in self.views if view.complete}) < FEWEST
        if asked not in self._asked and site not in self._passed_over:
            self._asked.add(asked)
            wanted = late_values(self.views, best.fits, late)
            with counting(self.views, late=False):
                lists = self._gathered.among(self.nodes)
                found = compute(self.views, site, self.views[0].values.constants(), lists, wanted)
            self._computed |= {site} if found else set()

    def in_vain(self) -> frozenset[str]:
        """Sites for which all functions were tried, and no node is what they give."""
        shown: dict[str, set[int]] = {site: set() for site, only in self._asked if not only}
        for view in self.views:
            for site in shown.keys() & view.trace.sites:
                shown[site].add(view.witness)
        tried = {site for site, witnesses in shown.items() if len(witnesses) >= FEWEST}
        return frozenset(tried - self._lacking - {node.site for node in self.nodes if computes(node)})

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
            self._varying[site] = varying(self.views, site)
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
            if id(call) in hopeless or not self._may_be_early(call):
                continue
            search = self._search(call, ordinal)
            best = plain = search.best(view, call)
            if self._may_be_computed(search, site, best):
                with counting(self.views, computed=True):
                    best = self._better(search, plain, search.best(view, call))
                    whole = self._is_known(best.node) and self._is_whole(site, best)
                    if not whole and (site, ORDERS) in self._asked and self._ask(site, ()):
                        best = self._better(search, plain, search.best(view, call))
            best = self._agreed(search, site, best, plain, view, call)
            if not ordinal:
                best = self._fuller(search, calls, best)
                best = self._handed_on(search, view, call, best)
            if self._is_known(best.node) and not self._is_an_item(best.node, best.fits):
                ended = self._rounds.ended(best.node, best.fits)
                node, fits = self._relays.led(*decided(ended.node, ended.fits, self.views, self.nodes))
                self._accept(node, fits, search.late(node))
                self._found[site] += 1
                return True
            self._lacking |= {site} if search.lacks_runs else set()
            tries += 1
            hopeless.update(map(id, search.alike))
            if tries == (1 if ordinal else MAX_TRIES):
                break
        return False

    def _search(self, call: CallRecord, ordinal: bool = False) -> Search:
        constant, varying = self._constant[call.site], self._varying[call.site]
        return Search(self.views, self.nodes, self._name(call), constant, varying, ordinal)

    def _is_known(self, node: Node | None) -> TypeGuard[Node]:
        return node is not None and node.evidence.confidence != "seen" and not self._data.is_in(node)

    def _is_whole(self, site: str, best: Best) -> bool:
        """Whether a node explains all calls of a site."""
        return best.score[1] == len(self._open(site))

    def _is_an_item(self, node: Node, fits: Sequence[Fit]) -> bool:
        """Whether a call whose input is all literal is one of several of its site, and comes at another place in each
        run or, as far as anybody can tell, at will: it is about what a few runs happened to have in common."""
        if node.level is not None or node.when or any(node.refs()):
            return False
        calls = [[call for call in view.trace.calls if call.site == node.site] for view in self.views]
        places = {made.index(fit.calls[0]) for made, fit in zip(calls, fits, strict=True) if fit.calls}
        sometimes = any(made and not fit.calls for made, fit in zip(calls, fits, strict=True))
        return max(map(len, calls)) > 1 and (len(places) > 1 or sometimes)

    def _may_be_computed(self, search: Search, site: str, best: Best) -> bool:
        """Whether functions may give something for a site: where nothing else explains it, or what does is equal in
        some runs or some of its calls, or handed on by a framework's node."""
        if self._is_known(best.node):
            late = search.late(best.node)
            partly = best.score[0] < sum(bool(view.open.get(site)) for view in self.views)
            few = not self._is_whole(site, best)
            if partly:
                self._compute(site)
            if late:
                self._compute_early(site, best, late)
            if few:
                self._look_up(site)
            if not (partly or late or few):
                return False
        return site in self._computed

    def _fuller(self, search: Search, calls: Sequence[tuple[View, CallRecord]], best: Best) -> Best:
        """What explains one that this does not, though it differs in its texts alone, if that explains more: the prompt
        of a run without elements looks like a text of its own."""
        if not self._is_known(best.node) or best.node.level is not None or best.node.evidence.always:
            return best
        other = next((each for each in calls if search.differs_in_texts(best, *each)), None)
        with counting(self.views, computed=calls[0][1].site in self._computed):
            return best if other is None else self._better(search, best, search.best(*other))

    def _handed_on(self, search: Search, view: View, call: CallRecord, best: Best) -> Best:
        """The same by what each round of a loop hands on to the next, if that explains more."""
        site, readings = call.site, self.views[0].values.readings
        held = [len(view.open[site]) for view in self.views if view.open.get(site)]
        if "relay" not in readings or max(held) < 2 or call is not view.open[site][0]:
            return best
        if self._is_known(best.node) and best.score == (len(held), sum(held)) and not search.late(best.node):
            return best
        offered = self._relays.offer(site, self._constant[site])
        if not (offered or self._relays.awaits(site)):
            return best
        with counting(self.views, growing=True):
            other = self._search(call).best(view, call)
        better = self._better(search, best, other) if self._relays.show(other.node, other.fits) else best
        self._relays.keep(offered, {ref.node for ref in better.node.refs()} if better.node is not None else ())
        return better

    def _better(self, search: Search, plain: Best, computed: Best) -> Best:
        """The one with functions if it explains more, or as much by what is known early, and no later than that."""
        if not self._is_known(computed.node):
            return plain
        if not self._is_known(plain.node) or computed.score > plain.score:
            return computed
        earlier = len(search.late(computed.node)) < len(search.late(plain.node))
        later = earlier and search.comes_later(computed, plain)
        return computed if earlier and not later and computed.score == plain.score else plain

    def _agreed(self, search: Search, site: str, best: Best, plain: Best, view: View, call: CallRecord) -> Best:
        """What most answers of several alike calls are, where that explains as much as the short answer of one of them:
        that the one agrees with the most in all runs is rare, unless it is they that count. Where nothing tells (a tie
        that the program breaks), what a framework node hands on comes before that one."""
        parts = self._gathered.around(best.node, self.nodes) if self._is_known(best.node) else {}
        for name, others in parts.items():
            lists = [one for one in self._gathered.among(self.nodes) if one.name == name]
            if compute(self.views, site, self.views[0].values.constants(), lists, only=AGREED):
                with counting(self.views, computed=True, without=others):
                    found = search.best(view, call)
                if self._is_known(found.node) and agrees(found.node) and found.score >= best.score:
                    return found
        if not parts:
            return best
        with counting(self.views, without=min(parts.values(), key=len)):
            handed_on = search.best(view, call)
        if self._is_known(handed_on.node) and handed_on.score >= best.score:
            return handed_on
        return plain if self._is_known(plain.node) else best

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

    def _may_be_early(self, call: CallRecord) -> bool:
        return OPS[call.op].issuable and not call.composite and id(call) not in self._instead

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
            twins=twins(node, [view for view, fit in by_view if fit.calls]),
            usual=usual(node, fits, self.views, self.nodes),
        )
        self.nodes += [gathered for gathered in self._gathered.used(node) if gathered not in self.nodes]
        self._take_name(node.name)
        self._relays.settle(node, fits)
        self._relays.note(node)
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
        reason = "seen with one input only" if seen_once else UNEXPLAINED
        if not OPS[call.op].issuable:
            reason = f"{call.op} is left to the program"
        node = Node(
            self._name(call),
            OPS[call.op],
            site=site,
            within=call.within,
            method=call.family,
            many=max(map(len, rest)) > 1 or self._relays.awaits(call.site),
            first=first_of(call),
            evidence=Evidence(reason=reason),
        )
        self._take_name(node.name)
        self._relays.settle(node)
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
