"""Who is inside a component right now, so that early calls never add concurrency it has not agreed to (invariant 7).

The program's own calls are never limited among themselves. A call inside another call of the same component takes that
one's place. Who waits for whom: see `waiting`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...errors import CallCancelled
from ...parts.components import kind_of
from ...parts.declarable import reference
from ...parts.network.hosts import Get
from ...process import forks
from ...process.clock import now_s
from .endpoints import Endpoint, endpoint_at
from .steps import Steps, Wait
from .waiting import Party, Woken, begin, end, lock, loop_here, patience_s, wake


@dataclass(slots=True)
class InTheWay:
    """What keeps a call from entering."""

    give_up: list[Party] = field(default_factory=list)
    """Early calls that are given up for it."""
    timeout_s: float | None = None
    """How long it bears with the others, at most."""
    woken: Woken = field(default_factory=Woken)


class EarlyCalls:
    """Of all runs, also those that are over."""

    inside = 0
    """How many are inside a component. Guarded by `waiting.lock`."""


early_calls = EarlyCalls()


WINDOW = 32
"""Calls after which it is seen anew how many the program makes at a time."""


class Gate:
    """One live component."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._inside: set[Party] = set()
        """Calls of the program."""
        self._early: dict[Party, float] = {}
        """Early calls, and until when demands bear with them. Also those that were given up, as long as they are really
        inside."""
        self._demands: dict[Woken, Party] = {}
        """Calls of the program that wait,"""
        self._others: set[Woken] = set()
        """and of calls inside early ones."""
        self._left_free = 0
        """Places that early calls leave to the program, since one of its calls had to wait for them: as many as it
        takes at a time. Runs beside each other would else wait for each other's early calls."""
        self._most = self._entered = 0
        """The most calls of the program that were there at a time since this was seen last, and how many came."""

    @property
    def inside(self) -> int:
        return len(self._inside) + len(self._early)

    @property
    def early(self) -> Mapping[Party, float]:
        return self._early

    def has_room(self, limit: int) -> bool:
        """Whether an early call could enter now."""
        with lock:
            return self._has_room(limit)

    def try_enter_early(self, call: Party, limit: int) -> bool:
        with lock:
            if not self._has_room(limit) or self.endpoint.holds():
                return False
            self._hold(call)
            return True

    def enter_nested(self, call: Party, limit: int) -> InTheWay | None:
        """A call inside an early one enters, or gets what to wait for. Raises CallCancelled where it may not wait."""
        with lock:
            if self._has_place(call):
                return None
            if not self._is_full(limit):
                self._hold(call)
                return None
            found = InTheWay()
            if not begin(call, self._all, found.woken):
                raise CallCancelled("its component is busy with what waits for it")
            self._others.add(found.woken)
            return found

    def takes(self, party: Party, limit: int) -> bool:
        """Whether there is room for a call of the program, beside whoever is inside: then it has entered."""
        with lock:
            if not self._has_place(party):
                if len(self._inside) + len(self._early) >= limit:
                    return False
                self._admit(party)
            return True

    def enter(
        self,
        party: Party,
        limit: int,
        here: asyncio.AbstractEventLoop | None = None,
        blocks: asyncio.AbstractEventLoop | None = None,
    ) -> InTheWay | None:
        """A call of the program enters, or learns what is in its way. `here`: the loop of the task that would wait;
        `blocks`: the one that stands still if it waits."""
        with lock:
            if self._has_place(party):
                return None
            if len(self._inside) + len(self._early) >= limit:
                self._forget_ended_loops()
            now = now_s()
            borne = {call: end for call, end in self._early.items() if end > now} if self._early else {}
            if not borne or len(self._inside) + len(borne) < limit:
                self._admit(party)
                return None
            found = InTheWay([call for call in borne if _gives_way(call, here, blocks)])
            left_s = [end - now for call, end in borne.items() if _is_borne(call, here, blocks)]
            found.timeout_s = min(left_s, default=0.0)
            if not left_s:
                self._admit(party)
                wake((found.woken,))
                return found
            self._left_free = max(self._left_free, _beside(len(self._inside) + len(self._demands) + 1))
            begin(party, lambda: list(self._early), found.woken, blocks, freely=True)
            self._demands[found.woken] = party
            return found

    def stop_waiting(self, party: Party, woken: Woken) -> None:
        end(party, woken)
        with lock:
            self._demands.pop(woken, None)
            self._others.discard(woken)
            woken_now = [] if self._demands else list(self._others)
        wake(woken_now)

    def leave(self, party: Party) -> None:
        """A call is no longer inside. Idempotent."""
        with lock:
            was_early, was_inside = party in self._early, party in self._inside or party in self._early
            self._inside.discard(party)
            if was_early:
                del self._early[party]
                early_calls.inside -= 1
            woken = list(self._demands or self._others) if was_inside else []
            woken += self.endpoint.waiting if was_early else ()
            if was_inside:
                self.endpoint.left(party, was_early)
        wake(woken)

    def _forget_ended_loops(self) -> None:
        """A coroutine whose loop was closed under it never leaves."""
        for call in [call for call in self._early if call.loop is not None and call.loop.is_closed()]:
            del self._early[call]
            early_calls.inside -= 1

    def _admit(self, party: Party) -> None:
        """A call of the program is inside."""
        self._inside.add(party)
        self._most = max(self._most, len(self._inside))
        self._count()

    def _count(self) -> None:
        """A call has entered."""
        self._entered += 1
        if self._entered >= WINDOW:
            self._left_free = min(self._left_free, _beside(self._most))
            self._most, self._entered = len(self._inside), 0

    def _has_room(self, limit: int) -> bool:
        """Whether an early call may enter: nobody waits, and there is a place that it need not leave free."""
        return not self._is_full(limit) and len(self._early) + self._left_free < limit

    def _is_full(self, limit: int) -> bool:
        """Whether an early call would be one too many, or in the way of the program."""
        if len(self._inside) + len(self._early) >= limit:
            self._forget_ended_loops()
        return bool(self._demands) or len(self._inside) + len(self._early) >= limit

    def _all(self) -> list[Party]:
        """Whom a call inside an early one waits for: also those of the program that wait themselves, which go first."""
        return [*self._inside, *self._early, *self._demands.values()]

    def _has_place(self, party: Party) -> bool:
        at: Party | None = party
        while at is not None:
            if at in self._inside or at in self._early:
                return True
            at = at.outer
        return False

    def _hold(self, call: Party) -> None:
        early_calls.inside += call not in self._early
        self._count()
        self._early[call] = now_s() + patience_s(kind_of(call.component))


