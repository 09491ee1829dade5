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
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..errors import ConfigurationError, MissingExtra
from ..process.clock import now_s
from .batch import Batch, context_of
from .journal import Journal, Serde
from .outline import outline
from .plan import Plan

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
        with self._going_on(inputs) as going, ThreadPoolExecutor(self._at_once, "accel-batch") as pool:
            rest = iter(inputs)
            head = list(itertools.islice(rest, going.least))
            going.check(inputs if isinstance(inputs, Sequence) else head)
            source: Iterator[tuple[int, Any]] = enumerate(itertools.chain(head, rest))
            running: dict[Future[Any], int] = {}
            try:
                while True:
                    while len(running) < self._at_once and (item := next(source, None)) is not None:
                        position, value = item
                        digest = going.digest(value, position)
                        begun = partial(going.finished, work, value, position, digest)
                        running[pool.submit(going.context().run, begun)] = position
                    if not running:
                        return
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        position, result = running.pop(future), future.result()
                        going.count()
                        yield position, result
            finally:
                for future in running:
                    future.cancel()

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


class _GoingOn:
    """A batch between its first input and its last result."""

    def __init__(self, many: Many, batch: Batch, journal: Journal | None, advance: Callable[[], None]) -> None:
        self._context = copy_context()
        self._batch, self._journal, self._advance = batch, journal, advance
        self._given, self._return_exceptions = many.given, many.asked.return_exceptions

    def context(self) -> Context:
        """Of a run that begins. The reader's own stays as it is."""
        return context_of(self._batch, self._context)

    @property
    def least(self) -> int:
        """So many inputs tell whether the journal is theirs, before anything is done."""
        first = self._journal.first if self._journal is not None else None
        return 0 if first is None else first + 1

    def check(self, inputs: Sequence[Any]) -> None:
        for position, value in enumerate(inputs):
            if self._has(position):
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
    head: list[Any] = []
    position = 0
    async for value in _asynchronous(inputs):
        head.append(value)
        if len(head) < going.least:
            continue
        if position == 0 and going.least:
            going.check(inputs if isinstance(inputs, Sequence) else head)
        for each in head:
            yield position, each
            position += 1
        head = []
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
