"""What engines are told about the calls of a run: how urgent they are, when their run began, and how deep they are."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING
from uuid import uuid4

from ..engine import Priority
from ..ir import Node

if TYPE_CHECKING:
    from .call import Call
    from .run import Run

EARLY = 1
"""Engine priority of early work. Demands have 0; lower is served first."""

_process = uuid4().hex
_numbers = itertools.count()


def run_name() -> str:
    """Unlike that of any other run, also of other processes that use the same engines; ascends within a process."""
    return f"{_process}-{os.getpid()}-{next(_numbers):012}"


def of_demand(run: Run, site: str, outer: Call | None) -> Priority:
    """As deep as the node that predicts calls of this site, and as the call it is part of, if it is: that one waits for
    it."""
    depth = max((node.depth for node in run.graph.by_site.get(site, ())), default=0)
    if outer is not None:
        depth = max(depth, outer.priority.depth)
    return Priority(0, run.name, run.trace.started_s, depth)


def of_early(run: Run, node: Node) -> Priority:
    return Priority(EARLY, run.name, run.trace.started_s, node.depth)
