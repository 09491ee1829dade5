"""Panels as one self-contained SVG, for documents: a row for every call, in light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from ..text import seconds
from .bars import Bar, Lane, Panel
from .page import KINDS, MOST_TICKS, TICKS

NAMES, TRACK, TOOK, MARGIN = 250.0, 600.0, 64.0, 16.0
"""The columns: names, bars, seconds; and the room around, in pixels."""
ROW, HIGH, LETTER = 19.0, 11.0, 6.6

_STYLE = """
text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1c2430; }
.title { font-size: 17px; font-weight: 600; } .panel { font-size: 14px; font-weight: 600; } .node { font-weight: 600; }
.dim { fill: #5b6675; font-size: 11px; } .back { fill: #ffffff; } .tick { stroke: #e3e7ec; }
.span { fill: #5b6675; opacity: .3; } .asked { fill: #c2263f; } .held { opacity: .55; } .hatch { opacity: .4; }
.decode { fill: #3b6fb6; } .searching { fill: #22835a; } .embedding { fill: #b0760f; } .reranking { fill: #8350b3; }
.ingestion { fill: #a5483f; } .tool, .other { fill: #68717f; }
@media (prefers-color-scheme: dark) {
text { fill: #e6e9ee; } .dim { fill: #a3adba; } .back { fill: #14181f; } .tick { stroke: #2a313c; }
.span { fill: #a3adba; } .asked { fill: #ff7b8c; } .decode { fill: #6f9fe0; } .searching { fill: #4fbf8c; }
.embedding { fill: #dda53f; } .reranking { fill: #b58ae0; } .ingestion { fill: #e08a80; }
.tool, .other { fill: #98a2b0; }
}
"""


def figure(panels: Sequence[Panel], title: str, notes: Sequence[str]) -> str:
    """`title`: the seconds saved."""
    drawn = _Figure(max((panel.seconds for panel in panels), default=0.0) or 1.0)
    drawn.text(MARGIN, title, "title", down=24)
    for note in notes:
        drawn.text(MARGIN, note, "dim", down=17)
    drawn.key(panels)
    for panel in panels:
        drawn.panel(panel)
    wide, high = 2 * MARGIN + NAMES + TRACK + TOOK, drawn.y + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high:.0f}" width="{wide:.0f}" '
        f'height="{high:.0f}" role="img"><title>{escape(title)}</title><style>{_STYLE}</style>'
        f'<rect class="back" width="100%" height="100%"/>\n' + "\n".join(drawn.parts) + "\n</svg>\n"
    )


class _Figure:
    def __init__(self, longest_s: float) -> None:
        self.parts: list[str] = []
        self.y = MARGIN
        """Where the next row begins."""
        self._longest_s = longest_s
        self._tick_s = next((step for step in TICKS if longest_s / step <= MOST_TICKS), TICKS[-1])

    def text(self, x: float, said: str, kind: str = "", *, down: float = 0.0, end: bool = False) -> None:
        anchor = ' text-anchor="end"' if end else ""
        self.y += down
        self.parts.append(f'<text class="{kind}" x="{x:.1f}" y="{self.y - 5:.1f}"{anchor}>{escape(said)}</text>')

    def key(self, panels: Sequence[Panel]) -> None:
        bars = [bar for panel in panels for bar in panel.bars]
        said = [(_box(kind), KINDS.get(kind, kind)) for kind in dict.fromkeys(bar.kind for bar in bars)]
        if any(bar.early for bar in bars):
            said += [("decode hatch", "early: before the program asks"), ("asked", "the program asks")]
        self.y += ROW
        x = MARGIN
        for kind, words in said:
            wide = 2 if kind == "asked" else 20
            self.parts.append(f'<rect class="{kind}" x="{x:.1f}" y="{self.y - 14:.1f}" width="{wide}" height="10"/>')
            self.text(x + wide + 6, words, "dim")
            x += wide + 24 + LETTER * len(words)

    def panel(self, panel: Panel) -> None:
        early = sum(bar.early for bar in panel.bars)
        count = f"{len(panel.bars)} call{'s' * (len(panel.bars) != 1)}" + (f", {early} early" if early else "")
        self.text(MARGIN, f"{panel.title}: {seconds(panel.seconds)}, {count}", "panel", down=30)
        top = self.y
        for lane in panel.lanes:
            self._lane(lane)
        ticks = []
        for number in range(int(self._longest_s / self._tick_s + 1e-9) + 1):
            x = self._x(number * self._tick_s)
            ticks.append(f'<path class="tick" d="M{x:.1f} {top:.1f}V{self.y:.1f}"/>')
            said = f"{number * self._tick_s:g} s" if self._tick_s >= 0.01 else f"{1000 * number * self._tick_s:g} ms"
            ticks.append(f'<text class="dim" x="{x:.1f}" y="{self.y + 12:.1f}" text-anchor="middle">{said}</text>')
        self.parts += ticks
        self.y += 14

    def _lane(self, lane: Lane) -> None:
        self.y += ROW
        self.text(MARGIN, _cut(lane.node, NAMES), "node")
        for begin_s, end_s in lane.spans:
            self._bar("span", begin_s, end_s, 7)
        for bar in lane.bars:
            self.y += ROW
            self.text(MARGIN + 14, _cut(bar.name, NAMES / 2))
            self.text(MARGIN + NAMES - 10, _cut(bar.place, NAMES / 2), "dim", end=True)
            for kind, begin_s, end_s, high in _pieces(bar):
                self._bar(kind, begin_s, end_s, high)
            self.text(MARGIN + NAMES + TRACK + TOOK, seconds(bar.end_s - bar.start_s), "dim", end=True)

    def _bar(self, kind: str, begin_s: float, end_s: float, high: float) -> None:
        x, wide = self._x(begin_s), max(2.0, self._x(end_s) - self._x(begin_s))
        y = self.y - ROW / 2 - high / 2
        self.parts.append(f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.0f}"/>')

    def _x(self, at_s: float) -> float:
        return MARGIN + NAMES + TRACK * min(1.0, max(0.0, at_s / self._longest_s))


def _pieces(bar: Bar) -> Iterator[tuple[str, float, float, float]]:
    """Class, beginning, end and height of what a call's row shows."""
    kind = _box(bar.kind)
    if not bar.early:
        yield kind, bar.start_s, bar.end_s, HIGH
        return
    turn_s = min(bar.asked_s, bar.end_s)
    yield f"{kind} hatch", bar.start_s, turn_s, HIGH
    if bar.end_s > turn_s:
        yield kind, turn_s, bar.end_s, HIGH
    if bar.asked_s > bar.end_s:
        yield f"{kind} held", bar.end_s, bar.asked_s, 2.0
    yield "asked", bar.asked_s, bar.asked_s, ROW - 3


def _box(kind: str) -> str:
    return kind if kind in KINDS else "other"


def _cut(text: str, wide: float) -> str:
    most = int(wide / LETTER) - 1
    return text if len(text) <= most else text[: most - 1] + "…"
