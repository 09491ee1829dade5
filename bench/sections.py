"""Sections of RESULTS.md about what other commands than `python -m bench run` measured, from their raw records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, median

from bench.pictures import ACCELERATED, UNMODIFIED, Raw, exponent

FIDELITY_LEARNT_FROM = 2


def fidelity(raw: Raw) -> str:
    """The simulator against reality (`python -m bench fidelity`), from its raw times."""
    rows = []
    late: dict[str, list[float]] = {}
    for number, request in enumerate(raw["requests"]):
        row = [f"request {number + 1}"]
        for arm in (UNMODIFIED, ACCELERATED):
            real, simulated = (request[kind][arm]["seconds"] for kind in ("real", "simulated"))
            row += [f"{real:.2f} s", f"{simulated:.2f} s", f"{simulated / real:.3f}"]
            if number >= FIDELITY_LEARNT_FROM:
                late.setdefault(arm, []).append(abs(simulated / real - 1))
        rows.append(row)
    off = ", ".join(f"{arm} {median(found):.1%} (worst {max(found):.1%})" for arm, found in late.items())
    head = [f"{arm}, {what}" for arm in (UNMODIFIED, ACCELERATED) for what in ("real", "simulated", "ratio")]
    versions = ", ".join(f"{name} {version}" for name, version in raw["versions"].items())
    return (
        "## The simulator against reality\n\nThe demo's program on vLLM, and on a simulated language model with this "
        f"machine's measured profile and the recorded answers, in real time; {raw['machine']}; {versions}. "
        f"Off by, from request {FIDELITY_LEARNT_FROM + 1} on, at the median: {off}.\n\n"
        f"```\npython -m bench fidelity --profile PROFILE\n```\n\n{table(['', *head], rows)}"
    )


def llamaindex(raw: Raw) -> str:
    """Ordinary LlamaIndex programs, and each gain by its name."""
    rows = []
    for name in raw["gains"]:
        every = [one for one in raw["requests"] if one["program"] == name]
        if not every:
            continue
        late = [one for one in every if one["number"] >= raw["warm"]]
        before, after = ([one["seconds"][arm] for one in late] for arm in (UNMODIFIED, ACCELERATED))
        ratios = [b / a for b, a in zip(before, after, strict=True)]
        limits = [one["limit_s"] for one in late if one["limit_s"]]
        equal = sum(one["output"][UNMODIFIED] == one["output"][ACCELERATED] for one in every)
        row = [name, raw["gains"][name], f"{median(before):.2f} s"]
        row += [f"{median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f})"]
        row += [f"{median(b / s for b, s in zip(before, limits, strict=True)):.2f}x" if limits else "-"]
        row += [f"{median(s / a for s, a in zip(limits, after, strict=True)):.2f}" if limits else "-"]
        row += [f"{equal} of {len(every)}"]
        row += [" / ".join(str(sum(one["counts"][what] for one in late)) for what in ("retired", "wasted"))]
        rows.append(row)
    head = ["program", "what gains", UNMODIFIED, ACCELERATED, "limit", "share of limit", "equal", "retired / wasted"]
    return (
        f"## LlamaIndex programs\n\nSynchronous programs on simulated {raw['profile']} engines in real time; "
        f"{raw['machine']}. Responses, sources and scores are compared. The limit of fusion is too fast: it takes a "
        "passage for known when the first search has found it, but which passages make up the prompt is known after "
        f"the last one only.\n\n```\npython -m bench llamaindex\n```\n\n{table(head, rows)}"
    )


def topology(raw: Raw) -> str:
    """Batching that knows runs and depths against batching that doesn't."""
    parts = [
        "## Batching that knows runs and depths\n\nSeveral programs arrive at random on the same simulated engines, in "
        f"virtual time: {raw['models']} instances of the {raw['profile']} model, one of everything else; "
        f"{raw['machine']}. Mean latency of a request, and against first come, first served (blind). Nothing but "
        "standing in line can be saved by another order: *in line* is its share of a request's latency with blind "
        "batching, all its calls together.\n\n```\npython -m bench topology\n```"
    ]
    for mix in raw["mixes"]:
        arms = {(arm["program"], arm["batching"]): arm for arm in mix["arms"]}
        loads = next(iter(arms.values()))["loads"]
        offered = [f"{load['rate']:.2f} requests/s" if load["rate"] else "all at once" for load in loads]
        rows = []
        for (program, batching), arm in arms.items():
            blind = arms[program, "blind"]
            pairs = list(zip(arm["loads"], blind["loads"], strict=True))
            if arm is blind:
                rows.append([f"{program}: in line", *(f"{_in_line(load):.0%}" for load in blind["loads"])])
            cells = [f"{_mean_s(load):.1f} s, {_mean_s(load) / _mean_s(other) - 1:+.1%}" for load, other in pairs]
            rows.append([f"{program}, {batching}", *cells])
        parts.append(f"### {' and '.join(mix['mix'])}\n\n{table(['', *offered], rows)}")
        worst = max(
            (one["ended_s"] - one["began_s"]) / (other["ended_s"] - other["began_s"])
            for program in dict.fromkeys(program for program, _ in arms)
            for one, other in zip(
                arms[program, "topology-aware"]["alone"], arms[program, "blind"]["alone"], strict=True
            )
        )
        parts.append(f"Alone on idle engines, topology-aware takes at most {worst:.3f} of blind batching's time.")
    return "\n\n".join(parts)


