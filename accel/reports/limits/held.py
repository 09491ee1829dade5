"""What holds a predicted call of a recorded run back: the rules that a declaration or an option may lift."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ...graph.ir import Node
from ...graph.rules import (
    CONCURRENCY,
    CONTEXT,
    FOREIGN,
    INPUTS,
    LIKELY,
    PURE,
    PURE_CONCURRENCY,
    READONLY,
    SCOPE,
    TWINS,
    Lift,
)
from ...graph.topology import START
from ...parts.components import TOOL, Facts, facts_of, kind_of, said_of, tells_within
from ...parts.methods.methods import METHODS
from ...parts.methods.patches import has_leaf
from ...parts.network.recipients import endpoint_of
from ...run.foresight.permits import LIKELY as LIKELY_FROM
from ...run.gains.worth import BEGIN, Doubt
from ...run.settings import Settings
from ...trace.record import CallRecord

if TYPE_CHECKING:
    from ...run.plans.plan import Plan

MANY = 8
"""What is tried for components that nobody said anything of."""

Missing = tuple[Lift | None, Any]
"""What would let calls go, and the class, or declared function, that it is about (None: all of them)."""
EGRESS: Missing = (INPUTS, None)
NOTHING: Missing = (None, None)
"""No declaration lifts what holds them."""


@dataclass(slots=True)
class Sent:
    """Values that a call takes to a remote endpoint, and the calls that the endpoint had each of them from."""

    rule: Missing
    """What would let them go: `local` of this class, or `egress`."""
    had: list[list[tuple[int, bool]]]
    """By value: events, and whether it was in their output."""


@dataclass(slots=True)
class Held:
    """A call that is predicted, and what holds it."""

    needs: dict[int, float] = field(default_factory=dict)
    """Events that its input is made of or that make sure of it, and what share of their output has to be there."""
    never: list[Missing] = field(default_factory=list)
    """It is not made early at all before these are lifted."""
    feeds: Missing | None = None
    """Made early, it only feeds predictions before this is lifted."""
    narrow: Missing | None = None
    """Its component takes one call at a time before this is lifted."""
    sent: list[Sent] = field(default_factory=list)
    unsure: dict[int, float] = field(default_factory=dict)
    """More of these, unless `doubt` is lifted: those that decide whether the program makes it."""
    doubt: Missing | None = None
    streams: dict[int, Missing] = field(default_factory=dict)
    """Of `needs`, those of which a part would be enough if their components streamed; what would let them."""

    def rules(self) -> set[Missing]:
        """All that might be lifted."""
        found = {*self.never, *(sent.rule for sent in self.sent), *([EGRESS] if self.sent else [])}
        found |= set(self.streams.values())
        return (found | {rule for rule in (self.feeds, self.narrow, self.doubt) if rule is not None}) - {NOTHING}


def is_predicted(plan: Plan, node: Node) -> bool:
    held = plan.reasons.get(node.name)
    lasting = held is not None and held.rule.lasting and held.rule is not FOREIGN
    return node.op.issuable and node.evidence.confidence == "verified" and not lasting


def in_doubt(plan: Plan, node: Node, settings: Settings) -> Missing | None:
    """What holds a call back until it is sure that the program makes it; None: nothing does."""
    inevitable = plan.topology.inevitable(START) if plan.topology is not None else (node.within,)
    asked = plan.asked(node)
    foretold = not node.when and node.evidence.always and node.within in inevitable
    doubt = Doubt(node.site, BEGIN, 0.0, asked, plan.share(node), foretold)
    if settings.speculate == "likely" or (foretold and not plan.worth.doubts(asked)):
        return None
    if settings.speculate == "auto" and plan.worth.refuses(doubt, settings.budget.waste) is None:
        return None
    return (LIKELY, None) if plan.worth.chance(doubt) >= LIKELY_FROM else NOTHING


def elsewhere(plan: Plan, node: Node) -> Missing | None:
    """What would let its calls go, if the context is what holds them. Where each run has had another value of a field,
    a plan for each value would learn from one run alone."""
    held = plan.reasons.get(node.name)
    if held is None or held.rule not in (CONTEXT, FOREIGN):
        return None
    ever_new = held.rule is FOREIGN and plan.contexts.known(node.learnt_as).is_ever_new(str(held.values["dimension"]))
    return NOTHING if ever_new else (SCOPE, None)


def is_free(plan: Plan, component: Any, method: str) -> bool:
    """Whether declarations are all that may be missing for calls of this component."""
    facts, said = facts_of(component), said_of(component)
    stays_impure = not facts.pure and said.pure is not None
    return not (stays_impure or kind_of(component) in plan.disqualified or tells_within(component, method))


def has_own_name(component: Any) -> bool:
    """Whether its address is a name that only a private network knows."""
    address = endpoint_of(component)
    try:
        host = urlsplit(address if "//" in address else f"//{address}").hostname if address else None
    except ValueError:
        return False
    if not host:
        return False
    try:
        ipaddress.ip_address(host)
        return False  # public, or it would count as local
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".lan", ".intranet", ".home.arpa"))


def more_at_a_time(component: Any) -> Missing:
    """What would let several calls of a component run at a time."""
    if isinstance(component, FunctionType | BuiltinFunctionType | partial):
        return PURE_CONCURRENCY, component
    return CONCURRENCY, type(component)


def held_of(
    call: CallRecord, facts: Facts, said: Facts, inner: Iterable[CallRecord], written: bool, on_loop: bool
) -> Held:
    """What holds this call, but for where its values go. `inner`: the calls it makes of other components; `written`:
    the program itself changes what such components read; `on_loop`: coroutines may run early."""
    cls, held = type(call.component), Held()
    method = METHODS.get((call.family, call.method))
    has_plain = method is not None and bool(method.sync_name) and has_leaf(call.component, method.sync_name)
    reads = call.family == TOOL or (call.op == "searching" and not written)
    if not facts.pure:
        held.never.append((READONLY if reads and said.readonly is None else PURE, cls))
    held.never += [(PURE, type(each.component)) for each in inner if not facts_of(each.component).pure]
    if call.op == "searching" and not facts.readonly and not facts.owned:
        held.feeds = (READONLY, cls) if said.readonly is None and not written else NOTHING
    if said.concurrency is None:
        held.narrow = more_at_a_time(call.component)
        if method is not None and method.sync_name and not has_plain:
            held.never.append(held.narrow)  # a coroutine of the run's own loop, which others may block
    if method is not None and method.is_async and not on_loop and not facts.twins:
        held.never.append((TWINS, cls) if has_plain and said.twins is None else NOTHING)
    return held
