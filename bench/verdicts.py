"""What pairs of blocks say: figures, and whether they reach the goals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.pictures import ACCELERATED, UNMODIFIED
from bench.sections import table
from corpus.served import NOTHING_TO_GAIN

FIRST, STEADY = "first", "steady"
BOTTLENECK = 0.9
"""Processor time over time on the clock, from which on the process itself holds requests up."""
LEAST_BOUND, LEAST_ELSEWHERE = 0.95, 1.0
MOST_RESTING, MOST_CHAIN, MOST_EARLY = 1.1, 1.05, 1.6
MOST_LAG_S = 0.02
GAIN = 1.05
"""In throughput or in the median latency."""
HEAD = [
    "program", "style", "at once", "requests", "busy", "per second", "throughput", "p50", "", "p95", "",
    "processor", "", "lag", "", "early", "wasted", "missed goals",
]  # fmt: skip

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Several:
    """A figure of some pairs."""

    values: tuple[float, ...]

    @property
    def middle(self) -> float:
        return median(self.values)

    def text(self, form: str, unit: str = "", of: float = 1.0) -> str:
        middle, low, high = (f"{value * of:{form}}" for value in (self.middle, min(self.values), max(self.values)))
        return f"{middle}{unit}" + (f" ({low} to {high})" if len(self.values) > 1 else "")


class Compared:
    """The pairs of one row in one phase."""

    def __init__(self, found: Sequence[Record]) -> None:
        self.plain = [one for one in found if one["arm"] == UNMODIFIED]
        self.fast = [one for one in found if one["arm"] == ACCELERATED]
        self.about = self.plain[0]
        self.throughput = self._ratio("wall_s", inverse=True)
        self.processor = self._ratio("worked_s")
        self.p50, self.p95 = self._ratio("p50_s", inverse=True), self._ratio("p95_s", inverse=True)
        self.lag_s = Several(tuple(b["lag_s"] - a["lag_s"] for a, b in zip(self.plain, self.fast, strict=True)))
        self.busy = self._of_plain(lambda one: one["worked_s"] / one["wall_s"])

    def _ratio(self, what: str, *, inverse: bool = False) -> Several:
        pairs = [(a[what], b[what]) for a, b in zip(self.plain, self.fast, strict=True)]
        return Several(tuple(a / b if inverse else b / a for a, b in pairs))

    def _of_plain(self, what: Any) -> float:
        return float(median(what(one) for one in self.plain))

    def _share(self, what: str, of: str) -> float:
        counts = [one["counts"] for one in self.fast]
        return float(sum(one[what] for one in counts) / max(1, sum(one[of] for one in counts)))

    @property
    def gains(self) -> bool:
        """Whether early calls run and gain."""
        return self._share("retired", "demanded") > 0 and max(self.throughput.middle, self.p50.middle) >= GAIN

    def missed(self) -> list[str]:
        """The goals that are missed; ratios are judged as they are printed."""
        least = LEAST_BOUND if self.busy >= BOTTLENECK else LEAST_ELSEWHERE
        most = MOST_EARLY if self.gains else MOST_RESTING
        if self.about["program"] == NOTHING_TO_GAIN:
            most = MOST_CHAIN
        found = []
        if round(self.throughput.middle, 2) < least:
            found.append(f"throughput ({least})")
        if round(self.processor.middle, 2) > most:
            found.append(f"processor ({most})")
        if round(self.lag_s.middle, 3) > MOST_LAG_S:
            found.append(f"lag ({MOST_LAG_S * 1e3:.0f} ms)")
        if wrong := sum(one["different"] for one in self.fast):
            found.append(f"{wrong} OUTPUTS DIFFER")
        return found

    def cells(self) -> list[str]:
        requests = [one["requests"] for one in self.plain]
        p50_s, p95_s, lag_s = (self._of_plain(lambda one, what=what: one[what]) for what in ("p50_s", "p95_s", "lag_s"))
        return [
            self.about["program"], self.about["style"], str(self.about["at_once"]),
            f"{len(requests)} x {requests[0]}" if len(requests) > 1 else str(requests[0]),
            f"{self.busy:.2f}",
            f"{self._of_plain(lambda one: one['requests'] / one['wall_s']):.1f}",
            self.throughput.text(".2f", "x"),
            f"{p50_s * 1e3:.0f} ms", self.p50.text(".2f", "x"),
            f"{p95_s * 1e3:.0f} ms", self.p95.text(".2f", "x"),
            f"{self._of_plain(lambda one: one['worked_s'] / one['requests']) * 1e3:.1f} ms",
            self.processor.text(".2f", "x"),
            f"{lag_s * 1e3:.0f} ms", self.lag_s.text("+.0f", " ms", 1e3),
            f"{self._share('retired', 'demanded'):.0%}",
            f"{self._share('wasted', 'issued'):.0%}",
            ", ".join(self.missed()) or "none",
        ]  # fmt: skip


def compared(found: Iterable[Record], phase: str) -> list[Compared]:
    """In the order of their rows."""
    rows: dict[tuple[Any, ...], list[Record]] = {}
    for one in found:
        if one.get("phase") == phase:
            rows.setdefault((one["program"], one["style"], one["at_once"]), []).append(one)
    return [Compared(row) for row in rows.values()]


def document(found: Sequence[Record], machine: str, scale: float, command: str) -> str:
    """Both tables and how to read them."""
    parts = [
        "# Many requests at once",
        "What acceleration costs and gains in one process that serves many requests at once: five programs on "
        f"simulated engines that wait {0.02 * scale:.3f} to {0.3 * scale:.3f} s a call; {machine}. The same requests "
        "go to the unmodified and to the accelerated program, in blocks that take turns in one process; none is like "
        "another, and all outputs are compared. *busy*: processor time of the unmodified program over its time on "
        f"the clock; from {BOTTLENECK} on the process is the bottleneck. *per second*, and first of each two columns: "
        "the unmodified program's. Ratios are better if greater, but for *processor* (processor time per request, with "
        "what is learnt meanwhile). *lag*: the most that a task of the event loop woke up too late, and what "
        "acceleration adds (threads: of a loop on a thread of its own). *early*: demands that an early call answered. "
        "Medians of pairs of blocks, with their range.",
        f"Goals: throughput at least {LEAST_BOUND} where the process is the bottleneck and {LEAST_ELSEWHERE} "
        f"elsewhere; processor time at most {MOST_EARLY} times where early calls gain {GAIN - 1:.0%} in throughput or "
        f"in the median latency, {MOST_CHAIN} for the chain, which has nothing to gain, {MOST_RESTING} elsewhere; at "
        f"most {MOST_LAG_S * 1e3:.0f} ms more lag. Ratios are judged as they are printed.",
        f"```\n{command}\n```",
    ]
    titles = {FIRST: "## The first requests of a new accelerated program", STEADY: "## After them"}
    for phase, title in titles.items():
        if rows := compared(found, phase):
            reached = sum(not row.missed() for row in rows)
            parts += [title, f"{reached} of {len(rows)} rows reach all goals.", table(HEAD, map(Compared.cells, rows))]
    failed = [one for one in found if "error" in one]
    parts += [f"{one['program']}, {one['style']}, {one['at_once']} at once: {one['error']}." for one in failed]
    return "\n\n".join(parts)
