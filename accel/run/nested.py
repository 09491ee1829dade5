"""What an early call does besides its work. Calls of other components may be shared, or end it; so does a word about
itself to whoever listens to the program, which would come too early and from nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import engine
from ..components import note_asks, note_told
from ..errors import CallCancelled
from ..intercept import Method, Scope, scope
from ..values import Tree
from .permits import nested_refuses

if TYPE_CHECKING:
    from .call import Call
    from .run import Run

_DROPPED = "what it waited for was dropped"


def call(run: Run, method: Method, component: Any, wrapped: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A patched leaf was called inside an early call. Raises CallCancelled where it may not run early."""
    tree = method.read(component, args, kwargs)
    here = scope.get()
    outer = here.call if here is not None else None
    reason = nested_refuses(run, method, component, tree)
    if reason:
        raise _hindered(outer, reason)
    work = partial(wrapped, *args, **kwargs)
    if method.kind == "sync":
        return _sync(run, outer, method, component, tree, work)
    return _async(run, outer, method, component, tree, work) if method.kind == "async" else work()


def asks(what: str) -> None:
    """Called by adapters where code asks for what an early call has not got. As `tells`, and for all methods of the
    component from now on."""
    here = scope.get()
    if here is not None and here.call is not None:
        note_asks(here.call.component, what)
    tells(what)


def tells(what: str) -> None:
    """Called by adapters where code tells of itself, with what it does (a span, an event, a callback).

    Raises CallCancelled where the program did not call what is running: inside an early call, or inside the streaming
    method that a demand is served with. The program's own call has to tell. Other methods' results don't stand for one
    that tells, and its result is not shared.
    """
    here = scope.get()
    if here is None or here.call is None:
        return
    here.call.tells = what
    if here.early or here.call.substituted:
        raise _hindered(here.call, f"it {what}")


def _hindered(call: Call | None, reason: str) -> CallCancelled:
    """What to raise. Whatever the calls around make of it, they are not what the program would have got."""
    while call is not None:
        call.hindered, call = True, call.outer
    return CallCancelled(f"an early call can't go on: {reason}")


def _sync(run: Run, outer: Call | None, method: Method, component: Any, tree: Tree, work: Callable[[], Any]) -> Any:
    assert method.copy is not None
    shared, mine = run.calls.share(method, component, tree, run.ambient, run.bindings.facts(component))
    if not mine:
        with _as_urgent(shared):
            try:
                return method.copy(shared.future.result())
            except CancelledError:
                raise _hindered(outer, _DROPPED) from None
    shared.outer, shared.priority = outer, engine.priority.get()
    try:
        with run.inside(shared), _within(run, shared):
            result = work()
    except BaseException as error:
        _failed(run, shared, error)
        raise
    return _shared(run, shared, result)


async def _async(
    run: Run, outer: Call | None, method: Method, component: Any, tree: Tree, work: Callable[[], Any]
) -> Any:
    assert method.copy is not None
    shared, mine = run.calls.share(method, component, tree, run.ambient, run.bindings.facts(component))
    if not mine:
        with _as_urgent(shared):
            try:
                return method.copy(await asyncio.shield(asyncio.wrap_future(shared.future)))
            except asyncio.CancelledError:
                if shared.future.cancelled():
                    raise _hindered(outer, _DROPPED) from None
                raise
    shared.outer, shared.priority = outer, engine.priority.get()
    try:
        while (wait := run.enter_component(shared)) is not None:
            await asyncio.wrap_future(wait)
        try:
            with _within(run, shared):
                result = await work()
        finally:
            run.leave_component(shared)
    except BaseException as error:
        _failed(run, shared, error)
        raise
    return _shared(run, shared, result)


def _shared(run: Run, shared: Call, result: Any) -> Any:
    """A copy for the caller; others get one too, unless it is not what they would have got."""
    assert shared.method.copy is not None
    if shared.hindered:
        give_up(run, shared)
    else:
        run.done(shared, result)
    return shared.method.copy(result)


def _failed(run: Run, shared: Call, error: BaseException) -> None:
    """A demand that has joined gets the component's failure, but has no part in an early call's cancellation."""
    if isinstance(error, CallCancelled | asyncio.CancelledError):
        give_up(run, shared)
    else:
        run.failed(shared, error)


def give_up(run: Run, cancelled: Call) -> None:
    """Early work that was cancelled: whoever waits for it does without."""
    if cancelled.tells:
        note_told(cancelled.component, cancelled.method.name, cancelled.tells)
    run.calls.drop(cancelled)
    if not cancelled.future.done():
        cancelled.future.cancel()
    cancelled.close()


@contextmanager
def _within(run: Run, shared: Call) -> Generator[None, None, None]:
    """What a component calls of itself is part of its call."""
    token = scope.set(Scope(run, call=shared, early=True))
    try:
        yield
    finally:
        scope.reset(token)


@contextmanager
def _as_urgent(shared: Call) -> Generator[None, None, None]:
    """When the program comes to wait for an early call, it waits for what that one waits for, too."""
    here = scope.get()
    outer = here.call if here is not None else None
    forget = outer.priority.on_raise(shared.priority.raise_to_demand) if outer is not None else None
    if outer is not None and outer.priority.value <= 0:
        shared.priority.raise_to_demand()
    try:
        yield
    finally:
        if forget is not None:
            forget()
