"""What explains a call: the candidate that predicts it, and most of its site's other calls in most traces."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ..graph.ir import Node
from ..graph.ops import OPS
from ..text.paths import Index
from ..text.steps import Label
from ..text.templates import Ref, Spread, leaves_in, refs_in
from ..text.values import leaves
from ..trace.record import CallRecord
from .candidates import candidates
from .computing.computed import computes
from .covers.cover import EDITED, holds_edited
from .covers.fold import Covered, cover_call, cover_like, mates
from .covers.foreign import literals
from .covers.index import SHORTEST
from .covers.shape import Place, Shape, taken_apart
from .given import first_of
from .judging import Told, decided, judged
from .nothing import with_nothing
from .traits import may_be_chosen
from .view import Fit, View

MAX_APART = 4
"""Calls of a list that may each be explained by themselves."""
MAX_MATES = 64
"""Calls of one site in one trace that are compared."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best candidate for a call so far, and how it explains every trace."""

    node: Node | None
    fits: list[Fit]

    @property
    def score(self) -> tuple[int, int]:
        """In how many traces it explains calls, and how many."""
        return sum(1 for fit in self.fits if fit.calls), sum(len(fit.calls) for fit in self.fits)


class Search:
    """For the calls of one site, after these nodes."""

    def __init__(
        self,
        views: Sequence[View],
        nodes: Sequence[Node],
        name: str,
        constant: Container[Hashable] = frozenset(),
        varying: Container[Place] = frozenset(),
        ordinal: bool = False,
    ) -> None:
        """`ordinal`: a call is compared with those alone that have its place among the open ones of their run."""
        self._views = views
        self._nodes = nodes
        self._name = name
        """That a new node gets."""
        self._ordinal = ordinal
        self._constant = constant
        """See `given_always`;"""
        self._varying = varying
        """and `varying`."""
        self._readings = views[0].values.readings
        self._sparse = {node.name for node in nodes if node.is_sparse}
        """Nodes that don't have an output for every element."""
        self._unending = {node.name for node in nodes if node.at_boundary and len(node.ancestry) == 1}
        """Framework nodes in no other one: nothing tells a run that they do not run once more."""
        self._late = {node.name for node in nodes if node.at_boundary}
        self._visits = {node.name for node in nodes if node.at_boundary and node.many}
        self._relays = {node.name: node.relay for node in nodes if node.relay is not None}
        self._told: Told = {}
        """Most candidates for a call agree in which of its site's calls they expect."""
        self.alike: list[CallRecord] = []
        """Of the last search that found no candidate at all: the calls that could have shared one."""
        self.lacks_runs = False
        """Whether functions explain calls, as too few runs show."""

    def late(self, node: Node) -> list[Ref]:
        """What its input is made of that framework nodes gave. What decides whether a call is made may be guessed."""
        return [ref for ref in replace(node, when=()).refs() if ref.node in self._late]

    def best(self, view: View, call: CallRecord) -> Best:
        """What explains the call and most of its site's others in most traces; of that, what is known early. Of calls
        that are told by their place first what does without the answers of those before it: a word of these may stand
        in a prompt by chance."""
        own = frozenset(node.name for node in self._nodes if self._ordinal and node.site == call.site)
        if own:
            with counting(self._views, without=own):
                alone = self._best(view, call)
            if alone.node is not None:
                return alone
        return self._best(view, call)

    def _best(self, view: View, call: CallRecord) -> Best:
        best = self._search(view, call)
        if not any(view.complete for view in self._views):
            return self._as_given(view, call, best)
        if "early" not in self._readings or best.node is None or not self.late(best.node):
            return best
        with counting(self._views, late=False):
            early = self._search(view, call)
        if early.node is None or self._holds_edited(early) or self.comes_later(early, best):
            return best
        if early.score >= best.score or self._is_first_round(early, call.site) or self._are_early(view, best, early):
            return early
        spread = (held.leaf.ref for _, held in leaves(best.node.input) if isinstance(held, Spread))
        if early.score[0] == best.score[0] and any(ref.node in self._late for ref in spread):
            return early  # an agent's first call; what its framework node is given before each holds all rounds so far
        return best

    def differs_in_texts(self, best: Best, view: View, call: CallRecord) -> bool:
        """Whether this does not explain a call which has other texts in the same places."""
        assert best.node is not None
        explained = any(call is other for fit in best.fits for other in fit.calls)
        return not explained and view.complete and view.leaves_like(call, taken_apart(best.node)[1]) is not None

    def _as_given(self, view: View, call: CallRecord, best: Best) -> Best:
        """Inside a run: a loop over what its framework node was given, if that explains as much. A list from before may
        hold more: what somebody may not see, and another node has left out."""
        level, given = best.node.level if best.node is not None else None, f"{call.within}.in"
        if level is None or level.domain is None or level.domain.node == given:
            return best
        before = (each for each in self._nodes if each.site or each.at_boundary)
        without = frozenset(each.name for each in before if each.within != call.within and each.name != given)
        with counting(self._views, without=without):
            found = self._search(view, call)
        return found if found.node is not None and found.score >= best.score else best

    def _are_early(self, view: View, best: Best, early: Best) -> bool:
        """Whether the few calls of what a framework node was given are each explained by what is known early: it put
        its own list together. Visits of a node are no such list."""
        domain = best.node.level.domain if best.node is not None and best.node.level is not None else None
        if domain is not None and domain.node in self._visits:
            return False
        counts = {len(fit.calls) for fit in best.fits if fit.calls}
        if len(counts) != 1 or not 1 < max(counts) <= MAX_APART or early.score[0] < best.score[0]:
            return False
        here = self._views.index(view)
        rest = [call for call in best.fits[here].calls if call not in early.fits[here].calls]
        explained = early.score[1]
        with counting(self._views, late=False):
            for call in rest:
                other = self._search(view, call)
                if other.node is None or other.score[0] < best.score[0] or self._holds_edited(other):
                    return False
                explained += other.score[1]
        return explained == best.score[1]

    def comes_later(self, early: Best, late: Best) -> bool:
        """Whether what is known ahead of program order came after what a framework node had by then, whenever the call
        was made: an answer may repeat what it was asked about."""
        soon, then = (
            [[_moment(view, best.node, place) for place in fit.places]
             for view, fit in zip(self._views, best.fits, strict=True)]
            for best in (early, late)
        )  # fmt: skip
        pairs = [pair for one, other in zip(soon, then, strict=True) for pair in zip(one, other, strict=False)]
        return bool(pairs) and all(one > other for one, other in pairs)

    def _search(self, view: View, call: CallRecord) -> Best:
        """The candidate that explains this call and most of the site's others in most traces."""
        best, best_score = Best(None, []), (0, 0)
        site = call.site
        most = (sum(1 for v in self._views if v.open.get(site)), sum(len(v.open.get(site, ())) for v in self._views))
        # Inside a first run two iterations may share a short value by chance: then rather a hole too many.
        first_run = not any(v.complete for v in self._views)
        lengths = SHORTEST if "short" in self._readings else SHORTEST[:1]
        self.alike, any_candidate = [], False
        for shortest in (*(reversed(lengths) if first_run else lengths), EDITED):
            group = self._group(view, call, shortest)
            self.alike += [covered.call for covered in group]
            for candidate in candidates(group, self._sparse, self._unending, self._readings):
                any_candidate = True
                shape = candidate.shape
                node = Node(
                    self._name, OPS[call.op], candidate.leaves, site, call.within, call.family, candidate.level,
                    many=candidate.level is not None,
                )  # fmt: skip
                node = self._in_rounds(self._like_its_domain(node))
                own = view.fit(node, shape)
                if not own.skips and call not in own.calls:
                    continue
                node, fits = self._from_second(
                    node, shape, [own if v is view else v.fit(node, shape) for v in self._views]
                )
                told = with_nothing(node, shape, self._views, fits)
                if told is not node:
                    node, fits = told, [v.fit(told, shape) for v in self._views]
                if any(fit.skips for fit in fits):
                    node, fits = decided(node, fits, self._views, self._nodes, shape, self._told)
                if not any(call in fit.calls for fit in fits) or self._may_name_others(node, group, fits):
                    continue
                score = Best(node, fits).score
                done = score == most and not any(fit.partial for fit in fits)
                if score > best_score or done:
                    tree = replace(candidate, leaves=node.input).input()
                    known = replace(judged(node, fits, self._views), input=tree, first=first_of(call, tree))
                    if known.evidence.confidence == "seen" and computes(known):
                        self.lacks_runs = True
                        continue  # too few runs agree on a function
                    best, best_score = Best(known, fits), max(score, best_score)
                if done:
                    break
            if shortest != EDITED and self._holds_edited(best):
                best, best_score = Best(None, []), (0, 0)
            elif best_score[0] == most[0]:
                break  # it explains every trace; the rest of the site is another node
        if any_candidate:
            self.alike = []
        return best

    def _may_name_others(self, node: Node, group: Sequence[Covered], fits: Sequence[Fit]) -> bool:
        """Whether its labels may be the words of those whose calls show them, and others' calls did without."""
        refs = (ref for leaf in leaves_in(node.input) for ref in refs_in(leaf))
        if not any(isinstance(step, Label) and step.own for ref in refs for step in ref.path):
            return False
        numbers = {covered.trace for covered in group}
        shown = [view for view in self._views if view.number in numbers]
        others = [view for view, fit in zip(self._views, fits, strict=True) if fit.calls and view not in shown]
        return bool(others) and may_be_chosen(shown, others)

    def _holds_edited(self, best: Best) -> bool:
        """Whether a text that is equal in all calls holds a value that every one of these runs knew, edited on its way:
        somebody's data, which all of them happened to find."""
        if best.node is None or not any(view.complete for view in self._views):
            return False  # what one run teaches stays with that run
        texts = list(literals(best.node.input, self._constant))
        fits = zip(self._views, best.fits, strict=True)
        made = [(view.values, fit.calls[0].start) for view, fit in fits if fit.calls]
        # What the template refers to by name is the program's: it says "Title:" before what is under "title".
        steps = [step for ref in best.node.refs() for step in ref.path]
        keys = {step for step in steps if isinstance(step, str)}
        keys.update(kind for step in steps if isinstance(step, Label) for kind, _ in step.said)
        return all(holds_edited(values, texts, before, keys) for values, before in made)

    def _is_first_round(self, best: Best, site: str) -> bool:
        """Whether it explains, in every run, the first round of a framework's loop: that is known earlier than the
        others, which go by what enters or leaves framework nodes."""
        if best.node is None or best.node.evidence.confidence != "verified" or not best.node.evidence.always:
            return False
        rounds = [(view.first_round(site), fit) for view, fit in zip(self._views, best.fits, strict=True)
                  if view.open.get(site)]  # fmt: skip
        return all(calls and set(calls) == set(fit.calls) for calls, fit in rounds)

    def _like_its_domain(self, node: Node) -> Node:
        """Where a domain has no element, neither has the node."""
        level = node.level
        if level is None or level.domain is None:
            return node
        is_sparse = level.domain.node in self._sparse and node.dims == 1
        return replace(node, level=replace(level, sparse=True)) if is_sparse else node

    def _in_rounds(self, node: Node) -> Node:
        """Where nothing is handed on yet, it has no element."""
        relays = (self._relays[ref.node].first for ref in node.refs() if ref.node in self._relays)
        first = max(relays, default=0)
        if node.level is None or not first:
            return node
        return replace(node, level=replace(node.level, first=first, sparse=True))

    def _from_second(self, node: Node, shape: Shape, fits: list[Fit]) -> tuple[Node, list[Fit]]:
        """The same from the second element on (a loop's second round, what follows a heading), if that explains what
        all of them don't."""
        level = node.level
        if (
            "second" not in self._readings
            or level is None
            or level.domain is None
            or not any(fit.skips for fit in fits)
        ):
            return node, fits
        later = replace(node, level=replace(level, first=1))
        tried = [view.fit(later, shape) for view in self._views]
        if any(fit.skips for fit in tried):
            return node, fits
        to_the_end = not any(fit.partial for fit in tried)  # then what is made of each stands where the list has it
        return replace(later, level=replace(level, first=1, sparse=level.sparse or to_the_end)), tried

    def _group(self, view: View, call: CallRecord, shortest: int) -> list[Covered]:
        """The calls of its site that can share a template with a call, in program order."""
        first = cover_call(view.number, call, view.values, shortest, self._constant, self._varying)
        like = []
        place = view.open[call.site].index(call)
        which = slice(place, place + 1) if self._ordinal else slice(MAX_MATES)
        for v in self._views:
            for other in v.open.get(call.site, [])[which]:
                same = other is not call and other.family == call.family and other.identity == call.identity
                there = v.leaves_like(other, first.shape) if same else None
                if there is not None:
                    like.append(cover_like(first, v.number, other, there[0], v.values, shortest))
        group = mates(first, [covered for covered in like if covered is not None], [v.values for v in self._views])
        return sorted(group, key=lambda covered: (covered.trace, covered.call.start))


@contextmanager
def counting(
    views: Sequence[View],
    late: bool | None = None,
    computed: bool | None = None,
    ahead: bool | None = None,
    growing: bool | None = None,
    without: frozenset[str] | None = None,
) -> Iterator[None]:
    """Look for some values alone: for what is known early, as a text of a framework node's may be made of that; or also
    for what functions give, or calls to come."""
    before = [view.values.counted for view in views]
    for view in views:
        values = view.values
        values.late = values.late if late is None else late
        values.computed = values.computed if computed is None else computed
        values.ahead = values.ahead if ahead is None else ahead
        values.growing = values.growing if growing is None else growing
        values.without = values.without if without is None else without
    try:
        yield
    finally:
        for view, counted in zip(views, before, strict=True):
            values = view.values
            values.late, values.computed, values.ahead, values.growing, values.without = counted


def _moment(view: View, node: Node | None, place: Index) -> int:
    """Since when all that an element of a node refers to was known."""
    refs = set(node.refs()) if node is not None else ()
    return max((view.known_at(ref, place) for ref in refs), default=0)
