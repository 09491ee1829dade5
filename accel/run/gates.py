"""Who is inside a component right now, so that early calls never add concurrency it has not agreed to (invariant 7)."""

from __future__ import annotations

import asyncio
import weakref
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import forks

if TYPE_CHECKING:
    from .call import Call


class Gate:
    """One live component. The program's own calls are counted but never limited among themselves."""

    def __init__(self) -> None:
        self._lock = forks.lock()
        self._inside = 0
        self._early: set[Call] = set()

    def try_enter_early(self, call: Call, limit: int) -> bool:
        with self._lock:
            if self._inside + len(self._early) >= limit:
                return False
            self._early.add(call)
            return True

    def leave_early(self, call: Call) -> None:
        with self._lock:
            self._early.discard(call)

    def enter(self, limit: int, here: asyncio.AbstractEventLoop | None = None) -> Future[Any] | None:
        """Enter, or get the future of an early call that must end first: try again when it has.

        `here`: the loop this thread is blocking, if it is. Early calls of that loop stand still meanwhile, so they are
        not waited for: that would never end.
        """
        with self._lock:
            early = [call for call in self._early if here is None or call.loop is not here]
            if early and self._inside + len(early) >= limit:
                return early[0].left
            self._inside += 1
            return None

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1


_gates: dict[int, tuple[Any, Gate]] = {}
_gates_lock = forks.lock()


def _forget(gates: dict[int, Any], key: int, _: object) -> None:
    gates.pop(key, None)  # given: at the end of the interpreter this module may have lost it


def gate_of(component: Any) -> Gate:
    """The gate of a live component, shared by all runs of the process."""
    key = id(component)
    held = _gates.get(key)
    if held is not None and held[0]() is component:
        return held[1]
    with _gates_lock:
        held = _gates.get(key)
        if held is None or held[0]() is not component:
            try:
                alive: Any = weakref.ref(component, partial(_forget, _gates, key))
            except TypeError:
                alive = lambda: component  # noqa: E731 - not weakly referable: kept alive, so the id stays its own
            held = _gates[key] = (alive, Gate())
        return held[1]


forks.in_child(_gates.clear)  # nobody is inside there, but who holds the gate that was entered before
