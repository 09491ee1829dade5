"""What a measurement says: pairs of runs, their ratio with its confidence interval, throughput, limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import median
from typing import Any

from ..reports.text import folded, plural
from .findings import ACCELERATED, EQUAL, UNMODIFIED, USAGE

RESAMPLES = 2_000
SURE = 0.95
"""Of the confidence interval."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One run, or one burst of them side by side."""

    seconds: float
    processor_s: float
    """Of the whole process, what Accel learns from it included."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The same input to both arms, one after the other."""

    input: int
    unmodified: Ran
    accelerated: Ran

    @property
    def ratio(self) -> float:
        return self.unmodified.seconds / max(1e-9, self.accelerated.seconds)


@dataclass
class Level:
    """All that was measured with so many runs at a time."""

    concurrency: int
    requests: int = 1
    """In a pair: as many as run side by side, or every input once."""
    pairs: list[Pair] = field(default_factory=list)
    latencies: dict[str, list[float]] = field(default_factory=lambda: {UNMODIFIED: [], ACCELERATED: []})
    """Of single runs."""
    counts: dict[str, float] = field(default_factory=dict)
    """Calls of the accelerated program: demanded, issued early, retired, wasted, and what these took."""

    def seconds(self, arm: str) -> list[float]:
        return self.latencies[arm]

    def ran(self, arm: str) -> list[Ran]:
        return [pair.accelerated if arm == ACCELERATED else pair.unmodified for pair in self.pairs]

    def processor_s(self, arm: str) -> float:
        """For one run."""
        return sum(ran.processor_s for ran in self.ran(arm)) / (len(self.pairs) * self.requests)

    def throughput(self, arm: str) -> float:
        """Runs in a second."""
        return len(self.pairs) * self.requests / sum(ran.seconds for ran in self.ran(arm))

    @property
    def ratio(self) -> float:
        """The median of pairs: above 1, the accelerated program is faster."""
        return median(pair.ratio for pair in self.pairs)

    @property
    def interval(self) -> tuple[float, float]:
        """Of that median, by drawing the pairs anew."""
        return bootstrap([pair.ratio for pair in self.pairs])

    def as_dict(self) -> dict[str, Any]:
        return {
            "concurrency": self.concurrency,
            "pairs": len(self.pairs),
            "requests_in_a_pair": self.requests,
            "ratio": self.ratio,
            "ratio_interval": list(self.interval),
            **{
                arm: {
                    "median_s": median(self.seconds(arm)),
                    "fastest_s": min(self.seconds(arm)),
                    "slowest_s": max(self.seconds(arm)),
                    "runs_per_s": self.throughput(arm),
                    "processor_s": self.processor_s(arm),
                    "seconds": self.seconds(arm),
                }
                for arm in (UNMODIFIED, ACCELERATED)
            },
            "calls": dict(self.counts),
        }


def bootstrap(values: Sequence[float], sure: float = SURE) -> tuple[float, float]:
    """Between which values the median lies, so surely; by drawing as many anew, in the same way each time."""
    dice = Random(0)
    drawn = sorted(median(dice.choices(values, k=len(values))) for _ in range(RESAMPLES))
    outside = (1 - sure) / 2
    return drawn[int(outside * RESAMPLES)], drawn[min(RESAMPLES - 1, int((1 - outside) * RESAMPLES))]


@dataclass
class BenchResult:
    """Of one measurement."""

    program: str
    inputs: int
    rounds: int
    levels: list[Level] = field(default_factory=list)
    limits_s: dict[int, float] = field(default_factory=dict)
    """By input: how fast it could have been on the components that it used, whatever the program's order."""
    accelerated_s: dict[int, float] = field(default_factory=dict)
    """By input: the median of single accelerated runs."""
    recorded: int = 0
    """Answers that were recorded before."""
    replayed: bool = False
    errors: set[str] = field(default_factory=set)
    failed: int = 0
    """Runs that raised, of both arms."""

    @property
    def limit_s(self) -> float | None:
        """The median of inputs."""
        return median(self.limits_s.values()) if self.limits_s else None

    @property
    def share_of_limit(self) -> float | None:
        """Of the speed that was possible, what was reached, one run at a time: the median of inputs."""
        both = [self.limits_s[n] / self.accelerated_s[n] for n in self.limits_s if self.accelerated_s.get(n)]
        return median(both) if both else None

    @property
    def exit_code(self) -> int:
        return EQUAL if any(level.pairs for level in self.levels) else USAGE

    @property
    def notes(self) -> list[str]:
        notes = []
        if self.replayed:
            notes.append("models and services were replayed from the cassette, as fast as they were when recorded")
        if self.failed:
            notes.append(f"{self.failed} runs raised an error, and were not measured: {'; '.join(sorted(self.errors))}")
        single = next((level for level in self.levels if level.concurrency == 1 and level.pairs), None)
        if single is not None and single.interval[0] <= 1.0 <= single.interval[1]:
            notes.append("one run at a time, no difference is sure: take more rounds, or look at `accel explain`")
        if any(level.pairs for level in self.levels):
            notes.append("whether results are equal is another question: accel check")
        return notes

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "program": self.program,
            "inputs": self.inputs,
            "rounds": self.rounds,
            "levels": [level.as_dict() for level in self.levels if level.pairs],
            "limit_s": self.limit_s,
            "share_of_limit": self.share_of_limit,
            "replayed": self.replayed,
            "failed": self.failed,
            "errors": sorted(self.errors),
            "notes": self.notes,
        }

    def rows(self) -> list[tuple[str, ...]]:
        """A table: its head, and two lines for each level."""
        head = ("runs at a time", "", "median", "range", "ratio", f"{SURE:.0%} sure", "runs/s", "processor", "wasted")
        found: list[tuple[str, ...]] = [head]
        for level in (level for level in self.levels if level.pairs):
            low, high = level.interval
            for arm in (UNMODIFIED, ACCELERATED):
                mine = arm == ACCELERATED
                times = level.seconds(arm)
                found.append((
                    "" if mine else str(level.concurrency), arm, seconds(median(times)),
                    f"{seconds(min(times))} to {seconds(max(times))}",
                    f"{level.ratio:.2f}x" if mine else "", f"{low:.2f} to {high:.2f}" if mine else "",
                    f"{level.throughput(arm):.3g}", seconds(level.processor_s(arm)),
                    f"{level.counts.get('wasted', 0):.0f} of {level.counts.get('demanded', 0):.0f}" if mine else "",
                ))  # fmt: skip
        return found

    @property
    def title(self) -> str:
        return f"{self.program}: {plural(self.inputs, 'input')}, {plural(self.rounds, 'round')}"

    @property
    def below(self) -> list[str]:
        """Lines under the table."""
        lines = []
        if self.limit_s is not None and self.share_of_limit is not None:
            lines.append(
                f"limit: {seconds(self.limit_s)} with these components, one run at a time; each input by itself, "
                f"{min(1.0, self.share_of_limit):.0%} of its limit is reached (medians of inputs)"
            )
        return [*lines, *(f"note: {each}" for each in self.notes)]

    def __str__(self) -> str:
        rows = self.rows() if self.exit_code == EQUAL else []
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        below = (part for line in self.below for part in folded(f"  {line}"))
        return "\n".join([self.title, *(f"  {line}" for line in table), *below])


def seconds(value: float) -> str:
    """With the unit that suits it."""
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.0f} ms" if value >= 0.0995 else f"{value * 1e3:.1f} ms"
