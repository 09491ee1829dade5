"""What may be issued: every rule that can hold an early call back, each with the reason it gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..components import kind_of, tells_within
from ..intercept import Method
from ..ir import Node
from ..values import Opaque, Tree, leaves
from .egress import endpoint_key

if TYPE_CHECKING:
    from .run import Run


LIKELY = 0.5
"""The least chance at which `speculate="likely"` issues a call: a call that is made saves about as long as one that is
not keeps an engine busy."""


def refuses(run: Run, node: Node, values: list[str], decided: bool = True) -> str:
    """Why nothing may be issued for this node now; empty if it may. `values`: what its holes would send along;
    `decided`: what decides whether its calls are made says that they are."""
    if run.quiet or run.closed:
        return "the run is over, or something in it raised"
    certain = run.settings.speculate == "certain"
    if node.confidence != "verified" and not (node.confidence == "looped" and run.learnt_here):
        return "not verified yet: needs two runs with different inputs"
    elsewhere = run.plan.contexts.refuses(node, run.trace.ambient)
    if elsewhere:
        return elsewhere
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
    bound = run.bindings.of(node)
    if bound is None:
        return (
            "its component was not used in this run yet; before that, only one that the graph refers to is called "
            "early, in a context that was seen, with a key that nobody changed"
        )
    if not bound.facts.pure:
        return f"{type(bound.component).__name__} is not called early: {bound.facts.reason}"
    if kind_of(bound.component) in run.plan.disqualified:
        return run.plan.disqualified[kind_of(bound.component)]
    telling = tells_within(bound.component, bound.method.name)
    if telling:
        return f"its component {telling}"
    if bound.method.op == "searching" and not (bound.facts.readonly or bound.facts.owned):
        if kind_of(bound.component) in run.plan.delaying:
            return "an early search would only feed predictions, and such were in the way of the program's own"
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
    facts = run.bindings.facts(component)
    if method.copy is None or not facts.pure:
        return f"it calls {type(component).__name__}, which is a primitive of its own"
    telling = tells_within(component, method.name)
    if telling:
        return f"it calls {type(component).__name__}, which {telling}"
    if not facts.local and run.settings.egress == "known":
        texts = [str(leaf) for _, leaf in leaves(tree) if leaf is not None and not isinstance(leaf, Opaque)]
        if not run.ledger.knows(endpoint_key(component), texts):
            return f"{type(component).__name__} has not seen all values yet"
    return ""
