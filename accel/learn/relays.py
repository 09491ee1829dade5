"""What loops hand on from round to round, seen where a call's next round holds what a later call of this round gave.

A round's call that holds the first draft, and in the next round what a revision gave, holds an element of one list
(`Relay`). Once that list is a source like others, the rounds of a loop are one node each, however many there are.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..graph.ir import Level, Node
from ..graph.ops import OPS
from ..text.paths import UNKNOWN
from ..text.relay import Relay
from ..text.steps import STAR
from ..text.templates import Ref
from ..trace.record import CallRecord
from .covers.cover import cost_of
from .covers.fold import cover_call, cover_like
from .covers.holes import ANY, Hole, OpenPath, Row, filled
from .covers.index import SHORTEST
from .judging import judged
from .search import counting
from .view import Fit, View

MAX_STARTS = 2
"""Of one value, that are tried."""
MAX_RELAYS = 4
"""That are tried for one call."""
MAX_OFFSET = 2
"""Elements of another list before the first one that a round belongs to."""
FEWEST = 2
"""Runs with different inputs, and rounds of each, that show a relay."""
_AHEAD = "@"
"""Begins the names of call sites where those of nodes stand."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A relay. `site`: of its `later` calls, where no node explains them yet."""

    site: str
    relay: Relay

    def settled(self, node: str) -> Relay:
        """Once one does."""
        return Relay(self.relay.start, Ref(node, self.relay.later.path), self.relay.first)


class Refuted(Exception):
    """What was said of a loop does not hold: the calls that were to be its rounds are no one node's."""

    def __init__(self, proposal: Proposal) -> None:
        super().__init__(str(proposal))
        self.proposal = proposal


class Relays:
    """Those of one lesson."""

    def __init__(self, views: Sequence[View], nodes: list[Node], refuted: Container[Proposal] = ()) -> None:
        self._views = views
        self._nodes = nodes
        self._refuted = refuted
        self._awaited: dict[str, dict[str, Proposal]] = {}
        """By call site whose node is to be its rounds: relays by name."""
        self._rounds: set[str] = set()
        """Nodes that have an element for each round."""

    def offer(self, site: str, constant: Container[Hashable]) -> list[str]:
        """Count as sources what a site's calls may be handed; the names of these relays."""
        names = []
        for proposal in propose(self._views, self._nodes, site, constant):
            if proposal not in self._refuted:
                names.append(self._add(proposal))
        return names

    def _add(self, proposal: Proposal) -> str:
        names = (f"relay.{number}" if number > 1 else "relay" for number in itertools.count(1))
        name = next(name for name in names if all(node.name != name for node in self._nodes))
        self._nodes.append(Node(name, OPS["relay"], proposal.relay, many=True))
        if proposal.site:
            self._awaited.setdefault(proposal.site, {})[name] = proposal
        for view in self._views:
            view.hand_on(name, proposal.relay, proposal.site)
        return name

    def keep(self, offered: Sequence[str], used: Container[str]) -> None:
        """Of what was offered only these."""
        for name in offered:
            if name not in used:
                self._nodes[:] = [node for node in self._nodes if node.name != name]
                self._awaited = {site: {n: p for n, p in held.items() if n != name}
                                 for site, held in self._awaited.items()}  # fmt: skip
                for view in self._views:
                    view.values.forget(name)

    def show(self, node: Node | None, fits: Sequence[Fit]) -> bool:
        """Whether enough rounds of different runs show it."""
        both = zip(self._views, fits, strict=True) if node is not None else ()
        return len({view.witness for view, fit in both if len(fit.calls) >= FEWEST}) >= FEWEST

    def led(self, node: Node, fits: list[Fit]) -> tuple[Node, list[Fit]]:
        """The node as one of those that are in every round which another one has begun, if so it is: what is handed on
        last is handed to no further round."""
        level = node.level
        if level is None or not self._is_round(node) or level.first or node.when:
            return node, fits
        for other in self._nodes:
            if other.name in self._rounds and not other.is_placed:
                after = replace(node, level=Level(Ref(other.name, (STAR,))))
                tried = [view.fit(after) for view in self._views]
                same = all(one.calls == of.calls for one, of in zip(tried, fits, strict=True))
                if same and not any(fit.partial for fit in tried):
                    return judged(after, tried, self._views), tried
        return node, fits

    def _is_round(self, node: Node) -> bool:
        domain = node.level.domain if node.level is not None else None
        if domain is None or domain.stars != 1:
            return False
        relays = {known.name for known in self._nodes if known.relay is not None}
        return domain.node in relays or domain.node in self._rounds

    def note(self, node: Node) -> None:
        """A node was learnt."""
        if self._is_round(node):
            self._rounds.add(node.name)

    def awaits(self, site: str) -> bool:
        return bool(self._awaited.get(site))

    def settle(self, node: Node, fits: Sequence[Fit] | None = None) -> None:
        """A node explains calls of a site, which it takes now. Raises `Refuted` if these are not all that are the
        rounds of a relay, in their order."""
        for name, proposal in self._awaited.pop(node.site, {}).items():
            held = zip(self._views, fits, strict=True) if fits is not None else ()
            if not node.many or node.dims != 1 or any(fit.calls != view.open.get(node.site, []) for view, fit in held):
                raise Refuted(proposal)
            at = next(i for i, known in enumerate(self._nodes) if known.name == name)
            self._nodes[at] = replace(self._nodes[at], input=proposal.settled(node.name))


