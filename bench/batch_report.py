"""What the records of `python -m bench batch` say, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import geometric_mean, median
from typing import Any

from accel_sim.kv_cache import LEAST_RECENT
from bench.sections import table
from corpus.batches import PROGRAMS

IN_TURN, LANGGRAPH_BATCH = "one after the other", "LangGraph's batch"
ACCEL_IN_TURN, ACCEL_BATCH, LEARNT_BATCH = "accelerated, one after the other", "accelerated batch", "learnt batch"
ABLATIONS: dict[str, dict[str, Any]] = {
    "least recent": {"eviction": LEAST_RECENT},
    "as they come": {"one_line": False},
    "without reuse": {"batching": "topology-aware, without reuse"},
    "run by run": {"batching": "run by run"},
    "first come": {"batching": "blind"},
}
"""Arms of the learnt batch on engines with another policy, by what `bench.engines.simulated` takes."""
TIGHT, AMPLE = "tight", "ample"

Record = Mapping[str, Any]
HEAD = [
    "program", "inputs x calls", "replicas", "one after the other", "Accel in turn", "LangGraph's batch",
    "against in turn", "limit", "Accel's batch", "learnt", *ABLATIONS, "prefilled", "decoded", "processor",
    "equal calls", "outputs",
]  # fmt: skip


class Drawn:
    """One cell in one repetition."""

    def __init__(self, found: Iterable[Record]) -> None:
        records = list(found)
        self.about = records[0]
        self.by_arm = {one["arm"]: one for one in records if one["arm"] != LANGGRAPH_BATCH}
        self.batches = [one for one in records if one["arm"] == LANGGRAPH_BATCH]
        self.best = min(self.batches, key=lambda one: one["seconds"])
        self.different = sum(one["different"] for one in records)

    def faster(self, arm: str, than: Record) -> float:
        return float(than["seconds"] / self.by_arm[arm]["seconds"])

    def against_best(self, arm: str) -> float:
        """Than LangGraph's batch at its best."""
        return self.faster(arm, self.best)

    @property
    def limit(self) -> float:
        """How many times faster than LangGraph's batch at its best the engines could be at the very best."""
        return float(self.best["seconds"] / self.about["least_s"])

    def share(self, arm: str) -> float:
        """Of the limit."""
        return self.against_best(arm) / self.limit

    def served(self, what: str) -> float:
        """By the engines for Accel's batch, over what they served for LangGraph's."""
        return float(self.by_arm[ACCEL_BATCH]["served"][what] / max(1, self.best["served"][what]))

    @property
    def processor(self) -> float:
        """Of Accel's batch over LangGraph's, both with the simulated engines' own."""
        return float(self.by_arm[ACCEL_BATCH]["worked_s"] / self.best["worked_s"])


class Row:
    """A cell, with all that was drawn for it."""

    def __init__(self, found: Sequence[Record]) -> None:
        repetitions = dict.fromkeys(one["repetition"] for one in found)
        self.drawn = [Drawn(one for one in found if one["repetition"] == number) for number in repetitions]
        self.about = self.drawn[0].about

    def cells(self) -> list[str]:
        about, drawn = self.about, self.drawn
        in_turn_s = median(one.by_arm[IN_TURN]["seconds"] for one in drawn)
        best_s = median(one.best["seconds"] for one in drawn)
        most = "/".join(dict.fromkeys(str(one.best["most"]) for one in drawn))
        different = sum(one.different for one in drawn)
        return [
            about["program"], f"{about['inputs']} x {PROGRAMS[about['program']].CALLS}", str(about["replicas"]),
            f"{in_turn_s:.0f} s",
            ratio(one.faster(ACCEL_IN_TURN, one.by_arm[IN_TURN]) for one in drawn),
            f"{best_s:.1f} s at {most}",
            ratio(one.by_arm[IN_TURN]["seconds"] / one.best["seconds"] for one in drawn),
            f"{median(one.limit for one in drawn):.2f}x ({median(1 / one.limit for one in drawn):.0%})",
            *(self._against(arm) for arm in (ACCEL_BATCH, LEARNT_BATCH, *ABLATIONS)),
            f"{median(one.served('prompt_tokens') for one in drawn):.2f}",
            f"{median(one.served('output_tokens') for one in drawn):.2f}",
            f"{median(one.processor for one in drawn):.1f}x",
            f"{median(one.about['equal_calls'] / one.about['calls'] for one in drawn):.0%}",
            f"{different} DIFFER" if different else "equal",
        ]  # fmt: skip

    def _against(self, arm: str) -> str:
        """LangGraph's batch at its best, with the share of the limit."""
        if any(arm not in one.by_arm for one in self.drawn):
            return ""
        shown = ratio(one.against_best(arm) for one in self.drawn)
        return f"{shown} ({median(one.share(arm) for one in self.drawn):.0%})"


