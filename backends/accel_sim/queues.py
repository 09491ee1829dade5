"""What waits for a simulated device: served in batches, in the time of the loop."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from accel.engine import Priority
from accel.engine.batching import TOPOLOGY_AWARE, Policy, Waiting, token_capped
from accel.errors import RequestError


@dataclass(slots=True)
class Item:
    """One item of one call."""

    call: int
    tokens: int
    future: asyncio.Future[RequestError | None]


class Queue:
    """Serves `lanes` batches at a time (0: any number), each in the seconds that `batch_s` gives when it begins.

    batch_tokens: most tokens in a batch, padding included; what alone has more is a batch. 0: a call's items are one
    batch, whatever their size, and calls share none. Lives on one loop.
    """

    def __init__(
        self,
        batch_s: Callable[[Sequence[Item]], float],
        *,
        lanes: int,
        batch_tokens: int,
        policy: Policy = TOPOLOGY_AWARE,
    ) -> None:
        self._batch_s = batch_s
        self._lanes = lanes
        self._batch_tokens = batch_tokens
        self.waiting: Waiting[Item] = Waiting(policy)
        self._calls = itertools.count()
        self._tasks: dict[asyncio.Task[None], bool] = {}  # a lane each, and whether it has begun
        self._closed_by: RequestError | None = None

    async def wait(self, tokens: Sequence[int], priority: Priority) -> list[RequestError | None]:
        """Wait until items of so many tokens are served: an error each, or None. Cancelled, those not begun leave."""
        loop = asyncio.get_running_loop()
        call = next(self._calls)
        items = [Item(call, n, loop.create_future()) for n in tokens]
        self.waiting.add(items, priority)
        self._open_lanes()
        try:
            return [await item.future for item in items]
        finally:
            for item in items:
                item.future.cancel()

    async def close(self, error: RequestError) -> None:
        """What waits or is being served ends with this error."""
        self._closed_by = error
        _end(list(self.waiting), error)
        self.waiting.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _open_lanes(self) -> None:
        """A lane begins when the loop comes to it, so that calls made in one go share its first batch."""
        wanted = len(self.waiting) - sum(not begun for begun in self._tasks.values())
        if self._lanes:
            wanted = min(wanted, self._lanes - len(self._tasks))
        for _ in range(wanted):
            task = asyncio.create_task(self._lane())
            self._tasks[task] = False
            task.add_done_callback(self._lane_over)

    def _lane_over(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if any(not item.future.done() for item in self.waiting):
            self._open_lanes()

    async def _lane(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks[task] = True
        while batch := self._next_batch():
            outcome: RequestError | None = RequestError("The engine's work was cancelled.")
            try:
                await asyncio.sleep(self._batch_s(batch))
                outcome = None
            finally:
                _end(batch, self._closed_by or outcome)

    def _next_batch(self) -> list[Item]:
        self.waiting.drop(lambda item: item.future.done())  # cancelled
        if self._batch_tokens:
            return self.waiting.take(token_capped(self._batch_tokens, lambda item: item.tokens))
        first: list[int] = []

        def of_the_first_call(item: Item) -> bool:
            first.append(item.call)
            return item.call == first[0]

        return self.waiting.take(of_the_first_call)


def _end(items: Sequence[Item], outcome: RequestError | None) -> None:
    for item in items:
        if not item.future.done():
            item.future.set_result(outcome)
