"""Who is inside a component right now, so that early calls never add concurrency it has not agreed to (invariant 7).

The program's own calls are never limited among themselves. A call inside another call of the same component takes that
one's place. Who waits for whom: see `waiting`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from .. import forks
from ..clock import now_s
from ..components import kind_of, reference
from ..errors import CallCancelled
from .waiting import Party, Woken, auntil, begin, end, lock, loop_here, patience_s, until, wake

if TYPE_CHECKING:
    from .call import Call


@dataclass(slots=True)
class InTheWay:
    """What keeps a call from entering."""

    give_up: list[Call] = field(default_factory=list)
    """Early calls that it does not wait for: they wait themselves, or only feed predictions, or are another loop's."""
    timeout_s: float | None = None
    """How long it bears with the others, at most."""
    woken: Woken = field(default_factory=Woken)


class Gate:
    """One live component."""

    def __init__(self) -> None:
        self._inside: set[Party] = set()
        """Calls of the program."""
        self._early: dict[Call, float] = {}
        """Early calls, and until when demands bear with them. Also those that were given up, as long as they are really
        inside."""
        self._demands: set[Woken] = set()
        """Of calls of the program that wait,"""
        self._others: set[Woken] = set()
        """and of calls inside early ones."""

    def try_enter_early(self, call: Call, limit: int) -> bool:
        with lock:
            if self._is_full(limit):
                return False
            self._hold(call)
            return True

    def enter_nested(self, call: Call, limit: int) -> InTheWay | None:
        """A call inside an early one enters, or gets what to wait for. Raises CallCancelled where it may not wait."""
        with lock:
            if self._has_place(call):
                return None
            if not self._is_full(limit):
                self._hold(call)
                return None
            found = InTheWay()
            if not begin(call, (*self._inside, *self._early), found.woken):
                raise CallCancelled("its component is busy with what waits itself")
            self._others.add(found.woken)
            return found

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
            now = now_s()
            borne = {call: end for call, end in self._early.items() if end > now}
            others = [call for call in borne if call.loop not in (None, here)]
            # Those are cancelled; a component for one call at a time is not entered before they are out of it.
            leaving = [call for call in others if limit == 1 and call.loop is not blocks and not call.waiting]
            left_s = [end - now for call, end in borne.items() if call not in others or call in leaving]
            if not borne or len(self._inside) + len(borne) < limit:
                self._inside.add(party)
                return None
            stuck = [call for call in borne if call.waiting or call.only_feeds]
            found = InTheWay([*others, *stuck], min(left_s, default=0.0))
            if not left_s:
                self._inside.add(party)
                wake((found.woken,))
                return found
            begin(party, (), found.woken, blocks)
            self._demands.add(found.woken)
            return found

    def stop_waiting(self, party: Party, woken: Woken) -> None:
        end(party, woken)
        with lock:
            self._demands.discard(woken)
            self._others.discard(woken)
            woken_now = [] if self._demands else list(self._others)
        wake(woken_now)

    def leave(self, party: Party) -> None:
        """A call is no longer inside. Idempotent."""
        with lock:
            was_inside = party in self._inside or party in self._early
            self._inside.discard(party)
            self._early.pop(cast("Call", party), None)
            woken = list(self._demands or self._others) if was_inside else []
        wake(woken)

    def _is_full(self, limit: int) -> bool:
        """Whether an early call would be one too many, or in the way of the program."""
        return bool(self._demands) or len(self._inside) + len(self._early) >= limit

    def _has_place(self, party: Party) -> bool:
        return any(each in self._inside or each in self._early for each in party.around())

    def _hold(self, call: Call) -> None:
        self._early[call] = now_s() + patience_s(kind_of(call.component))


def leave(party: Party) -> None:
    """A call has left its component, if it ever entered it."""
    held = _gates.get(id(party.component))
    if held is not None and held[0]() is party.component:
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


def enter(party: Party, limit: int) -> float:
    """Enter a component from this thread; the seconds that early calls were in the way."""
    gate, started_s = gate_of(party.component), now_s()
    waited = False
    while (found := gate.enter(party, limit, blocks=loop_here())) is not None:
        waited = True
        with _standing_back(gate, party, found):
            until(found.woken, found.timeout_s)
    return now_s() - started_s if waited else 0.0


async def aenter(party: Party, limit: int) -> float:
    """The same from a task."""
    gate, started_s = gate_of(party.component), now_s()
    waited = False
    while (found := gate.enter(party, limit, here=asyncio.get_running_loop())) is not None:
        waited = True
        with _standing_back(gate, party, found):
            await auntil(found.woken, found.timeout_s)
    return now_s() - started_s if waited else 0.0


_gates: dict[int, tuple[Any, Gate]] = {}
"""By id: a reference to the component, and its gate."""


def gate_of(component: Any) -> Gate:
    """The gate of a live component, shared by all runs of the process."""
    key = id(component)
    held = _gates.get(key)
    if held is not None and held[0]() is component:
        return held[1]
    with lock:
        held = _gates.get(key)
        if held is None or held[0]() is not component:
            held = _gates[key] = (reference(component, partial(_gates.pop, key, None)), Gate())
        return held[1]


@forks.in_child
def forget_all() -> None:
    """Nobody is inside any component: in a forked child, or as the interpreter ends and objects are to be finalised."""
    _gates.clear()
