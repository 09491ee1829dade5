"""`python -m bench report`: recompute every figure from raw records and write RESULTS.md with its pictures."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.pictures import ACCELERATED, BY_HAND, OFF, UNMODIFIED, App, Raw, Values, curves, gantt, offered, quantile
from bench.sections import SECTIONS, table

NOISE = 0.0005
"""A ratio is below or above 1 if it is so at three decimals."""
LOAD_FIGURES = {"throughput": "throughput", "p50_s": "p50", "p95_s": "p95"}

INTRODUCTION = """\
# Results

Written by `python -m bench report` from raw records. *Unmodified* is a LangGraph program as one writes it first, *by
hand* the same program with the concurrency that LangGraph's own means give, *accelerated* is `accelerate(graph)` of the
unmodified one. Simulated engines take the seconds that their profile of a model and a GPU says, so only ratios mean
something. In virtual time the clock jumps from one event to the next and what Python computes takes no time: Accel's
own overhead is not in those figures; the sections in real time have it. The arms take turns request by request, and
prefix caches are emptied between arms. `BM25Retriever`, a class of the benchmark's own, is declared with
`accel.register(local, concurrency, readonly)` for the accelerated arms; nothing else is declared.

The *limit* is the best schedule we know for the calls that the unmodified program made, on a model of the same engines:
each may start as soon as its input is known (`accel/reports/limits`). The best possible schedule may be a little
faster; where a run was faster than the limit, the limit was too slow an estimate. It is too fast an estimate where a
model repeats what it was given, as the small one on real engines does ("The answer is 12." as draft, critique and
answer): whatever equals an earlier value counts as known then, which nobody could rely on. *Share of limit* is the
limit's seconds / accelerated seconds: 1.00 is all there is to gain.

- A ratio is unmodified seconds / the arm's seconds of the same request: above 1 is faster. Figures are medians, with
  (lowest to highest); p50 and p95 are interpolated between the nearest two requests.
- Equal: requests whose output and calls (of chat models and retrievers, in any order, as LangChain reports them) are
  the unmodified program's in every arm. Requests learnt from are compared, too.
