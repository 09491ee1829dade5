"""The compiler's view: the graph as learnt, what every pass made of it, the graph that runs follow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..graph.ir import Graph, Node
from ..graph.passes import INSTEAD, PASSES, SUMMARIES, Pass, Profiles, steps
from ..graph.rules import AT_ONCE
from ..trace.sites import where
from .text import learnt_from

if TYPE_CHECKING:
    from ..run.plans.plan import Plan


def _sites(plan: Plan) -> Iterator[str]:
    """A line for every call site: whether it is predicted, since when and how surely, or why not; the user's line."""
    for node in plan.graph.nodes:
        if node.site:
            yield f"  {node.name}: {_state(plan, node)}  ({where(node.site)})"


def _state(plan: Plan, node: Node) -> str:
    held = plan.reasons.get(node.name)
    if node.evidence.confidence != "verified":
        return str(held or node.evidence.reason or f"{node.evidence.confidence} {plan.standing(node)}")
    known, why = f"predicted {plan.standing(node)}", AT_ONCE() if node.evidence.at_once else held
    return f"{known}; not early: {why}" if why else known


def compiled(plan: Plan) -> str:
    """The graph as learnt, what every pass made of it, the graph that runs follow, what became of every call site."""
    learnt, profiles = plan.learnt, plan.used.profiles()
    done = list(steps(learnt, plan.passes, profiles))
    after = done[-1][2] if done else learnt
    ran = {step.__name__ for step, _, _ in done}
    off = [step.__name__ for step in PASSES if step.__name__ not in ran]
    parts = [f"p-graph, {learnt_from(plan, 'run')}:\n{learnt}"]
    parts += [_pass_text(step, old, new, profiles) for step, old, new in done]
    if off:
        parts.append(f"off: {', '.join(off)}")
    stale = "" if plan.graph == after else " (of when less was known of the engines; the next one is as the passes say)"
    parts.append(f"e-graph{stale}:\n{plan.graph}")
    sites = "\n".join(_sites(plan))
    return "\n\n".join([*parts, *([f"call sites:\n{sites}"] if sites else [])])


def _pass_text(step: Pass, before: Graph, after: Graph, profiles: Profiles) -> str:
    """One pass: what it found, and a line for every node that it added, changed or removed."""
    said = SUMMARIES[step](before, profiles) if step in SUMMARIES else (step.__doc__ or "").split("\n\n")[0]
    found = " ".join(said.split())
    lifts = step in INSTEAD and INSTEAD[step](before, profiles) is not before
    if after is before and not lifts:
        found = f"no change ({found})" if found else "no change"
    return "\n".join([f"{step.__name__}: {found}" if found else f"{step.__name__}:", *_changes(before, after)])


def _changes(before: Graph, after: Graph) -> Iterator[str]:
    for node in after.nodes:
        old = before.by_name.get(node.name)
        if old is None:
            yield f"  + {str(node).splitlines()[0]}"
            continue
        gone = [f"-{note}" for note in old.notes if note not in node.notes]
        new = [f"+{note}" for note in node.notes if note not in old.notes]
        if old.head != node.head or gone or new:
            yield f"  {node.name}: {'; '.join([f'now {node.head}'] * (old.head != node.head) + gone + new)}"
        if old.input != node.input:
            yield f"  {node.name}: another input"
    yield from (f"  - {node.head}" for node in before.nodes if node.name not in after.by_name)
