"""The program makes a call: the four colours of a demand.

Each opens the demand (`Run.open`), which says whether an early call answers it. If so, its result retires into the
demand; if not, the component runs as it would have, watched.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any

from ..components import kind_of, note_told
from ..engine import DEMAND, priority
from ..errors import CallCancelled
from ..intercept import Method, Scope, original, scope
from ..record import call_site
from . import early, nested
from .call import Call
from .inner import step
from .waiting import Woken, auntil, begin, end, loop_here, on_done, until

if TYPE_CHECKING:
    from .run import Run

_END = object()
_OWN = object()


@contextmanager
def _within(inner: Scope) -> Generator[None, None, None]:
    """Inside a call of the program."""
    token = scope.set(inner)
    urgency = priority.set(inner.call.priority if inner.call is not None else DEMAND)
    try:
        yield
    finally:
        priority.reset(urgency)
        scope.reset(token)


def demand(
    run: Run,
    here: Scope,
    method: Method,
    component: Any,
    wrapped: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """A patched leaf was called inside a run."""
    outer = here.call
    if run.closed or (outer is not None and outer.component is component and outer.method.family == method.family):
        return wrapped(*args, **kwargs)
    if here.early:
        return nested.call(run, method, component, wrapped, args, kwargs)
    site = call_site() or here.called  # now: a task of its own may run the rest
    if method.opens:
        return _opened(run, here, method, component, wrapped, args, kwargs, site)
    colour = {"sync": _sync, "async": _async, "stream": _stream, "astream": _astream}[method.kind]
    return colour(run, here, method, component, wrapped, args, kwargs, site)


def _sync(
    run: Run, here: Scope, method: Method, component: Any, wrapped: Any, args: Any, kwargs: Any, site: str
) -> Any:
    call = run.open(here, method, component, args, kwargs, site)
    if call.joined:
        with _joining(here, call, loop_here()) as woken:
            if woken is not None:
                until(woken, call.patience_s())
        if _has_answered(run, call):
            return _retired(run, call, method)
        call = run.instead(call, here.call)
    run.enter_component(call)
    with run.inside(call), _within(Scope(run, here.visit, call)):
        try:
            twin = _partial_twin(run, call)
            result = _drain(run, call, twin, args, kwargs) if twin is not None else _OWN
            if result is _OWN:
                result = wrapped(*args, **kwargs)
        except BaseException as error:
            run.failed(call, error)
            raise
    run.done(call, result)
    return result


async def _async(
    run: Run, here: Scope, method: Method, component: Any, wrapped: Any, args: Any, kwargs: Any, site: str
) -> Any:
    call = run.open(here, method, component, args, kwargs, site)
    if call.joined:
        with _joining(here, call) as woken:
            if woken is not None:
                await auntil(woken, call.patience_s())
        if _has_answered(run, call):
            return _retired(run, call, method)
        call = run.instead(call, here.call)
    await run.aenter_component(call)
    with run.inside(call):
        try:
            with _within(Scope(run, here.visit, call)):
                twin = _partial_twin(run, call)
                result = await _adrain(run, call, twin, args, kwargs) if twin is not None else _OWN
                if result is _OWN:
                    result = await wrapped(*args, **kwargs)
        except BaseException as error:
            run.failed(call, error)
            raise
    run.done(call, result)
    return result


def _stream(
    run: Run, here: Scope, method: Method, component: Any, wrapped: Any, args: Any, kwargs: Any, site: str
) -> Generator[Any, None, None]:
    call = run.open(here, method, component, args, kwargs, site)
    handed: list[Any] = []
    if call.joined:
        with _joining(here, call, loop_here()) as woken:
            if woken is not None:
                for chunk in early.replay(call, kwargs.get("run_manager")):
                    handed.append(chunk)
                    yield chunk
                until(_done(call))
        if _has_answered(run, call):
            _retired(run, call, method)
            return
        call = run.instead(call, here.call)
    run.enter_component(call)
    with run.inside(call):
        inner = Scope(run, here.visit, call)
        stream = None
        try:
            with _within(inner):
                stream = iter(wrapped(*args, **kwargs))
            while True:
                with _within(inner):
                    chunk = next(stream, _END)
                if chunk is _END:
                    break
                run.feed(call, chunk)
                if not _was_handed(call, handed):
                    yield chunk
        except GeneratorExit:
            close = getattr(stream, "close", None)
            if close is not None:
                close()
            run.failed(call, GeneratorExit())
            raise
        except BaseException as error:
            run.failed(call, error)
            raise
        run.done(call, method.merge(call.chunks) if method.merge else None)


async def _astream(
    run: Run, here: Scope, method: Method, component: Any, wrapped: Any, args: Any, kwargs: Any, site: str
) -> AsyncGenerator[Any, None]:
    call = run.open(here, method, component, args, kwargs, site)

    async def own() -> Any:
        return wrapped(*args, **kwargs)

    stream = (
        _areplayed(run, here, call, method, kwargs, own) if call.joined else _adelivered(run, here, call, method, own)
    )
    async with aclosing(stream):
        while (chunk := await step(stream, _END)) is not _END:
            yield chunk


async def _opened(
    run: Run, here: Scope, method: Method, component: Any, wrapped: Any, args: Any, kwargs: Any, site: str
) -> AsyncGenerator[Any, None]:
    """A coroutine that gives the stream: what fails before the first chunk fails here."""
    call = run.open(here, method, component, args, kwargs, site)

    async def own() -> Any:
        return await wrapped(*args, **kwargs)

    if call.joined:
        return _areplayed(run, here, call, method, kwargs, own)
    await run.aenter_component(call)
    try:
        with run.inside(call), _within(Scope(run, here.visit, call)):
            stream = await own()
    except BaseException as error:
        run.failed(call, error)
        raise

    async def opened() -> Any:
        return stream

    return _adelivered(run, here, call, method, opened)


Own = Callable[[], Coroutine[Any, Any, Any]]
"""Begins the program's own stream."""


