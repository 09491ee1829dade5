"""How fast a recorded run could have been on the engines it used: what performance is judged against.

The run's demands are scheduled under their true edges (`edges`) on a model of the engines:

* A language model works in steps, as engines with continuous batching do. A step takes the measured time for one token
  of every request that is decoding, plus the measured time of the prompt tokens it prefills beside them (at most
  `batch_tokens` in all; prefill gains nothing from batching). Prompt tokens that another prompt began with are in the
  prefix cache, in whole blocks. A streamed output is known piece by piece.
* Everything else takes the latency that was measured, any number at a time.
* The program stays as it is: it makes its demands in its own order, waits for each, and takes its time to think.

`Limit.makespan_s` is the best of several list schedules, so the optimum may be a little lower, never higher;
`lower_bound_s` is what no schedule can beat in this model. Both are as good as the measured profile is.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ..ir import OPS, Graph
from ..profile import Profile
from ..record import CallRecord, Trace
from .costs import Costs
from .edges import WHOLE, Event, events_of, texts_of

Rank = Callable[[int], float]
"""Which event goes first: lower."""


@dataclass(frozen=True, slots=True)
class Placed:
    """When the schedule runs a call, in seconds from the start of the run."""

    call: CallRecord
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Limit:
    """All in seconds."""

    makespan_s: float
    critical_path_s: float
    """On engines without bounds: every call alone, as soon as its input is known."""
    work_s: float
    """What the language model is busy at least, however well it batches."""
    in_order_s: float
    """The model's own figure for the unmodified program, one call at a time: says how well it fits this machine."""
    schedule: tuple[Placed, ...]
    rule: str
    """The priority rule of the best schedule."""
    unexplained: int
    """Calls whose edges are not known: scheduled when the program makes them, so the true limit may be lower."""

    @property
    def lower_bound_s(self) -> float:
        return max(self.critical_path_s, self.work_s)


def limit(
    trace: Trace,
    graph: Graph,
    profile: Profile,
    *,
    latency_s: Mapping[str, float] | None = None,
    certain: Collection[str] | None = None,
) -> Limit:
    """The limit of one completed run. `profile`: the language model's. `latency_s`: seconds by primitive ("searching")
    for all else, see `latencies`; what is missing is measured in this trace. `certain`: framework nodes that are sure
    to run (None: all).
    """
    events = events_of(trace, graph, certain)
    costs = Costs(profile)
    measured = {**latencies([trace]), **(latency_s or {})}
    runs = Runs(events, costs, measured)
    tails = runs.tails()
    rules: dict[str, Rank] = {
        "longest path first": lambda number: -tails[number],
        "program order": lambda number: number,
        "shortest first": lambda number: runs.alone_s(number),
    }
    best: tuple[float, str, list[Placed]] | None = None
    for name, rank in rules.items():
        for eager in (True, False):
            makespan, schedule = runs.simulate(rank, eager)
            if best is None or makespan < best[0]:
                best = (makespan, name + (", prefixes early" if eager else ""), schedule)
    assert best is not None
    unexplained = sum(1 for e in events if e.call is not None and e.needs is None and OPS[e.call.op].issuable)
    return Limit(
        best[0],
        runs.unbounded_s(),
        runs.work_s(),
        runs.simulate(rules["program order"], False, in_order=True)[0],
        tuple(best[2]),
        best[1],
        unexplained,
    )


def latencies(traces: Sequence[Trace]) -> dict[str, float]:
    """Median seconds of a demand by primitive, of calls the program waited for from start to end."""
    found: dict[str, list[float]] = {}
    for trace in traces:
        for call in trace.calls:
            if call.ok and call.ended_s is not None and not call.retired and not call.composite:
                found.setdefault(call.op, []).append(call.ended_s - call.started_s)
    return {op: median(times) for op, times in found.items()}


class _Decode:
    """A request to the language model while it is simulated."""

    __slots__ = ("done", "first_s", "output", "produced", "prompt")

    def __init__(self, prompt: int, output: int) -> None:
        self.prompt, self.output = prompt, output
        self.done = 0
        """Prompt tokens in the KV cache."""
        self.produced = 0
        self.first_s = math.inf


