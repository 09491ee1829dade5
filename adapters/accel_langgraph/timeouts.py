"""A limit on how long an answer may take."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from accel.engine import Delta, Priority
from accel.errors import RequestError


async def within(
    deltas: AsyncGenerator[Delta, None], timeout_s: float, priority: Priority
) -> AsyncGenerator[Delta, None]:
    """The same deltas; raises RequestError, and aborts the request, where they take longer than that.

    Counted from when the program waits for the call: one that was made early may stand in line behind others for as
    long as it likes, and must not fail for it.
    """
    loop = asyncio.get_running_loop()
    ends_s: float | None = None
    waiting: asyncio.Timeout | None = None

    def start() -> None:
        nonlocal ends_s
        if ends_s is None:
            ends_s = loop.time() + timeout_s
            if waiting is not None:
                waiting.reschedule(ends_s)

    def raised() -> None:
        loop.call_soon_threadsafe(start)

    forget = priority.on_raise(raised)
    if priority.value <= 0:
        start()
    try:
        async with contextlib.aclosing(deltas):
            while True:
                try:
                    async with asyncio.timeout_at(ends_s) as waiting:
                        delta = await anext(deltas, None)
                except TimeoutError as error:
                    raise RequestError(
                        f"The answer took longer than {timeout_s:g} s.",
                        "raise the model's timeout, or lower max_tokens",
                    ) from error
                waiting = None
                if delta is None:
                    return
                yield delta
    finally:
        forget()
