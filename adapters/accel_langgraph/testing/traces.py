"""The runs of an outermost call as LangChain's callbacks tell of them, as trees."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.context import register_configure_hook
from langchain_core.tracers.schemas import Run

from .normal import plain


class Traces(BaseTracer):
    """Writes each root run that ends to a list, with its children inside."""

    run_inline = True

    def __init__(self, roots: list[Any]) -> None:
        super().__init__()
        self._roots = roots

    def _persist_run(self, run: Run) -> None:
        self._roots.append(_tree(run))


def _tree(run: Run) -> dict[str, Any]:
    events = [(event["name"], event.get("kwargs")) for event in run.events or ()]
    return {
        "run": f"{run.run_type} {run.name}",
        "tags": sorted(run.tags or ()),
        "metadata": plain((run.extra or {}).get("metadata")),
        "inputs": plain(run.inputs),
        "outputs": plain(run.outputs),
        "error": plain((run.error or "").split("\n")[0]),
        "events": plain(events),
        "children": [_tree(child) for child in run.child_runs],
    }


traces: ContextVar[Traces | None] = ContextVar("accel_traces", default=None)
register_configure_hook(traces, inheritable=True)