def propose(views: Sequence[View], nodes: Sequence[Node], site: str, constant: Container[Hashable]) -> list[Proposal]:
    """What a site's calls may be handed from round to round; the likeliest first."""
    listed = {node.name for node in nodes if node.site and node.many and node.dims == 1}
    found: dict[Proposal, None] = {}
    for view in views:
        calls = view.open.get(site, [])
        if len(calls) > 1 and (not view.complete or _writes(view, calls)):
            return []
        if len(calls) > 1 and not found:
            found |= dict.fromkeys(_between(view, calls[0], calls[1], listed, constant))
    return list(found)[:MAX_RELAYS]


def _writes(view: View, calls: Sequence[CallRecord]) -> bool:
    """Whether something is written between these: what a round reads, the one before it may have written."""
    writes = (call.start for call in view.trace.calls if OPS[call.op].effect == "writes")
    return any(calls[0].start < start < calls[-1].start for start in writes)


def _between(
    view: View, call: CallRecord, following: CallRecord, listed: Container[str], constant: Container[Hashable]
) -> Iterator[Proposal]:
    """By two calls of one site that follow each other. `listed`: nodes that are known already, each of whose calls may
    belong to a round."""
    if (call.family, call.identity) != (following.family, following.identity):
        return
    meanwhile = {
        other.site: view.open[other.site]
        for site in view.open
        for other in view.open[site]
        if other.ok and other.end is not None and call.start < other.end < following.start
    }
    for other, made in meanwhile.items():
        view.values.outputs[_AHEAD + other] = [each.output if each.ok else UNKNOWN for each in made]
        for at, each in enumerate(made):
            if each.ok and each.end is not None:
                streams = OPS[each.op].streams
                view.values.add(_AHEAD + other, (at,), each.output, each.end, early=True, texts=streams, ahead=True)
    try:
        with counting([view], late=False, ahead=True):
            pairs = list(_holes_that_differ(view, call, following, constant))
    finally:
        for other in meanwhile:
            view.values.forget(_AHEAD + other)
    offsets = {row[0] for now, _ in pairs for (_, path), origin in now.origins.items() if ANY in path
               for row in origin.rows if 0 < row[0] <= MAX_OFFSET}  # fmt: skip
    for (now, then), first in itertools.product(pairs, (0, *sorted(offsets))):
        if _shared(now, then):
            continue
        laters = [
            (node, path, row) for node, path, row in _places(then)
            if path and path[0] is ANY and row[0] == 0 and (node.startswith(_AHEAD) or node in listed)
        ]  # fmt: skip
        starts = [Ref(node, filled(path, row)) for node, path, row in _places(now) if not node.startswith(_AHEAD)]
        for node, path, row in laters[:1]:
            later = Ref(node, (STAR, *filled(path, row)[1:]))
            for start in starts[:MAX_STARTS]:
                yield Proposal("" if node in listed else node.removeprefix(_AHEAD), Relay(start, later, first))


def _holes_that_differ(
    view: View, call: CallRecord, following: CallRecord, constant: Container[Hashable]
) -> Iterator[tuple[Hole, Hole]]:
    """What stands at the same places of both, as far as they are alike."""
    now = cover_call(view.number, call, view.values, SHORTEST[0], constant)
    there = view.leaves_like(following, now.shape)
    then = cover_like(now, view.number, following, there[0], view.values, SHORTEST[0]) if there is not None else None
    if then is not None and then.structure == now.structure:
        yield from zip(now.holes(), then.holes(), strict=True)


def _shared(now: Hole, then: Hole) -> bool:
    """Whether one place, or places of one list, give both."""
    return any(skeleton in then.origins for skeleton in now.origins)


def _places(hole: Hole) -> list[tuple[str, OpenPath, Row]]:
    """Where its value stands as one, the cheapest first."""
    origins = sorted(hole.origins.items(), key=lambda held: cost_of(held[0], held[1].rank))
    return [(node, path, origin.rows[0]) for (node, path), origin in origins if origin.rows and STAR not in path]
