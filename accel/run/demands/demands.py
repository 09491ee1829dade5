"""The program makes a call: what it gets is an early call's result, or the component's own.

A demand is opened first (`opening`), which says whether an early call answers it. If so, its result retires into the
demand; if not, the component runs as it would have, watched. Written once, as steps; a demand's colour (sync, async,
stream, async stream) says who takes them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from functools import partial
from inspect import isgeneratorfunction
from typing import Any

from ...engine import DEMAND, priority
from ...errors import CallCancelled
from ...parts.components import note_told
from ...parts.methods.methods import Method
from ...parts.methods.patches import original
from ...trace.sites import call_site
from ..calls.call import Call
from ..issued import early, nested
from ..issued.turned_away import asked, begun_first, by_error
from ..run import Run
from ..scope import Scope, scope
from ..waits.inner import step
from ..waits.steps import Closed, Do, Give, Steps, Wait, atake, atake_stream, meant, result_of, take, take_stream
from ..waits.waiting import Woken, begin, end, loop_here
from .opening import instead, open_call, sent

_END = object()
_OWN = object()


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
    if method.direct and outer is not None:
        return wrapped(*args, **kwargs)
    if here.early and run.closed and outer is not None and outer.component is not component:
        raise nested.hindered(outer, "its run is over")
    if run.closed or (outer is not None and outer.component is component and outer.method.family == method.family):
        return wrapped(*args, **kwargs)
    if here.early:
        return nested.call(run, method, component, wrapped, args, kwargs)
    made = Demand(run, here, method, component, wrapped, args, kwargs)
    if method.kind == "sync":
        return take(made.answered())
    if method.opens:
        return made.opened()
    if method.kind == "async":
        return atake(made.answered())
    if method.kind == "stream":
        return take_stream(made.streamed()) if isgeneratorfunction(wrapped) else made.begun()
    return atake_stream(made.streamed())


class Demand:
    """One call of the program. Where it was made is looked at now: a task of its own may run the rest."""

    def __init__(
        self, run: Run, here: Scope, method: Method, component: Any, wrapped: Callable[..., Any], args: Any, kwargs: Any
    ) -> None:
        self.run, self.here, self.method, self.component = run, here, method, component
        self.wrapped, self.args, self.kwargs = wrapped, args, kwargs
        self.site = call_site() or here.called

    def answered(self) -> Steps[Any]:
        """One result."""
        run, method = self.run, self.method
        call = self._open()
        if call.joined:
            with self._joining(call) as woken:
                if woken is not None:
                    yield Wait(woken, call.patience_s())
            if _has_answered(run, call):
                if not call.chunks.parts:
                    yield from self._say_again(call, 0)
                return _retired(run, call, method)
            call = instead(run, call, method, self.component, self.here.call)
        yield from run.entering(call, method.is_async)
        with _Inside(run, call):
            try:
                with _Within(Scope(run, self.here.visit, call)):
                    twin = _partial_twin(run, call)
                    result = (yield from self._drained(call, twin)) if twin is not None else _OWN
                    if result is _OWN:
                        result = yield from self._asked(call, self._ask)
            except BaseException as error:
                run.failed(call, meant(error))
                raise
        run.done(call, result, (*self.args, *self.kwargs.values()))
        return result

    def streamed(self, call: Call | None = None, stream: Any = None) -> Steps[None]:
        """Chunks. `call`: that was opened already, with the stream of the component's that it may have begun."""
        run, method = self.run, self.method
        if call is None:
            call = self._open()
        elif not method.is_async:
            sent(run, call, self.component, run.plan.keys.note(self.component))
        handed: list[Any] = []
        if call.joined:
            with self._joining(call) as woken:
                if woken is not None and not call.outcome.dropped:
                    yield from self._replayed(call, handed)
                    yield Wait(_done(call))
            if _has_answered(run, call):
                _retired(run, call, method)
                return
            call = instead(run, call, method, self.component, self.here.call)
        yield from run.entering(call, method.is_async)
        with _Inside(run, call):
            inner = Scope(run, self.here.visit, call)
            try:
                chunk = _OWN
                if stream is None or not method.is_async:
                    begun = begun_first(self._ask, *(() if stream is None else (stream,)))
                    with _Within(inner):
                        stream, chunk = yield from self._first(call, method, begun)
                while True:
                    if chunk is _OWN:
                        with _Within(inner):
                            chunk = yield Do(partial(step if method.is_async else next, stream, _END))
                    if chunk is _END:
                        break
                    run.feed(call, chunk)
                    if not _was_handed(call, handed):
                        yield Give(chunk)
                    chunk = _OWN
            except Closed:
                close = getattr(stream, "aclose" if method.is_async else "close", None)
                if close is not None:
                    yield Do(close)
                run.failed(call, GeneratorExit())
                raise
            except BaseException as error:
                run.failed(call, error)
                raise
        result = method.merged(call.chunks.parts)
        run.done(call, result)
        if result is None and call.chunks.parts:
            run.disqualify(call, "its chunks make no answer", "give chunks of the framework's own class")

    async def opened(self) -> AsyncGenerator[Any, None]:
        """A coroutine that gives the stream: what fails before the first chunk fails here."""
        call = self._open()
        stream = None if call.joined else await atake(self._begun(call))
        return atake_stream(self.streamed(call, stream))

    def begun(self) -> Generator[Any, None, None]:
        """A function that gives the stream, and is no generator: what fails in it fails here."""
        call = self._open(sends=False)
        reading = self._read(call, None if call.joined else take(self._begun(call)))
        next(reading)
        return reading

    def _read(self, call: Call, stream: Any) -> Generator[Any, None, None]:
        """What has been begun, behind a first step which gives nothing: closed unread, it closes what there is."""
        try:
            yield
        except GeneratorExit:
            if stream is not None:
                getattr(stream, "close", lambda: None)()
                self.run.failed(call, GeneratorExit())
            elif not (call.waiters or call.borrowers):
                call.abandon()
            raise
        yield from take_stream(self.streamed(call, stream))

    def _begun(self, call: Call) -> Steps[Any]:
        run = self.run
        yield from run.entering(call, self.method.is_async)
        try:
            with _Inside(run, call), _Within(Scope(run, self.here.visit, call)):
                return (yield from self._asked(call, self._ask))
        except BaseException as error:
            run.failed(call, error)
            raise

    def _open(self, sends: bool = True) -> Call:
        return open_call(self.run, self.here, self.method, self.component, self.args, self.kwargs, self.site, sends)

    def _ask(self) -> Any:
        """The component, as the program did."""
        return self.wrapped(*self.args, **self.kwargs)

    # --- inside its component

    def _asked(self, call: Call, ask: Callable[[], Any]) -> Steps[Any]:
        """What the component gives, beside early calls."""
        run, counts = self.run, self.run.counts

        def lost(seconds: float) -> None:
            counts.delayed, counts.delayed_s = counts.delayed + 1, counts.delayed_s + seconds
            if call.record is not None:
                call.record.delayed_s += seconds

        call.makes_room = bool(run.bindings.facts(call.component).pure)
        return asked(call, ask, self.method.is_async, partial(by_error, run, call), lost)

    def _first(self, call: Call, method: Method, begun: Callable[[], Any]) -> Steps[tuple[Any, Any]]:
        """A stream, and its first chunk."""

        def plain() -> tuple[Any, Any]:
            stream = iter(begun())
            return stream, next(stream, _END)

        async def coroutine() -> tuple[Any, Any]:
            stream = (await begun()) if method.opens else begun()
            return stream, await step(stream, _END)

        found: tuple[Any, Any] = yield from self._asked(call, coroutine if method.is_async else plain)
        return found

    # --- joining an early call

    @contextmanager
    def _joining(self, call: Call) -> Generator[Woken | None, None, None]:
        """Around waiting for the early call that answers the demand: what is resolved when it is over; None where
        nobody may wait for it. Whoever stops waiting gives it up, unless others wait for it, too."""
        woken, outer = Woken(), self.here.call
        blocks = None if self.method.is_async else loop_here()
        maker = call.maker
        if not call.outcome.over and not begin(outer, lambda: (maker,), woken, blocks):
            call.abandon()
            yield None
            return
        call.waiters += 1
        if maker is not call:
            maker.lent(+1)
        call.outcome.wake(woken)
        try:
            yield woken
        except BaseException as error:
            if call.waiters == 1 and not call.borrowers:
                call.given_up = True
                call.abandon()
            self.run.failed_join(call, error)
            raise
        finally:
            call.waiters -= 1
            if maker is not call:
                maker.lent(-1)
            end(outer, woken)

    def _replayed(self, call: Call, handed: list[Any]) -> Steps[None]:
        """The chunks of a running or finished stream, as they come, and what it said to its callback manager with each.
        A stream that does not begin in time is given up."""
        while True:
            woken = call.chunks.beyond(len(handed), lambda: call.over)
            if woken is not None:
                yield Wait(woken, call.patience_s() if not handed else None)
                if not woken.done():
                    call.abandon()
                continue
            yield from self._say_again(call, len(handed))
            if len(handed) == len(call.chunks.parts):
                return
            handed.append(call.chunks.parts[len(handed)])
            yield Give(handed[-1])

    def _say_again(self, call: Call, position: int) -> Steps[None]:
        """What an early call told the stand-in of its callback manager, to the program's; as its handlers have it, what
        they raise is the call's error."""
        manager = self.kwargs.get("run_manager")
        try:
            for name, args, kwargs in call.chunks.asides.get(position, ()) if manager is not None else ():
                yield Do(partial(getattr(manager, name), *args, **kwargs))
        except BaseException as error:
            self.run.failed_join(call, error)
            raise

    # --- partial decodes of demanded calls

    def _drained(self, call: Call, twin: Method) -> Steps[Any]:
        """What the chunks of the streaming method make; `_OWN` if it told of itself, and the demand begins anew with
        its own."""
        call.substituted = True
        try:
            begun = partial(original(call.component, twin), *self.args, **{**self.kwargs, **twin.own})
            stream, chunk = yield from self._first(call, twin, begun)
            while chunk is not _END:
                self.run.feed(call, chunk, twin)
                chunk = yield Do(partial(step if twin.is_async else next, stream, _END))
        except CallCancelled:
            if not call.tells:
                raise
        if not call.tells:
            assert twin.merge is not None
            return twin.merge(call.chunks.parts)
        note_told(call.component, twin.name, call.tells)
        call.substituted, call.tells = False, ""
        call.chunks.parts.clear()
        return _OWN


