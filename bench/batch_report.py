"""What the records of `python -m bench batch` say, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import geometric_mean, median
from typing import Any

from bench.sections import table
from corpus.batches import PROGRAMS

IN_TURN, LANGGRAPH_BATCH = "one after the other", "LangGraph's batch"
ACCEL_IN_TURN, ACCEL_BATCH, LEARNT_BATCH = "accelerated, one after the other", "accelerated batch", "learnt batch"
ABLATIONS = {"without reuse": "topology-aware, without reuse", "first come": "blind"}
"""Arms of Accel's batch on engines with another policy of `accel.engine.batching`."""
TIGHT, AMPLE = "tight", "ample"

Record = Mapping[str, Any]
HEAD = [
    "program", "inputs x calls", "replicas", "one after the other", "Accel in turn", "LangGraph's batch",
    "against in turn", "room", "Accel's batch", "learnt", *ABLATIONS, "prefilled", "decoded", "processor",
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
    def room(self) -> float:
        """How many times faster than LangGraph's batch at its best the engines could be at the very best."""
        return float(self.best["seconds"] / self.about["least_s"])

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
            _ratio(one.faster(ACCEL_IN_TURN, one.by_arm[IN_TURN]) for one in drawn),
            f"{best_s:.1f} s at {most}",
            _ratio(one.by_arm[IN_TURN]["seconds"] / one.best["seconds"] for one in drawn),
            f"{median(one.room for one in drawn):.2f}x",
            _ratio(one.against_best(ACCEL_BATCH) for one in drawn),
            _ratio(one.against_best(LEARNT_BATCH) for one in drawn),
            *(_ratio(one.against_best(arm) for one in drawn) for arm in ABLATIONS),
            f"{median(one.served('prompt_tokens') for one in drawn):.2f}",
            f"{median(one.served('output_tokens') for one in drawn):.2f}",
            f"{median(one.processor for one in drawn):.1f}x",
            f"{median(one.about['equal_calls'] / one.about['calls'] for one in drawn):.0%}",
            f"{different} DIFFER" if different else "equal",
        ]  # fmt: skip


def _ratio(values: Iterable[float]) -> str:
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
        "- *Room*: how many times faster than LangGraph's batch anything could be: its seconds over those that the "
        "engines need if every block of a prompt is computed once, every equal call made once, every token decoded in "
        "the best batch, and nothing ever waits. It can't be reached.\n"
        "- *Accel's batch*: `fast.abatch(inputs)` of an accelerated program that has seen nothing yet; *learnt*: of "
        "one that has answered three other inputs. Both against LangGraph's batch at its best: above 1 is a gain.\n"
        "- *Without reuse*: Accel's batch on engines that don't ask their cache what to serve next; *first come*: on "
        "engines that serve first come, first served.\n"
        "- *Prefilled*, *decoded*: tokens of Accel's batch over those of LangGraph's. Calls that are not made, and "
        "beginnings that are found in the KV cache, make them less. *Equal calls*: the share that asks for what "
        "another call of the batch asks for, too.\n"
        "- Medians of repetitions with other inputs each, with their range.",
        f"```\n{command}\n```",
        "## In short\n\nGeometric means over the programs: *Accel's batch* (*learnt*; *without reuse*; *first come*) "
        "against LangGraph's batch at its best, of what room.",
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
    means = [
        geometric_mean(median(one.against_best(arm) for one in row) for row in drawn)
        for arm in (ACCEL_BATCH, LEARNT_BATCH, *ABLATIONS)
    ]
    room = geometric_mean(median(one.room for one in row) for row in drawn)
    others = "; ".join(f"{mean:.2f}x" for mean in means[1:])
    return f"{means[0]:.2f}x ({others}) of {room:.2f}x"
