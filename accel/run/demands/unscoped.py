"""Component calls that belong to no run while early calls are under way, e.g. from a thread that lost its context, or
of a program that rests.

They are neither recorded nor predicted, but they count as being inside their component, so that no early call joins
them in an instance that takes fewer calls (invariant 7); and they are made again if their endpoint turns them away
beside early ones.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import suppress
from functools import partial
from typing import Any

from ...parts.components import agreed
from ...parts.methods.methods import Method
from ...parts.network import http
from ...process.clock import now_s
from ..issued.turned_away import asked, begun_first, noted
from ..scope import Within, of_no_run
from ..waits.endpoints import TurnedAway
from ..waits.gates import entering, gate_of, leave, making_room
from ..waits.inner import Closing, step
from ..waits.steps import Steps, atake, take
from ..waits.waiting import Party, loop_here

_END = object()


def call(method: Method, component: Any, wrapped: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The call itself, with its component's gate around it where early calls may enter it."""
    limit = agreed(component)
    if not limit or (method.direct and of_no_run.get() is not None):
        return wrapped(*args, **kwargs)
    party, work = Party(component, of_no_run.get()), partial(wrapped, *args, **kwargs)
    if method.kind == "sync":
        take(entering(party, limit, in_task=False))
        with _Inside(party):
            return _asked(party, work)
    if method.opens:
        return _opened(party, limit, work)
    if method.kind == "async":
        return _coroutine(party, limit, work)
    if method.kind == "stream":
        return _stream(party, limit, work, _begun(party, work))
    return _astream(party, limit, work, work())


class _Inside:
    """Around a call that has entered its component. No generator: programs that rest wait for it."""

    __slots__ = ("_before", "_party")

    def __init__(self, party: Party) -> None:
        self._party = party

    def __enter__(self) -> None:
        self._before = of_no_run.set(self._party)

    def __exit__(self, *_: object) -> None:
        leave(self._party)
        with suppress(ValueError):  # a coroutine that is thrown away ends in another context
            of_no_run.reset(self._before)


def _asked(party: Party, work: Callable[[], Any]) -> Any:
    party.makes_room = True
    return take(_asked_for(party, work, in_task=False))


def _asked_for(party: Party, work: Callable[[], Any], in_task: bool) -> Steps[Any]:
    return asked(party, work, in_task, partial(_was_turned_away, party), _forget)


def _was_turned_away(party: Party, error: BaseException, began_s: float) -> bool:
    """Whether an error of a call that began then says so, beside early ones."""
    return isinstance(error, TurnedAway) or (http.says_so(error) and noted(party, began_s, 0.0))


def _forget(seconds: float) -> None:
    """No report tells of what belongs to no run."""


async def _coroutine(party: Party, limit: int, work: Callable[[], Any]) -> Any:
    """As `_asked` in a task. Most programs of a busy server are at rest, and wait here: so its steps are taken only
    where something is in the way."""
    party.loop = loop_here()
    if not gate_of(party.component).takes(party, limit):
        await atake(entering(party, limit, in_task=True))
    with _Inside(party):
        party.makes_room, began_s = True, now_s()
        try:
            return await work()
        except BaseException as error:
            if not _was_turned_away(party, error, began_s):
                raise
        party.makes_room = await atake(making_room(party, in_task=True))
        return await atake(_asked_for(party, work, in_task=True))


async def _opened(party: Party, limit: int, work: Callable[[], Any]) -> AsyncGenerator[Any, None]:
    """What a coroutine opens was asked for by the coroutine, and can't be asked for again."""
    stream = await _coroutine(party, limit, work)
    return _rest(Party(party.component), limit, stream)


async def _rest(party: Party, limit: int, stream: Any) -> AsyncGenerator[Any, None]:
    await atake(entering(party, limit, in_task=True))
    try:
        stream = aiter(stream)
        async with Closing(stream):
            chunk = await step(stream, _END)
            while chunk is not _END:
                yield chunk
                chunk = await anext(stream, _END)
    finally:
        leave(party)


def _begun(party: Party, work: Callable[[], Any]) -> Any:
    """A stream: what fails where it is asked for fails there."""
    with Within(of_no_run, party):
        return _asked(party, work)


def _stream(party: Party, limit: int, work: Callable[[], Any], begun: Any) -> Generator[Any, None, None]:
    take(entering(party, limit, in_task=False))
    try:
        streams = begun_first(work, begun)

        def first() -> tuple[Any, Any]:
            stream = iter(streams())
            return stream, next(stream, _END)

        with Within(of_no_run, party):
            stream, chunk = _asked(party, first)
        if chunk is _END:
            return
        try:
            yield chunk
        except GeneratorExit:
            close = getattr(stream, "close", None)
            if close is not None:
                close()
            raise
        yield from stream
    finally:
        leave(party)


async def _astream(party: Party, limit: int, work: Callable[[], Any], begun: Any) -> AsyncGenerator[Any, None]:
    await atake(entering(party, limit, in_task=True))
    try:
        streams = begun_first(work, begun)

        async def first() -> tuple[Any, Any]:
            stream = aiter(streams())
            return stream, await step(stream, _END)

        with Within(of_no_run, party):
            party.makes_room = True
            stream, chunk = await atake(_asked_for(party, first, in_task=True))
        async with Closing(stream):
            while chunk is not _END:
                yield chunk
                chunk = await anext(stream, _END)
    finally:
        leave(party)
