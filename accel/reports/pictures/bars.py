"""A run as bars in lanes: when each call ran, in which framework node, and what was early."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ...trace.alone import Alone, Beside, alone
from ...trace.record import CallRecord, Trace, Use, Visit
from ...trace.sites import NOWHERE, called, function_of, where
from ..rows import foreign_uses, place_of, seconds_of

PROGRAM = "the program"
"""The lane of what is made outside of framework nodes."""


@dataclass(slots=True)
class Bar:
    """In seconds from the start of the run."""

    name: str
    place: str
    what: str
    """Class of the component, or the tool."""
    kind: str
    """The primitive; "tool" of what is no component."""
    start_s: float
    asked_s: float
    """When the program makes the call,"""
    end_s: float
    """and when the answer is there."""
    seen_s: float
    """When the program has it: of an early one, when it retires."""
    early: bool = False
    failed: bool = False
    tokens: tuple[int, int] = (0, 0)
    call: CallRecord | None = None


@dataclass(slots=True)
class Lane:
    """A framework node."""

    node: str
    spans: list[tuple[float, float]] = field(default_factory=list)
    """When the program was in it."""
    bars: list[Bar] = field(default_factory=list)


@dataclass(slots=True)
class Panel:
    title: str
    seconds: float
    lanes: list[Lane]

    @property
    def bars(self) -> list[Bar]:
        return [bar for lane in self.lanes for bar in lane.bars]


def after(trace: Trace, title: str) -> Panel:
    """The run as it went."""

    def at(call: CallRecord) -> tuple[float, float, float, float]:
        early = call.retired and call.issued_s is not None and call.answered_s is not None
        start = call.issued_s if early and call.issued_s is not None else call.started_s
        end = call.answered_s if early and call.answered_s is not None else call.ended_s
        seen = call.ended_s if call.ended_s is not None else call.started_s
        end = end if end is not None else call.started_s
        return start - zero, call.started_s - zero, end - zero, seen - zero

    zero = trace.started_s
    spans = [
        (visit, visit.started_s - zero, (visit.ended_s if visit.ended_s is not None else visit.started_s) - zero)
        for visit in trace.visits
    ]
    return Panel(title, seconds_of(trace), _lanes(trace, _shown(trace), at, spans, lambda at_s, _: at_s - zero, True))


def before(trace: Trace, title: str, beside: Beside) -> Panel:
    """The same run without early calls, worked out: see `accel.trace.alone`."""
    slow = alone(trace, beside)
    numbers = {event.call: number for number, event in enumerate(slow.events) if event.call is not None}
    moved = _Moved(trace, slow)

    def at(call: CallRecord) -> tuple[float, float, float, float]:
        number = numbers[call]
        asked, over = slow.asked_s[number], slow.over_s[number]
        return asked, asked, over, over

    begun: dict[Visit, float] = {}
    spans: list[tuple[Visit, float, float]] = []
    for event, asked in zip(slow.events, slow.asked_s, strict=True):
        if event.visit is not None and event.entered:
            begun[event.visit] = asked
        elif event.visit is not None and event.visit in begun:
            spans.append((event.visit, begun.pop(event.visit), asked))
    calls = [call for call in _shown(trace) if call in numbers]
    return Panel(title, slow.seconds, _lanes(trace, calls, at, spans, moved.to, False))


class _Moved:
    """Where a moment of the run stands in the one worked out: after the last event of the same node before it."""

    def __init__(self, trace: Trace, slow: Alone) -> None:
        self._zero = trace.started_s
        self._known: dict[str, list[tuple[float, float]]] = {}
        for event, asked, over in zip(slow.events, slow.asked_s, slow.over_s, strict=True):
            call, visit = event.call, event.visit
            if call is not None:
                self._note(call.within, call.started_s, asked)
                self._note(call.within, call.ended_s if call.ended_s is not None else call.started_s, over)
            elif visit is not None:
                at_s = visit.started_s if event.entered else visit.ended_s
                self._note(visit.outermost.node, at_s if at_s is not None else visit.started_s, asked)
        for known in self._known.values():
            known.sort()

    def _note(self, node: str, was_s: float, is_s: float) -> None:
        self._known.setdefault(node, []).append((was_s, is_s))

    def to(self, at_s: float, node: str) -> float:
        known = self._known.get(node, [])
        place = bisect_right(known, (at_s, float("inf")))
        was_s, is_s = known[place - 1] if place else (self._zero, 0.0)
        return is_s + at_s - was_s


def _shown(trace: Trace) -> list[CallRecord]:
    """What ended, and is no part of another primitive; a composite is shown by its parts."""
    return [
        call
        for call in trace.calls
        if call.ended_s is not None and not call.composite and (call.parent is None or call.parent.composite)
    ]


def _lanes(
    trace: Trace,
    calls: Iterable[CallRecord],
    at: Callable[[CallRecord], tuple[float, float, float, float]],
    spans: Iterable[tuple[Visit, float, float]],
    moved: Callable[[float, str], float],
    early: bool,
) -> list[Lane]:
    """By the order in which the program came to them."""
    lanes: dict[str, Lane] = {}
    outermost = [(visit, begin, end) for visit, begin, end in spans if visit.inside is None]
    for visit, begin, end in sorted(outermost, key=lambda span: span[1]):
        lanes.setdefault(visit.node, Lane(visit.node)).spans.append((begin, end))
    for call in calls:
        start_s, asked_s, end_s, seen_s = at(call)
        retired = early and call.retired and start_s < asked_s
        bar = Bar(
            _name(call), _place(call), called(call), call.op, start_s, asked_s, end_s,
            seen_s, retired, call.failed, call.tokens, call,
        )  # fmt: skip
        lanes.setdefault(call.within or PROGRAM, Lane(call.within or PROGRAM)).bars.append(bar)
    for use in foreign_uses(trace):
        begin, end = (moved(at_s, use.within) for at_s in (use.started_s, use.started_s + use.took_s))
        bar = Bar(use.name, _place(use), f"tool {use.name}", "tool", begin, begin, end, end)
        lanes.setdefault(use.within or PROGRAM, Lane(use.within or PROGRAM)).bars.append(bar)
    for lane in lanes.values():
        lane.bars.sort(key=lambda bar: bar.asked_s)
        _number(lane.bars)
    return list(lanes.values())


def _place(call: CallRecord | Use) -> str:
    """File and line, if a line of the user's makes it."""
    frame = where(call.site)
    return place_of(frame) if frame != NOWHERE else ""


def _name(call: CallRecord | Use) -> str:
    """The user's function that makes the call; else what is called."""
    return function_of(where(call.site)) or called(call)


def _number(bars: list[Bar]) -> None:
    """Bars of one name are told apart by their number."""
    by_name: dict[str, list[Bar]] = {}
    for bar in bars:
        by_name.setdefault(f"{bar.name}\0{bar.place}", []).append(bar)
    for same in by_name.values():
        for number, bar in enumerate(same, 1):
            bar.name = f"{bar.name} {number}" if len(same) > 1 else bar.name
