"""What the raw records of one application say: figures of `python -m bench report`, and its pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from statistics import linear_regression
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imported where something is drawn: figures need no matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UNMODIFIED, BY_HAND, ACCELERATED, OFF = "unmodified", "by hand", "accelerated", "without "
Raw = Mapping[str, Any]
Values = Mapping[int, float]
"""By request number, from 0 as in the records; texts count from 1."""

BLUE, ORANGE, GREEN, PURPLE, RED, BLACK = "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#333333"
"""Of Okabe and Ito's palette, which people who see few colours can tell apart."""
ARMS = {UNMODIFIED: (BLACK, "o"), BY_HAND: (ORANGE, "s"), ACCELERATED: (BLUE, "^")}
PRIMITIVES = {"decode": BLUE, "searching": GREEN, "embedding": ORANGE, "reranking": PURPLE}
EARLY = 0.4
"""How opaque a bar is before the demand."""


def quantile(values: Iterable[float], share: float) -> float:
    """Interpolated between the nearest two values."""
    found = sorted(values)
    at = share * (len(found) - 1)
    low, high = found[int(at)], found[min(int(at) + 1, len(found) - 1)]
    return low + (high - low) * (at - int(at))


def exponent(points: Values) -> float:
    """The slope of logarithms, seconds by size: 1 where the cost is in proportion to the size."""
    return linear_regression([log(size) for size in points], [log(taken) for taken in points.values()]).slope


def over(one: Values, other: Values) -> Values:
    """One divided by the other, where there are both."""
    return {number: one[number] / other[number] for number in one if other.get(number)}


@dataclass(frozen=True, slots=True)
class Load:
    """One arm at one offered load: a point of the curve."""

    throughput: float
    p50_s: float
    p95_s: float
    outputs: Sequence[Any] = ()

    @staticmethod
    def of(raw: Raw) -> Load:
        began, seconds = raw["began_s"], raw["seconds"]
        took_s = max(b + s for b, s in zip(began, seconds, strict=True)) - min(began)
        return Load(len(seconds) / took_s, quantile(seconds, 0.5), quantile(seconds, 0.95), raw.get("outputs", ()))


def offered(rate: float | None) -> str:
    return "all at once" if rate is None else f"{rate:.3g} requests/s"


class App:
    """One application's raw records, and what follows from them."""

    def __init__(self, raw: Raw, warm: int) -> None:
        self.name: str = raw["app"]
        self.paper: str = raw.get("paper", "")
        self.traces: Mapping[str, Sequence[Raw]] = raw.get("traces") or {}
        self.warm = warm
        self.arms: dict[str, dict[int, Raw]] = {UNMODIFIED: {}, BY_HAND: {}, ACCELERATED: {}}
        for request in raw.get("requests", ()):
            self.arms.setdefault(request["arm"], {})[request["number"]] = request
        limits = raw.get("limits") or {}
        self.limits = {int(n): float(limit["makespan_s"]) for n, limit in limits.items() if int(n) >= warm}
        self.loads: dict[float | None, dict[str, Load]] = {}
        """By offered requests per second; None, all at once, comes last."""
        for load in sorted(raw.get("loads") or (), key=lambda load: (load["rate"] is None, load["rate"] or 0.0)):
            self.loads.setdefault(load["rate"], {})[load["arm"]] = Load.of(load)
        self.unequal = dict(self._unequal())

    def seconds(self, arm: str, first: bool = False) -> Values:
        """Of the requests measured, or of the first ones, those learnt from."""
        requests = self.arms.get(arm, {}).items()
        return {n: r["ended_s"] - r["began_s"] for n, r in sorted(requests) if (n < self.warm) == first}

    def ratios(self, arm: str, first: bool = False) -> Values:
        return over(self.seconds(UNMODIFIED, first), self.seconds(arm, first))

    def limit_ratios(self) -> Values:
        return over(self.seconds(UNMODIFIED), self.limits)

    def shares(self) -> Values:
        return over(self.limits, self.seconds(ACCELERATED))

    def count(self, name: str) -> int:
        requests = self.arms[ACCELERATED].items()
        return sum((request.get("counts") or {}).get(name, 0) for n, request in requests if n >= self.warm)

    def _unequal(self) -> Iterator[tuple[tuple[str, str], list[int]]]:
        """By arm and what differs from the unmodified program, the requests."""
        true = self.arms[UNMODIFIED]
        for arm, requests in self.arms.items():
            both = sorted(requests.keys() & true.keys())
            yield (arm, "output"), [n for n in both if requests[n]["output"] != true[n]["output"]]
            yield (arm, "calls"), [n for n in both if sorted(requests[n]["calls"]) != sorted(true[n]["calls"])]
        for rate, loads in self.loads.items():
            outputs = loads[UNMODIFIED].outputs if UNMODIFIED in loads else ()
            for arm, load in loads.items():
                differ = [n for n, pair in enumerate(zip(load.outputs, outputs, strict=False)) if pair[0] != pair[1]]
                yield (arm, f"output under load, {offered(rate)}"), [n + self.warm for n in differ]

    def load_ratio(self, rate: float | None, arm: str, what: str) -> list[float]:
        """To the unmodified program at the same offered load, above 1 is better; empty if one isn't there."""
        loads = self.loads[rate]
        if arm == UNMODIFIED or not {arm, UNMODIFIED} <= loads.keys():
            return []
        before, after = getattr(loads[UNMODIFIED], what), getattr(loads[arm], what)
        return [after / before if what == "throughput" else before / after]

    def missing(self, arm: str) -> list[int]:
        """Measured requests that an arm lacks; what learns nothing is not asked before."""
        measured = {number for number in self.arms[UNMODIFIED] if number >= self.warm}
        return sorted(measured - self.arms.get(arm, {}).keys())

    def equal(self) -> str:
        """Requests that all arms agree on, of all requests."""
        differ = {n for (_, what), numbers in self.unequal.items() if "load" not in what for n in numbers}
        good = self.arms[UNMODIFIED].keys() - differ - {n for arm in self.arms for n in self.missing(arm)}
        return f"{len(good)} of {len(self.arms[UNMODIFIED])}"


