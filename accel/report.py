"""What happened, in text: counts, and for every call site whether it is predicted and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .learn.plan import Plan


class Report:
    """Counts over all runs of an accelerated object so far; ``str(report)`` is for people."""

    def __init__(self, plan: Plan) -> None:
        self.runs = plan.runs
        self.counts = plan.total
        self._plan = plan

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

    def __str__(self) -> str:
        c = self.counts
        lines = [
            f"{self.runs} runs: {c.demanded} calls demanded, {c.issued} issued early, {c.retired} retired, "
            f"{c.wasted} wasted ({c.wasted_tokens} tokens), {c.fed} only fed predictions, {c.missed} mispredicted, "
            f"{c.prefills} prompts prefilled in parts"
        ]
        if c.fed:
            lines.append(
                f"  {c.fed} early searches could not stand for the program's own; if nobody else writes to the store "
                "during a run: accel.register(store, readonly=True)"
            )
        for node in self._plan.graph.nodes:
            if not node.site:
                continue
            held = self._plan.reasons.get(node.name)
            state = held or node.reason or "predicted"
            if node.confidence == "verified" and not held:
                state = "predicted" if node.always else "predicted, not in every run"
            lines.append(f"  {node.name}: {state}  ({_where(node.site)})")
        return "\n".join(lines)


def _where(site: str) -> str:
    """The innermost user frame of a site: file:function:line."""
    frames = site.rsplit("|", 1)[-1]
    return frames.split("<", 1)[0] or "no user frame"


def explain(plan: Plan) -> str:
    """The graph as learnt, as rewritten, and the reasons."""
    return "\n\n".join(
        [
            f"Learnt from {plan.learnt.runs} runs (p-graph):\n{plan.learnt}",
            f"After the passes (e-graph):\n{plan.graph}",
            str(Report(plan)),
        ]
    )
