"""A picture of runs: when each primitive ran, which ones were early, and which framework node the program was in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

from ..trace.record import CallRecord, Trace

LEFT, WIDTH, ROW, GAP = 118, 1060, 16, 4
COLOURS = {"decode": "#3b6fb6", "searching": "#2f9b6e", "embedding": "#c98a1b", "reranking": "#8a5bb5"}
OTHER = "#b0554f"
BANDS = ("#eef1f5", "#e2e7ee")

_STYLE = """
body { font: 13px system-ui, sans-serif; color: #222; margin: 24px; }
h1 { font-size: 17px; } h2 { font-size: 14px; margin: 22px 0 4px; } h2 span { font-weight: normal; color: #666; }
svg text { font: 11px system-ui, sans-serif; fill: #444; }
.key i { display: inline-block; width: 22px; height: 11px; margin: 0 5px 0 16px; vertical-align: -1px; }
rect.call:hover { filter: brightness(0.8); }
"""


def timeline(trace, path, plan=None, texts=False):
    pictures({'last run': trace}, path)


def pictures(traces: Mapping[str, Trace], path: str) -> None:
    """Write a self-contained HTML page with one panel per named trace, all on the same scale of seconds."""
    longest_s = max((_seconds(trace) for trace in traces.values()), default=0.0) or 1.0
    kinds = sorted({call.op for trace in traces.values() for call in _shown(trace)})
    keys = "".join(f'<i style="background:{_colour(kind)}"></i>{escape(kind)}' for kind in kinds)
    panels = "\n".join(_panel(name, trace, longest_s) for name, trace in traces.items())
    Path(path).write_text(
        f"<!doctype html>\n<html lang='en'><meta charset='utf-8'><title>Timeline</title><style>{_STYLE}</style>\n"
        f"<h1>When each primitive ran</h1>\n<p class='key'>{keys}"
        "<i style='background:#3b6fb6;opacity:.45'></i>early: before the program asked"
        "<i style='background:none;border-left:2px solid #c22;width:4px'></i>the program asks</p>\n"
        f"{panels}\n</html>\n",
        encoding="utf-8",
    )


def _panel(name: str, trace: Trace, longest_s: float) -> str:
    scale = WIDTH / longest_s
    body: list[str] = []
    height = _bands(trace, scale, body)
    for kind, rows in _lanes(trace).items():
        body.append(f'<text x="{LEFT - 8}" y="{height + 12}" text-anchor="end">{escape(kind)}</text>')
        for row in rows:
            for call in row:
                body.extend(_bar(trace, call, scale, height))
            height += ROW + GAP
        height += GAP
    body.extend(_axis(longest_s, scale, height))
    early = sum(1 for call in _shown(trace) if call.retired)
    counts = f"{len(_shown(trace))} calls, {early} issued early" if early else f"{len(_shown(trace))} calls"
    return (
        f"<h2>{escape(name)} <span>{_seconds(trace):.2f} s, {counts}</span></h2>\n"
        f'<svg width="{LEFT + WIDTH + 30}" height="{height + 24}">' + "\n".join(body) + "</svg>"
    )


def _bands(trace: Trace, scale: float, body: list[str]) -> int:
    """The framework nodes along the top, and behind everything."""
    for number, visit in enumerate(trace.outermost):
        left = (visit.started_s - trace.started_s) * scale
        width = max(1.0, ((visit.ended_s or visit.started_s) - visit.started_s) * scale)
        label = escape(visit.node)
        body.append(
            f'<rect x="{LEFT + left:.1f}" y="0" width="{width:.1f}" height="100%" fill="{BANDS[number % 2]}">'
            f"<title>{label}</title></rect>"
        )
        if width > 6.5 * len(visit.node):
            body.append(f'<text x="{LEFT + left + 4:.1f}" y="13">{label}</text>')
    return ROW + 2 * GAP


def _lanes(trace: Trace) -> dict[str, list[list[CallRecord]]]:
    """Calls by primitive, in as few rows as they overlap."""
    lanes: dict[str, list[list[CallRecord]]] = {}
    for call in sorted(_shown(trace), key=_start_s):
        rows = lanes.setdefault(call.op, [])
        row = next((r for r in rows if _end_s(r[-1]) <= _start_s(call)), None)
        if row is None:
            rows.append([call])
        else:
            row.append(call)
    return lanes


def _bar(trace: Trace, call: CallRecord, scale: float, top: int) -> Iterator[str]:
    """A bar from start to end; the part before the demand is paler, the demand is a red line."""
    start, asked, end = _start_s(call), call.started_s, _end_s(call)
    title = f"{call.op} in {call.within or 'the program'}\n"
    title += f"{start - trace.started_s:.2f} s to {end - trace.started_s:.2f} s"
    if call.tokens != (0, 0):
        title += f"\n{call.tokens[0]} prompt and {call.tokens[1]} output tokens"
    if call.retired and asked > start:
        title += f"\nissued {asked - start:.2f} s before the program asked"
    pieces = [(start, min(max(asked, start), end), 0.45), (min(max(asked, start), end), end, 1.0)]
    for begin, stop, opacity in pieces:
        if stop > begin or (begin == start == end):
            yield (
                f'<rect class="call" x="{LEFT + (begin - trace.started_s) * scale:.1f}" y="{top}" rx="2" '
                f'width="{max(1.5, (stop - begin) * scale):.1f}" height="{ROW}" fill="{_colour(call.op)}" '
                f'fill-opacity="{opacity}"><title>{escape(title)}</title></rect>'
            )
    if call.retired:
        x = LEFT + (asked - trace.started_s) * scale
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top - 2}" y2="{top + ROW + 2}" stroke="#c22" stroke-width="1.5"/>'


def _axis(longest_s: float, scale: float, top: int) -> Iterator[str]:
    step = next((s for s in (0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 300) if longest_s / s <= 12), 600)
    for tick in range(int(longest_s / step) + 1):
        x = LEFT + tick * step * scale
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{ROW + GAP}" y2="{top}" stroke="#fff" stroke-opacity=".7"/>'
        yield f'<text x="{x:.1f}" y="{top + 14}" text-anchor="middle">{tick * step:g} s</text>'


def _shown(trace: Trace) -> list[CallRecord]:
    """Primitives that ended; a composite is shown by its parts."""
    return [call for call in trace.calls if call.ended_s is not None and not call.composite]


def _start_s(call: CallRecord) -> float:
    return call.issued_s if call.retired and call.issued_s is not None else call.started_s


def _end_s(call: CallRecord) -> float:
    end = call.answered_s if call.retired and call.answered_s is not None else call.ended_s
    return end if end is not None else call.started_s


def _seconds(trace: Trace) -> float:
    return (trace.ended_s if trace.ended_s is not None else trace.started_s) - trace.started_s


def _colour(kind: str) -> str:
    return COLOURS.get(kind, OTHER)
