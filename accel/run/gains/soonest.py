"""How soon the inputs of a recorded run's calls were complete, and how fast it could have been if its calls got in
nobody's way: each takes what it took, and begins as soon as its input is complete. No engine's profile is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...parts.components import facts_of
from ...parts.methods.methods import METHODS
from ...trace.flow import WHOLE
from ...trace.order import Event
from ...trace.record import CallRecord


@dataclass(frozen=True, slots=True)
class Best:
    """In seconds from the start of the run."""

    seconds: float
    sooner_s: dict[CallRecord, float]
    """By call, how long before the program makes it its input is complete."""
    last: dict[CallRecord, tuple[CallRecord, float]]
    """By call, what its input was complete by in the run as it went, and how long that was before the program made the
    call."""


def schedule(events: Sequence[Event]) -> Best:
    """The same of its events: they name earlier ones only, so one look at each is enough."""
    start: list[float] = []
    over: list[float] = []
    seen: list[float] = []
    sooner: dict[CallRecord, float] = {}
    last: dict[CallRecord, tuple[CallRecord, float]] = {}
    for event in events:
        asked = ready = max((seen[before] for before in event.after), default=0.0) + event.think_s
        if event.call is not None and event.needs is not None:
            ready = min(asked, max((_known_s(events, n, s, start, over) for n, s in event.needs.items()), default=0.0))
            sooner[event.call] = asked - ready
            ended = [(_ended_s(call), call) for n in event.needs if (call := events[n].call) is not None]
            if ended:
                at_s, source = max(ended, key=lambda each: each[0])
                last[event.call] = source, event.call.started_s - at_s
        start.append(ready)
        over.append(ready + (event.call.took_s if event.call is not None else 0.0))
        seen.append(max(asked, over[-1]))
    return Best(seen[-1], sooner, last)


def _ended_s(call: CallRecord) -> float:
    """When its answer was there, early or not."""
    end = call.answered_s if call.retired and call.answered_s is not None else call.ended_s
    return end if end is not None else call.started_s


def _known_s(
    events: Sequence[Event], number: int, share: float, start: Sequence[float], over: Sequence[float]
) -> float:
    """When that share of an output is there."""
    call = events[number].call
    if share >= WHOLE or call is None or not streams(call):
        return over[number]
    return start[number] + share * (over[number] - start[number])


def streams(call: CallRecord) -> bool:
    """Whether its answer is known piece by piece."""
    method = METHODS.get((call.family, call.method))
    asked = method is not None and method.kind in ("stream", "astream")
    return asked or bool(facts_of(call.component).streams_equal)
