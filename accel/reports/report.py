"""What happened, in text: counts, and for every call site whether it is predicted and why not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ..graph.ir import Graph, Node
from ..graph.passes import INSTEAD, PASSES, SUMMARIES, Pass, Profiles, steps
from ..graph.rules import AT_ONCE, CONTEXT, FOREIGN
from ..learn.check import ties
from ..process.threads import learner
from ..run.settings import Settings
from ..trace.record import where
from .declarations import Declaration, Undeclared, declarations, undeclared
from .limit import Limit, limit
from .rows import MAX_CALLS, Row, rows

if TYPE_CHECKING:
    from ..run.plan import Plan


LEARNING_S = 60.0
"""How long `explain` waits for what is being learnt."""
MAX_DECLARATIONS = 5
"""In the text."""


class Report:
    """Counts over all runs of an accelerated object so far; ``str(report)`` is for people."""

    def __init__(self, plan: Plan, settings: Settings | None = None) -> None:
        """`settings`: what the user asked of `accelerate`."""
        self.runs = plan.runs
        self.passed = plan.pace.passed
        """Runs that were not followed."""
        self.counts = plan.total
        self._plan = plan
        self._settings = settings or Settings()

    @property
    def demanded(self) -> int:
        """Component calls the program made."""
        return self.counts.demanded

    @property
    def issued(self) -> int:
        """Calls started early."""
        return self.counts.issued

    @property
    def retired(self) -> int:
        """Demands answered by an early call."""
        return self.counts.retired

    @property
    def wasted(self) -> int:
        """Early calls nobody demanded."""
        return self.counts.wasted

    @cached_property
    def limit(self) -> Limit | None:
        """How fast the last run could have been on the engines it used; None while their speed, or a run, is missing.

        Profiles come from engines that have measured themselves (`engine.profile()`, `python -m bench profile`).
        """
        trace, profiles = self._plan.last, self._plan.used.profiles()
        if trace is None or not trace.completed or "llm" not in profiles or len(trace.calls) > MAX_CALLS:
            return None
        known = ties(self._plan.learnt, trace)
        return limit(trace, profiles, topology=self._plan.topology, deciding=known.deciding, using=known.using)

    @property
    def share_of_limit(self) -> float | None:
        """The limit over what the last run took: 1 is as fast as these engines allow, as far as the profile is true."""
        trace = self._plan.last
        if self.limit is None or trace is None or trace.ended_s is None or trace.ended_s <= trace.started_s:
            return None
        return self.limit.makespan_s / (trace.ended_s - trace.started_s)

    @cached_property
    def declarations(self) -> list[Declaration]:
        """What would have made the last run faster if the user declared it, the most useful first."""
        return declarations(self._plan, self._settings)

    @cached_property
    def rows(self) -> list[Row]:
        """The last run by the user's lines: what was early there, and why the rest was not."""
        return rows(self._plan, self._settings)

    @cached_property
    def undeclared(self) -> list[Undeclared]:
        """Classes of the last run that nobody vouches for, those it spent most time in first."""
        return undeclared(self._plan)

    def __str__(self) -> str:
        c = self.counts
        lines = [
            f"{self.runs} runs: {c.demanded} calls demanded, {c.issued} issued early, {c.retired} retired, "
            f"{c.wasted} wasted ({c.wasted_s:.2f} s, {c.wasted_tokens} tokens), {c.fed} only fed predictions, "
            f"{c.missed} mispredicted, {c.prefills} prompts prefilled in parts"
        ]
        if self.passed:
            lines.append(
                f"  {self.passed} more runs passed as without Accel: following them had gained nothing, or the process "
                "had no time to spare"
            )
        share = self.share_of_limit
        if self.limit is not None and share is not None:
            lines.append(
                f"  last run: {share:.0%} of the limit ({self.limit.makespan_s:.2f} s on these engines; "
                f"{self.limit.in_order_s:.2f} s one call after the other)"
            )
        new = (reason for reason in self._plan.reasons.values() if reason and reason.rule in (CONTEXT, FOREIGN))
        alone = next(new, None)
        if alone is not None and not (self._plan.history and self._plan.history[-1].issued):
            lines.append(f"  the last run issued nothing early, among other things because {alone}")
        lines += [f"  {row}" for row in self.rows] or _sites(self._plan)
        if c.delayed:
            lines.append(f"  {c.delayed} calls of the program waited {c.delayed_s:.2f} s for early ones to leave")
        gaining = {declaration.line for declaration in self.declarations}
        unknown = [each for each in self.undeclared if each.line not in gaining]
        if unknown:
            lines.append("  nobody vouches for these; declare what only answers, and keeps nothing between calls:")
            lines += [f"    {each}" for each in unknown]
        if self.declarations:
            lines.append("  what declarations would gain, if they are true:")
            lines += [f"    {declaration}" for declaration in self.declarations[:MAX_DECLARATIONS]]
        return "\n".join(lines)


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


def explain(plan: Plan) -> str:
    """The graph as learnt, what every pass made of it, the graph that runs follow, what became of every call site."""
    learner.settle(LEARNING_S)
    learnt, profiles = plan.learnt, plan.used.profiles()
    done = list(steps(learnt, plan.passes, profiles))
    after = done[-1][2] if done else learnt
    ran = {step.__name__ for step, _, _ in done}
    off = [step.__name__ for step in PASSES if step.__name__ not in ran]
    parts = [f"p-graph, learnt from {learnt.runs} runs:\n{learnt}"]
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
