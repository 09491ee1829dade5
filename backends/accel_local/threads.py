"""Blocking library calls for coroutines, on daemon threads: they hold up neither the loop nor interpreter exit."""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """One thread that runs blocking functions in order: what it guards is never entered by two threads at once."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def do(self, work: Callable[[], T]) -> T:
        """Run `work` in the thread; raises what it raises. Cancelling does not interrupt it, only the wait."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._work.put((work, future))
        return await future

    def stop(self) -> None:
        """The thread ends after the work it has."""
        self._work.put(None)

    def ended(self, wait_s: float) -> bool:
        self._thread.join(wait_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (job := self._work.get()) is not None:
            work, future = job
            value, error = None, None
            try:
                value = work()
            except BaseException as raised:  # noqa: BLE001  delivered to the awaiting side
                error = raised
            try:
                self._loop.call_soon_threadsafe(_deliver, future, value, error)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return


def _deliver(future: "asyncio.Future[Any]", value: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)