async def _areplayed(
    run: Run, here: Scope, call: Call, method: Method, kwargs: Any, own: Own
) -> AsyncGenerator[Any, None]:
    handed: list[Any] = []
    with _joining(here, call) as woken:
        if woken is not None:
            async with aclosing(early.areplay(call, kwargs.get("run_manager"))) as chunks:
                while (chunk := await step(chunks, _END)) is not _END:
                    handed.append(chunk)
                    yield chunk
            await auntil(_done(call))
    if _has_answered(run, call):
        _retired(run, call, method)
        return
    async with aclosing(_adelivered(run, here, run.instead(call, here.call), method, own, handed)) as chunks:
        while (chunk := await step(chunks, _END)) is not _END:
            yield chunk


async def _adelivered(
    run: Run, here: Scope, call: Call, method: Method, own: Own, handed: Sequence[Any] = ()
) -> AsyncGenerator[Any, None]:
    await run.aenter_component(call)
    with run.inside(call):
        stream: Any = None
        try:
            inner = Scope(run, here.visit, call)
            with _within(inner):
                stream = await own()
            while True:
                with _within(inner):
                    chunk = await step(stream, _END)
                if chunk is _END:
                    break
                run.feed(call, chunk)
                if not _was_handed(call, handed):
                    yield chunk
        except BaseException as error:
            if isinstance(error, GeneratorExit) and stream is not None:
                await stream.aclose()
            run.failed(call, error)
            raise
    run.done(call, method.merge(call.chunks) if method.merge else None)


def _was_handed(call: Call, handed: Sequence[Any]) -> bool:
    """Whether the program has the last chunk already: from an early stream that was given up in the middle. Raises
    CallCancelled where it was another one."""
    position = len(call.chunks) - 1
    if position >= len(handed):
        return False
    delta = call.method.delta
    if delta is None or delta(call.chunks[position]) != delta(handed[position]):
        raise CallCancelled("the stream was given up while it was being read, and began in another way the next time")
    return True


# --- joining --------------------------------------------------------------------------------------------------------


@contextmanager
def _joining(here: Scope, call: Call, blocks: AbstractEventLoop | None = None) -> Generator[Woken | None, None, None]:
    """Around waiting for the early call that answers a demand: what is resolved when it is over; None where nobody may
    wait for it. Whoever stops waiting gives it up, unless others wait for it, too. `blocks`: the loop that stands still
    meanwhile."""
    woken = Woken()
    if not begin(here.call, (call,), woken, blocks):
        call.abandon()
        yield None
        return
    call.waiters += 1
    on_done(call.future, woken)
    try:
        yield woken
    except BaseException:
        if call.waiters == 1:
            call.abandon()
        raise
    finally:
        call.waiters -= 1
        end(here.call, woken)


def _done(call: Call) -> Woken:
    """Resolved when a call whose stream has ended has its result. The future may be another one than it was."""
    woken = Woken()
    on_done(call.future, woken)
    return woken


def _has_answered(run: Run, call: Call) -> bool:
    """Whether the joined call is over, well or not. One that stands still is given up, and so is its kind."""
    if not call.future.done():
        call.abandon()
        run.plan.disqualified[kind_of(call.component)] = (
            "an early call of it stood still while the program waited for it"
        )
    return not call.future.cancelled()


def _retired(run: Run, call: Call, method: Method) -> Any:
    try:
        result = call.future.result()
    except BaseException:
        run.failed_join(call)
        raise
    return run.retire(call, method, result)


# --- partial decodes of demanded calls ------------------------------------------------------------------------------


def _partial_twin(run: Run, call: Call) -> Method | None:
    """The streaming method to serve this demand with, where somebody waits for parts of the answer."""
    record = call.record
    if run.quiet or record is None or call.method.kind not in ("sync", "async"):
        return None
    if not any(node.needs_partial for node in run.graph.by_site.get(record.site, ())):
        return None
    return early.streaming_twin(run, call.method, call.component)


def _drain(run: Run, call: Call, twin: Method, args: Any, kwargs: Any) -> Any:
    call.substituted = True
    try:
        for chunk in original(call.component, twin.name)(*args, **{**kwargs, **twin.own}):
            run.feed(call, chunk, twin)
    except CallCancelled:
        if not call.tells:
            raise
    return _merged(call, twin)


async def _adrain(run: Run, call: Call, twin: Method, args: Any, kwargs: Any) -> Any:
    call.substituted = True
    try:
        stream = original(call.component, twin.name)(*args, **{**kwargs, **twin.own})
        async for chunk in await stream if twin.opens else stream:
            run.feed(call, chunk, twin)
    except CallCancelled:
        if not call.tells:
            raise
    return _merged(call, twin)


def _merged(call: Call, twin: Method) -> Any:
    """What the chunks make; `_OWN` if the streaming method told of itself, and the demand begins anew with its own."""
    if not call.tells:
        assert twin.merge is not None
        return twin.merge(call.chunks)
    note_told(call.component, twin.name, call.tells)
    call.substituted, call.tells = False, ""
    call.chunks.clear()
    return _OWN
