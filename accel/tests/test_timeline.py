"""The timeline page: self-contained, one bar per call, early ones marked."""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml
from pathlib import Path

from accel.reports.timeline import timeline
from accel.trace.record import CallRecord, Trace, Visit


def trace_of(issued_s: float | None) -> Trace:
    trace = Trace({"question": "q"}, started_s=100.0, ended_s=104.0, completed=True)
    trace.visits.append(Visit("ask <all>", 0, {}, 100.0, end=5, left={}, ended_s=104.0))
    for number in range(2):
        call = CallRecord("site", "ask <all>", "m", "chat", "decode", None, "i", None, None, number, 102.0 + number)
        call.end, call.ended_s, call.tokens = number + 3, 103.0 + number, (7, 9)
        call.retired, call.issued_s = issued_s is not None, issued_s
        trace.calls.append(call)
    return trace


def test_page(tmp_path: Path) -> None:
    path = tmp_path / "timeline.html"
    timeline({"before": trace_of(None), "after": trace_of(100.5)}, str(path))
    page = path.read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=|@import|url\(", page), "the page needs nothing else"
    before, after = (xml.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL))
    assert len(before.findall("rect[@class='call']")) == 2
    assert len(after.findall("rect[@class='call']")) == 4, "the part before the demand, and the rest"
    assert len(after.findall("line[@stroke='#c22']")) == 2 and not before.findall("line[@stroke='#c22']")
    assert "issued 1.50 s before the program asked" in page
    assert "ask &lt;all&gt;" in page and "7 prompt and 9 output tokens" in page


def test_empty_trace(tmp_path: Path) -> None:
    path = tmp_path / "timeline.html"
    timeline({"nothing": Trace(ended_s=None)}, str(path))
    assert "0 calls" in path.read_text(encoding="utf-8")
