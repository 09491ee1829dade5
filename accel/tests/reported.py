"""What tests check of every report, explanation and picture, whatever the program."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

from accel.reports.report import Report
from accel.reports.text import WIDTH
from accel.run.plans.plan import Plan
from accel.trace.sites import line_of


def check_report(report: Report, plan: Plan) -> None:
    """Every call has one row, and is early or has a reason; none saved more than it would have taken; counts are of
    runs; all of it fits into a terminal, and into JSON."""
    trace = plan.last
    assert trace is not None and trace.ended_s is not None
    made: dict[str, int] = {}
    for call in trace.calls:
        made[line_of(call)] = made.get(line_of(call), 0) + 1
    assert {row.where: row.calls for row in report.rows if row.calls} == made
    assert len({row.where for row in report.rows}) == len(report.rows), "one line is one row"
    for row in report.rows:
        assert row.made + row.uses in (0, row.early + sum(late.calls for late in row.late))
        assert 0.0 <= row.saved_s <= row.took_s + 1e-9
        assert row.early + len(row.late) > 0 and all(late.why and late.sooner_s >= 0.0 for late in row.late)
        assert row.early_runs <= row.made_runs <= row.runs <= report.runs
        assert row.early <= row.made <= row.calls and bool(row.made) == bool(row.calls)
        assert bool(row.since) == bool(row.early_runs) and row.since <= row.runs
    assert max(map(len, str(report).splitlines())) <= WIDTH
    told = report.to_dict()
    assert json.loads(report.to_json()) == told and told["format"] == 1
    assert sum(line["calls"] for line in told["lines"]) == len(trace.calls)
    gains = [each.gain_s for each in report.declarations]
    assert gains == sorted(gains, reverse=True)
    if report.last is not None:
        assert abs(report.last.took_s - (trace.ended_s - trace.started_s)) < 1e-9
        assert report.last.early == sum(call.retired for call in trace.calls)
        if not report.last.early:
            assert report.last.saved_s == 0.0


_NODE = re.compile(r'    (\w+)(\["[^"]*"\]|\(\["[^"]*"\]\))')
_ARROW = re.compile(r'    (\w+) (?:-->|==>)(?:\|"[^"|]*"\|)? (\w+)')


def check_mermaid(text: str) -> tuple[set[str], set[tuple[str, str]]]:
    """Its boxes and arrows; fails for what Mermaid would not read."""
    first, *lines = text.rstrip("\n").splitlines()
    assert first == "flowchart TD"
    boxes, arrows = set[str](), set[tuple[str, str]]()
    for line in lines:
        box, arrow = _NODE.fullmatch(line), _ARROW.fullmatch(line)
        if box is not None:
            assert box[1] not in boxes
            boxes.add(box[1])
        elif arrow is not None:
            arrows.add((arrow[1], arrow[2]))
        else:
            assert re.fullmatch(r"    (classDef \w+ [\w: -]+|class [\w,]+ \w+)", line), line
    assert {end for arrow in arrows for end in arrow} <= boxes
    return boxes, arrows


_VOID = frozenset(("meta", "br"))


class Page(HTMLParser):
    """A page of the timeline: its title, panels, lanes and calls; fails where tags don't match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.title = ""
        self.panels: list[list[dict[str, Any]]] = []
        """The calls of each."""
        self.lanes: list[list[str]] = []
        self._open: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        assert not {"src", "href", "onclick"} & given.keys() and tag != "script", "the page needs nothing else"
        kinds = given.get("class", "").split()
        if tag == "section":
            self.panels.append([])
            self.lanes.append([])
        if "lane" in kinds:
            self.lanes[-1].append(given["data-node"])
        if "call" in kinds:
            self.panels[-1].append({"name": "", "card": "", "pieces": [], "lane": self.lanes[-1][-1]})
        if tag == "i" and self._is_in("track") and self._is_in("call"):
            self.panels[-1][-1]["pieces"].append((kinds[0], given["style"]))
        if tag not in _VOID:
            self._open.append((tag, given.get("class", "")))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1][0] == "title":
            self.title += data
        elif self._is_in("call") and self._is_in("name"):
            self.panels[-1][-1]["name"] += data
        elif self._is_in("call") and self._is_in("card"):
            self.panels[-1][-1]["card"] += data

    def _is_in(self, kind: str) -> bool:
        return any(kind in kinds.split() for _, kinds in self._open)


def check_page(text: str) -> Page:
    """Self-contained; every bar has a name and stands within the picture."""
    assert "@import" not in text and "url(" not in text
    page = Page(text)
    for panel in page.panels:
        for call in panel:
            assert call["name"].strip() and call["card"].strip() and call["pieces"]
            for _, style in call["pieces"]:
                left, _, wide = style.partition(";")
                begin = float(left.removeprefix("left:").removesuffix("%"))
                width = float(wide.removeprefix("width:").removesuffix("%")) if wide else 0.0
                assert 0.0 <= begin <= 100.0 and begin + width <= 100.01
    return page


def check_chrome_trace(text: str) -> dict[str, Any]:
    """As Perfetto takes it: every slice with times, on a named thread of a named process, none across another."""
    told = json.loads(text)
    assert isinstance(told, dict)
    named = {(e["pid"], e["tid"]) for e in told["traceEvents"] if e["name"] == "thread_name"}
    ends: dict[tuple[int, int], float] = {}
    slices = [event for event in told["traceEvents"] if event["ph"] == "X"]
    for event in sorted(slices, key=lambda each: each["ts"]):
        at = event["pid"], event["tid"]
        assert at in named and event["dur"] >= 0.0 and event["name"]
        if event["cat"] != "node":
            assert event["ts"] >= ends.get(at, event["ts"]) - 0.01
            ends[at] = event["ts"] + event["dur"]
    return told
