"""How many calls at a time an endpoint takes, as far as it has turned any away. Shared by all runs of the process.

Early calls alone are held back for that; what the program calls never waits for it. The number is halved whenever a
call was turned away, and grows by one after ever more calls that were not: whoever tries one too many again and again
is a burden to the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit
from weakref import WeakSet

from ...graph.rules import LIMITED, Reason
from ...parts.listed.table import addresses_of
from ...process.clock import now_s
from .waiting import Party, Woken, lock

FIRST, MOST = 32, 4_096
"""So many calls must go well before one more at a time is tried: at first, and at most."""


class TurnedAway(BaseException):
    """Ends a call that the endpoint has turned away, which Accel makes again or not at all. No `Exception`: clients
    would wait and try again."""


class Place(Protocol):
    """Where calls of one component are (`Gate`)."""

    @property
    def inside(self) -> int: ...
    @property
    def early(self) -> Mapping[Party, float]: ...


class Endpoint:
    """Where components send their calls to. Guarded by `waiting.lock`."""

    def __init__(self) -> None:
        self.limit: int | None = None
        """Calls at a time; None if it never turned one away."""
        self.places: WeakSet[Place] = WeakSet()
        self.waiting: set[Woken] = set()
        """Of calls of the program that were turned away because of early ones."""
        self._emptied_s = 0.0
        """When an early call was there last that is not there any more."""
        self._patience = FIRST
        self._well = 0
        """Calls since the limit was last changed."""
        self._lowered_s = 0.0
        self._opens_s = 0.0
        """Nothing early before."""
        self._was_full = False
        self._raised = False
        """It has grown, and nothing was turned away since."""

    def inside(self) -> int:
        return sum(place.inside for place in self.places)

    def early(self) -> dict[Party, float]:
        """Early calls there, and until when the program bears with them."""
        now = now_s()
        return {call: end for place in self.places for call, end in place.early.items() if end > now}

    def was_crowded(self, since_s: float) -> bool:
        """Whether early calls are there, or were since then."""
        with lock:
            return self._emptied_s >= since_s or bool(self.early())

    def holds(self) -> Reason | None:
        """Why there is no place for an early call now."""
        if self.limit is None:
            return None
        with lock:
            if self.inside() < self.limit and now_s() >= self._opens_s:
                return None
            self._was_full = True
            return self.reason()

    def reason(self) -> Reason:
        """Of a call that was turned away, or is held back for that."""
        return LIMITED(calls=self.limit or 0)

    def turned_away(self, began_s: float, after_s: float) -> bool:
        """A call that had been sent then. Of those sent before the limit was last lowered nothing new is learnt: then
        False."""
        with lock:
            self._opens_s = max(self._opens_s, now_s() + after_s)
            if began_s < self._lowered_s:
                return False
            inside = self.inside()
            most = inside if self.limit is None else min(self.limit, inside)
            least = 0 if self.early() else 1
            if self._raised:
                self._patience = min(MOST, 2 * self._patience)
            self.limit = max(least, min(most - 1, (most + 1) // 2))
            self._lowered_s, self._well, self._raised, self._was_full = now_s(), 0, False, False
            return True

    def left(self, party: Party, early: bool) -> None:
        """A call is over. The limit grows where it held something back; that it could grow twice makes it faster."""
        if early:
            self._emptied_s = now_s()
        if self.limit is None or party.turned_away:
            return
        with lock:
            self._well += 1
            if self._well >= self._patience and self._was_full:
                self._patience = max(FIRST, self._patience // 2) if self._raised else self._patience
                self.limit += 1
                self._well, self._raised, self._was_full = 0, True, False


_endpoints: dict[str, Endpoint] = {}
"""By host and port."""


def endpoint_at(component: Any) -> Endpoint:
    """Where a component sends to; its own where nobody knows."""
    address = next(iter(addresses_of(component) or ()), "")
    try:
        at = urlsplit(address if "//" in address else f"//{address}").netloc
    except ValueError:
        at = ""
    return _endpoints.setdefault(at, Endpoint()) if at else Endpoint()
