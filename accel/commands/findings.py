"""What a check found, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..reports.text import folded, plural
from .cassette import Cassette
from .compare import Difference

UNMODIFIED, ACCELERATED = "unmodified", "accelerated"
EQUAL, DIFFERENT, USAGE = 0, 1, 2
"""Exit codes."""
_MAX_WASTED, _MAX_FOUND = 5, 4
"""In the text."""


@dataclass(frozen=True, slots=True)
class Found:
    """A difference, and where: input and round count from 1."""

    input: int
    round: int
    way: str
    difference: Difference
    varies: bool
    """The unmodified program differs from itself, too."""

    def __str__(self) -> str:
        by_itself = " (the unmodified program, run again, differs from itself, too)" if self.varies else ""
        return f"input {self.input}, round {self.round}, {self.way}{by_itself}: {self.difference}"


@dataclass(frozen=True, slots=True)
class Wasted:
    """An early call whose answer the program did not take."""

    component: str
    method: str
    input: str
    times: int
    again: bool
    """The program made the same call itself: an early read of what somebody may have changed only feeds predictions."""

    @property
    def what(self) -> str:
        made = "made again by the program" if self.again else "never asked for"
        return f"{self.component.rpartition('.')[2]}.{self.method}, {made}"


@dataclass
class CheckResult:
    """Of one check. True if nothing differs and the unmodified program answered at all."""

    program: str
    inputs: int
    rounds: int
    ways: tuple[str, ...]
    runs: int = 0
    """Of each arm."""
    found: list[Found] = field(default_factory=list)
    wasted: list[Wasted] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    """Calls: demanded, issued early, of these retired into demands, wasted, and those that only fed predictions."""
    different: int = 0
    """Of the inputs, those that no other one before is equal to."""
    reordered: int = 0
    """Runs whose streams differ in the order alone of what nodes side by side say."""
    errors: set[str] = field(default_factory=set)
    """That the unmodified program raised,"""
    raised: int = 0
    """in so many runs."""
    cassette: Cassette | None = None

    @property
    def verdict(self) -> str:
        """ "equal"; "different"; "varying", if the unmodified program differs from itself wherever there is a
        difference; "raised", if it raised in every run, so that nothing was compared."""
        if self.found:
            return "varying" if all(each.varies for each in self.found) else "different"
        return "raised" if self.runs and self.raised == self.runs else "equal"

    @property
    def exit_code(self) -> int:
        return {"equal": EQUAL, "raised": USAGE}.get(self.verdict, DIFFERENT)

    def __bool__(self) -> bool:
        return self.exit_code == EQUAL

    @property
    def notes(self) -> list[str]:
        """What a person should know beside the verdict."""
        notes = []
        if self.verdict == "varying":
            remedy = "" if self.cassette is not None else "; with --cassette FILE its models answer the same each time"
            notes.append(f"the unmodified program differs from run to run by itself: nothing can be said{remedy}")
        if self.verdict == "raised":
            notes.append(
                "the unmodified program raised an error in every run: nothing else was compared; run it by itself "
                "first, on the same inputs"
            )
        elif self.raised:
            notes.append(f"the unmodified program raised an error in {self.raised} of {self.runs} runs")
        notes += sorted(self.errors)[:_MAX_FOUND]
        if not self.found and self.verdict == "equal" and not self.counts.get("issued"):
            remedy = (
                "`accel report` with the same inputs says of every line why"
                if self.different > 1
                else "give two different inputs at least, and look at what `accel explain` says of the program"
            )
            notes.append(f"nothing was called early in these runs: {remedy}")
        if self.reordered:
            notes.append(f"in {self.reordered} runs, nodes side by side said the same in another order")
        if self.cassette is not None and self.cassette.kept:
            kept = ", ".join(sorted(self.cassette.kept))
            notes.append(f"kept in memory only, because it can't be written down: {kept}")
        if self.cassette is not None and self.cassette.live:
            notes.append(f"made each time, because no copy can be kept: {', '.join(sorted(self.cassette.live))}")
        return notes

    def _not_taken(self) -> list[str]:
        """By what was called, the most first, with an input of each."""
        kinds: dict[str, list[Wasted]] = {}
        for each in self.wasted:
            kinds.setdefault(each.what, []).append(each)
        most = sorted(kinds.items(), key=lambda item: -sum(one.times for one in item[1]))
        return [f"{sum(one.times for one in each)} x {what}, such as {each[0].input}" for what, each in most]

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        tape = self.cassette
        return {
            "program": self.program,
            "verdict": self.verdict,
            "equal": bool(self),
            "inputs": self.inputs,
            "rounds": self.rounds,
            "ways": list(self.ways),
            "runs": self.runs,
            "raised": self.raised,
            "errors": sorted(self.errors),
            "reordered": self.reordered,
            "calls": dict(self.counts),
            "wasted": [
                {"component": one.component, "method": one.method, "input": one.input, "times": one.times,
                 "again": one.again}
                for one in self.wasted
            ],
            "differences": [
                {
                    "input": one.input, "round": one.round, "way": one.way, "path": one.difference.path,
                    UNMODIFIED: one.difference.unmodified, ACCELERATED: one.difference.accelerated,
                    "varies": one.varies,
                }
                for one in self.found
            ],
            "cassette": None if tape is None else {
                "file": str(tape.path), "recorded": tape.recorded, "replayed": tape.replayed,
            },
            "notes": self.notes,
        }  # fmt: skip

    def __str__(self) -> str:
        c = self.counts
        lines = [
            f"{self.program}: {self.verdict} in {plural(self.runs, 'run')} ({plural(self.inputs, 'input')}, "
            f"{plural(self.rounds, 'round')}, {' and '.join(self.ways)})"
        ]
        shown = [each for each in self.found if not each.varies] or self.found[:1]
        lines += [f"  {each}" for each in shown[:_MAX_FOUND]]
        if len(shown) > _MAX_FOUND:
            lines.append(f"  {len(shown) - _MAX_FOUND} more differences")
        if c and self.verdict != "raised":
            lines.append(
                f"  {c['demanded']} calls by the program; {c['issued']} early ones: {c['retired']} answered it, "
                f"{c['fed']} only fed predictions, {c['wasted']} in vain"
            )
        if self.cassette is not None:
            tape = self.cassette
            lines.append(f"  {tape.path}: {tape.recorded} answers recorded, {tape.replayed} replayed")
        lines += [f"  early, and not taken: {each}" for each in self._not_taken()[:_MAX_WASTED]]
        lines += [f"  note: {each}" for each in self.notes]
        return "\n".join(part for line in lines for text in line.splitlines() for part in folded(text))
