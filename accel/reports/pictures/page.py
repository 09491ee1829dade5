"""Panels as one self-contained HTML page: a row for every call, named, under its framework node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape

from ..text import seconds
from .bars import Bar, Lane, Panel

KINDS = {
    "decode": "language model",
    "searching": "search",
    "embedding": "embedding",
    "reranking": "reranking",
    "tool": "tool",
    "ingestion": "write",
}
"""Primitives with a colour of their own, as users call them."""
TICKS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
MOST_TICKS = 6

_STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1c2430; --dim: #5b6675; --line: #e3e7ec; --band: #eef1f5;
  --card: #fff; --asked: #c2263f; --decode: #3b6fb6; --searching: #22835a; --embedding: #b0760f; --reranking: #8350b3;
  --tool: #68717f; --ingestion: #a5483f; --other: #68717f; --good: #1d7a4c; }
@media (prefers-color-scheme: dark) { :root { --back: #14181f; --text: #e6e9ee; --dim: #a3adba; --line: #2a313c;
  --band: #222934; --card: #1d2430; --asked: #ff7b8c; --decode: #6f9fe0; --searching: #4fbf8c; --embedding: #dda53f;
  --reranking: #b58ae0; --tool: #98a2b0; --ingestion: #e08a80; --other: #98a2b0; --good: #5fd39a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 20px clamp(12px, 3vw, 40px) 60px; max-width: 1800px; background: var(--back);
  color: var(--text); font: 14px/1.35 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: clamp(18px, 2.4vw, 26px); margin: 0 0 4px; } h1 b { color: var(--good); }
h2 { font-size: 16px; margin: 28px 0 6px; } h2 span { font-weight: 400; color: var(--dim); }
p { color: var(--dim); margin: 4px 0; }
.key { display: flex; flex-wrap: wrap; gap: 4px 18px; } .key span { white-space: nowrap; }
.key i { display: inline-block; width: 22px; height: 11px; margin-right: 6px; border-radius: 2px;
  vertical-align: -1px; }
.row { display: grid; grid-template-columns: minmax(216px, 24%) minmax(0, 1fr) 68px; column-gap: 10px;
  align-items: center; position: relative; min-height: 22px; }
.name { overflow-wrap: anywhere; }
.name small { color: var(--dim); font-size: 12px; }
.took { text-align: right; color: var(--dim); font-size: 12px; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
.track { position: relative; height: 18px; background: repeating-linear-gradient(90deg, var(--line) 0 1px,
  transparent 1px var(--tick)); }
.track i { position: absolute; top: 3px; height: 12px; min-width: 2px; border-radius: 2px; background: var(--c); }
.track i.span { top: 5px; height: 8px; background: var(--dim); opacity: .35; border-radius: 4px; }
.track i.early { background: repeating-linear-gradient(135deg, var(--c) 0 3px,
  color-mix(in srgb, var(--c) 35%, transparent) 3px 6px); }
.track i.held { top: 8px; height: 2px; min-width: 0; background: var(--c); opacity: .6; border-radius: 0; }
.track i.asked { top: 0; height: 18px; width: 2px; min-width: 2px; background: var(--asked); border-radius: 0; }
.lane { margin-top: 6px; padding-top: 4px; border-top: 1px solid var(--line); }
.lane > .row { font-weight: 600; } .lane > .call { font-weight: 400; border-radius: 4px; }
.call .name { padding-left: 14px; }
.call:hover, .call:focus { background: var(--band); outline: none; }
.card { display: none; position: absolute; z-index: 2; left: 12px; right: 12px; top: 100%; padding: 8px 12px;
  max-width: 640px; max-height: 420px; overflow: auto; background: var(--card); border: 1px solid var(--dim);
  border-radius: 6px; font-weight: 400; font-size: 13px; white-space: pre-wrap; overflow-wrap: anywhere;
  box-shadow: 0 4px 14px rgb(0 0 0 / .25); }
.call:hover > .card, .call:focus > .card { display: block; }
.axis { color: var(--dim); font-size: 12px; } .axis .track { background: none; height: 16px; }
.axis b { position: absolute; font-weight: 400; white-space: nowrap; transform: translateX(-50%); }
.axis b:first-child { transform: none; } .axis b.last { transform: translateX(-100%); }
@media (max-width: 640px) {
.row { grid-template-columns: minmax(0, 1fr) 68px; } .row .name { grid-column: 1; }
.row .took { grid-column: 2; grid-row: 1; }
.row .track { grid-column: 1 / 3; grid-row: 2; margin-bottom: 3px; } .axis .name, .axis .took { display: none; }
.axis .track { grid-row: 1; } .axis b.odd { display: none; } }
"""


