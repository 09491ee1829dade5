"""A recorded run in the program's own order: what it waited for, and how long it took to think."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .record import CallRecord, Trace, Visit


@dataclass(eq=False)
class Event:
    """A demand of the program, or (without a call) a moment in it: a framework node starts or ends, the run ends.

    Events are numbered in program order; edges name earlier events.
    """

    call: CallRecord | None
    after: tuple[int, ...] = ()
    """The calls that had ended before the program got here; it got here `think_s` seconds after the last of them."""
    think_s: float = 0.0
    needs: dict[int, float] | None = None
    """Which events its input is made of, and from what share of their output (0 to 1) on the input is complete.
    None: the program alone may make this call."""
    prefix: dict[int, float] = field(default_factory=dict)
    """For every event it needs: the share of its prompt, from the beginning, that is known without that event."""
    visit: Visit | None = None
    """Of a moment: the run of a framework node that starts or ends;"""
    entered: bool = False
    """whether it starts."""


def ordered(trace: Trace) -> list[tuple[int, Event]]:
    """All events of a completed run but its end, each with its position in the trace, in the program's own order."""
    found: list[tuple[int, float, CallRecord | Visit, bool]] = [
        (call.start, call.started_s, call, False)
        for call in trace.calls
        if call.ok and not call.composite and (call.parent is None or call.parent.composite)
    ]
    found += [(visit.start, visit.started_s, visit, True) for visit in trace.visits]
    found += [
        (visit.end, visit.ended_s, visit, False)
        for visit in trace.visits
        if visit.end is not None and visit.ended_s is not None
    ]
    found.sort(key=lambda entry: entry[0])
    events: list[tuple[int, Event]] = []
    calls: list[tuple[int, CallRecord]] = []
    begun = _Begun(trace)
    for at, time_s, what, entered in found:
        if isinstance(what, CallRecord):
            event = _placed(calls, trace, begun, at, time_s, what.visit)
            event.call = what
            calls.append((len(events), what))
        else:
            event = _placed(calls, trace, begun, at, time_s, None if entered else what)
            event.visit, event.entered = what, entered
        events.append((at, event))
    return events


def end_of(trace: Trace, events: Sequence[Event]) -> Event:
    """The last event: the run ends."""
    calls = [(number, event.call) for number, event in enumerate(events) if event.call is not None]
    ended = [call.ended_s for _, call in calls if call.ended_s is not None]
    at_s = trace.ended_s if trace.ended_s is not None else max(ended, default=0.0)
    return _placed(calls, trace, _Begun(trace), None, at_s)


class _Begun:
    """When calls were made."""

    def __init__(self, trace: Trace) -> None:
        self._last: dict[tuple[float, Visit | None], int] = {}
        for call in trace.calls:
            at = (call.started_s, _outermost(call))
            self._last[at] = max(call.start, self._last.get(at, -1))

    def followed(self, call: CallRecord) -> bool:
        """Whether another one was made at the moment this one ended. In virtual time programs take none to think: that
        one waited for this one, and what comes later for that one. So coroutines side by side are told apart."""
        at = (call.ended_s if call.ended_s is not None else call.started_s, _outermost(call))
        return call.end is not None and self._last.get(at, -1) > call.end


def _outermost(call: CallRecord) -> Visit | None:
    return call.visit.outermost if call.visit is not None else None


def _placed(
    calls: Sequence[tuple[int, CallRecord]],
    trace: Trace,
    begun: _Begun,
    at: int | None,
    time_s: float,
    visit: Visit | None = None,
) -> Event:
    """An event at this position and time, after the calls that had ended by then: in this visit of a framework node, or
    before it began. What others did beside it held nothing up."""
    ended = [
        (number, call)
        for number, call in calls
        if call.end is not None
        and (at is None or call.end < at)
        and (visit is None or visit.holds(call.visit) or call.end < visit.start)
    ]
    at_once = [(n, call) for n, call in ended if call.ended_s == time_s]
    if at_once:
        ended = [(n, call) for n, call in ended if not begun.followed(call)]
    latest_start = max((call.start for _, call in ended), default=-1)
    # What ended before another of them started is implied by that one.
    direct = at_once + [(n, c) for n, c in ended if c.ended_s != time_s and c.end is not None and c.end > latest_start]
    known_s = max((call.ended_s for _, call in direct if call.ended_s is not None), default=trace.started_s)
    return Event(None, tuple(n for n, _ in direct), max(0.0, time_s - known_s))