def ratio(values: Iterable[float]) -> str:
    """The median, with the range."""
    found = list(values)
    shown = f"{median(found):.2f}x"
    return f"{shown} ({min(found):.2f} to {max(found):.2f})" if len(found) > 1 else shown


def rows(found: Sequence[Record], kv: str) -> list[Row]:
    cells = dict.fromkeys((one["program"], one["replicas"]) for one in found if one["kv"] == kv)
    return [
        Row([one for one in found if (one["program"], one["replicas"], one["kv"]) == (*cell, kv)]) for cell in cells
    ]


def document(found: Sequence[Record], machine: str, command: str, kv_tokens: Mapping[str, int]) -> str:
    rooms = [kv for kv in kv_tokens if any(one["kv"] == kv for one in found)]
    by_room = {kv: rows(found, kv) for kv in rooms}
    parts = [
        "# Many inputs to one program",
        f"Programs that papers on batches have measured (`corpus/batches`), each given many inputs at once. Simulated "
        f"{found[0]['profile']} models in virtual time, each replica with 64 slots; {machine}. What Python computes "
        "takes no time, so that the seconds are the engines' alone: *processor* is what Accel's batch cost the process "
        "over what LangGraph's did, the simulated engines included in both. All outputs are compared with those of the "
        "unmodified program, one input after the other.",
        "- *One after the other*: the unmodified program's seconds; *Accel in turn*: how many times faster the "
        "accelerated program is that way.\n"
        f"- *LangGraph's batch*: `abatch` of the unmodified program with the best `max_concurrency` of "
        f"{', '.join(map(str, sorted({one['most'] for one in found if one['arm'] == LANGGRAPH_BATCH})))}; *against in "
        "turn*: how many times faster that is than one after the other.\n"
        "- *Limit*: how many times faster than LangGraph's batch anything could be, and in brackets LangGraph's own "
        "share of it: what the engines need if every block of a prompt is computed once, every equal call made once, "
        "and as many tokens decoded at once as slots, KV cache and the runs themselves allow; no less than the longest "
        "run alone. It leaves out how a batch begins and ends, and can't be reached.\n"
        "- *Accel's batch*: `fast.abatch(inputs)` of an accelerated program that has seen nothing yet; *learnt*: of "
        "one that has answered three other inputs. Both against LangGraph's batch at its best: above 1 is a gain; in "
        "brackets the share of the limit.\n"
        "- The learnt batch without one policy of the engines: *least recent*: the KV cache gives up what was used "
        "least recently, whatever is used next; *as they come*: calls are shared out among replicas when they come, "
        "not when there is room; *without reuse*: the cache isn't asked what to serve next. And in other orders: *run "
        "by run*, invocation by invocation; *first come*, first served.\n"
        "- *Prefilled*, *decoded*: tokens of Accel's batch over those of LangGraph's. Calls that are not made, and "
        "beginnings that are found in the KV cache, make them less. *Equal calls*: the share that asks for what "
        "another call of the batch asks for, too.\n"
        "- Medians of repetitions with other inputs each, with their range.",
        f"```\n{command}\n```",
        "## In short\n\nGeometric means over the programs: *Accel's batch*, *learnt*, and in brackets *"
        + "*; *".join(ABLATIONS)
        + "*, against LangGraph's batch at its best, of what limit.",
        table(
            ["KV cache", *(f"{n} replicas" if n > 1 else "1 replica" for n in _replicas(found))],
            [[kv, *(_mean(by_room[kv], n) for n in _replicas(found))] for kv in rooms],
        ),
    ]
    for kv in rooms:
        parts += [
            f"## KV cache: {kv}, {kv_tokens[kv]:,} tokens a replica",
            table(HEAD, [row.cells() for row in by_room[kv]]),
        ]
    return "\n\n".join(parts)


def _replicas(found: Sequence[Record]) -> list[int]:
    return sorted({one["replicas"] for one in found})


def _mean(of: Sequence[Row], replicas: int) -> str:
    drawn = [[*row.drawn] for row in of if row.about["replicas"] == replicas]
    if not drawn:
        return ""
    means = {
        arm: geometric_mean(median(one.against_best(arm) for one in row) for row in drawn)
        for arm in (ACCEL_BATCH, LEARNT_BATCH, *ABLATIONS)
        if all(arm in one.by_arm for row in drawn for one in row)
    }
    limit = geometric_mean(median(one.limit for one in row) for row in drawn)
    others = "; ".join(f"{means[arm]:.2f}x" if arm in means else "-" for arm in ABLATIONS)
    return f"{means[ACCEL_BATCH]:.2f}x, {means[LEARNT_BATCH]:.2f}x ({others}) of {limit:.2f}x"
