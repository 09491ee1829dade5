"""Nobody waits for one that waits for him: so no cycle of waiting can exist.

Whoever is about to wait follows what those wait for: the calls in a component where they want a place, a call that has
what they need, who holds up the loop they run on. If that leads back to himself, to a call around him, or to the loop
that he would hold up, he may not wait: an early call is given up then, a demand does without the early one. Besides, a
demand waits for an early call only as long as calls of that class take, and never for one on an event loop that is not
its own.

Locks, outermost first: a run's, `call.growing`, `lock` of this module. Nothing is called while `lock` is held.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ...process import forks

lock = forks.lock()
_waking = forks.lock()
"""Held for a moment while somebody is woken, or says that he waits."""
Others = Callable[[], "Iterable[Party]"]
"""Who is waited for, at the moment; asked under `lock`."""

TIMES_LONGEST, LEAST_S, UNSEEN_S, MOST_S = 8.0, 3.0, 60.0, 600.0
"""Patience: so many times the longest call of the class, but at least this, and at most that; where none was seen yet,
the third."""

_NONE: Mapping[Woken, Others] = {}
_blocked: dict[Woken, tuple[asyncio.AbstractEventLoop, Others]] = {}
"""Loops that stand still, because what is resolved by this is waited for on their thread; and for whom."""
_longest_s: weakref.WeakKeyDictionary[Any, float] = weakref.WeakKeyDictionary()


class Woken:
    """Done when whoever waits shall look again. Nothing else comes of it, so that it is much less than a future is."""

    __slots__ = ("_done", "_told")

    def __init__(self) -> None:
        self._done = False
        self._told: Sequence[Callable[[Woken], object]] = ()

    def done(self) -> bool:
        return self._done

    def wake(self) -> None:
        """Idempotent."""
        with _waking:
            told, self._told, self._done = self._told, (), True
        for tell in told:
            tell(self)

    def tell(self, tell: Callable[[Woken], object]) -> None:
        """Have this called, in the thread that wakes; at once if that is over."""
        with _waking:
            if not self._done:
                self._told = (*self._told, tell)
                return
        tell(self)


def took(kind: Any, seconds: float) -> None:
    """A call of a component of this kind has ended."""
    if seconds > _longest_s.get(kind, 0.0):
        _longest_s[kind] = seconds


def patience_s(kind: Any) -> float:
    """How long a demand bears with an early call of such a component."""
    longest = _longest_s.get(kind)
    return UNSEEN_S if longest is None else min(MOST_S, max(LEAST_S, TIMES_LONGEST * longest))


class Party:
    """Who is inside a component, waits, or is waited for: a call."""

    __slots__ = ("component", "gone", "loop", "makes_room", "only_feeds", "outer", "turned_away", "waits")

    def __init__(self, component: Any, outer: Party | None = None) -> None:
        self.component = component
        self.outer = outer
        """The call inside which it was made."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop it runs on; None for a thread of its own."""
        self.gone = False
        """Given up: it waits for nothing any more."""
        self.only_feeds = False
        """It is early, and the program's own call will be made all the same."""
        self.turned_away = False
        """By its endpoint, at least once."""
        self.makes_room = False
        """The program's, and made again if it is turned away beside early ones."""
        self.waits: Mapping[Woken, Others] = _NONE
        """Its own, and those of the calls inside it."""

    @property
    def wanted(self) -> bool:
        """The program waits for it; here: it is the program's."""
        return True

    def abandon(self) -> None:
        """Give it up, if that can be: whoever waits for it does without."""

    @property
    def waiting(self) -> bool:
        """It can't go on by itself: it waits, or the thread of its loop does."""
        return (bool(self.waits) and not self.gone) or (self.loop is not None and bool(_waits_of_loop(self.loop)))

    @property
    def may_go_on(self) -> bool:
        """It waits for nothing, and its loop runs."""
        return not self.waiting and (self.loop is None or self.loop.is_running())

    def around(self) -> Generator[Party, None, None]:
        """The call itself, and those around it."""
        party: Party | None = self
        while party is not None:
            yield party
            party = party.outer

    def look_again(self) -> None:
        """Something has changed for it: what it waits for may not be in its way any more."""
        with lock:
            waits = list(self.waits)
        wake(waits)

    def let_go(self) -> None:
        """It is given up: it, and what is inside it, waits no longer."""
        with lock:
            self.gone = True
        self.look_again()


def begin(
    party: Party | None,
    others: Others,
    woken: Woken,
    blocks: asyncio.AbstractEventLoop | None = None,
    freely: bool = False,
) -> bool:
    """`party` begins to wait for these, and does until `end`; False if it may not. `blocks`: the loop that stands still
    meanwhile. `freely`: for calls that were judged already."""
    with lock:
        around = list(party.around()) if party is not None else []
        if not freely:
            if any(each.gone for each in around):
                return False
            own = set(map(id, around))
            if any(_needs(other, own, blocks) for other in others()):
                return False
        for each in around:
            each.waits = {**each.waits, woken: others}
        if blocks is not None:
            _blocked[woken] = (blocks, others)
        return True


def _needs(party: Party, own: set[int], blocks: asyncio.AbstractEventLoop | None) -> bool:
    """Whether one of those in `own`, or the loop, has to go on before this one can."""
    seen: set[int] = set()
    coming = [party]
    while coming:
        at = coming.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        if id(at) in own or (blocks is not None and at.loop is blocks):
            return True
        if not at.gone:
            coming.extend(other for others in at.waits.values() for other in others())
        if at.loop is not None:
            coming.extend(other for others in _waits_of_loop(at.loop) for other in others())
    return False


def _waits_of_loop(loop: asyncio.AbstractEventLoop) -> list[Others]:
    return [others for stands, others in _blocked.values() if stands is loop]


def end(party: Party | None, woken: Woken) -> None:
    with lock:
        _blocked.pop(woken, None)
        for each in party.around() if party is not None else ():
            each.waits = {other: whom for other, whom in each.waits.items() if other is not woken} or _NONE


def wake(waits: Iterable[Woken]) -> None:
    for woken in waits:
        woken.wake()


def until(woken: Woken, timeout_s: float | None = None) -> None:
    """Wait on this thread."""
    over = threading.Event()
    woken.tell(lambda _: over.set())
    over.wait(timeout_s)


async def auntil(woken: Woken, timeout_s: float | None = None) -> None:
    """Wait in this task. To cancel it changes nothing for others."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def tell(_: Woken) -> None:
        if loop_here() is loop:
            _set(done)
            return
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_set, done)

    woken.tell(tell)
    alarm = loop.call_later(timeout_s, _set, done) if timeout_s is not None else None
    try:
        await done
    finally:
        if alarm is not None:
            alarm.cancel()


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