- Issued (early), retired (early and used) and wasted are sums of what Accel counted in the accelerated arm.
- The requests that programs are learnt from count under "First requests" and "equal" only.
"""


class Records:
    """One records file."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self.apps = [App(app, int(raw.get("warm", 0))) for app in raw["apps"]]
        self.clock = str(raw.get("clock", "real"))
        kind, _, profile = str(raw.get("engines", "engines unknown")).partition(" ")
        self.simulated = kind == "simulated"
        self.profile = re.split(r"[/\\]", profile)[-1] if self.simulated else "PROFILE"
        self.title = f"{kind} {self.profile if self.simulated else profile}, {self.clock} time".capitalize()

    @property
    def slug(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")

    def order(self) -> tuple[Any, ...]:
        """Simulated before real engines, virtual before real time, 7b before 13b; never by where the file was."""
        sizes = [int(digits) for digits in re.findall(r"\d+", self.profile)]
        digest = hashlib.sha256(json.dumps(self.raw, sort_keys=True).encode()).hexdigest()
        return not self.simulated, self.clock != "virtual", sizes, self.title, self.raw.get("seed", 0), digest

    def requests(self) -> int:
        """Measured per application."""
        return max((len(app.seconds(UNMODIFIED)) for app in self.apps), default=0)

    def loaded(self) -> int:
        """Requests per point of the load curve."""
        return max((len(load["seconds"]) for app in self.raw["apps"] for load in app.get("loads") or ()), default=0)

    def passes(self) -> list[str]:
        return list(dict.fromkeys(arm for app in self.apps for arm in app.arms if arm.startswith(OFF)))

    def on_gpu(self) -> bool:
        return not self.simulated and not str(self.raw.get("machine", "no GPU")).endswith("no GPU")

    def command(self) -> str:
        clock = f" --clock {self.clock}" if self.simulated else ""
        load = f" --load {self.loaded()}" if self.loaded() else ""
        return (
            f"python -m bench run --engines {'sim' if self.simulated else 'cpu'} --profile {self.profile}{clock} "
            f"--apps {','.join(app.name for app in self.apps)} --requests {self.requests()}{load}"
            f"{' --passes' if self.passes() else ''} --seed {self.raw.get('seed', 0)} --out bench-out/{self.slug}"
        )

    def picture(self, app: App, kind: str) -> str:
        return f"{self.slug}-{app.name}-{kind}.png"


def ordered(raws: Iterable[Raw]) -> list[Records]:
    found = sorted(map(Records, raws), key=Records.order)
    titles = [records.title for records in found]
    for number, records in enumerate(found):
        same = titles[:number].count(records.title)
        records.title += f", {same + 1}" if same else ""
    return found


# --- RESULTS.md


def results(found: Sequence[Records], others: Mapping[str, Raw] | None = None) -> str:
    """others: raw records of the commands of `SECTIONS`, by name."""
    others = others or {}
    parts = [INTRODUCTION]
    for records in found:
        parts += [f"## {records.title}", about(records), main_table(records), seconds_table(records)]
        parts += [first_table(records), passes_table(records), load_tables(records), *runs(records)]
    parts += [section(others[name]) for name, section in SECTIONS.items() if name in others]
    return "\n".join([*(part.rstrip() + "\n" for part in parts if part), *shortcomings(found, others)])


def about(records: Records) -> str:
    raw = records.raw
    versions = ", ".join(f"{name} {version}" for name, version in (raw.get("versions") or {}).items())
    facts = [records.title, f"{records.requests()} requests per application"]
    facts += [f"{records.loaded()} per point under load"] if records.loaded() else []
    facts += [f"seed {raw.get('seed', 0)}", *(str(raw[key]) for key in ("date", "machine") if raw.get(key)), versions]
    return "; ".join(fact for fact in facts if fact) + f".\n\n```\n{records.command()}\n```"


def main_table(records: Records) -> str:
    head = "application, unmodified p50 / p95, by hand, accelerated, p95, limit, share of limit, equal"
    rows = []
    for app in records.apps:
        before, after = (app.seconds(arm).values() for arm in (UNMODIFIED, ACCELERATED))
        p95 = [quantile(before, 0.95) / quantile(after, 0.95)] if before and after and max(after) > 0 else []
        row = [app.name, p50_p95(app.seconds(UNMODIFIED)), times(app.ratios(BY_HAND)), ranged(app.ratios(ACCELERATED))]
        row += [times(p95), times(app.limit_ratios()), ranged(app.shares(), ""), app.equal()]
        row += [" / ".join(str(app.count(name)) for name in ("issued", "retired", "wasted"))]
        row[-1] += f" ({app.count('wasted_tokens')} tokens)" if app.count("wasted_tokens") else ""
        rows.append([*row, app.paper])
    return table([*head.split(", "), "issued / retired / wasted", "the paper's number"], rows)


def seconds_table(records: Records) -> str:
    arms = (UNMODIFIED, BY_HAND, ACCELERATED)
    rows = [[app.name, *(p50_p95(app.seconds(arm)) for arm in arms)] for app in records.apps]
    return "Seconds per request, p50 / p95:\n\n" + table(["application", *arms], rows)


def first_table(records: Records) -> str:
    rows = [(app.name, app.ratios(ACCELERATED, first=True)) for app in records.apps]
    numbers = sorted({n for _, ratios in rows for n in ratios})
    if not numbers:
        return ""
    shown = [[name, *(times([r[n]] if n in r else []) for n in numbers)] for name, r in rows]
    return "### First requests\n\n" + table(["accelerated", *(f"request {n + 1}" for n in numbers)], shown)


def passes_table(records: Records) -> str:
    def cell(app: App, arm: str) -> str:
        every, one = app.ratios(ACCELERATED), app.ratios(arm)
        differs = every and one and abs(median(every.values()) - median(one.values())) > 0.01
        return f"**{times(one)}**" if differs else times(one)

    passes = records.passes()
    rows = [[app.name, *(cell(app, arm) for arm in [ACCELERATED, *passes])] for app in records.apps]
    said = "### Each pass off\n\nThe accelerated ratio; bold where it differs by more than 0.01 from all passes on.\n\n"
    return said + table(["application", "all on", *passes], rows) if passes else ""


def load_tables(records: Records) -> str:
    once, curve, pictures = [], [], []
    for app in records.apps:
        for rate, loads in app.loads.items():
            if rate is None:
                gain = [times(app.load_ratio(rate, arm, "throughput")) for arm in (BY_HAND, ACCELERATED)]
                most = f"{loads[UNMODIFIED].throughput:.3g}" if UNMODIFIED in loads else "-"
                once.append([app.name, most, *gain])
            fields = [(what, arm) for what in ("p50_s", "p95_s") for arm in (BY_HAND, ACCELERATED)]
            curve.append([app.name, offered(rate), *(times(app.load_ratio(rate, arm, what)) for what, arm in fields)])
        if app.loads:
            pictures.append(f"![{app.name}: latency by throughput](pictures/{records.picture(app, 'load')})")
    if not curve:
        return ""
    text = "### Load\n\nThroughput with all requests at once: ratio to the unmodified program's.\n\n"
    text += table(["application", "unmodified, requests/s", BY_HAND, ACCELERATED], once)
    text += "\n\nLatency: unmodified seconds / the arm's, at the same arrivals.\n\n"
    columns = [f"{what}, {arm}" for what in ("p50", "p95") for arm in (BY_HAND, ACCELERATED)]
    return text + table(["application", "offered load", *columns], curve) + "\n\n" + "\n".join(pictures)


def runs(records: Records) -> Iterator[str]:
    shown = [app for app in records.apps if app.traces]
    if shown:
        yield "### The last request\n\nBars are paler where a call runs before the program asks for it."
        yield "\n".join(f"![{a.name}: when each primitive ran](pictures/{records.picture(a, 'run')})" for a in shown)


def shortcomings(found: Sequence[Records], others: Mapping[str, Raw]) -> Iterator[str]:
    def each(what: Callable[[App], Iterator[str]]) -> list[str]:
        return [
            f"{records.title}: {app.name}, {line}" for records in found for app in records.apps for line in what(app)
        ]

    groups = {
        "Slower than the unmodified program": each(slower),
        "Slower than the program by hand, or than with a pass off": each(behind),
        "Not equal to the unmodified program": each(unequal),
        "Share of limit below 0.9, or above 1": each(off_limit),
        "Not measured": each(absent) + list(unmeasured(found, others)),
    }
    yield "## What is slower, or not shown\n"
    for title, lines in groups.items():
        yield f"### {title}\n\n" + "\n".join(f"- {line}" for line in lines or ["None."]) + "\n"


def slower(app: App) -> Iterator[str]:
    for arm in app.arms:
        ratios = app.ratios(arm)
        if ratios and median(ratios.values()) < 1 - NOISE:
            yield f"{arm}: {flagged(median(ratios.values()))}"
        elif slow := [n for n, ratio in ratios.items() if ratio < 0.98]:
            yield f"{arm}: not at the median, but {numbered(slow)}, down to {flagged(min(ratios.values()))}"
    for rate, loads in app.loads.items():
        for arm in loads:
            ratios_under = [(what, ratio) for what in LOAD_FIGURES for ratio in app.load_ratio(rate, arm, what)]
            low = [f"{LOAD_FIGURES[what]} {flagged(ratio)}" for what, ratio in ratios_under if ratio < 1 - NOISE]
            if low:
                yield f"{arm}, load {offered(rate)}: {', '.join(low)}"


def behind(app: App) -> Iterator[str]:
    ours = app.ratios(ACCELERATED).values()
    for arm in app.arms:
        other = app.ratios(arm).values()
        if arm not in (UNMODIFIED, ACCELERATED) and ours and other and median(other) - median(ours) > 0.01:
            yield f"accelerated {median(ours):.2f}x, {arm} {median(other):.2f}x"
    for rate in app.loads:
        for what, said in LOAD_FIGURES.items():
            hand, fast = app.load_ratio(rate, BY_HAND, what), app.load_ratio(rate, ACCELERATED, what)
            if hand and fast and hand[0] - fast[0] > 0.01:
                yield f"load {offered(rate)}, {said}: accelerated {fast[0]:.2f}x, by hand {hand[0]:.2f}x"


def unequal(app: App) -> Iterator[str]:
    for (arm, what), numbers in app.unequal.items():
        if numbers:
            yield f"{arm}: {what} of {numbered(numbers)}"


def off_limit(app: App) -> Iterator[str]:
    shares = app.shares()
    if shares and median(shares.values()) < 0.9:
        yield f"{ranged(shares, '')}"
    if beyond := [n for n, share in shares.items() if share > 1 + NOISE]:
        yield f"{numbered(beyond)} faster than the limit (up to {max(shares.values()):.3f}): it is an estimate there"


def absent(app: App) -> Iterator[str]:
    for arm in app.arms:
        if not app.arms[arm]:
            yield f"{arm}: no requests"
        elif app.missing(arm):
            yield f"{arm}: {numbered(app.missing(arm))}"
    if without := sorted(app.seconds(ACCELERATED).keys() - app.limits.keys()):
        yield f"the limit: {numbered(without)}"
    yield from [what for what, there in {"load": app.loads, "when each primitive ran": app.traces}.items() if not there]


def unmeasured(found: Sequence[Records], others: Mapping[str, Raw]) -> Iterator[str]:
    there = {
        **{f"python -m bench {name}": name in others for name in SECTIONS},
        "simulated engines in virtual time": any(r.simulated and r.clock == "virtual" for r in found),
        "simulated engines in real time, Accel's own overhead with them": any(
            r.simulated and r.clock == "real" for r in found
        ),
        "each pass off": any(r.passes() for r in found),
        "real engines": any(not r.simulated for r in found),
        "a GPU (nothing here ran on one)": any(r.on_gpu() for r in found),
    }
    yield from (what for what, measured in there.items() if not measured)


# --- words


def times(ratios: Values | Sequence[float]) -> str:
    found = ratios.values() if isinstance(ratios, Mapping) else ratios
    return f"{median(found):.2f}x" if found else "-"


def ranged(ratios: Values, unit: str = "x") -> str:
    found = ratios.values()
    return f"{median(found):.2f}{unit} ({min(found):.2f} to {max(found):.2f})" if found else "-"


def p50_p95(seconds: Values) -> str:
    found = seconds.values()
    return " / ".join(f"{quantile(found, share):#.3g} s" for share in (0.5, 0.95)) if found else "-"


def flagged(ratio: float) -> str:
    """Bold if it is more than 2 % slower."""
    return f"**{ratio:.3f}x**" if ratio < 0.98 else f"{ratio:.3f}x"


def numbered(numbers: Sequence[int]) -> str:
    return f"request{'s' if len(numbers) > 1 else ''} {', '.join(str(n + 1) for n in numbers)}"


# --- the command


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench report", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("records", nargs="*", type=Path, help="of `bench run` (default: all bench-out/*/records.json)")
    parser.add_argument("--out", type=Path, default=Path("bench"), help="folder of RESULTS.md and pictures/")
    parser.add_argument(
        "--others", type=Path, default=Path("bench-out"),
        help="folder with what `bench fidelity`, `bench llamaindex` and `bench topology` wrote, as far as it is there",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    paths = options.records or sorted(Path("bench-out").glob("*/records.json"))
    try:
        found = ordered(json.loads(path.read_text(encoding="utf-8")) for path in paths)
        files = {name: options.others / name / f"{name}.json" for name in SECTIONS}
        others = {name: json.loads(file.read_text(encoding="utf-8")) for name, file in files.items() if file.exists()}
        text = results(found, others)
    except (OSError, ValueError, KeyError) as error:
        print(f"These are no records of `python -m bench run`: {error!r}", file=sys.stderr)
        return 2
    if not found:
        print("There is nothing to report; first: python -m bench run", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "RESULTS.md").write_text(text, encoding="utf-8")
    draw(found, options.out / "pictures")
    print(f"{options.out}/RESULTS.md")
    return 0


def draw(found: Sequence[Records], folder: Path) -> None:
    for records in found:
        for app in records.apps:
            if app.loads:
                curves(f"{app.name}: {records.title}", app, folder / records.picture(app, "load"))
            if app.traces:
                gantt(f"{app.name}: {records.title}", app.traces, folder / records.picture(app, "run"))
