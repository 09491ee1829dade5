"""Tokens on their way to another process: the first at once, later ones gathered, because every message costs."""

import asyncio
import contextlib
import math
from collections.abc import AsyncGenerator

from accel.engine import Delta

INTERVAL_S = 0.05


class Flush:
    """When to send what. Synchronous; asks no clock."""

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self._interval_s = interval_s
        self._next_s = -math.inf
        self._held: list[Delta] = []
        self._ended = False

    def add(self, delta: Delta) -> None:
        self._held.append(delta)
        self._ended = self._ended or delta.finish_reason is not None

    def due_s(self) -> float:
        """The moment from which on `take` gives something; infinite while nothing is held."""
        if not self._held:
            return math.inf
        return -math.inf if self._ended else self._next_s

    def take(self, now_s: float) -> list[Delta]:
        """What is to be sent now, in order; empty if nothing is due."""
        if now_s < self.due_s():
            return []
        held, self._held = self._held, []
        self._next_s = now_s + self._interval_s
        return held


class Outgoing:
    """The deltas of one request, read as they come and handed on as `flush` says, by the running loop's clock."""

    def __init__(self, deltas: AsyncGenerator[Delta, None], flush: Flush) -> None:
        self._deltas = deltas
        self._flush = flush
        self._changed = asyncio.Event()
        self._reading = asyncio.create_task(self._read())
        self._reading.add_done_callback(lambda _: self._changed.set())

    def cancel(self) -> None:
        """Give the request up; `batches` then just ends."""
        self._reading.cancel()

    async def batches(self) -> AsyncGenerator[list[Delta], None]:
        """Raises what the source raises. Closing this closes the source."""
        loop = asyncio.get_running_loop()
        try:
            while not self._reading.done() or self._flush.due_s() < math.inf:
                self._changed.clear()
                batch = self._flush.take(math.inf if self._reading.done() else loop.time())
                if batch:
                    yield batch
                    continue
                wait_s = self._flush.due_s() - loop.time()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), None if wait_s == math.inf else wait_s)
            if not self._reading.cancelled():
                self._reading.result()
        finally:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def _read(self) -> None:
        async with contextlib.aclosing(self._deltas):
            async for delta in self._deltas:
                due_s = self._flush.due_s()
                self._flush.add(delta)
                if self._flush.due_s() != due_s:
                    self._changed.set()