class Runs:
    """Simulated runs of the same events."""

    def __init__(self, events: Sequence[Event], costs: Costs, latency_s: Mapping[str, float]) -> None:
        self.events = events
        self.costs = costs
        self._latency_s = latency_s
        self._texts = {
            number: "\0".join(texts_of(event.call.input))
            for number, event in enumerate(events)
            if event.call is not None and self._decodes(event)
        }
        self._shared: dict[tuple[int, int], int] = {}

    # --- one call

    @staticmethod
    def _decodes(event: Event) -> bool:
        """Whether the language model's profile applies: without token counts a latency is all that is known."""
        return event.call is not None and OPS[event.call.op].engine == "llm" and event.call.tokens[1] > 0

    def _delay_s(self, event: Event) -> float:
        call = event.call
        if call is None:
            return 0.0
        own = call.ended_s - call.started_s if call.ended_s is not None else 0.0
        return self._latency_s.get(call.op, own) if OPS[call.op].issuable else own

    def _cached(self, number: int, other: int) -> int:
        """How many tokens of one prompt another prompt begins with, too; whole blocks, and never all of them."""
        key = (number, other)
        if key not in self._shared:
            call = self.events[number].call
            text = self._texts[number]
            assert call is not None
            common = len(os.path.commonprefix((text, self._texts[other])))
            tokens = min(int(call.tokens[0] * common / max(1, len(text))), call.tokens[0] - 1)
            self._shared[key] = tokens // self.costs.block_tokens * self.costs.block_tokens
        return self._shared[key]

    def alone_s(self, number: int, fresh: int | None = None) -> float:
        """On an engine of its own; `fresh`: prompt tokens still to be prefilled then (None: all)."""
        event = self.events[number]
        if not self._decodes(event):
            return self._delay_s(event)
        assert event.call is not None
        prompt, output = event.call.tokens
        first = prompt - fresh if fresh is not None else 0
        return self.costs.pass_s + self.costs.prompt_s(first, prompt) + (output - 1) * self.costs.decode_s(1)

    def _fewest_fresh(self, number: int) -> int:
        """Prompt tokens that no cache and no early prefix can spare the engine, once the input is complete."""
        event = self.events[number]
        assert event.call is not None
        prompt = event.call.tokens[0]
        known = max((int(share * prompt) for share in event.prefix.values()), default=0)
        shared = max((self._cached(number, other) for other in self._texts if other != number), default=0)
        return prompt - min(max(known, shared), prompt - 1)

    # --- bounds

    def tails(self) -> list[float]:
        """Seconds of the longest path from the start of each event to the end of the run, every call alone."""
        tails = [0.0] * len(self.events)
        for number in range(len(self.events) - 1, -1, -1):
            tails[number] += self.alone_s(number)
            event = self.events[number]
            for before in event.after:
                waits_s = tails[number] if event.needs is None else 0.0
                tails[before] = max(tails[before], event.think_s + waits_s)
            for before in event.needs or ():
                tails[before] = max(tails[before], tails[number])
        return tails

    def work_s(self) -> float:
        """Every different prompt token once and every token in the best batch."""
        total = 0.0
        for number in self._texts:
            call = self.events[number].call
            assert call is not None
            cached = max((self._cached(number, other) for other in self._texts if other != number), default=0)
            total += self.costs.prompt_s(cached, call.tokens[0]) + (call.tokens[1] - 1) * self.costs.token_s()
        return total

    def unbounded_s(self) -> float:
        """The run on engines without bounds."""
        over: list[float] = []
        start: list[float] = []
        seen: list[float] = []
        for number, event in enumerate(self.events):
            asked = max((seen[before] for before in event.after), default=0.0) + event.think_s
            ready = asked
            if event.needs is not None and event.call is not None:
                ready = min(asked, max((self._known_s(n, s, start, over) for n, s in event.needs.items()), default=0.0))
            fresh = self._fewest_fresh(number) if self._decodes(event) else None
            start.append(ready)
            over.append(ready + self.alone_s(number, fresh))
            seen.append(max(asked, over[-1]))
        return seen[-1]

    def _known_s(self, number: int, share: float, start: Sequence[float], over: Sequence[float]) -> float:
        """When that share of an output is known."""
        event = self.events[number]
        if share >= WHOLE or not self._decodes(event) or event.call is None:
            return over[number]
        left = event.call.tokens[1] - math.ceil(share * event.call.tokens[1])
        return max(start[number], over[number] - left * self.costs.decode_s(1))

    # --- the schedule

    def simulate(self, rank: Rank, eager: bool, in_order: bool = False) -> tuple[float, list[Placed]]:
        """Makespan and schedule of one priority rule. `eager`: known beginnings of prompts are prefilled when nothing
        complete is waiting. `in_order`: nothing starts before its demand."""
        return _Simulation(self, rank, eager, in_order).run()


