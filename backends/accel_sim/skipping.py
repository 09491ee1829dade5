"""Skipped time: a program of threads on simulated engines, without the waiting.

The engines' clock is real time, but where every thread of the process waits, it jumps to the next thing that is due. So
the program's own work takes the time that it takes, next to engines that take theirs. Linux only: who waits is read
from `/proc/self/task`.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import accel_local
from accel.process import clock

WINDOW_S = 0.0004
"""All threads wait if none has run for so long."""
RAN_S = 0.00003
"""Processor time that the kernel may book on others although they wait."""
TASKS = Path("/proc/self/task")


class SkippingLoop(asyncio.SelectorEventLoop):
    """For a thread of its own."""

    def __init__(self) -> None:
        self.skipped_s = 0.0
        """By how much its clock is ahead of real time."""
        super().__init__(_Skip(self))

    def time(self) -> float:
        return time.perf_counter() + self.skipped_s


class _Skip(selectors.DefaultSelector):
    """Waits, but no longer than anything else happens in the process."""

    def __init__(self, loop: SkippingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            return super().select(None)
        due_s = self._loop.time() + timeout
        while (left_s := due_s - self._loop.time()) > 0:
            ran_s = _others_ran_s()
            if ready := super().select(min(left_s, WINDOW_S)):
                return ready
            if _others_ran_s() - ran_s < RAN_S and _others_wait():
                self._loop.skipped_s += max(0.0, due_s - self._loop.time())
        return []


def _others_ran_s() -> float:
    """Processor time of all other threads. One that waits for the interpreter's lock runs while we sleep."""
    return time.process_time() - time.thread_time()


def _others_wait() -> bool:
    own = str(threading.get_native_id())
    for task in TASKS.iterdir():
        try:
            state = (task / "stat").read_bytes().rpartition(b") ")[2][:1]
        except OSError:
            continue  # it has just ended
        if state in b"RD" and task.name != own:
            return False
    return True


@contextmanager
def skipping() -> Generator[SkippingLoop, None, None]:
    """Serve engines on a loop that skips idle time, and stamp records with its clock; then close them.

    Raises RuntimeError where threads can't be watched.
    """
    if not TASKS.is_dir():
        raise RuntimeError("Idle time can be skipped on Linux only; run in real time.")
    loop = SkippingLoop()
    thread = threading.Thread(target=loop.run_forever, name="accel-skipping", daemon=True)
    thread.start()
    try:
        with clock.replaced(loop.time), accel_local.hosted_on(loop, thread):
            yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
