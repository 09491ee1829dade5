"""One batch, from its inputs to its results: so many runs at once, and no input taken before there is room for it."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Sequence,
    Sized,
)
from concurrent.futures import Future
from contextlib import aclosing, contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any

from ...errors import ConfigurationError, MissingExtra
from ...process.clock import now_s
from ..calls.batch import Batch, context_of
from ..plans.plan import Plan
from .journal import Journal, Serde
from .outline import outline

Work = Callable[[Any], Any]
"""A run of the program on an input."""
AWork = Callable[[Any], Awaitable[Any]]
Ended = tuple[int, Any]
"""The position of an input, and the result, or the error where errors are results."""
AT_ONCE = min(32, (os.cpu_count() or 1) + 4)
"""Runs, unless the user says how many: as many threads as pools of Python's have."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asked of a batch. Raises ConfigurationError."""

    max_concurrency: int | None = None
    return_exceptions: bool = False
    resume: str | os.PathLike[str] | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        most = self.max_concurrency
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
            raise ConfigurationError(
                f"max_concurrency={most!r} is not a number of runs.", "Give how many may go on at once, 1 at least."
            )
        if self.resume is not None and not isinstance(self.resume, str | os.PathLike):
            raise ConfigurationError(
                f"resume={self.resume!r} is no path.", "Name the file that keeps what is finished."
            )


class Many:
    """`given`: what an input is known by in a journal."""

    def __init__(
        self, plan: Plan, serde: Serde, asked: Asked, given: Callable[[Any], Any] = lambda value: value
    ) -> None:
        self._plan, self._serde = plan, serde
        self.asked, self.given = asked, given
        self._at_once = asked.max_concurrency or AT_ONCE

    # --- in order

    def all(self, work: Work, inputs: Iterable[Any]) -> list[Any]:
        found = dict(self.completed(work, inputs))
        return [found[position] for position in range(len(found))]

    async def aall(self, work: AWork, inputs: Iterable[Any] | AsyncIterable[Any]) -> list[Any]:
        found = {position: result async for position, result in self.acompleted(work, inputs)}
        return [found[position] for position in range(len(found))]

    # --- as they come

    def completed(self, work: Work, inputs: Iterable[Any]) -> Generator[Ended, None, None]:
        """In threads. Who stops reading, or the first error, waits for what has begun."""
        with self._going_on(inputs) as going, _Threads() as threads:
            going.check(inputs)
            rest = iter(inputs)
            head = list(itertools.islice(rest, going.least))
            going.check(head)
            source: Iterator[tuple[int, Any]] = enumerate(itertools.chain(head, rest))
            running = 0
            while True:
                while running < self._at_once and (item := next(source, None)) is not None:
                    position, value = item
                    digest = going.digest(value, position)
                    begun = partial(going.finished, work, value, position, digest)
                    threads.begin(partial(going.context().run, begun), position, running)
                    running += 1
                if not running:
                    return
                position, outcome = threads.ended.get()
                running -= 1
                result = outcome.result()
                going.count()
                yield position, result

    async def acompleted(self, work: AWork, inputs: Iterable[Any] | AsyncIterable[Any]) -> AsyncGenerator[Ended, None]:
        """In tasks of this loop. Who stops reading, or the first error, cancels what has begun."""
        running: dict[asyncio.Task[Any], int] = {}
        with self._going_on(inputs) as going:
            source, more = _numbered(inputs, going), True
            try:
                while True:
                    while more and len(running) < self._at_once:
                        if (item := await anext(source, None)) is None:
                            more = False
                            break
                        position, value = item
                        made = going.afinished(work, value, position, going.digest(value, position))
                        running[asyncio.create_task(made, context=going.context())] = position
                    if not running:
                        return
                    done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        position, result = running.pop(task), task.result()
                        going.count()
                        yield position, result
            finally:
                for task in running:
                    task.cancel()
                await asyncio.gather(*running, return_exceptions=True)
                await source.aclose()

    @contextmanager
    def _going_on(self, inputs: Any) -> Generator[_GoingOn, None, None]:
        program, path = f"{self._plan.made_for}", self.asked.resume
        journal = Journal(path, program, self._serde) if path is not None else None
        try:
            with sharing(self._plan, inputs) as batch, _bar(self.asked.progress, inputs) as advance:
                yield _GoingOn(self, batch, journal, advance)
        finally:
            if journal is not None:
                journal.close()


