"""How long a recorded run would have taken had nothing been early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .flow import events_of
from .order import Event, end_of, ordered
from .record import CallRecord, Trace

MAX_PAIRS = 2_000


class Beside:
    """Which calls of a program are made side by side: not to be seen in a run in which early ones end at once."""

    def __init__(self) -> None:
        self._pairs: set[tuple[str, str]] = set()
        """Call sites of which calls were under way at once;"""
        self._most: dict[str, int] = {}
        """and by call site, how many were at most when one was made, itself counted."""

    def note(self, trace: Trace) -> None:
        """A run has shown some."""
        under_way: list[CallRecord] = []
        for call in trace.calls:
            under_way = [other for other in under_way if other.end is None or other.end > call.start]
            beside = [other for other in under_way if not _is_inside(call, other)]
            for other in beside:
                if len(self._pairs) < MAX_PAIRS:
                    self._pairs |= {(other.site, call.site), (call.site, other.site)}
            if beside:
                self._most[call.site] = max(self._most.get(call.site, 1), len(beside) + 1)
            under_way.append(call)

    def of(self, call: CallRecord, ended: Sequence[CallRecord]) -> set[CallRecord]:
        """Of calls that had ended before this one was made, in order, those that may have been made beside it."""
        start = call.visit.start if call.visit is not None else -1
        may = [one for one in ended if (one.site, call.site) in self._pairs and one.end is not None and one.end > start]
        return set(may[len(may) - self._most.get(call.site, 1) + 1 :]) if may else set()


def _is_inside(call: CallRecord, other: CallRecord) -> bool:
    parent = call.parent
    while parent is not None and parent is not other:
        parent = parent.parent
    return parent is other


@dataclass(frozen=True, slots=True)
class Alone:
    """A run without early calls, in seconds from its start, by event."""

    events: list[Event]
    asked_s: list[float]
    over_s: list[float]

    @property
    def seconds(self) -> float:
        return self.over_s[-1]


def alone(trace: Trace, beside: Beside) -> Alone:
    """The run worked out anew without early calls: the program makes the same calls in the same order, takes the same
    time to think, and waits for each as long as that call took."""
    events = [event for _, event in ordered(trace)]
    events.append(end_of(trace, events))
    unclear = {n: found for n, event in enumerate(events) if (found := _unclear(event, events[:n], beside))}
    if unclear:
        events = events_of(trace)
        for number, others in unclear.items():
            _place_by_cause(events[number], events[:number], others)
    inside = _saved_inside(trace, events)
    asked: list[float] = []
    over: list[float] = []
    for event in events:
        asked.append(max((over[before] for before in event.after), default=0.0) + event.think_s)
        call = event.call
        over.append(asked[-1] + (call.took_s + inside.get(call, 0.0) if call is not None else 0.0))
    return Alone(events, asked, over)


def _ended(event: Event, before: Sequence[Event]) -> list[tuple[int, CallRecord]]:
    """The calls that had ended before one was made."""
    assert event.call is not None
    return [
        (number, other.call)
        for number, other in enumerate(before)
        if other.call is not None and other.call.end is not None and other.call.end < event.call.start
    ]


def _unclear(event: Event, before: Sequence[Event], beside: Beside) -> set[CallRecord]:
    """Calls that had ended before one was made although the program may make them side by side: early ones end at
    once, as if it had waited for each."""
    if event.call is None or not event.after:
        return set()
    found = beside.of(event.call, [call for _, call in _ended(event, before)])
    return found if any(call.retired for call in found) else set()


def _place_by_cause(event: Event, before: Sequence[Event], beside: set[CallRecord]) -> None:
    """After what made its input, and all but the calls beside it: rather too little is said to be saved than too
    much."""
    known = [(n, call) for n, call in _ended(event, before) if call not in beside or n in (event.needs or ())]
    latest_start = max((call.start for _, call in known), default=-1)
    event.after = tuple(n for n, call in known if call.end is not None and call.end > latest_start)


def _saved_inside(trace: Trace, events: Sequence[Event]) -> dict[CallRecord, float]:
    """By call, what it would have taken longer had its parts (a search's embedding) not been early."""
    own = {event.call for event in events}
    found: dict[CallRecord, float] = {}
    for part in trace.calls:
        around = part.parent
        while around is not None and around not in own:
            around = around.parent
        if part.retired and part not in own and around is not None and not around.retired:
            found[around] = found.get(around, 0.0) + part.saved_s
    return found
