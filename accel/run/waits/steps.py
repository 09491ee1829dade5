"""What a call does, written once for every colour: a generator of steps, and who takes them.

A step is what a thread does in one way and a task in another. Its result, or its error, comes back to the generator.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from .outcome import Outcome
from .waiting import Woken, auntil, until

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Wait:
    """Until this is resolved, or for so long."""

    woken: Woken
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Do:
    """Call this; a task awaits what it gives."""

    work: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Give:
    """A chunk of a stream, to the program."""

    chunk: Any


Steps = Generator[Wait | Do | Give, Any, R]


class Closed(BaseException):
    """The program reads no further. Unlike a GeneratorExit, which also comes from the garbage collector, it may be
    answered by further steps."""


class _Stopped(BaseException):
    """A StopIteration of the program's on its way through a generator, which would make another error of it."""

    def __init__(self, error: StopIteration) -> None:
        self.error = error


def carried(error: BaseException) -> BaseException:
    """`error` as steps may raise it."""
    return _Stopped(error) if isinstance(error, StopIteration) else error


def meant(error: BaseException) -> BaseException:
    """The error that steps were given, as the program knows it."""
    return error.error if isinstance(error, _Stopped) else error


def result_of(outcome: Outcome) -> Any:
    """Of one that is over, within steps."""
    try:
        return outcome.result()
    except StopIteration as error:
        raise carried(error) from None


# --- who takes them -------------------------------------------------------------------------------------------------


class _Turn:
    """What came of a step, and the next one. Errors are let go with it: they hold the frames they crossed, and
    with them themselves."""

    __slots__ = ("error", "steps", "value")

    def __init__(self, steps: Steps[Any]) -> None:
        self.steps = steps
        self.value: Any = None
        self.error: BaseException | None = None

    def next(self) -> Wait | Do | Give:
        value, error = self.value, self.error
        self.value = self.error = None
        try:
            return self.steps.send(value) if error is None else self.steps.throw(error)
        finally:
            value = error = None


def take(steps: Steps[R]) -> R:
    """On this thread."""
    turn = _Turn(steps)
    while True:
        stop: StopIteration | None = None
        try:
            step = turn.next()
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        except _Stopped as stopped:
            stop = stopped.error
        if stop is not None:
            try:
                raise stop  # here, where it gets no other context than its own
            finally:
                del stop
        try:
            turn.value = _here(step)
        except BaseException as raised:  # noqa: BLE001  the steps have it
            turn.error = carried(raised)


async def atake(steps: Steps[R]) -> R:
    """In this task."""
    turn = _Turn(steps)
    while True:
        try:
            step = turn.next()
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        try:
            turn.value = await _in_task(step)
        except BaseException as raised:  # noqa: BLE001  the steps have it
            turn.error = raised


def take_stream(steps: Steps[None]) -> Generator[Any, None, None]:
    """On the thread that reads."""
    turn = _Turn(steps)
    while True:
        try:
            step = turn.next()
        except (StopIteration, Closed):
            return
        try:
            if isinstance(step, Give):
                yield step.chunk
            else:
                turn.value = _here(step)
        except GeneratorExit:
            turn.error = Closed()
        except BaseException as raised:  # noqa: BLE001  the steps have it
            turn.error = raised


async def atake_stream(steps: Steps[None]) -> AsyncGenerator[Any, None]:
    """In the task that reads."""
    turn = _Turn(steps)
    while True:
        try:
            step = turn.next()
        except (StopIteration, Closed):
            return
        try:
            if isinstance(step, Give):
                yield step.chunk
            else:
                turn.value = await _in_task(step)
        except GeneratorExit:
            turn.error = Closed()
        except BaseException as raised:  # noqa: BLE001  the steps have it
            turn.error = raised


def _here(step: Wait | Do | Give) -> Any:
    if isinstance(step, Wait):
        return until(step.woken, step.timeout_s)
    assert isinstance(step, Do)
    return step.work()


async def _in_task(step: Wait | Do | Give) -> Any:
    if isinstance(step, Wait):
        return await auntil(step.woken, step.timeout_s)
    assert isinstance(step, Do)
    return await step.work()