def page(panels: Sequence[Panel], title: str, notes: Sequence[str], details: Callable[[Bar], list[str]]) -> str:
    """`title`: the seconds saved. `details`: what is said of a call beside its times."""
    longest_s = max((panel.seconds for panel in panels), default=0.0) or 1.0
    tick_s = next((step for step in TICKS if longest_s / step <= MOST_TICKS), TICKS[-1])
    kinds = dict.fromkeys(bar.kind for panel in panels for bar in panel.bars)
    keys = "".join(f'<span><i style="background:{_colour(kind)}"></i>{escape(_said(kind))}</span>' for kind in kinds)
    early = any(bar.early for panel in panels for bar in panel.bars)
    if early:
        keys += (
            '<span class="track" style="background:none"><i class="early" style="position:static;--c:var(--decode)">'
            "</i>early: before the program asks</span>"
            '<span><i style="width:2px;height:14px;background:var(--asked)"></i>the program asks, the early answer '
            "retires</span>"
        )
    body = "\n".join(_panel(panel, longest_s, tick_s, details) for panel in panels)
    said = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body><h1>{escape(title)}</h1>{said}"
        f'<p class="key">{keys}</p>\n{body}\n</body></html>\n'
    )


def _panel(panel: Panel, longest_s: float, tick_s: float, details: Callable[[Bar], list[str]]) -> str:
    early = sum(bar.early for bar in panel.bars)
    count = f"{len(panel.bars)} call{'s' * (len(panel.bars) != 1)}" + (f", {early} early" if early else "")
    lanes = "\n".join(_lane(lane, longest_s, details) for lane in panel.lanes)
    tick = f"{100 * tick_s / longest_s:.4f}%"
    return (
        f'<section style="--tick:{tick}"><h2>{escape(panel.title)} '
        f"<span>{seconds(panel.seconds)}, {count}</span></h2>\n"
        f"{_axis(longest_s, tick_s)}\n{lanes}</section>"
    )


def _axis(longest_s: float, tick_s: float) -> str:
    ticks = [number * tick_s for number in range(int(longest_s / tick_s + 1e-9) + 1)]
    marks = "".join(
        f'<b class="{"odd" if number % 2 else "even"}{" last" * (at_s > 0.93 * longest_s)}" '
        f'style="left:{100 * at_s / longest_s:.3f}%">{_tick(at_s, tick_s)}</b>'
        for number, at_s in enumerate(ticks)
    )
    return f'<div class="row axis"><i class="name"></i><span class="track">{marks}</span><i class="took"></i></div>'


def _tick(at_s: float, tick_s: float) -> str:
    return f"{1000 * at_s:g} ms" if tick_s < 0.01 else f"{at_s:g} s"


def _lane(lane: Lane, longest_s: float, details: Callable[[Bar], list[str]]) -> str:
    spans = "".join(_piece("span", begin, end, longest_s) for begin, end in lane.spans)
    inside_s = sum(end - begin for begin, end in lane.spans)
    took = seconds(inside_s) if lane.spans else ""
    rows = "\n".join(_row(bar, longest_s, details(bar)) for bar in lane.bars)
    return (
        f'<div class="lane" data-node="{escape(lane.node)}"><div class="row"><span class="name" '
        f'title="{escape(lane.node)}">{escape(lane.node)}</span><span class="track">{spans}</span>'
        f'<span class="took">{took}</span></div>\n{rows}</div>'
    )


def _row(bar: Bar, longest_s: float, details: list[str]) -> str:
    card = [", ".join(filter(None, (bar.name, bar.place))), *_times(bar), *details]
    return (
        f'<div class="row call{" is-early" * bar.early}" tabindex="0" style="--c:{_colour(bar.kind)}">'
        f'<span class="name">{escape(bar.name)} <small>{escape(bar.place)}</small></span>'
        f'<span class="track">{"".join(_pieces(bar, longest_s))}</span>'
        f'<span class="took">{seconds(bar.end_s - bar.start_s)}</span>'
        f'<div class="card">{escape(chr(10).join(card))}</div></div>'
    )


def _pieces(bar: Bar, longest_s: float) -> Iterator[str]:
    if not bar.early:
        yield _piece("whole", bar.start_s, bar.end_s, longest_s)
        return
    turn_s = min(bar.asked_s, bar.end_s)
    yield _piece("early", bar.start_s, turn_s, longest_s)
    if bar.end_s > turn_s:
        yield _piece("whole", turn_s, bar.end_s, longest_s)
    if bar.asked_s > bar.end_s:
        yield _piece("held", bar.end_s, bar.asked_s, longest_s)
    yield f'<i class="asked" style="left:{_share(bar.asked_s, longest_s):.3f}%"></i>'


def _piece(kind: str, begin_s: float, end_s: float, longest_s: float) -> str:
    left, right = _share(begin_s, longest_s), _share(end_s, longest_s)
    return f'<i class="{kind}" style="left:{left:.3f}%;width:{max(0.0, right - left):.3f}%"></i>'


def _share(at_s: float, longest_s: float) -> float:
    return min(100.0, max(0.0, 100 * at_s / longest_s))


def _times(bar: Bar) -> Iterator[str]:
    failed = ", failed" if bar.failed else ""
    yield f"{bar.what} ({_said(bar.kind)}), {bar.start_s:.2f} s to {bar.end_s:.2f} s{failed}"
    if bar.early:
        yield f"begun {bar.asked_s - bar.start_s:.2f} s before the program asked; retired at {bar.seen_s:.2f} s"
    if sum(bar.tokens):
        yield f"{bar.tokens[0]} prompt and {bar.tokens[1]} output tokens"


def _said(kind: str) -> str:
    return KINDS.get(kind, kind)


def _colour(kind: str) -> str:
    return f"var(--{kind if kind in KINDS else 'other'})"