def _beside(calls: int) -> int:
    """Of so many calls at a time: none where there was one, which waits for early calls of its own run only."""
    return calls if calls > 1 else 0


def _gives_way(call: Party, here: asyncio.AbstractEventLoop | None, blocks: asyncio.AbstractEventLoop | None) -> bool:
    """Whether an early call is given up for a demand: it waits itself, or only feeds predictions, or is of another loop
    and the demand can't wait for it. Never one that the program waits for."""
    foreign = call.loop not in (None, here)
    return not call.wanted and (call.waiting or call.only_feeds or (foreign and not _is_borne(call, here, blocks)))


def _is_borne(call: Party, here: asyncio.AbstractEventLoop | None, blocks: asyncio.AbstractEventLoop | None) -> bool:
    """Whether a demand waits until an early call is out of the component; else it enters beside it."""
    if call.loop in (None, here):
        return not call.wanted or call.may_go_on
    return not call.wanted and call.loop is not blocks and call.may_go_on


def leave(party: Party) -> None:
    """A call has left its component, if it ever entered it."""
    place = place_of(party.component)
    held = _gates.get(id(place))
    if held is not None and held[0]() is place:
        held[1].leave(party)


@contextmanager
def _standing_back(gate: Gate, party: Party, found: InTheWay) -> Generator[None, None, None]:
    """Around waiting for what is in the way. Whoever stops waiting has no place."""
    try:
        for call in found.give_up:
            call.abandon()
        yield
    except BaseException:
        gate.leave(party)
        raise
    finally:
        gate.stop_waiting(party, found.woken)


def enters(party: Party, limit: int, in_task: bool) -> bool:
    """Whether it has entered its component, as there is room; else see `entering`."""
    if in_task:
        party.loop = loop_here()
    return gate_of(party.component).takes(party, limit)


def entering(party: Party, limit: int, in_task: bool) -> Steps[float]:
    """Enter a component; the seconds that early calls were in the way. `in_task`: of the loop that runs here."""
    if enters(party, limit, in_task):
        return 0.0
    gate, here = gate_of(party.component), loop_here()
    own, blocks = (here, None) if in_task else (None, here)
    started_s, waited = now_s(), False
    while (found := gate.enter(party, limit, own, blocks)) is not None:
        waited = True
        with _standing_back(gate, party, found):
            yield Wait(found.woken, found.timeout_s)
    return now_s() - started_s if waited else 0.0


def making_room(party: Party, in_task: bool) -> Steps[bool]:
    """A call of the program was turned away while early ones were at its endpoint: until one of these has left. False
    if it may not wait for them, or did so in vain."""
    endpoint, woken = gate_of(party.component).endpoint, Woken()
    with lock:
        early = endpoint.early()
        if not early:
            return True
        if not begin(party, endpoint.early, woken, None if in_task else loop_here()):
            return False
        endpoint.waiting.add(woken)
    try:
        yield Wait(woken, max(early.values()) - now_s())
    finally:
        end(party, woken)
        with lock:
            endpoint.waiting.discard(woken)
    return woken.done()


_gates: dict[int, tuple[Any, Gate]] = {}
"""By id: a reference to the component, and its gate."""


def place_of(component: Any) -> Any:
    """What takes so many calls at a time: of a declared host all its clients together."""
    return type(component) if isinstance(component, Get) else component


def gate_of(component: Any) -> Gate:
    """The gate of a live component, shared by all runs of the process."""
    place = place_of(component)
    key = id(place)
    held = _gates.get(key)
    if held is not None and held[0]() is place:
        return held[1]
    endpoint = endpoint_at(component)
    with lock:
        held = _gates.get(key)
        if held is None or held[0]() is not place:
            held = _gates[key] = (reference(place, partial(_gates.pop, key, None)), Gate(endpoint))
            endpoint.places.add(held[1])
        return held[1]


@forks.in_child
def forget_all() -> None:
    """Nobody is inside any component: in a forked child, or as the interpreter ends and objects are to be finalised."""
    _gates.clear()
    early_calls.inside = 0
