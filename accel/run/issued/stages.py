"""What the e-graph says about the call that is running: components of ours that can work in stages ask here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...parts.components import facts_of
from ..scope import scope


@dataclass(frozen=True, slots=True)
class MicroBatches:
    """How a call shall do what it begins with (pass `stage`). tokens: of each. under_way: calls at a time."""

    tokens: int
    under_way: int


def micro_batches(inner: Any) -> MicroBatches | None:
    """For the demanded call that asks, which begins with calls of the component `inner`; None: all at once. Only what
    embeds each text as it would alone is given less than all of them."""
    here = scope.get()
    if here is None or here.early or here.call is None or here.call.record is None:
        return None
    run, method, site = here.run, here.call.method, here.call.record.site
    facts = facts_of(inner)
    if run.quiet or run.closed or not (facts.elementwise and facts.pure) or not _is_measured(inner):
        return None
    for node in run.graph.by_site.get(site, ()):
        if node.schedule.pipelined and node.op.name == method.op:
            first = run.graph.by_name[node.schedule.begins_with].schedule
            under_way = 1 if run.host.max_concurrency is not None else min(first.under_way, facts.concurrency or 1)
            return MicroBatches(first.batch_tokens, under_way)
    return None


def _is_measured(component: Any) -> bool:
    """Whether its own engine has a profile: another's says nothing about what is efficient here."""
    ask = getattr(type(component), "accel_profiles", None)
    return ask is not None and bool(ask(component))
