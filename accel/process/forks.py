"""What a process takes over from the one it was forked from, and what it leaves to it.

Only the forking thread goes on in the child. Locks that other threads held are free there, and everything that lived in
those threads (workers, engines, open runs) begins anew; what was learnt stays.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[[], None])

_locks: weakref.WeakSet[threading.RLock] = weakref.WeakSet()
_renewals: list[Callable[[], None]] = []


def lock() -> threading.RLock:
    """A re-entrant lock, free in a forked child unless the forking thread itself holds it. All locks of Accel that
    outlive a statement are made here."""
    made = threading.RLock()
    _locks.add(made)
    return made


def in_child(renew: F) -> F:
    """Have `renew` called in every forked child, after those before it. It may take locks, and starts no thread."""
    _renewals.append(renew)
    return renew


def _renew() -> None:
    # Taking the locks before the fork instead would make it wait for whatever goes on under them.
    for held in _locks:
        if not held._is_owned():  # type: ignore[attr-defined]  # as `threading.Condition` asks
            held._at_fork_reinit()  # type: ignore[attr-defined]  # as `logging` and `concurrent.futures` do
    for renew in _renewals:
        renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
