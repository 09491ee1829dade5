"""What a forecast says is known, and the rules allow, is issued: calls, and the beginnings of prompts.

Demands always win over predictions.
"""

from __future__ import annotations

from typing import Any

from ..graph.ir import Node
from ..graph.rules import (
    AT_ONCE,
    BEYOND,
    BUSY,
    CHANGED,
    EITHER,
    IN_ORDER,
    LATE,
    LIMITED,
    NOTHING_BEHIND,
    REPLACED,
    TWICE,
    UNSENT,
    UNWRITTEN,
    Reason,
)
from ..parts.methods import sdks
from ..parts.network import hosts, http
from ..process import threads
from ..text.paths import follow, has_gap
from ..text.steps import path_text
from ..text.values import Tree, exactly
from ..trace.ambient import INCOMPARABLE
from . import pools
from . import uses as uses  # and what clients send is noted
from .bindings import Moment, alike
from .demands import route as route  # from the first run on, calls of patched leaves come into runs
from .foresight.forecast import Forecast
from .foresight.outlook import Element, Line, Outlook, known_prefix
from .foresight.permits import bounds, foretold, only_feeds, refuses, stake
from .gains.reliance import UNSURE
from .gains.worth import CHARS_PER_TOKEN
from .gone import leave
from .issued import early
from .issued.prefill import least_tokens, prefill, warms
from .plans.ahead import behind_gaps
from .plans.plan import Plan
from .run import Run
from .settings import Bound, Host, Settings


def begin(plan: Plan, settings: Settings, host: Host, value: Any) -> Run:
    """A run of the plan's program on this input; `Run.finish` ends it."""
    sdks.install_all()
    http.install()
    hosts.install()
    pools.install()
    run = Run(plan, settings, host, value, Drive)
    if run.ambient is INCOMPARABLE and settings.speculate != "off":
        plan.says.incomparable()
    if threads.ended:
        leave(run)
    return run


_LIFTED = {
    "known": 'accelerate(..., egress="inputs") would allow it',
    "inputs": "their component is one like that of an earlier request, and this one has made no call of it yet",
}
"""By what may be sent early: what would let such calls be sent what a search finds."""