def _mean_s(load: Raw) -> float:
    return fmean(one["ended_s"] - one["began_s"] for one in load["requests"])


def _in_line(load: Raw) -> float:
    waited_s = sum(engine["waited_s"] for engine in load["engines"].values())
    return float(waited_s) / len(load["requests"]) / _mean_s(load)


def first_token(raw: Raw) -> str:
    """How long a demand waits for its first token."""
    rows = []
    for name, every in raw["apps"].items():
        late = [call for call in every if call["request"] >= raw["warm"] and call["first_s"][UNMODIFIED] is not None]
        pairs = [(call["first_s"][UNMODIFIED], call["first_s"][ACCELERATED]) for call in late]
        more = [after - before for before, after in pairs]
        row = [name, str(len(late)), *(f"{median(times) * 1e3:.1f} ms" for times in zip(*pairs, strict=True))]
        row += [f"{max(more) * 1e3:+.2f} ms", f"{sum(one > 1e-6 for one in more)}"]
        rows.append([*row, f"{sum(call['equal'] for call in every)} of {len(every)}"])
    head = ["application", "calls", UNMODIFIED, ACCELERATED, "worst call against unmodified", "calls later", "equal"]
    return (
        "## The first token of a demand\n\nSeconds from a model call's start to its first token, as a listener of the "
        f"streamed program sees them: medians over all calls; simulated {raw['profile']} engines in virtual time; "
        f"{raw['machine']}.\n\n```\npython -m bench first-token\n```\n\n{table(head, rows)}"
    )


def scale(raw: Raw) -> str:
    """What a call costs in long runs, and learning from long traces."""
    rows = []
    sizes = sorted({one["size"] for one in raw["figures"]})
    for program, arm in dict.fromkeys((one["program"], one["arm"]) for one in raw["figures"]):
        found = {one["size"]: one for one in raw["figures"] if (one["program"], one["arm"]) == (program, arm)}
        worked = {size: one["cpu_s"] for size, one in found.items()}
        cells = [f"{worked[size] / size * 1e3:.3f} ms" if size in worked else "-" for size in sizes]
        last = max(found)
        grown = f"{found[last]['grown_mb'] * 1024 / last:.1f} KB"
        early = f"{found[last]['retired'] / last:.0%}" if "retired" in found[last] else "-"
        slope = f"{exponent(worked):.2f}" if len(worked) > 1 else "-"
        rows.append([program, arm, *cells, slope, f"{found[last]['seconds'] / last * 1e3:.3f} ms", early, grown])
    head = ["program", "", *(f"{size:,} calls" for size in sizes), "exponent", "time", "early", "memory"]
    return (
        "## Long runs and long traces\n\nWork per call (processor time of all threads) by the number of calls in a "
        f"run, with components that take {raw['call_s'] * 1e3:.0f} ms, and of learning from two traces of that many "
        "calls. The exponent is that of the whole work by size: 1 is a cost in proportion to the size. At the largest "
        "size: *time* on the clock per call; *early*, those calls that Accel made before the program asked; *memory*, "
        "by how much the process's peak grew, per call. Accel learns from runs of up to "
        f"{raw['most_learnt']:,} calls; longer traces are given to the learner for this table alone, and the "
        "accelerated runs follow a plan without its bound on items (elsewhere no more start early than a run has had) "
        f"and with the usual budget of {raw['most_issued']:,} early calls. "
        f"{raw['machine']}.\n\n```\npython -m bench scale  # --long: up to 100,000 calls\n```\n\n{table(head, rows)}"
    )


SECTIONS: Mapping[str, Callable[[Raw], str]] = {
    "fidelity": fidelity, "llamaindex": llamaindex, "topology": topology, "first-token": first_token,
    "scale": scale,
}  # fmt: skip


def command_of(name: str, arguments: Sequence[str]) -> str:
    """What a page was made by, for who makes it again: without the wish to write it."""
    return " ".join(["python -m bench", name, *(argument for argument in arguments if argument != "--write")])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)