class _Inside:
    """Around a call of the program that has entered its component. No generator, as every call passes here."""

    __slots__ = ("_call", "_run")

    def __init__(self, run: Run, call: Call) -> None:
        self._run, self._call = run, call

    def __enter__(self) -> None:
        self._run.enter_component(self._call)

    def __exit__(self, *_: object) -> None:
        self._run.leave_component(self._call)


class _Within:
    """Around its code."""

    __slots__ = ("_inner", "_token", "_urgency")

    def __init__(self, inner: Scope) -> None:
        self._inner = inner

    def __enter__(self) -> None:
        call = self._inner.call
        self._token = scope.set(self._inner)
        self._urgency = priority.set(call.priority if call is not None else DEMAND)

    def __exit__(self, *_: object) -> None:
        priority.reset(self._urgency)
        scope.reset(self._token)


def _was_handed(call: Call, handed: list[Any]) -> bool:
    """Whether the program has the last chunk already: from an early stream that was given up in the middle. Raises
    CallCancelled where it was another one."""
    position = len(call.chunks.parts) - 1
    if position >= len(handed):
        return False
    added = call.method.added
    if call.method.delta is None or added(call.chunks.parts[position]) != added(handed[position]):
        raise CallCancelled("the stream was given up while it was being read, and began in another way the next time")
    return True