class Drive(Forecast):
    """A forecast that issues what is ready."""

    def issue_ready(self) -> None:
        """Elements with a place first, whatever their node."""
        moment: Moment = {}
        for state in self._by_urgency:
            if state.ready and not state.frozen:
                self._issue_node(state, state.ready, moment)
            if state.growing and not state.frozen:
                self._prefill_node(state, state.growing)
        while self._behind:
            self._issue_ahead(*self._behind.popitem()[1], moment)

    def _issue_node(self, state: Outlook, ready: Line, moment: Moment) -> None:
        """Issue the node's elements, the first ones first, until one is held by what would hold the others, too."""
        node, asked, held = state.node, False, None
        for element in ready.turn():
            if not state.awaits(element) or (element.key is None and has_gap(element.input)):
                continue
            if element.key is not None and node.schedule.stage_of and self.run.calls.has(element.key):
                ready.refuse(element)  # the program, or another call, has begun with it already
                continue
            if not asked:
                asked, held = True, self.held(node)
            reason = held or bounds(self.run)
            if reason is not None or element.key is None:
                self._said(node, reason)
                ready.add(element)
                return
            refused = self.refused(node, element.pasted, element.input) if element.pasted else None
            reason = self._said(node, refused or self._issue(state, element, moment))
            if reason is None:
                asked = not stake(self.run, node, self._decided(node))  # what may be in vain has its bounds
                continue
            if reason.rule in (BUSY, LIMITED, BEYOND):
                ready.add(element)
                return
            ready.refuse(element)

    def _said(self, node: Node, reason: Reason | None) -> Reason | None:
        """Keep the reason for reports; that it was too late says less than what held the node until then, and some of
        its calls being issued nothing of others that were held until it was too late."""
        before = self.reasons.get(node.name)
        limited = reason is None and before is not None and before.rule is LIMITED
        if not limited and (reason is None or reason.rule is not LATE or before is None):
            self.reasons[node.name] = reason
        return reason

    def held(self, node: Node) -> Reason | None:
        """Why no element of the node may be issued now."""
        if node.evidence.at_once:
            return AT_ONCE()
        for name in node.schedule.after:
            if self.states[name].open:
                return UNWRITTEN(node=name)
        return self.refused(node, []) or self._in_vain(node)

    def _in_vain(self, node: Node) -> Reason | None:
        """Why it is of no use to know early what a search finds that may not retire."""
        bound = self.run.bindings.of(node)
        if bound is None or not only_feeds(bound):
            return None
        after = [self.graph.nodes[order] for order in self.compiled.consumers.get(node.name, ())]
        reasons = [self._holds_behind(node, each) for each in after]
        if None in reasons:
            return None
        return next((reason for reason in reasons if reason and reason.rule is UNSENT), NOTHING_BEHIND())

    def _holds_behind(self, node: Node, after: Node) -> Reason | None:
        """Why a call that is predicted from a search is not early, whatever was found."""
        bound = self.run.bindings.of(after)
        if after.relay is not None:
            return None
        if not after.predictable or after.evidence.at_once or (bound is not None and not bound.facts.pure):
            return NOTHING_BEHIND()
        if bound is None:
            return None
        if only_feeds(bound):
            return self._in_vain(after)
        deciding = {when.ref for when in after.when}
        sent = any(ref.node == node.name and ref not in deciding for ref in after.refs())
        egress = self.run.settings.egress
        return UNSENT(lifted=_LIFTED[egress]) if sent and bound.judges(egress) else None

    def _issue(self, state: Outlook, element: Element, moment: Moment) -> Reason | None:
        """Issue an element, or say why not. What it goes to is looked at again, as closely as it takes, only here: most
        elements are refused for less. If that is another component now, the rules are asked about that one."""
        node, position = state.node, element.position
        reason = self._beyond_seen(state, position) or self._out_of_order(state, position)
        if reason:
            return reason
        before = self.run.bindings.of(node)
        bound = self.run.bindings.now(node, moment)
        if not alike(before, bound):
            reason = self.held(node) or (self.refused(node, element.pasted, element.input) if element.pasted else None)
        reason = reason or (early.no_room(bound) if bound is not None else None)
        reason = reason or (LATE() if self._was_made(state, element) else None)
        reason = reason or (TWICE() if self._is_repeated(state, element) else None)
        if reason:
            return reason
        asked = foretold(self.run, node, self._decided(node))
        assert element.key is not None
        announced = self.run.calls.unplaced(element.key)  # since the input was known
        call = announced or early.issue(self.run, node, bound, element.input, element.key, asked)
        if isinstance(call, Reason):
            if call.rule is CHANGED:
                self.run.inbox.post(lambda: self._predict_again(node))
            return call
        element.call = call
        call.bound = (node.name, position)
        state.doubtful = state.doubtful or asked is UNSURE
        return None

    def _was_made(self, state: Outlook, element: Element) -> bool:
        """Whether the program has made this very call already, and it was taken for one of which less was known."""
        made = (call.bound for call in self.run.calls.made(element.key, state.node.site))
        return any(at is not None and self.states[at[0]].element(at[1]).key != element.key for at in made)

    def _is_repeated(self, state: Outlook, element: Element) -> bool:
        """Whether another element's call is equal, and the program may drop one of the two as it is not known to make
        both."""
        level = state.node.level
        return level is not None and not level.keeps and self.run.calls.are_for(element.key, state.node.name)

    def _predict_again(self, node: Node) -> None:
        """Its component has changed, and so have the keys of its elements."""
        if not self.run.closed:
            self._update(node, {})

    def refused(self, node: Node, values: list[str], given: Tree = None) -> Reason | None:
        """The same of an element that holds these values, with this input."""
        if not self._replaced.isdisjoint(node.evidence.unreplaced):
            return REPLACED()
        for one, other in node.evidence.twins:
            if exactly(follow(self.run.trace.input, one)) != exactly(follow(self.run.trace.input, other)):
                return EITHER(one=path_text(one), other=path_text(other))
        return refuses(self.run, node, values, self._decided(node), given)

    def _decided(self, node: Node, after: frozenset[str] = frozenset()) -> bool:
        """Whether its calls are made, as far as what decides them tells; without that, as far as those are that it
        has its input from: one that was issued in doubt makes nothing certain."""
        decided = self.states[node.name].decided
        if node.when or not decided:
            return decided
        doubtful = (name for name in self.compiled.givers[node.name] - after if self.states[name].doubtful)
        return all(self._is_foretold(self.graph.by_name[name], after | {node.name}) for name in doubtful)

    def _is_foretold(self, node: Node, after: frozenset[str]) -> bool:
        """`after`: nodes that are asked about already, as rounds of a loop go in a circle."""
        return foretold(self.run, node, self._decided(node, after)) is not UNSURE

    def _beyond_seen(self, state: Outlook, position: int) -> Reason | None:
        """A loop may go on longer than ever: then it is followed a round ahead of what the program has made."""
        seen = state.node.level.seen if state.node.level is not None else None
        if seen is None or position < seen:
            return None
        follows = position > 0 and state.elements[position - 1].demanded and self.graph.is_round(state.node)
        return None if follows else BEYOND()

    def _out_of_order(self, state: Outlook, position: int) -> Reason | None:
        before = state.elements[position - 1] if state.node.schedule.in_order and position else None
        return IN_ORDER() if before is not None and has_gap(before.value) else None

    def _prefill_node(self, state: Outlook, growing: Line) -> None:
        """Elements of components that keep nothing of a prompt leave the line for good."""
        bound = self.run.bindings.of(state.node)
        prefills = bound is None or warms(self.run, bound)
        for element in growing.turn():
            if prefills and state.awaits(element) and element.key is None and has_gap(element.input):
                if not self._prefill(state.node, element, least_tokens(self.run, state.node, bound)):
                    growing.refuse(element)

    def _prefill(self, node: Node, element: Element, least: int) -> bool:
        """False if it is to be tried again; what its call comes after does not matter: a prefix reads nothing."""
        if element.measured is not element.input:
            element.measured, element.known = element.input, known_prefix(element.input)
        if element.known < element.prefilled + least * CHARS_PER_TOKEN:
            return True
        stands = self.run.plan.program.stands(node, self.run.host.references)
        if (
            self.refused(node, element.pasted, element.input)
            or not stands
            or not prefill(self.run, node, element.input)
        ):
            return False
        element.prefilled = element.known
        return True

    def _issue_ahead(self, state: Outlook, bound: Bound, moment: Moment) -> None:
        """Issue what is known of the node's elements behind a gap, and may be issued; of a node that `may_go_ahead`."""
        node, run = state.node, self.run
        level = node.level
        if level is None or level.domain is None or level.seen is None or self.held(node):
            return
        judged = bound.judges(run.settings.egress)
        state.ahead = [call for call in state.ahead if call.bound is None]
        for binding in behind_gaps(self.value(level.domain.node), level.domain.path):
            if state.count + len(state.ahead) >= level.seen:
                return
            tree = self.compiled.make[node.name](binding, 0, self) if binding[0] >= level.first else None
            if tree is None or has_gap(tree) or run.calls.has(key := bound.key(tree)):
                continue
            sent = self.leaving(node, binding, 0) if judged else []
            if not sent or not self.refused(node, sent, tree):
                asked = foretold(run, node, self._decided(node))
                call = early.issue(run, node, run.bindings.now(node, moment), tree, key, asked)
                if isinstance(call, Reason):
                    return
                state.ahead = (*state.ahead, call)
                if stake(run, node, self._decided(node)) and self.held(node):
                    return
