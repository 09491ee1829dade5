"""Runs of both arms, and what is wrong with them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from accel import accelerate
from compat_tests.soak.soak_cases import Case, Demands, Live, Stalls, case, lives
from compat_tests.soak.soak_programs import STREAMS, Program, tidy

HANG_S = 20.0
"""Runs take some hundredths of a second."""
CLOSING_S = 5.0
KEPT_STREAMS = 6
Outcome = tuple[str, Any]
"""("gave", result), ("chunks", some of a stream) or ("raised", the kind of the exception)."""

CUTS = {"timeout": "TimeoutError", "cancel": "CancelledError", "stall": "CancelledError"}
"""What a coroutine may raise that is cut off. Otherwise it gives what it gives when it isn't."""


@dataclass(eq=False)
class Arms:
    """A program, plain and accelerated (twice: see `Case.rough`), each over components of its own."""

    program: Program
    number: int
    plain: Any
    fast: Any
    rough: Any
    runs: int = 0
    hangs: bool = False
    outcomes: Counter[str] = field(default_factory=Counter)


def arms_of(program: Program, number: int, accelerated: bool = True) -> Arms:
    plain, *others = (program.build() for _ in range(3))
    return Arms(program, number, plain, *(map(accelerate, others) if accelerated else others))


def allowed(program: Program, made: Case, plain: Outcome, fast: Outcome) -> bool:
    if fast == plain or (program.is_async and fast == ("raised", CUTS.get(made.fate))):
        return True
    if fast[0] != "chunks" or plain[0] != "chunks":
        return False
    if made.fate == "stall":  # left at some chunk
        return len(fast[1]) <= len(plain[1]) and (not program.in_order or fast[1] == plain[1][: len(fast[1])])
    return not program.in_order and len(fast[1]) == len(plain[1])


class Soak:
    def __init__(self, stalls: int) -> None:
        self.stalls = Stalls(stalls)
        self._shelf: deque[Iterator[Any]] = deque(maxlen=KEPT_STREAMS)
        """Abandoned streams: the oldest is let go when another one comes."""
        self._ashelf: deque[AsyncIterator[Any]] = deque(maxlen=KEPT_STREAMS)

    async def let_go(self) -> None:
        """Of the abandoned streams: what is measured then is what stays."""
        self._ashelf.clear()
        await asyncio.to_thread(self._shelf.clear)  # which may wait for threads of theirs
        closing = asyncio.all_tasks() - {asyncio.current_task()}
        if closing:
            await asyncio.wait(closing, timeout=CLOSING_S)

    async def compare(self, arms: Arms, seed: str) -> str | None:
        """The next run of a program, plain and accelerated: what is wrong, in words."""
        number = arms.runs
        arms.runs += 1
        made = case(arms.program.name, arms.number, number, seed, arms.program.fates)
        plain = await self._outcome(arms.program, arms.plain, made, cut=False)
        fast = await self._outcome(arms.program, arms.rough if made.rough else arms.fast, made, cut=True)
        arms.outcomes[f"{made.fate}: {fast[0] if fast[0] != 'raised' else fast[1]}"] += 1
        arms.hangs = "hang" in (plain[1], fast[1])
        if not arms.hangs and allowed(arms.program, made, plain, fast):
            return None
        return (
            f"{made.fate} (at {made.at}, within {made.within_s:.3f} s)\n    plain       {plain}\n    accelerated {fast}"
        )

    async def _outcome(self, program: Program, target: Any, made: Case, *, cut: bool) -> Outcome:
        live = Live(made, self.stalls)
        lives[made.token] = live
        # Only where it is needed: most programs have no listeners.
        config = {
            "callbacks": [Demands(live)] if made.fate == "stall" else [],
            "configurable": {"thread_id": made.token},
        }
        try:
            if program.is_async:
                return await self._awaited(program, target, live, config, cut=cut)
            done = _in_thread(lambda: self._ran(program, target, live, config))
            try:
                return await asyncio.wait_for(asyncio.wrap_future(done), HANG_S)
            except TimeoutError:
                return "raised", "hang"
        finally:
            del lives[made.token]

    def _ran(self, program: Program, target: Any, live: Live, config: Any) -> Outcome:
        made = live.case
        try:
            if made.fate not in STREAMS:
                return "gave", tidy(program.run(target, made, config))
            chunks = []
            stream = program.stream(target, made, config)
            for chunk in stream:
                chunks.append(chunk)
                if live.given_up or (made.fate != "stall" and len(chunks) == made.at):
                    break
        except Exception as error:  # noqa: BLE001 - an outcome like any other
            return "raised", type(error).__name__
        if made.fate == "abandon":
            self._shelf.append(stream)
        else:
            stream.close()  # type: ignore[attr-defined]
        return "chunks", tidy(chunks)

    async def _awaited(self, program: Program, target: Any, live: Live, config: Any, *, cut: bool) -> Outcome:
        made = live.case
        running = asyncio.ensure_future(self._arun(program, target, made, config, made.within_s if cut else None))
        if cut:
            loop = asyncio.get_running_loop()
            live.give_up = lambda: _unless_closed(loop, running.cancel)
        done, _ = await asyncio.wait([running], timeout=HANG_S)
        if not done:
            running.cancel()
            return "raised", "hang"
        live.give_up = lambda: None
        if running.cancelled():
            return "raised", "CancelledError"
        error = running.exception()
        return ("raised", type(error).__name__) if error is not None else running.result()

    async def _arun(self, program: Program, target: Any, made: Case, config: Any, within_s: float | None) -> Outcome:
        if made.fate in STREAMS:
            stream = program.astream(target, made, config)
            chunks = []
            async for chunk in stream:
                chunks.append(chunk)
                if made.fate != "stall" and len(chunks) == made.at:
                    break
            if made.fate == "abandon":
                self._ashelf.append(stream)
            else:
                await stream.aclose()  # type: ignore[attr-defined]
            return "chunks", tidy(chunks)
        running = program.arun(target, made, config)
        if made.fate == "timeout" and within_s is not None:
            return "gave", tidy(await asyncio.wait_for(running, within_s))
        return "gave", tidy(await running)


def _unless_closed(loop: asyncio.AbstractEventLoop, do: Callable[[], Any]) -> None:
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(do)


def _in_thread(function: Callable[[], Outcome]) -> Future[Outcome]:
    """In a thread of its own, as a server's; one that hangs keeps nobody from leaving."""
    done: Future[Outcome] = Future()

    def run() -> None:
        try:
            outcome = function()
        except BaseException as error:  # noqa: BLE001 - handed on
            done.set_exception(error)
        else:
            done.set_result(outcome)

    threading.Thread(target=run, daemon=True).start()
    return done