class _Threads:
    """They are there until what has begun has ended. Who hands work over takes no lock of Python's, which Ctrl-C might
    leave taken for ever (as it may in `concurrent.futures`)."""

    def __init__(self) -> None:
        self._begun: SimpleQueue[tuple[Callable[[], Any], int] | None] = SimpleQueue()
        self.ended: SimpleQueue[tuple[int, Future[Any]]] = SimpleQueue()
        """By position."""
        self._threads: list[Thread] = []

    def __enter__(self) -> _Threads:
        return self

    def __exit__(self, *_: object) -> None:
        for _thread in self._threads:
            self._begun.put(None)
        for thread in self._threads:
            thread.join()

    def begin(self, work: Callable[[], Any], position: int, running: int) -> None:
        """Beside so many others."""
        if running == len(self._threads):
            thread = Thread(target=self._run, name=f"accel-batch_{running}")
            self._threads.append(thread)
            thread.start()
        self._begun.put((work, position))

    def _run(self) -> None:
        while (item := self._begun.get()) is not None:
            work, position = item
            outcome: Future[Any] = Future()
            try:
                outcome.set_result(work())
            except BaseException as error:  # noqa: BLE001  raised where it is waited for
                outcome.set_exception(error)
            self.ended.put((position, outcome))
            del item, work, outcome  # else kept until there is more to do


class _GoingOn:
    """A batch between its first input and its last result."""

    def __init__(self, many: Many, batch: Batch, journal: Journal | None, advance: Callable[[], None]) -> None:
        self._context = copy_context()
        self._batch, self._journal, self._advance = batch, journal, advance
        self._given, self._return_exceptions = many.given, many.asked.return_exceptions
        self._at_once = many._at_once

    def context(self) -> Context:
        """Of a run that begins. The reader's own stays as it is."""
        return context_of(self._batch, self._context)

    @property
    def least(self) -> int:
        """So many inputs tell whether the journal is theirs, before anything is done; no more than runs go on at once.
        Of a batch that was interrupted they do, unless its first inputs all failed."""
        first = self._journal.first if self._journal is not None else None
        return 0 if first is None or first >= self._at_once else first + 1

    def check(self, inputs: Any) -> None:
        """Those that are all there, before anything is done: whether a journal takes them, and is theirs."""
        if self._journal is not None and isinstance(inputs, Sequence):
            for position, value in enumerate(inputs):
                self.digest(value, position)

    def digest(self, value: Any, position: int) -> str:
        return self._journal.digest(self._given(value), position) if self._journal is not None else ""

    def finished(self, work: Work, value: Any, position: int, digest: str) -> Any:
        """The result for an input, by a run or, if an earlier batch had one, from the journal."""
        if self._has(position):
            return self._resumed(position)
        try:
            result = work(value)
        except Exception as error:
            if not self._return_exceptions:
                raise
            return error
        self._note(position, digest, result)
        return result

    async def afinished(self, work: AWork, value: Any, position: int, digest: str) -> Any:
        if self._has(position):
            return self._resumed(position)
        try:
            result = await work(value)
        except Exception as error:
            if not self._return_exceptions:
                raise
            return error
        self._note(position, digest, result)
        return result

    def _has(self, position: int) -> bool:
        return self._journal is not None and self._journal.has(position)

    def _resumed(self, position: int) -> Any:
        assert self._journal is not None
        self._batch.note_resumed()
        return self._journal.result(position)

    def _note(self, position: int, digest: str, result: Any) -> None:
        if self._journal is not None:
            self._journal.note(position, digest, result)

    def count(self) -> None:
        self._batch.inputs += 1
        self._advance()


async def _numbered(inputs: Iterable[Any] | AsyncIterable[Any], going: _GoingOn) -> AsyncGenerator[tuple[int, Any]]:
    """The inputs with their positions, none before those are checked that tell whether the journal is theirs."""
    going.check(inputs)
    head: list[Any] = []
    least, position = going.least, 0
    async with aclosing(_asynchronous(inputs)) as values:
        async for value in values:
            head.append(value)
            if len(head) < least:
                continue
            if least:
                going.check(head)
            for each in head:
                yield position, each
                position += 1
            head, least = [], 0
    for each in head:
        yield position, each
        position += 1


async def _asynchronous(inputs: Iterable[Any] | AsyncIterable[Any]) -> AsyncGenerator[Any, None]:
    if isinstance(inputs, AsyncIterable):
        async for value in inputs:
            yield value
    else:
        for value in inputs:
            yield value


@contextmanager
def sharing(plan: Plan, inputs: Any = None) -> Generator[Batch, None, None]:
    """A batch of the plan's program; runs are its own that begin in its `scope_of`. It is the last one that reports
    tell of. `inputs`: as many as that will be runs, if they can be counted."""
    count = len(inputs) if isinstance(inputs, Sized) else 0
    batch = plan.batch = Batch(outline=outline(plan.graph, plan.traces, count))
    began_s = now_s()
    try:
        yield batch
    finally:
        batch.close()
        batch.took_s = now_s() - began_s


@contextmanager
def _bar(shown: bool, inputs: Any) -> Generator[Callable[[], None], None, None]:
    """A progress bar on stderr; what counts one input on."""
    if not shown:
        yield lambda: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    except ModuleNotFoundError as error:
        raise MissingExtra("progress=True", "cli", error.name or "") from error
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("inputs", total=len(inputs) if isinstance(inputs, Sized) else None)
        yield lambda: progress.advance(task)
