"""What Accel tells operators through `logging`, under `accel`.

INFO: something was learnt, or calls are early from now on. WARNING: a program or a component stands down, and why; or a
defect of ours; with a remedy, and once for each program. DEBUG: every run and every early call. Nobody says anything
with a lock of ours held.

Said are names of nodes, call sites and classes, counts and seconds; never a value of the program, nor a message of an
error, which may hold one.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

from ...graph.ir import Graph, Node
from ...graph.rules import Reason
from ..settings import Budget, Cap, Counts
from . import telemetry

log = logging.getLogger("accel.program")
log.addHandler(logging.NullHandler())  # a program that has set up no logging prints what it prints without Accel
SHOWN = 4
"""Nodes of a program by which it is called."""


class Says:
    """What is said of one program."""

    def __init__(self) -> None:
        self.program = "a program"
        self._said: dict[Hashable, object] = {}

    def call_it(self, kind: str, nodes: frozenset[str]) -> None:
        names = sorted(nodes)
        more = ", ..." if len(names) > SHOWN else ""
        self.program = f"{kind} ({', '.join(names[:SHOWN])}{more})" if names else kind

    def _once(self, what: Hashable) -> bool:
        mine = object()
        return self._said.setdefault(what, mine) is mine

    # --- INFO

    def learnt(self, graph: Graph, explained: float) -> None:
        sites = [node for node in graph.nodes if node.site]
        sure = sum(node.evidence.confidence == "verified" for node in sites)
        log.info(
            "%s: learnt %d call sites from %d runs, %d of them surely; %.0f %% of the calls are explained",
            self.program, len(sites), graph.runs, sure, 100 * explained,
        )  # fmt: skip

    def ended(self, run: str, counts: Counts, seconds: float, held: Mapping[str, Reason | None]) -> None:
        """A run is over. `held`: by node, why its calls were not early."""
        if counts.retired and self._once("active"):
            log.info("%s: active; the first calls were early", self.program)
        if log.isEnabledFor(logging.DEBUG):
            rules = Counter(reason.rule.name for reason in held.values() if reason is not None)
            log.debug(
                "%s: run %s took %.3f s: %d calls demanded, %d issued early, %d retired, %d wasted; held: %s",
                self.program, run, seconds, counts.demanded, counts.issued, counts.retired, counts.wasted,
                ", ".join(f"{name} {count} times" for name, count in sorted(rules.items())) or "none",
            )  # fmt: skip

    def barrier(self, node: str, error: BaseException | None) -> None:
        if self._once(("barrier", node)):
            why = f" has ended with {type(error).__name__}" if error is not None else ""
            log.info("%s: nothing is issued past %s from now on; it%s", self.program, node, why or " waits for events")

    # --- WARNING

    def rests(self, every: float, why: str = "early calls have gained nothing") -> None:
        level = logging.WARNING if self._once("rests") else logging.DEBUG
        telemetry.stood_down(self.program, "rests")
        log.log(
            level,
            "%s: rests, as %s; one run in %.0f is followed. Remedy: accel.report(fast) says, line by line, what held "
            "its calls back",
            self.program,
            why,
            every,
        )

    def waits(self) -> None:
        what = "its first lesson waits for its turn, as lessons take a hundredth of the process's time at most"
        self.stands_down("waits", what, "accel.settle() after the first requests, or a saved plan")

    def unfit(self, component: Any, why: str, remedy: str) -> None:
        kind = getattr(component, "__qualname__", type(component).__name__)
        self.stands_down("unfit", f"{kind} is not called early any more: {why}", remedy, of=kind)

    def incomparable(self) -> None:
        what = "nothing is early, as what comes in beside the input differs whenever somebody looks at it"
        self.stands_down("context", what, "leave such objects out of ContextVars, configurable and context")

    def limited(self, component: Any, calls: int) -> None:
        name = type(component).__name__
        what = f"the endpoint of {name} turns calls away; with early ones it is sent {calls} at a time for now"
        remedy = f"accel.register({name}, concurrency=n), with what it takes; behind a rate limiter, nothing is early"
        self.stands_down("limited", what, remedy, of=name)

    def exhausted(self, budget: Budget, issued: int) -> None:
        """What the rule of the budget refuses. Who waits for others to end hasn't used up anything."""
        if issued >= budget.max_issued:
            what = f"the budget of {budget.max_issued} early calls in a run is used up; its other calls go on without"
            self.stands_down(
                "max_issued", what, "accelerate(..., budget=accel.Budget(max_issued=...)), if it may be more"
            )
        elif self._once("max_outstanding"):
            log.info("%s: %d early calls are running, no more at a time", self.program, budget.max_outstanding)

    def used_up(self, cap: Cap) -> None:
        what = f"a cap is used up: {cap}, with what is under way; nothing is early until that is over, or older"
        self.stands_down("cap", what, "accel.report(fast) says what is in vain; a higher accel.Cap(...)", of=str(cap))

    def stands_down(self, reason: str, what: str, remedy: str, of: str = "") -> None:
        """`of`: the component that does."""
        if self._once((reason, of)):
            log.warning("%s: %s. Remedy: %s", self.program, what, remedy)
            telemetry.stood_down(self.program, reason)

    # --- DEBUG

    def issued(self, run: str, node: Node, component: Any) -> None:
        if log.isEnabledFor(logging.DEBUG):
            log.debug(
                "%s: run %s issues %s of %s at %s", self.program, run, node.name, type(component).__name__, node.site
            )
