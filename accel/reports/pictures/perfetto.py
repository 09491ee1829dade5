"""Panels as a trace that Perfetto and Chrome show: a process for each panel, threads for its framework nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .bars import Bar, Lane, Panel

MICRO = 1e6


def events(panels: Sequence[Panel], details: Callable[[Bar], list[str]]) -> dict[str, Any]:
    """In the JSON format of Chrome's traces."""
    found: list[dict[str, Any]] = []
    for process, panel in enumerate(panels, 1):
        found.append(_named("process_name", process, 0, f"{panel.title}: {panel.seconds:.2f} s"))
        found.append({"ph": "M", "name": "process_sort_index", "pid": process, "args": {"sort_index": process}})
        thread = 0
        for lane in panel.lanes:
            thread += 1
            found.append(_named("thread_name", process, thread, f"node {lane.node}"))
            found += [_slice("in " + lane.node, "node", process, thread, *span) for span in lane.spans]
            for number, row in enumerate(rows_of(lane), 1):
                thread += 1
                found.append(_named("thread_name", process, thread, f"{lane.node}, calls {number}"))
                for bar in row:
                    found += _events_of(bar, process, thread, details(bar))
    return {"traceEvents": found, "displayTimeUnit": "ms"}


def rows_of(lane: Lane) -> list[list[Bar]]:
    """Its bars in as few rows as they overlap."""
    rows: list[list[Bar]] = []
    for bar in sorted(lane.bars, key=lambda bar: bar.start_s):
        row = next((row for row in rows if row[-1].end_s <= bar.start_s), None)
        if row is None:
            rows.append([bar])
        else:
            row.append(bar)
    return rows


def _events_of(bar: Bar, process: int, thread: int, details: list[str]) -> Iterator[dict[str, Any]]:
    made = _slice(bar.name, f"{bar.kind}{',early' * bar.early}", process, thread, bar.start_s, bar.end_s)
    made["args"] = {"line": bar.place, "component": bar.what, "early": bar.early, "details": details}
    yield made
    if bar.early:
        yield {
            "name": f"{bar.name}: the program asks", "ph": "i", "s": "t", "pid": process, "tid": thread,
            "ts": bar.asked_s * MICRO,
        }  # fmt: skip


def _slice(name: str, kind: str, process: int, thread: int, start_s: float, end_s: float) -> dict[str, Any]:
    return {
        "name": name, "cat": kind, "ph": "X", "pid": process, "tid": thread, "ts": start_s * MICRO,
        "dur": max(0.0, end_s - start_s) * MICRO,
    }  # fmt: skip


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}
