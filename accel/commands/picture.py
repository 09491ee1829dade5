"""A measurement as a picture: SVG that needs nothing else, light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from math import floor, log10
from statistics import median

from .figures import BenchResult, Level, seconds
from .findings import ACCELERATED, UNMODIFIED

WIDTH, LEFT, RIGHT, ROW = 760, 120, 90, 34
TOP, PANEL, FOOT = 46, 40, 46
"""Heights: the title, what a panel has above its rows, the axis."""
COLOURS = {UNMODIFIED: "#767676", ACCELERATED: "#0072b2"}
"""Of Okabe and Ito's palette, which people who see few colours can tell apart."""
LIMIT = "#d55e00"
TICKS = 6
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #222 } .small { font-size: 11px } .line { stroke: #ccc }
@media (prefers-color-scheme: dark) { text { fill: #eee } .line { stroke: #555 } .paper { fill: #181818 } }
"""


def picture(result: BenchResult) -> str:
    """Every run as a dot on one scale of seconds, a panel for each number of runs at a time."""
    levels = [level for level in result.levels if level.pairs]
    height = TOP + len(levels) * (PANEL + 2 * ROW) + FOOT
    longest = max(max(level.seconds(arm)) for level in levels for arm in COLOURS)
    longest = max(longest, result.limit_s or 0.0) * 1.05
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img"><title>{escape(result.title)}</title><style>{STYLE}</style>',
        f'<rect class="paper" width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="16" y="26" style="font-size:15px;font-weight:600">{escape(result.title)}</text>',
        *_axis(longest, height - FOOT),
    ]
    for number, level in enumerate(levels):
        limit_s = result.limit_s if level.concurrency == 1 else None
        parts += _panel(level, TOP + number * (PANEL + 2 * ROW), longest, limit_s)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _x(value_s: float, longest_s: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * value_s / longest_s


def _axis(longest_s: float, bottom: float) -> Iterator[str]:
    step_s = _round(longest_s / TICKS)
    for number in range(int(longest_s / step_s) + 1):
        value_s = step_s * number
        x = _x(value_s, longest_s)
        yield f'<line class="line" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>'
        said = seconds(value_s) if number else "0"
        yield f'<text class="small" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{said}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text class="small" x="{middle}" y="{bottom + 34}" text-anchor="middle">a run took; bar: median</text>'


def _round(value: float) -> float:
    """The next number that people count by."""
    power = 10.0 ** floor(log10(value))
    return next(power * times for times in (1, 2, 5, 10) if power * times >= value)


def _panel(level: Level, top: float, longest_s: float, limit_s: float | None) -> Iterator[str]:
    low, high = level.interval
    said = f"{level.concurrency} at a time: {level.ratio:.2f}x ({low:.2f} to {high:.2f})"
    yield f'<text x="{LEFT}" y="{top + 24}">{said}</text>'
    for number, (arm, colour) in enumerate(COLOURS.items()):
        y = top + PANEL + ROW * number + ROW / 2
        yield f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{arm}</text>'
        times = level.seconds(arm)
        for place, value_s in enumerate(times):
            shift = (place % 5 - 2) * 3
            yield (
                f'<circle cx="{_x(value_s, longest_s):.1f}" cy="{y + shift:.1f}" r="3.5" fill="{colour}" '
                f'fill-opacity="0.55"><title>{seconds(value_s)}</title></circle>'
            )
        x = _x(median(times), longest_s)
        yield (
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y - 13}" y2="{y + 13}" stroke="{colour}" stroke-width="3"/>'
            f'<text class="small" x="{WIDTH - RIGHT + 10}" y="{y + 4}">{seconds(median(times))}</text>'
        )
    if limit_s is not None:
        x, bottom = _x(limit_s, longest_s), top + PANEL + 2 * ROW
        yield (
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top + PANEL}" y2="{bottom}" stroke="{LIMIT}" stroke-width="2" '
            f'stroke-dasharray="5 4"/><text class="small" x="{x - 6:.1f}" y="{top + PANEL + 10}" '
            'text-anchor="end">limit</text>'
        )
