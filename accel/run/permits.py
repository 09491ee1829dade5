"""What may be issued: every rule that can hold an early call back, each with the reason it gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..components import tells_within
from ..identity import identity_of
from ..intercept import METHODS, Method, has_leaf
from ..ir import Node
from ..values import Opaque, Tree, leaves
from .egress import endpoint_key
from .settings import Bound

if TYPE_CHECKING:
    from .run import Run


LIKELY = 0.5
"""The least chance at which `speculate="likely"` issues a call: a call that is made saves about as long as one that is
not keeps an engine busy."""


def binding(run: Run, node: Node) -> Bound | None:
    """The live component a node's calls go to: used in this run, or known to the plan and referenced by the program
    (invariant 3: a component that may hold a credential is not called because an earlier run did)."""
    bound = _at_site(run, node)
    return _inner(run, bound) if node.stage_of and bound is not None else bound


def _at_site(run: Run, node: Node) -> Bound | None:
    mixed = node.site in run.mixed or node.site in run.plan.mixed
    used = run.used.get(node.site) if not mixed else None
    if used is not None:
        component, method = used
    else:
        known = run.plan.binding(node, mixed)
        known = known or (_saved(run, node.site) if not mixed else None)
        if known is None:
            return None
        component, method = known
        method = run.plan.methods.get((node.site, run.host.streaming), method)
        if node.site in run.plan.varying and not mixed:
            component = _only_one_used(run, type(component))
        elif node.site in run.plan.bindings and not run.plan.contexts.allow_binding(node.site, run.trace.ambient):
            return None
        if component is None:
            return None
    bound = Bound(component, method, run.facts(component))
    if used is None and not run.host.references(component):
        if not any(
            type(other) is type(component) and identity_of(other, m.by_object) == bound.identity
            for other, m in list(run.used.values())
        ):
            return None
    return bound


def _saved(run: Run, site: str) -> tuple[Any, Method] | None:
    """For a site of a saved plan that was not seen here yet: what it calls, if this run has used the component at
    another site, or the program refers to but one of its class."""
    saved = run.plan.saved_calls.get(site)
    method = METHODS.get((saved.family, saved.method)) if saved is not None else None
    if saved is None or method is None:
        return None
    component = run.used_like.get(saved.like)
    if component is None or type(component).__qualname__ != saved.cls:
        component = run.host.references.only(saved.cls, method.by_object)
    return (component, method) if component is not None else None


def _only_one_used(run: Run, cls: type) -> Any:
    """The component of this class that this run has used; None if it has used none or several."""
    used = [(other, method) for other, method in list(run.used.values()) if type(other) is cls]
    same = {identity_of(other, method.by_object): other for other, method in used}
    return next(iter(same.values())) if len(same) == 1 else None


def _inner(run: Run, outer: Bound) -> Bound | None:
    """The component that a call of this one will begin with: the live one that it holds now."""
    inner = outer.method.inner
    component = inner.component(outer.component) if inner is not None else None
    if inner is None or component is None:
        return None
    leaves = [m for m in METHODS.values() if m.family == inner.family and has_leaf(component, m.name)]
    same_colour = (m for m in leaves if m.kind == outer.method.kind)
    method = next(same_colour, next((m for m in leaves if m.kind == "sync"), None))
    if method is None:
        return None
    return Bound(component, method, run.facts(component))


def refuses(run: Run, node: Node, values: list[str], decided: bool = True) -> str:
    """Why nothing may be issued for this node now; empty if it may. `values`: what its holes would send along;
    `decided`: what decides whether its calls are made says that they are."""
    if run.quiet or run.closed:
        return "the run is over, or something in it raised"
    certain = run.settings.speculate == "certain"
    if node.confidence != "verified" and not (node.confidence == "looped" and run.learnt_here):
        return "not verified yet: needs two runs with different inputs"
    if run.plan.contexts.know(node) and not run.plan.contexts.allow(node, run.trace.ambient):
        return "seen in another context only: the values that ContextVars or the configuration have in this run are new"
    if node.confidence == "looped" and node.site not in run.ended:
        return "none of its calls has ended yet"
    if certain and not node.always:
        return "not demanded in every run so far"
    if certain and not decided:
        return "not decided yet, or in a way that two runs have not shown: " + " and ".join(map(str, node.when))
    if run.plan.is_composite(node.site):
        return "a composite: its inner calls are issued instead"
    sure = bool(node.when) and decided
    if not certain and not sure and run.plan.chance(node) < LIKELY:
        return f"less likely than not: its chance is {run.plan.chance(node):.0%} by the runs so far"
    return (
        run.host.control.refuses(node.within, certain and not sure)
        or _component_refuses(run, node, values)
        or run.budget_refuses()
    )


def _component_refuses(run: Run, node: Node, values: list[str]) -> str:
    bound = run.binding(node)
    if bound is None:
        return "its component was not used in this run and the graph doesn't refer to it"
    if not bound.facts.pure:
        return f"not pure: {bound.facts.reason}"
    if type(bound.component) in run.plan.disqualified:
        return run.plan.disqualified[type(bound.component)]
    telling = tells_within(bound.component, bound.method.name)
    if telling:
        return f"its component {telling}"
    held = run.host.holds(bound.component)
    if held:
        return held
    if not bound.facts.local and run.settings.egress == "known":
        if not run.ledger.knows(endpoint_key(bound.component), values):
            return 'its endpoint has not seen all values yet; accelerate(..., egress="inputs") would allow it'
    return ""


def nested_refuses(run: Run, method: Method, component: Any, tree: Tree) -> str:
    """Why an early call may not call this component itself; empty if it may. The same rules one level down: a search
    of a local store must not send its query to a remote embedding model before the program does."""
    facts = run.facts(component)
    if method.copy is None or not facts.pure:
        return f"it calls {type(component).__name__}, which is a primitive of its own"
    if not facts.local and run.settings.egress == "known":
        texts = [str(leaf) for _, leaf in leaves(tree) if leaf is not None and not isinstance(leaf, Opaque)]
        if not run.ledger.knows(endpoint_key(component), texts):
            return f"{type(component).__name__} has not seen all values yet"
    return ""