def _done(call: Call) -> Woken:
    """Resolved when a call whose stream has ended has its result. It may be another one than it was (`gone`)."""
    woken = Woken()
    call.outcome.wake(woken)
    return woken


def _has_answered(run: Run, call: Call) -> bool:
    """Whether the joined call is over, well or not. One that stands still is given up, and so is its kind. Another
    run's answers only if it went well."""
    if call.maker is not call:
        return call.has_borrowed()
    if not call.outcome.over and call.lender is not None:
        call.abandon()
    elif not call.outcome.over:
        call.abandon()
        run.disqualify(
            call,
            "an early call of it stood still while the program waited for it",
            "see what it waits for; where it has to, accel.register(..., pure=False) says so beforehand",
        )
    return not call.outcome.dropped


def _retired(run: Run, call: Call, method: Method) -> Any:
    try:
        result = result_of(call.outcome)
    except BaseException as error:
        run.failed_join(call, error)
        raise
    return run.retire(call, method, result)


def _partial_twin(run: Run, call: Call) -> Method | None:
    """The streaming method to serve this demand with, where somebody waits for parts of the answer."""
    record = call.record
    if run.quiet or record is None or call.method.kind not in ("sync", "async"):
        return None
    if not any(node.schedule.needs_partial for node in run.graph.by_site.get(record.site, ())):
        return None
    return early.streaming_twin(run, call.method, call.component)
