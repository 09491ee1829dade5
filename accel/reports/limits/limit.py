"""How fast a recorded run could have been on the engines it used: what performance is judged against.

The run's demands are scheduled under their true edges (`edges`) on a model of the engines:

* A language model works in steps, as engines with continuous batching do. A step takes the measured time for one token
  of every request that is decoding, plus the measured time of the prompt tokens it prefills beside them (at most
  `batch_tokens` in all; prefill gains nothing from batching). Prompt tokens that another prompt began with are in the
  prefix cache, in whole blocks. A streamed output is known piece by piece.
* Embedding and reranking engines with a profile serve one batch at a time: the profile's time for an empty batch plus
  what each call took beyond that. Everything else takes the latency that was measured, any number at a time.
* The program stays as it is: it makes its demands in its own order, waits for each, and takes its time to think.

`Limit.makespan_s` is the best of several list schedules, so the optimum may be a little lower, never higher;
`lower_bound_s` is what no schedule can beat in this model. Both are as good as the measured profile is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median

from ...engine.profile import Profile
from ...graph.topology import Topology
from ...trace.flow import events_of
from ...trace.record import CallRecord, Trace
from .simulation import Placed, Rank, Simulation
from .workload import Workload

SHUFFLES = 12
SPREAD = (0.4, 1.0)
"""A list schedule by one rule is often a few percent above the best: as many are tried with path lengths drawn anew."""


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

    @property
    def lower_bound_s(self) -> float:
        return max(self.critical_path_s, self.work_s)


def limit(
    trace: Trace,
    profiles: Mapping[str, Profile],
    *,
    latency_s: Mapping[str, float] | None = None,
    topology: Topology | None = None,
    deciding: Mapping[CallRecord, Sequence[CallRecord]] | None = None,
    using: Mapping[CallRecord, Mapping[int, float]] | None = None,
) -> Limit:
    """The limit of one completed run. `profiles`: by kind of engine; a language model's is needed if the run called one
    that counts tokens. `latency_s`: seconds by primitive ("searching") for what has no profile, see `latencies`; else
    what the call itself took where the program waited for it, else the trace's median. `topology`, `deciding`, `using`:
    edges, see `events_of`.
    """
    runs = Workload(events_of(trace, topology, deciding, using), profiles, latency_s or {}, latencies([trace]))
    return best_of(runs)


def best_of(runs: Workload) -> Limit:
    """The best of the list schedules we know."""
    tails = runs.tails()
    rules: dict[str, Rank] = {
        "longest path first": lambda number: -tails[number],
        "program order": lambda number: number,
        "shortest first": lambda number: runs.alone_s(number),
    }
    dice = Random(0)
    for number in range(SHUFFLES):
        drawn = [-tail * dice.uniform(*SPREAD) for tail in tails]
        rules[f"longest path first, shuffled {number}"] = drawn.__getitem__
    best: tuple[float, str, list[Placed]] | None = None
    for name, rank in rules.items():
        for eager in (True, False):
            makespan, schedule = Simulation(runs, rank, eager).run()
            if best is None or makespan < best[0]:
                best = (makespan, name + (", prefixes early" if eager else ""), schedule)
    assert best is not None
    return Limit(
        best[0],
        runs.unbounded_s(),
        runs.work_s(),
        Simulation(runs, rules["program order"], False, in_order=True).run()[0],
        tuple(best[2]),
        best[1],
    )


def latencies(traces: Sequence[Trace]) -> dict[str, float]:
    """Median seconds of a demand by primitive, of calls the program waited for from start to end."""
    found: dict[str, list[float]] = {}
    for trace in traces:
        for call in trace.calls:
            if call.ok and call.ended_s is not None and not call.retired and not call.composite:
                found.setdefault(call.op, []).append(call.ended_s - call.started_s)
    return {op: median(times) for op, times in found.items()}
