"""What must stay flat: threads, tasks, files, memory, and objects of Accel's own."""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from accel.process.threads import idle
from accel.run.gains.reliance import WINDOW

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
OURS = ("accel.", "accel_langgraph.", "accel_llamaindex.")


BOUNDED = {"Counts": 4, "Tried": 1, "Request": 1, "Asked": 8}
"""What every accelerated object keeps of its last hundred runs that were followed, and how many of each for a run. Of a
program that rests these may come one by one until a soak is over: they have a bound, and are no growth below it."""


@dataclass(frozen=True)
class Sample:
    runs: int
    threads: int
    """Without those that stand still in a component, and those of ours that wait for work and end by themselves."""
    stalled: int
    tasks: int
    files: int
    live_runs: int
    live_calls: int
    objects: int
    """Of Accel's classes, but for those that are `BOUNDED`; runs and calls among them."""
    rss_mb: float
    classes: Counter[str] = field(repr=False)
    """What the objects are."""


ALLOWED = {
    "threads": (3, 0.0),
    "tasks": (2, 0.0),
    "files": (3, 0.0),
    "live_runs": (5, 0.0),
    "live_calls": (100, 0.0),
    "objects": (1_000, 0.05),
    "rss_mb": (12, 0.04),
}
"""By gauge: how much the last third of the samples may be above the first third, at least, and as a share of it."""


def sample(runs: int, stalled: int) -> Sample:
    for _ in range(3):  # what finalizers let go
        gc.collect()
    names: Counter[str] = Counter()
    for found in gc.get_objects():
        cls = type(found)
        if str(cls.__module__).startswith(OURS):
            names[cls.__qualname__] += 1
    files = len(os.listdir("/proc/self/fd"))
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Sample(
        runs,
        threading.active_count() - stalled - idle(),
        stalled,
        len(asyncio.all_tasks()),
        files,
        names["Run"],
        names["Call"],
        names.total() - sum(names[name] for name in BOUNDED),
        round(pages * PAGE_BYTES / 2**20, 1),
        names,
    )


def table(samples: list[Sample]) -> str:
    names = [name for name in Sample.__dataclass_fields__ if name != "classes"]
    rows = [names, *([f"{getattr(one, name):,}" for name in names] for one in samples)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(names))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def grown(samples: list[Sample], *, memory: bool = True) -> list[str]:
    """What grows after the first quarter, in which plans are learnt and caches filled; in words.

    `memory`: whether there were enough runs for plans to be learnt, and for memory to say anything.
    """
    later = samples[len(samples) // 4 + 1 :]
    if len(later) < 3:
        return []
    third = len(later) // 3
    found = []
    held = samples[-1].classes
    for name, most in BOUNDED.items():
        if held[name] > most * (WINDOW * held["Plan"] + held["Run"]):
            found.append(f"{held[name]:,} {name} are kept for {held['Plan']} plans: more than of {WINDOW} runs each")
    for name, (least, share) in ALLOWED.items():
        if name in ("rss_mb", "objects") and not memory:
            continue
        first = statistics.median(getattr(one, name) for one in later[:third])
        last = statistics.median(getattr(one, name) for one in later[-third:])
        if last - first > max(least, share * first):
            which = ""
            if name == "objects":
                more = later[-1].classes - later[0].classes
                grew = [(cls, n) for cls, n in more.most_common(5 + len(BOUNDED)) if cls not in BOUNDED][:5]
                which = f" ({', '.join(f'{n:,} more {cls}' for cls, n in grew)})"
            span = f"between runs {later[0].runs:,} and {later[-1].runs:,}"
            found.append(f"{name} grew from {first:,} to {last:,} {span}{which}")
    return found
