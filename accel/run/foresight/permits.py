"""What may be issued: the rules that can hold an early call back, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...graph import rules
from ...graph.ir import Node
from ...graph.predict import decide
from ...graph.rules import Reason, Rule
from ...graph.topology import leg_of
from ...parts.components import is_meant, kind_of, tells_within
from ...parts.methods.methods import Method
from ...parts.network.recipients import recipient
from ...process.clock import now_s
from ...process.properties import cached_property
from ...text.values import Tree
from ..egress import texts_sent
from ..gains.reliance import UNSURE, Asked
from ..gains.worth import BEGIN, Doubt
from ..run import Run
from ..settings import Bound
from ..waits.gates import gate_of

LIKELY = 0.5
"""The least chance at which `speculate="likely"` issues a call."""


@dataclass
class Case:
    """A call that may be issued. `values`: what its holes would send along; `decided`: what decides whether its calls
    are made says that they are; `input`: as far as it is known, which also tells where it goes."""

    run: Run
    node: Node
    values: list[str]
    decided: bool
    input: Tree = None

    @property
    def certain(self) -> bool:
        return self.run.settings.speculate == "certain"

    @property
    def sure(self) -> bool:
        return bool(self.node.when) and self.decided

    @property
    def in_doubt(self) -> bool:
        """Whether the program may do without it."""
        return not self.foretold or self.run.plan.worth.doubts(self.asked)

    @cached_property
    def unusual(self) -> bool:
        """Whether a flag in what it is made of is another one than whenever its calls were made."""
        usual, forecast = self.node.evidence.usual, self.run.forecast
        return bool(usual) and forecast is not None and decide(usual, (), forecast) is False

    @cached_property
    def foretold(self) -> bool:
        """Whether traces and control say that the program makes it."""
        always = self.decided and self.node.evidence.always and not self.unusual
        return self.sure or (always and self.steered(certain_only=True) is None)

    def steered(self, certain_only: bool) -> Reason | None:
        """Why the program's control does not let it go. In a node that ever raised only so many calls go as it had made
        by then, each time."""
        control, node = self.run.host.control, self.node
        reached = control.reached(node.within, node.site) or 0
        within_reach = reached > 0 and _under_way(self.run, node.site) < reached
        return control.refuses(node.within, certain_only, within_reach)

    @property
    def in_its_leg(self) -> bool:
        """Whether its calls are made where its framework node goes on, in each of its visits."""
        node = self.node
        return self.run.host.control.legs(node.within, node.site.partition("|")[0]) == {leg_of(node.site)}

    @cached_property
    def asked(self) -> Asked:
        return self.run.plan.asked(self.node)

    @property
    def doubt(self) -> Doubt:
        run = self.run
        visits = (visit for visit in reversed(run.trace.visits) if visit.inside is None)
        came, at_s = next(((v.node, v.started_s) for v in visits), (BEGIN, run.trace.started_s))
        share = 1.0 if self.foretold else run.plan.share(self.node)
        return Doubt(self.node.site, came, now_s() - at_s, self.asked, share, self.foretold)

    @cached_property
    def bound(self) -> Bound | None:
        return self.run.bindings.of(self.node)

    @property
    def component(self) -> Bound:
        """Where there is one (`UNUSED`)."""
        assert self.bound is not None
        return self.bound

    @property
    def kind(self) -> Any:
        return kind_of(self.component.component)

    @property
    def telling(self) -> str | None:
        return tells_within(self.component.component, self.component.method.name)


Found = Reason | Mapping[str, Any] | bool | None
"""Nothing, or the values of the rule's sentence, or a reason by another rule."""


def refuses(run: Run, node: Node, values: list[str], decided: bool = True, given: Tree = None) -> Reason | None:
    """Why nothing may be issued for this node now. `given`: the input of the call, if it is a certain one."""
    case = Case(run, node, values, decided, given if given is not None else node.input)
    for rule, holds in ASKED:
        found = holds(case)
        if found:
            return found if isinstance(found, Reason) else rule(**(found if isinstance(found, Mapping) else {}))
    return None


def _under_way(run: Run, site: str) -> int:
    """The calls of a site that visits which are not over have made, and those that were issued for visits to come."""
    with run.lock:
        made = sum(call.site == site and call.visit is not None and call.visit.outermost.under_way
                   for call in run.trace.calls)  # fmt: skip
        return made + sum(call.issued_for == site and not (call.demanded or call.useless) for call in run.calls.all())


def _unverified(case: Case) -> bool:
    confidence = case.node.evidence.confidence
    return confidence != "verified" and not (confidence == "looped" and case.run.learnt_here)


def _elsewhere(case: Case) -> Found:
    """What two rounds of this run have shown is this context's own, whoever showed it before."""
    if case.node.evidence.confidence == "looped" and case.run.learnt_here:
        return None
    return case.run.plan.contexts.refuses(case.node, case.run.trace)


def _undecided(case: Case) -> Found:
    by = case.node.when if not case.decided else case.node.evidence.usual if case.unusual else None
    return case.certain and by is not None and {"when": " and ".join(map(str, by))}


def _in_vain(case: Case) -> Found:
    if case.certain or not case.in_doubt:
        return None
    worth, settings = case.run.plan.worth, case.run.settings
    if settings.speculate == "likely":
        chance = worth.chance(case.doubt)
        return chance < LIKELY and {"chance": chance}
    return worth.refuses(case.doubt, settings.budget.waste)


def foretold(run: Run, node: Node, decided: bool) -> Asked:
    """What a call asks for that the program is said to make."""
    case = Case(run, node, [], decided)
    return case.asked if case.foretold else UNSURE


