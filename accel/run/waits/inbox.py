"""What a run has to look at, in order and one at a time.

On its event loop between the program's steps, where nothing is handed to another thread; on the issuer thread where
there is no loop, or it stands still.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import thread_time

from ...process import forks
from ...process.threads import issuer
from .waiting import loop_here


class Inbox:
    """Of one run. `after`: called once when everything posted so far has been looked at."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None, after: Callable[[], None]) -> None:
        self._loop = loop
        self._after = after
        self._posted: deque[Callable[[], None]] = deque()
        self._lock = forks.lock()
        self._busy = False
        self._loop_comes = self._issuer_comes = False
        self.took_s = 0.0
        """Processor time that looking took."""

    def post(self, work: Callable[[], None]) -> None:
        self._posted.append(work)
        if self._loop is None or issuer.inline or loop_here() is not self._loop:
            self.elsewhere()
        elif not self._loop_comes:
            self._loop_comes = True
            self._loop.call_soon(self._on_loop)

    def look_again(self) -> None:
        """Have `after` called, although nothing was told."""
        self.post(_nothing)

    def elsewhere(self) -> None:
        """Not on the loop: it may stand still."""
        if not self._issuer_comes or issuer.inline:
            self._issuer_comes = True
            issuer.post(self._on_issuer)

    def _on_loop(self) -> None:
        self._loop_comes = False  # before looking: whoever posts from now on, asks for us again
        self.drain()

    def _on_issuer(self) -> None:
        self._issuer_comes = False
        self.drain()

    def drain(self) -> None:
        """Look at everything; whoever does so already goes on with what has come meanwhile."""
        while self._posted:
            if not self._lock.acquire(blocking=False):
                return
            try:
                if self._busy:
                    return  # from within: it goes on after this
                self._look()
            finally:
                self._lock.release()

    def settle(self, timeout_s: float) -> bool:
        """As `drain`, also after somebody else; False if that takes longer."""
        if not self._lock.acquire(timeout=timeout_s):
            return False
        try:
            self._look()
        finally:
            self._lock.release()
        self.drain()
        return True

    def close(self) -> None:
        """The run is over: nothing comes of anything any more."""
        self._after = _nothing
        self._posted.clear()

    def _look(self) -> None:
        if self._busy:
            return  # in the middle of it
        self._busy, began_s = True, thread_time()
        try:
            while self._posted:
                try:
                    while True:
                        issuer.do(self._posted.popleft())
                except IndexError:
                    issuer.do(self._after)  # also where the run was closed in this moment
        finally:
            self._busy = False
            self.took_s += thread_time() - began_s


def _nothing() -> None:
    pass