class _Simulation:
    def __init__(self, runs: Runs, rank: Rank, eager: bool, in_order: bool) -> None:
        self.runs, self.events, self.costs = runs, runs.events, runs.costs
        self.eager, self.in_order = eager, in_order
        self.now = 0.0
        count = len(self.events)
        self.ready: list[float | None] = [None] * count
        self.over: list[float | None] = [None] * count
        self.seen: list[float | None] = [None] * count
        self.asked: list[float | None] = [None] * count
        self.requests: dict[int, _Decode] = {}
        for number in runs._texts:
            call = self.events[number].call
            assert call is not None
            self.requests[number] = _Decode(max(1, call.tokens[0]), call.tokens[1])
        self.order = sorted(self.requests, key=rank)

    def run(self) -> tuple[float, list[Placed]]:
        self._follow()
        while self.seen[-1] is None:
            if not self._step():
                coming = [
                    at
                    for number, at in enumerate(self.ready)
                    if at is not None and number in self.requests and self.over[number] is None and at > self.now
                ]
                self.now = min(coming)
            self._follow()
        placed = []
        for number, event in enumerate(self.events):
            start, end = self.ready[number], self.over[number]
            if event.call is not None and start is not None and end is not None:
                request = self.requests.get(number)
                placed.append(Placed(event.call, max(start, request.first_s) if request else start, end))
        return self.seen[-1], placed

    def _follow(self) -> None:
        """Everything that follows from what is over by now, the engine's next step aside."""
        for number, event in enumerate(self.events):
            if self.seen[number] is not None:
                continue
            if self.asked[number] is None:
                before = [self.seen[n] for n in event.after]
                if all(at is not None for at in before):
                    self.asked[number] = max((at for at in before if at is not None), default=0.0) + event.think_s
            if self.ready[number] is None:
                self.ready[number] = self._ready(number, event)
            ready, asked = self.ready[number], self.asked[number]
            if ready is not None and self.over[number] is None and number not in self.requests:
                self.over[number] = ready + self.runs._delay_s(event)
            over = self.over[number]
            if over is not None and asked is not None:
                self.seen[number] = max(over, asked)

    def _ready(self, number: int, event: Event) -> float | None:
        asked = self.asked[number]
        if event.call is None or event.needs is None or self.in_order:
            return asked
        known = [self._known(n, share) for n, share in event.needs.items()]
        if any(at is None for at in known):
            return asked
        complete = max((at for at in known if at is not None), default=0.0)
        return complete if asked is None else min(complete, asked)

    def _known(self, number: int, share: float) -> float | None:
        request = self.requests.get(number)
        if share < WHOLE and request is not None and request.produced >= math.ceil(share * request.output):
            return self.now
        return self.over[number] if self.events[number].call is not None else self.seen[number]

    def _step(self) -> bool:
        """One step of the engine; False if it has nothing to do now."""
        decoding = [n for n, r in self.requests.items() if r.done >= r.prompt and r.produced < r.output]
        running = sum(1 for n, r in self.requests.items() if r.first_s < math.inf and r.produced < r.output)
        left = self.costs.batch_tokens - len(decoding)
        prompt_s = 0.0
        complete: list[int] = []
        for early in (False, True) if self.eager else (False,):
            for number in self.order:
                request = self.requests[number]
                if left <= 0 or request.done >= request.prompt:
                    continue
                ready = self.ready[number]
                is_ready = ready is not None and ready <= self.now
                if is_ready == early:
                    continue
                if is_ready and request.first_s == math.inf:
                    if running >= self.costs.slots:
                        continue
                    running += 1
                    request.first_s = self.now
                request.done = max(request.done, self._in_cache(number))
                chunk = min(left, (request.prompt if is_ready else self._known_tokens(number)) - request.done)
                if chunk <= 0:
                    continue
                prompt_s += self.costs.prompt_s(request.done, request.done + chunk)
                request.done += chunk
                left -= chunk
                if request.done >= request.prompt:
                    complete.append(number)
        if not decoding and not prompt_s and not complete:
            return False
        self.now += self.costs.step_s(len(decoding), prompt_s)
        for number in (*decoding, *complete):
            request = self.requests[number]
            request.produced += 1
            if request.produced >= request.output:
                self.over[number] = self.now
        return True

    def _in_cache(self, number: int) -> int:
        return max(
            (min(self.runs._cached(number, n), r.done) for n, r in self.requests.items() if n != number and r.done),
            default=0,
        )

    def _known_tokens(self, number: int) -> int:
        """Of a prompt whose end is not known yet, in whole blocks."""
        event, request = self.events[number], self.requests[number]
        if not event.needs:
            return 0
        missing = [number for number, share in event.needs.items() if self._known(number, share) is None]
        share = min((event.prefix.get(number, 0.0) for number in missing), default=0.0)
        return int(share * request.prompt) // self.costs.block_tokens * self.costs.block_tokens
