"""A program's steps as a self-contained SVG: a small layered layout, in light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise

from .steps import REQUEST, Need, Step
from .words import edge_label

CHAR, HIGH, GAP_X, GAP_Y, MARGIN = 7.1, 52.0, 28.0, 54.0, 16.0
"""Of a letter, a box, and the room between boxes, in pixels."""
NARROWEST, WIDEST = 120.0, 260.0

_STYLE = """
text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1c2430; }
.name { font-weight: 600; font-size: 13px; } .small { fill: #5b6675; font-size: 11px; }
.back { fill: #ffffff; } .box { fill: #eaf1fb; stroke: #3b6fb6; stroke-width: 1.3; }
.held .box { fill: #f4f4f2; stroke: #8a8f98; stroke-dasharray: 4 3; } .start .box { fill: #ffffff; stroke: #5b6675; }
.edge { fill: none; stroke: #5b6675; stroke-width: 1.3; } .part { stroke: #2f8f5f; stroke-width: 2.4; }
.head { fill: #5b6675; } .parthead { fill: #2f8f5f; }
@media (prefers-color-scheme: dark) {
text { fill: #e6e9ee; } .small { fill: #a3adba; } .back { fill: #14181f; }
.box { fill: #1d2b40; stroke: #7aa5e0; } .held .box { fill: #1c2027; stroke: #7d8591; }
.start .box { fill: #14181f; stroke: #a3adba; } .edge { stroke: #a3adba; } .part { stroke: #5cc48f; }
.head { fill: #a3adba; } .parthead { fill: #5cc48f; }
}
"""


class _Layout:
    """Where everything stands: a row for each rank, the longest way from the request."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.edges: list[tuple[str, str, Need]] = []
        ranks = {REQUEST: 0}
        for step in steps:
            needs = step.needs or {REQUEST: Need()}
            # A step may refer to one that stands after it in the program, in a loop: not upwards in the picture.
            before = [line for line in needs if line in ranks]
            ranks[step.line] = 1 + max((ranks[line] for line in before), default=0)
            self.edges += [(line, step.line, needs[line]) for line in before]
        self.rows: list[list[str]] = [[] for _ in range(max(ranks.values()) + 1)]
        for line, rank in ranks.items():
            self.rows[rank].append(line)
        self.width: dict[str, float] = {REQUEST: NARROWEST}
        self.ways: dict[tuple[str, str], list[str]] = {}
        """By edge, the places that it goes by in the rows between, so that it crosses no box."""
        for source, target, _ in self.edges:
            between = range(ranks[source] + 1, ranks[target])
            way = self.ways[source, target] = [f"{source}\0{target}\0{rank}" for rank in between]
            for rank, place in enumerate(way, ranks[source] + 1):
                self.rows[rank].append(place)
                self.width[place] = 0.0
        self._order()
        for step in steps:
            longest = max(len(step.name) * 1.15, len(step.place), len(step.what))
            self.width[step.line] = min(WIDEST, max(NARROWEST, longest * CHAR + 20))
        rows = [sum(self.width[line] for line in row) + GAP_X * (len(row) - 1) for row in self.rows]
        self.wide = max(rows) + 2 * MARGIN
        self.high = len(self.rows) * (HIGH + GAP_Y) - GAP_Y + 2 * MARGIN
        self.at: dict[str, tuple[float, float]] = {}
        for rank, row in enumerate(self.rows):
            x = (self.wide - rows[rank]) / 2
            for line in row:
                self.at[line] = x, MARGIN + rank * (HIGH + GAP_Y)
                x += self.width[line] + GAP_X

    def _order(self) -> None:
        """In every row by the mean place of what stands above; ties as in the program."""
        for rank in range(1, len(self.rows)):
            places = {line: number for number, line in enumerate(self.rows[rank - 1])}
            above: dict[str, list[float]] = {line: [] for line in self.rows[rank]}
            for (source, target), way in self.ways.items():
                for one, other in pairwise((source, *way, target)):
                    if other in above and one in places:
                        above[other].append((places[one] + 0.5) / len(self.rows[rank - 1]))
            self.rows[rank].sort(key=lambda line: sum(above[line]) / max(1, len(above[line])))


def svg(steps: Sequence[Step]) -> str:
    layout = _Layout(steps)
    by_line = {step.line: step for step in steps}
    parts = [_box(layout, REQUEST, "start", ("the request",), "what a run is given")]
    for step in steps:
        note = step.held or (f"once per {step.once_per}" if step.once_per else "starts early")
        kind = "held" if step.held else "early"
        parts.append(_box(layout, step.line, kind, (step.name, step.place, step.what), note))
    lines = [_edge(layout, source, target, need, by_line[target]) for source, target, need in layout.edges]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {layout.wide:.0f} {layout.high:.0f}" '
        f'width="{layout.wide:.0f}" height="{layout.high:.0f}" role="img"><title>What waits for what</title>'
        f"<style>{_STYLE}</style><defs>{_head('head')}{_head('parthead')}</defs>"
        f'<rect class="back" width="100%" height="100%"/>\n' + "\n".join([*lines, *parts]) + "\n</svg>\n"
    )


def _head(name: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path class="{name}" d="M0 0 8 4 0 8z"/></marker>'
    )


def _box(layout: _Layout, line: str, kind: str, texts: Sequence[str], note: str) -> str:
    x, y = layout.at[line]
    wide = layout.width[line]
    shown = [text for text in dict.fromkeys(texts) if text]
    first = y + HIGH / 2 + 4 - (len(shown) - 1) * 7.5
    spans = "".join(
        f'<text class="{"small" if number else "name"}" x="{x + wide / 2:.1f}" y="{first + number * 15:.1f}" '
        f'text-anchor="middle">{escape(_cut(text, wide))}</text>'
        for number, text in enumerate(shown)
    )
    return (
        f'<g class="{kind}"><title>{escape(" · ".join(shown))}: {escape(note)}</title><rect class="box" x="{x:.1f}" '
        f'y="{y:.1f}" width="{wide:.1f}" height="{HIGH:.0f}" rx="{HIGH / 2 if kind == "start" else 7:.0f}"/>{spans}</g>'
    )


def _cut(text: str, wide: float) -> str:
    most = int((wide - 14) / CHAR)
    return text if len(text) <= most else text[: most - 1] + "…"


def _edge(layout: _Layout, source: str, target: str, need: Need, step: Step) -> str:
    x, y = layout.at[source]
    drawn = [f"M{x + layout.width[source] / 2:.1f} {y + HIGH:.1f}"]
    x, y = x + layout.width[source] / 2, y + HIGH
    for place in (*layout.ways[source, target], target):
        to_x, to_y = layout.at[place][0] + layout.width[place] / 2, layout.at[place][1] - 2 * (place == target)
        bend = (to_y - y) / 2
        drawn.append(f"C{x:.1f} {y + bend:.1f} {to_x:.1f} {to_y - bend:.1f} {to_x:.1f} {to_y:.1f}")
        x, y = to_x, to_y
        if place != target:
            y += HIGH
            drawn.append(f"V{y:.1f}")
    part = need.part or need.own
    said = edge_label(step, source, need)
    label = f"<title>{escape(said)}</title>" if said else ""
    return (
        f'<path class="edge{" part" * part}" marker-end="url(#{"parthead" if part else "head"})" '
        f'd="{"".join(drawn)}">{label}</path>'
    )
