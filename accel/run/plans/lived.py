"""What a plan is told of a run."""

from __future__ import annotations

from contextvars import Context
from typing import Protocol

from ...graph.ir import Graph
from ...graph.rules import Reason
from ...parts.identities.identity import Identities
from ...trace.record import Trace
from ..calls.calls import Calls
from ..gains.worth import Cost
from ..settings import Counts, Host, Settings


class Lived(Protocol):
    """A run, as far as it is learnt from."""

    trace: Trace
    settings: Settings
    counts: Counts
    staked: Cost
    own_s: float
    host: Host
    reasons: dict[str, Reason | None]
    learnt: Graph
    learnt_at: set[str]
    calls: Calls
    identities: Identities
    closed: bool
    name: str
    entry: Context

    def adopt(self, graph: Graph, learnt_here: bool) -> None: ...