def stake(run: Run, node: Node, decided: bool) -> bool:
    """A call of this node was issued. Whether it may be in vain: then what is left for others is less."""
    case = Case(run, node, [], decided)
    if case.certain or not case.in_doubt:
        return False
    run.staked += run.plan.worth.stake(case.doubt)
    return True


def _other(case: Case) -> Found:
    """Whether its component is one that taught it nothing: what another one adds to the input stays with that one."""
    if case.node.schedule.stage_of or (case.node.evidence.confidence == "looped" and case.run.learnt_here):
        return None
    plan, bound = case.run.plan, case.component
    field = plan.contexts.is_other(case.node, plan.used.fields(case.node.site, bound.identity))
    return field is not None and {"component": type(bound.component).__name__, "field": field}


def _unvouched(case: Case) -> Found:
    component, facts, method = case.component.component, case.component.facts, case.component.method
    if facts.pure and not is_meant(component, method):
        return {
            "component": type(component).__name__,
            "why": f"nobody said of it that {method.name} may be called early",
        }
    return not facts.pure and {"component": type(component).__name__, "why": facts.reason}


def only_feeds(bound: Bound) -> bool:
    """Whether an early call may not retire, as it reads what others may write (invariant 5)."""
    return bound.method.op == "searching" and not (bound.facts.readonly or bound.facts.owned)


def _only_feeds(case: Case) -> bool:
    return only_feeds(case.component) and case.kind in case.run.plan.delaying


def _unfit(case: Case) -> Found:
    why = case.run.plan.disqualified.get(case.kind)
    return {"why": why} if why is not None else None


def _moved(case: Case) -> Found:
    """What such a call is sent with by then is not known yet, whatever it is sent."""
    name = case.run.plan.moved.get(case.node.site)
    return {"name": name} if name is not None else None


def _egress(case: Case) -> Found:
    """Where all may leave, of a call in doubt text that is somebody's is judged all the same: it may be another's by
    now."""
    run, values = case.run, case.values
    if not case.component.judges(run.settings.egress):
        values = [] if case.component.facts.local or not case.in_doubt else run.plan.program.foreign(case.node)
        if not values:
            return None
    bound = case.component
    if run.ledger.knows(recipient(bound.component, bound.keys, case.input), values):
        return None
    return rules.UNMET() if bound.unused else rules.EGRESS()


def bounds(run: Run) -> Reason | None:
    """Whether early work has used up what it may (invariants 7 and 9)."""
    budget, limit = run.settings.budget, run.host.max_concurrency
    with run.lock:
        outstanding, issued, entered = run.calls.outstanding(), run.counts.issued, run.entered
    if outstanding >= budget.max_outstanding or issued >= budget.max_issued:
        run.plan.says.exhausted(budget, issued)
        return rules.BUDGET()
    cap = run.plan.caps.used_up(run, run.plan.worth.usual()) if budget.caps else None
    if cap is not None:
        run.plan.says.used_up(cap)
        return rules.CAP(cap=cap)
    return rules.MAX_CONCURRENCY() if limit is not None and outstanding + entered >= limit else None


ASKED: tuple[tuple[Rule, Callable[[Case], Found]], ...] = (
    (rules.OVER, lambda case: case.run.quiet or case.run.closed),
    (rules.UNVERIFIED, _unverified),
    (rules.CONTEXT, _elsewhere),
    (rules.UNSEEN, lambda case: case.node.evidence.confidence == "looped" and case.node.site not in case.run.ended),
    (rules.SOMETIMES, lambda case: case.certain and not case.node.evidence.always),
    (rules.UNDECIDED, _undecided),
    (rules.WRONG, lambda case: case.certain and case.run.plan.worth.was_wrong(case.asked)),
    (rules.COMPOSITE, lambda case: case.run.plan.is_composite(case.node.site)),
    (rules.LEG, lambda case: None if case.in_its_leg else {"node": case.node.within}),
    (rules.BRANCH, lambda case: case.steered(case.certain and not case.sure)),
    (rules.UNLIKELY, _in_vain),
    (rules.UNUSED, lambda case: case.bound is None),
    (rules.OTHER, _other),
    (rules.UNVOUCHED, _unvouched),
    (rules.UNFIT, _unfit),
    (rules.MOVED, _moved),
    (rules.FAILING, lambda case: case.run.calls.is_failing(case.component.identity)),
    (rules.TELLS, lambda case: {"how": case.telling} if case.telling else None),
    (rules.FEEDS, _only_feeds),
    (rules.GUARDED, lambda case: case.run.plan.guarded.get(case.node.site)),
    (rules.CACHE, lambda case: case.run.host.holds(case.component.component)),
    (rules.EGRESS, _egress),
    (rules.BUDGET, lambda case: bounds(case.run)),
)


def nested_refuses(run: Run, method: Method, component: Any, tree: Tree) -> Reason | None:
    """Why an early call may not call this component itself. The same rules one level down: a search of a local store
    must not send its query to a remote embedding model before the program does."""
    facts, name = run.bindings.facts(component), type(component).__name__
    if method.copy is None or not facts.pure:
        return rules.INNER(component=name)
    telling = tells_within(component, method.name)
    if telling:
        return rules.INNER_TELLS(component=name, how=telling)
    limited = gate_of(component).endpoint.holds()
    if limited:
        return limited
    if not facts.local and run.settings.egress == "known":
        if not run.ledger.knows(recipient(component, run.plan.keys.note(component), tree), texts_sent(tree)):
            return rules.INNER_EGRESS(component=name)
    return None