# --- pictures


def curves(title: str, app: App, path: Path) -> None:
    """Latency by achieved throughput; the points of an arm in the order of the load that was offered."""
    arms = {arm: [loads[arm] for loads in app.loads.values() if arm in loads] for arm in app.arms}
    figure = _figure(7.2, 4.6)
    axes = figure.subplots()
    for arm, points in arms.items():
        if not points:
            continue
        colour, marker = ARMS.get(arm, (RED, "x"))
        rates = [point.throughput for point in points]
        axes.plot(rates, [p.p50_s for p in points], color=colour, marker=marker, linewidth=2, label=f"{arm}, p50")
        axes.plot(rates, [p.p95_s for p in points], color=colour, linewidth=0.8, linestyle="--", label=f"{arm}, p95")
    axes.set_title(title, fontsize=12)
    axes.set_xlabel("achieved throughput, requests/s")
    axes.set_ylabel("latency, s")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.legend(fontsize=9, ncols=2)
    _save(figure, path)


def gantt(title: str, traces: Mapping[str, Sequence[Raw]], path: Path) -> None:
    """One panel per named trace on the same scale of seconds, lanes by primitive."""
    from matplotlib.patches import Patch

    packed = {name: lanes(calls) for name, calls in traces.items()}
    kinds = sorted({call["primitive"] for calls in traces.values() for call in calls})
    rows = [max(1, sum(map(len, found.values()))) for found in packed.values()]
    figure = _figure(10, 1.3 + sum(0.24 * count + 0.55 for count in rows))
    panels = figure.subplots(len(packed), 1, sharex=True, squeeze=False, height_ratios=[count + 1.0 for count in rows])
    for axes, (name, found) in zip(panels[:, 0], packed.items(), strict=True):
        _panel(axes, name, found)
    panels[-1, 0].set_xlabel("seconds since the request began")
    panels[-1, 0].set_xlim(left=0)
    keys = [Patch(color=PRIMITIVES.get(kind, RED), label=kind) for kind in kinds]
    keys.append(Patch(color=BLACK, alpha=EARLY, label="paler: before the program asked"))
    figure.suptitle(title, fontsize=12)
    figure.legend(handles=keys, loc="outside lower center", ncols=len(keys), fontsize=9, frameon=False)
    _save(figure, path)


def by_size(figures: Sequence[Raw], path: Path) -> None:
    """Milliseconds of work per call by the number of calls, a panel per program: flat is in proportion to the size."""
    programs = list(dict.fromkeys(one["program"] for one in figures))
    figure = _figure(3.4 * len(programs), 3.9)
    panels = figure.subplots(1, len(programs), sharey=True, squeeze=False)[0]
    for axes, program in zip(panels, programs, strict=True):
        for arm in dict.fromkeys(one["arm"] for one in figures if one["program"] == program):
            found = {one["size"]: one["cpu_s"] for one in figures if (one["program"], one["arm"]) == (program, arm)}
            colour, marker = ARMS.get(arm, (ORANGE, "s"))
            per_call = [seconds / size * 1e3 for size, seconds in found.items()]
            label = arm if len(found) < 2 else f"{arm}, exponent {exponent(found):.2f}"
            axes.loglog(list(found), per_call, color=colour, marker=marker, linewidth=1.5, label=label)
        axes.set_title(program, fontsize=10)
        axes.set_xlabel("calls of the run or trace")
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.legend(fontsize=8)
    panels[0].set_ylabel("work per call, ms")
    _save(figure, path)


def lanes(calls: Sequence[Raw]) -> dict[str, list[list[Raw]]]:
    """Calls by primitive, in as few rows as they overlap."""
    found: dict[str, list[list[Raw]]] = {}
    for call in sorted(calls, key=lambda call: (call["start_s"], call["end_s"], call["primitive"], call["node"] or "")):
        rows = found.setdefault(call["primitive"], [])
        row = next((row for row in rows if row[-1]["end_s"] <= call["start_s"]), None)
        if row is None:
            rows.append([call])
        else:
            row.append(call)
    return found


def _panel(axes: Axes, name: str, found: Mapping[str, Sequence[Sequence[Raw]]]) -> None:
    height, ticks = 0, []
    for kind, rows in found.items():
        ticks.append((height + (len(rows) - 1) / 2, kind))
        for row in rows:
            for call in row:
                _bar(axes, call, height)
            height += 1
    last_s = max((call["end_s"] for rows in found.values() for row in rows for call in row), default=0.0)
    axes.set_title(f"{name}: {last_s:.2f} s", loc="left", fontsize=10)
    axes.set_yticks([at for at, _ in ticks], [kind for _, kind in ticks])
    axes.set_ylim(max(height, 1) - 0.4, -0.6)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)


def _bar(axes: Axes, call: Raw, at: int) -> None:
    start, end = call["start_s"], call["end_s"]
    asked = min(max(call.get("asked_s", start), start), end)
    colour = PRIMITIVES.get(call["primitive"], RED)
    for begin, stop, opacity in ((start, asked, EARLY), (asked, end, 1.0)):
        if stop > begin or start == end:
            axes.barh(at, stop - begin, left=begin, height=0.8, color=colour, alpha=opacity, edgecolor="white")


def _figure(width: float, height: float) -> Figure:
    """On matplotlib's Agg canvas, with no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Software": None})
