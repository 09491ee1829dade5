"""Nobody waits for one that is waiting: so no cycle of waiting can exist.

Whoever closed a circle would have to wait for a call that waits already, and that is refused: an early call is given up
then, a demand does without the early one. (Only who is waited for by nobody may: a call of the program that is inside
no other and blocks no loop.) Besides, a demand waits for an early call only as long as calls of that class
take, and never for one on an event loop that is not its own.

Locks, outermost first: a run's, a call's `grew`, `lock` of this module. Nothing is called while `lock` is held.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Generator, Iterable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

from .. import forks

lock = forks.lock()
Woken = Future[None]
"""Resolved when whoever waits shall look again."""

TIMES_LONGEST, LEAST_S, UNSEEN_S = 8.0, 3.0, 60.0
"""Patience: so many times the longest call of the class, but at least this; where none was seen yet, that."""

_blocked: dict[Woken, asyncio.AbstractEventLoop] = {}
"""Loops that stand still, because what is resolved by this is waited for on their thread."""
_longest_s: weakref.WeakKeyDictionary[Any, float] = weakref.WeakKeyDictionary()


def took(kind: Any, seconds: float) -> None:
    """A call of a component of this kind has ended."""
    if seconds > _longest_s.get(kind, 0.0):
        _longest_s[kind] = seconds


def patience_s(kind: Any) -> float:
    """How long a demand bears with an early call of such a component."""
    longest = _longest_s.get(kind)
    return UNSEEN_S if longest is None else max(LEAST_S, TIMES_LONGEST * longest)


class Party:
    """Who is inside a component, waits, or is waited for: a call."""

    def __init__(self, component: Any, outer: Party | None = None) -> None:
        self.component = component
        self.outer = outer
        """The call inside which it was made."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop it runs on; None for a thread of its own."""
        self.gone = False
        """Given up: it waits for nothing any more."""
        self.waits_for: set[Woken] = set()
        """Of its own and of the calls inside it."""

    @property
    def waiting(self) -> bool:
        """It can't go on by itself: it waits, or the thread of its loop does."""
        return (bool(self.waits_for) and not self.gone) or (self.loop is not None and self.loop in _blocked.values())

    def around(self) -> Generator[Party, None, None]:
        """The call itself, and those around it."""
        party: Party | None = self
        while party is not None:
            yield party
            party = party.outer

    def look_again(self) -> None:
        """Something has changed for it: what it waits for may not be in its way any more."""
        with lock:
            waits = list(self.waits_for)
        wake(waits)

    def let_go(self) -> None:
        """It is given up: it, and what is inside it, waits no longer."""
        with lock:
            self.gone = True
        self.look_again()


def begin(
    party: Party | None, others: Iterable[Party], woken: Woken, blocks: asyncio.AbstractEventLoop | None = None
) -> bool:
    """`party` begins to wait for these; False if it may not. From now on nobody begins to wait for it, for a call
    around it, or for one on the loop that it blocks, before `end`."""
    with lock:
        around = list(party.around()) if party is not None else []
        closes = bool(around) or blocks is not None  # else nobody waits for whoever this is
        if any(each.gone for each in around) or (closes and any(other.waiting for other in others)):
            return False
        for each in around:
            each.waits_for.add(woken)
        if blocks is not None:
            _blocked[woken] = blocks
        return True


def end(party: Party | None, woken: Woken) -> None:
    with lock:
        _blocked.pop(woken, None)
        for each in party.around() if party is not None else ():
            each.waits_for.discard(woken)


def wake(waits: Iterable[Woken]) -> None:
    for woken in waits:
        with suppress(InvalidStateError):
            woken.set_result(None)


def on_done(future: Future[Any], woken: Woken) -> None:
    """Have `woken` resolved when `future` is done, in whatever way."""
    future.add_done_callback(lambda _: wake((woken,)))


def until(woken: Woken, timeout_s: float | None = None) -> None:
    """Wait on this thread."""
    with suppress(TimeoutError):
        woken.result(timeout_s)


async def auntil(woken: Woken, timeout_s: float | None = None) -> None:
    """Wait in this task. To cancel it changes nothing for others."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def tell(_: Woken) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_set, done)

    woken.add_done_callback(tell)
    if timeout_s is None:
        await done
    else:
        await asyncio.wait((done,), timeout=timeout_s)


def _set(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def loop_here() -> asyncio.AbstractEventLoop | None:
    """The loop this thread is running, if any."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


forks.in_child(_blocked.clear)  # whoever waited is in the parent
