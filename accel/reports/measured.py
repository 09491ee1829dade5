"""What a report says, as data: what was gained, what would gain more, and what became of every call."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Self

from ..errors import ConfigurationError
from ..learn.check import ties
from ..parts.declarable import unseen
from ..process.properties import cached_property
from ..process.threads import learner
from ..run import switch
from ..run.gains.caps import CapNow
from ..run.gains.soonest import Best
from ..run.plans.tally import Request, request_of
from ..run.settings import Settings, is_amount
from ..trace.record import Trace
from .declarations import Advice, Declaration, Undeclared, advice, undeclared
from .limits.best import best
from .limits.limit import Limit, limit
from .rows import MAX_CALLS, Row, rows, seconds_of

if TYPE_CHECKING:
    from ..run.plans.plan import Plan

LEARNING_S = 60.0
"""How long a report waits for what is being learnt."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What a language model's tokens cost, in money of the user's, by the million."""

    input_per_million: float
    output_per_million: float

    def of(self, given: float, wrote: float) -> float:
        return (given * self.input_per_million + wrote * self.output_per_million) / 1e6


class Measured:
    """Over all runs of an accelerated object so far. A request is a run that was followed and ended well; means are
    over the last hundred of them."""

    def __init__(
        self,
        plan: Plan,
        settings: Settings | None = None,
        prices: Prices | None = None,
        nodes: bool = False,
        program: str = "graph",
    ) -> None:
        """Waits for what is being learnt. `settings`: what the user asked of `accelerate`; `nodes`: whether framework
        nodes can be declared pure; `program`: what lines call the accelerated object."""
        learner.settle(LEARNING_S)
        self.state = switch.state()
        """Of the process, at this moment."""
        self.runs = plan.runs
        self.passed = plan.pace.passed
        """Runs that were not followed,"""
        self.passed_for = dict(plan.pace.passed_for)
        """by why."""
        self.counts = plan.total
        self._own_s = plan.own_s
        self.prices = prices
        self.requests: tuple[Request, ...] = tuple(plan.tally.requests)
        """The last ones."""
        self.batch = plan.batch
        """The last batch; None if there was none."""
        self.deadlines = plan.deadlines
        """How many runs had one, and how many met it."""
        self._plan, self._trace = plan, plan.last
        self._earlier = tuple(plan.tally.parts[:-1])
        self._settings, self._nodes, self._program = settings or Settings(), nodes, program

    def priced(self, *, input_per_million: float, output_per_million: float) -> Self:
        """The same with what it costs, in money by the million tokens. Raises ConfigurationError."""
        for name, price in (("input_per_million", input_per_million), ("output_per_million", output_per_million)):
            if not is_amount(price):
                raise ConfigurationError(
                    f"priced({name}={price!r}) is not a price.", "Give what a million tokens cost, 0 if nothing."
                )
        prices = Prices(input_per_million, output_per_million)
        return type(self)(self._plan, self._settings, prices, self._nodes, self._program)

    @property
    def stopped(self) -> bool:
        """Whether programs run as without Accel: then nothing would gain more."""
        return self.state in ("off", "uninstalled")

    # --- counts

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

    # --- what was gained

    @cached_property
    def last(self) -> Request | None:
        """The last run; None if it raised or was stopped, or made too many calls to be worked out."""
        trace = self._trace
        if trace is None or not trace.completed or len(trace.calls) > MAX_CALLS:
            return None
        return request_of(trace, seconds_of(trace), self._plan.tally.beside)

    @property
    def took_s(self) -> float:
        """What a request took, in the mean."""
        return fmean(request.took_s for request in self.requests) if self.requests else 0.0

    @property
    def alone_s(self) -> float:
        """What it would have taken without early calls: every call as long as it took, in the program's own order."""
        return fmean(request.alone_s for request in self.requests) if self.requests else 0.0

    @property
    def saved_s(self) -> float:
        """Per request, in the mean."""
        return self.alone_s - self.took_s

    @property
    def ratio(self) -> float:
        """How many times as fast requests were."""
        return self.alone_s / self.took_s if self.took_s > 0.0 else 1.0

    @property
    def own_s(self) -> float:
        """Processor time that Accel took for itself, per run that it followed."""
        return self._own_s / max(1, self.runs)

    @property
    def wasted_share(self) -> float:
        """Of the tokens that language models were given and wrote in these requests, those of early calls in vain; of a
        program whose tokens nobody counts, 0."""
        tokens = sum(request.input_tokens + request.output_tokens for request in self.requests)
        per_run = self.counts.wasted_tokens / max(1, self.runs)
        return per_run * len(self.requests) / tokens if tokens else 0.0

    @property
    def wastes_much(self) -> bool:
        """Whether more tokens were in vain than the budget is to keep to."""
        return self.wasted_share > self._settings.budget.waste

    @property
    def spares(self) -> str:
        """What would waste less, to paste."""
        less = "" if self._settings.speculate == "certain" else 'accelerate(..., speculate="certain"), or '
        return f"{less}budget=accel.Budget(caps=[accel.Cap(tokens=..., window_s=...)])"

    @cached_property
    def money(self) -> dict[str, float] | None:
        """Per request: what it costs, and of that what early calls in vain do; None without prices."""
        if self.prices is None:
            return None
        given = fmean(request.input_tokens for request in self.requests) if self.requests else 0.0
        wrote = fmean(request.output_tokens for request in self.requests) if self.requests else 0.0
        counts, runs = self.counts, max(1, self.runs)
        wasted = self.prices.of(counts.wasted_input_tokens / runs, counts.wasted_output_tokens / runs)
        own = self.prices.of(given, wrote)
        return {"cost": own + wasted, "wasted": wasted}

    @property
    def caps(self) -> list[CapNow]:
        """How much of each cap is used at this moment."""
        return self._plan.caps.now(self._settings.budget.caps, self._plan.worth.usual())

    # --- how fast it could have been

    @cached_property
    def best(self) -> Best | None:
        """The last run's best schedule if calls get in nobody's way."""
        return best(self._plan, self._trace) if self._trace is not None and self.last is not None else None

    @cached_property
    def limit(self) -> Limit | None:
        """How fast the last run could have been on the engines it used; None while their speed, or a run, is missing.

        Profiles come from engines that have measured themselves (`engine.profile()`, `python -m bench profile`).
        """
        trace, profiles = self._trace, self._plan.used.profiles()
        if trace is None or self.last is None or "llm" not in profiles:
            return None
        known = ties(self._plan.learnt, trace)
        return limit(trace, profiles, topology=self._plan.topology, deciding=known.deciding, using=known.using)

    @property
    def share_of_limit(self) -> float | None:
        """The limit over what the last run took: 1 is as fast as these engines allow, as far as the profile is true."""
        if self.limit is None or self.last is None or self.last.took_s <= 0.0:
            return None
        return self.limit.makespan_s / self.last.took_s

    @property
    def limit_s(self) -> float | None:
        """The limit; where no engine was measured, the best schedule of calls that get in nobody's way."""
        if self.limit is not None:
            return self.limit.makespan_s
        return self.best.seconds if self.best is not None else None

    # --- what would gain more, and why

    @cached_property
    def advice(self) -> Advice:
        """What would have made the last run faster if the user declared it, and how much all of it together."""
        if self.stopped:
            return Advice()
        limit_s = self.limit.makespan_s if self.limit is not None else 0.0
        return advice(self._plan, self._settings, self._nodes, self._program, limit_s, self.best)

    @property
    def declarations(self) -> list[Declaration]:
        """Its lines, the most useful first."""
        return list(self.advice.lines)

    @cached_property
    def rows(self) -> list[Row]:
        """The last request by the user's lines: what was early there, and why the rest was not."""
        return [row for part in self.parts for row in part]

    @cached_property
    def parts(self) -> list[list[Row]]:
        """The same, for every part of a request that paused in between."""
        if self._trace is None:
            return []
        before = [rows(self._plan, part, self._settings, self._best_of(part)) for part in self._earlier]
        return [*before, rows(self._plan, self._trace, self._settings, self.best)]

    def _best_of(self, trace: Trace) -> Best | None:
        worked_out = trace.completed and len(trace.calls) <= MAX_CALLS
        return best(self._plan, trace) if worked_out else None

    @cached_property
    def undeclared(self) -> list[Undeclared]:
        """Classes of the last run that nobody vouches for, those it spent most time in first."""
        return [] if self.stopped else undeclared(self._plan)

    @cached_property
    def unseen(self) -> list[str]:
        """Declared classes, and those of declared objects, of which no call can be seen."""
        return unseen(self._trace.started_s) if self._trace is not None and not self.stopped else []

    @property
    def reasons(self) -> list[str]:
        """What held the calls that are predicted, in the last runs."""
        return list(dict.fromkeys(str(reason) for reason in self._plan.reasons.values() if reason is not None))
