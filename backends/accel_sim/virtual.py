"""Virtual time: an event loop whose clock jumps to the next thing that is due.

A program that only awaits (coroutines as nodes, engines of this package) takes as long as its engines' sleeps say, and
no time passes outside. Accel's own threads do their work at once, on the loop's thread, so that a simulation repeats
bit by bit. Plain functions that a framework runs in an executor run to their end at once, too, and take no time.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import accel_local
from accel.process import clock, threads

T = TypeVar("T")

STUCK_S = 20.0
"""Real seconds after which a plain function that waits for the loop counts as stuck."""
STUCK = (
    "The simulated program waits for something that no virtual time brings: a lock, a socket or a thread. "
    "Only coroutines on simulated engines can be run in virtual time."
)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._now_s = 0.0
        self._threads = ThreadPoolExecutor(thread_name_prefix="accel-virtual")
        super().__init__(_Jump(self))

    def time(self) -> float:
        return self._now_s

    def run_in_executor(self, executor: Executor | None, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """On a thread, because a plain function may not find itself on a running loop; the loop waits for it."""
        job = (executor or self._threads).submit(func, *args)
        if not wait([job], STUCK_S).done:
            raise RuntimeError(STUCK)
        return asyncio.wrap_future(job, loop=self)

    def close(self) -> None:
        self._threads.shutdown(wait=False)
        super().close()


class _Jump(selectors.DefaultSelector):
    """Instead of waiting, moves the loop's clock on."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            ready = super().select(STUCK_S)
            if not ready:
                raise RuntimeError(STUCK)
            return ready
        self._loop._now_s += timeout
        return []


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine function in virtual time, its engines on its own loop, and close them. Not for use on a running
    loop. Records (`accel.trace.record`) are stamped with the virtual clock meanwhile."""
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    try:
        with clock.replaced(loop.time), threads.inline(), accel_local.hosted_on(loop):
            try:
                return loop.run_until_complete(main())
            finally:
                loop.run_until_complete(_end_tasks(loop))
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _end_tasks(loop: VirtualLoop) -> None:
    """What early work is still under way ends before its engines do."""
    rest = [task for task in asyncio.all_tasks(loop) if task is not asyncio.current_task()]
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    await loop.shutdown_asyncgens()
