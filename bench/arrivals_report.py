"""What the records of `python -m bench arrivals` say, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from bench.sections import table

LANGGRAPH, FIRST_COME, ALL = "LangGraph", "first come", "Accel"
WITHOUT_ADMISSION, WITHOUT_DEADLINES = "without admission", "without deadlines"
Record = Mapping[str, Any]


class Row:
    """A cell, with all that was drawn for it: by seed and arm."""

    def __init__(self, found: Iterable[Record]) -> None:
        self._drawn: dict[int, dict[str, Record]] = {}
        for one in found:
            self._drawn.setdefault(one["seed"], {})[one["arm"]] = one
        self.about = next(iter(next(iter(self._drawn.values())).values()))

    def ratio(self, what: str, arm: str, than: str) -> str:
        values = [arms[arm][what] / max(arms[than][what], 1e-9) for arms in self._drawn.values()]
        shown = f"{median(values):.2f}x"
        return f"{shown} ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else shown

    def value(self, what: str, arm: str) -> float:
        return float(median(arms[arm][what] for arms in self._drawn.values()))

    def share(self, arm: str) -> str:
        return f"{median(arms[arm]['met'] / arms[arm]['requests'] for arms in self._drawn.values()):.0%}"

    @property
    def room(self) -> str:
        """How many times the throughput of first come, first served the engine could have at the very best."""
        values = [arms[FIRST_COME]["seconds"] / _least_s(arms[FIRST_COME]) for arms in self._drawn.values()]
        return f"{median(values):.2f}x"

    @property
    def prefilled(self) -> str:
        pairs = [(arms[arm]["served"]["prompt_tokens"]) for arms in self._drawn.values() for arm in (ALL, FIRST_COME)]
        return f"{median(ours / max(1, theirs) for ours, theirs in zip(pairs[::2], pairs[1::2], strict=True)):.2f}"

    @property
    def outputs(self) -> str:
        different = sum(one["different"] for arms in self._drawn.values() for one in arms.values())
        return f"{different} DIFFER" if different else "equal"


def _least_s(one: Record) -> float:
    """The last request arrives after so long, and then takes what it takes alone."""
    return float(max(one["least_s"], one["least_s"] / one["load"] + one["alone_s"]))


def rows(found: Sequence[Record], deadlines: bool) -> list[Row]:
    chosen = [one for one in found if one["deadlines"] is deadlines]
    cells = dict.fromkeys((one["program"], one["kv"], one["load"]) for one in chosen)
    ordered = sorted(cells, key=lambda cell: list(dict.fromkeys(name for name, *_ in cells)).index(cell[0]))
    return [Row(one for one in chosen if (one["program"], one["kv"], one["load"]) == cell) for cell in ordered]


def document(found: Sequence[Record], machine: str, command: str) -> str:
    saturated, loaded = rows(found, False), rows(found, True)
    parts = [
        "# Requests that arrive at random",
        f"Programs (`corpus/arrivals`) whose requests arrive as a Poisson process at a simulated {found[0]['profile']} "
        f"model with 64 slots, in virtual time; {machine}. All arms get the same requests at the same moments; answers "
        "are compared with those of the unmodified program on an engine with room for everything. Medians over seeds "
        "(other inputs and arrivals each), with their range.",
        "- *KV cache*: its tokens over the *working set*: what 64 requests hold, one in each slot, at a request's "
        "longest call.\n"
        "- *Load*: the rate of arrivals over the most that the engine could do if it computed every block of a prompt "
        "once and decoded every token in its best batch. 1.0 can't be reached.\n"
        "- *LangGraph*: the unmodified program, *first come*: the accelerated one (which has answered three other "
        "requests before), both on engines that serve first come, first served. *Accel*: on engines with all policies. "
        "*Without admission*, *without deadlines*: with all but this one.\n"
        "- *Throughput*: requests over the seconds from the first arrival to the last end. *Room*: how many times that "
        "of first come, first served could be reached at the very best. *Latency*: the mean; below 1 is a gain.\n"
        "- *Goodput*: requests that met their deadline over the same seconds. A deadline is 2, 4 or 8 times what a "
        "request takes alone, drawn for each.\n"
        "- *Prefilled*: tokens of Accel over those of first come, first served.",
        f"```\n{command}\n```",
    ]
    if saturated:
        parts += [
            f"## Throughput and latency at saturation (load {saturated[0].about['load']})",
            table(
                ["program", "KV cache", "first come, per s", "room", "Accel: throughput", "without admission",
                 "against LangGraph", "latency of first come", "Accel: latency", "without admission",
                 "against LangGraph", "prefilled", "outputs"],
                [_saturated(row) for row in saturated],
            ),
        ]  # fmt: skip
    if loaded:
        parts += [
            f"## Goodput under deadlines (KV cache {loaded[0].about['kv']})",
            table(
                ["program", "load", "met: LangGraph", "first come", "Accel", "without deadlines", "without admission",
                 "Accel's goodput against first come", "against without deadlines", "against without admission",
                 "outputs"],
                [_loaded(row) for row in loaded],
            ),
        ]  # fmt: skip
    return "\n\n".join(parts)


def _saturated(row: Row) -> list[str]:
    return [
        row.about["program"], str(row.about["kv"]), f"{row.value('throughput', FIRST_COME):.2f}", row.room,
        row.ratio("throughput", ALL, FIRST_COME), row.ratio("throughput", WITHOUT_ADMISSION, FIRST_COME),
        row.ratio("throughput", ALL, LANGGRAPH), f"{row.value('mean_s', FIRST_COME):.0f} s",
        row.ratio("mean_s", ALL, FIRST_COME), row.ratio("mean_s", WITHOUT_ADMISSION, FIRST_COME),
        row.ratio("mean_s", ALL, LANGGRAPH), row.prefilled, row.outputs,
    ]  # fmt: skip


def _loaded(row: Row) -> list[str]:
    arms = (LANGGRAPH, FIRST_COME, ALL, WITHOUT_DEADLINES, WITHOUT_ADMISSION)
    against = (FIRST_COME, WITHOUT_DEADLINES, WITHOUT_ADMISSION)
    return [
        row.about["program"], str(row.about["load"]), *map(row.share, arms),
        *(row.ratio("goodput", ALL, than) for than in against), row.outputs,
    ]  # fmt: skip
