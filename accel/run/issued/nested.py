"""What an early call does besides its work. Calls of other components may be shared, or end it; so does a word about
itself to whoever listens to the program, which would come too early and from nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from ... import engine
from ...errors import CallCancelled
from ...parts.components import note_asks, note_told
from ...parts.methods.methods import Method
from ...text.values import Tree
from ..calls.call import Call
from ..foresight.permits import nested_refuses
from ..run import Run
from ..scope import Scope, Within, scope
from ..waits.endpoints import TurnedAway
from ..waits.gates import InTheWay, gate_of
from ..waits.steps import Do, Steps, Wait, atake, meant, result_of, take
from ..waits.waiting import Woken, begin, end, loop_here, wake

_DROPPED = "what it waited for was dropped"


def call(run: Run, method: Method, component: Any, wrapped: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A patched leaf was called inside an early call. Raises CallCancelled where it may not run early."""
    tree = method.seen_input(component, args, kwargs)
    here = scope.get()
    outer = here.call if here is not None else None
    reason = nested_refuses(run, method, component, tree)
    if reason:
        raise hindered(outer, str(reason))
    work = partial(wrapped, *args, **kwargs)
    if method.kind == "sync":
        return take(_steps(run, outer, method, component, tree, work))
    return atake(_steps(run, outer, method, component, tree, work)) if method.kind == "async" else work()


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
        raise hindered(here.call, f"it {what}")


def hindered(call: Call | None, reason: str) -> CallCancelled:
    """What to raise. Whatever the calls around make of it, they are not what the program would have got."""
    while call is not None:
        call.hindered, call = True, call.outer
    return CallCancelled(f"an early call can't go on: {reason}")


def _steps(run: Run, outer: Call | None, method: Method, component: Any, tree: Tree, work: partial[Any]) -> Steps[Any]:
    assert method.copy is not None
    here = loop_here()
    own, blocks = (here, None) if method.is_async else (None, here)
    identity, facts = run.identities.of(component, method.by_object), run.bindings.facts(component)
    shared, mine = run.calls.share(method, component, identity, tree, run.ambient, facts)
    if not mine:
        with _as_urgent(shared):
            while not shared.outcome.over:
                with _sharing(outer, shared.maker, blocks) as woken:
                    yield Wait(woken)
        if shared.outcome.dropped or (shared.maker is not shared and not shared.has_borrowed()):
            raise hindered(outer, _DROPPED)
        return method.copy(result_of(shared.outcome))
    shared.outer, shared.priority = outer, engine.priority.get()
    try:
        while (busy := _in_the_way(run, shared, own, blocks)) is not None:
            try:
                yield Wait(busy.woken, busy.timeout_s)
            finally:
                gate_of(component).stop_waiting(shared, busy.woken)
        with Within(scope, Scope(run, call=shared, early=True)):
            result = yield Do(work)
    except BaseException as error:
        _failed(run, shared, meant(error))
        raise
    finally:
        shared.leave()
    return _shared(run, shared, result, (*work.args, *work.keywords.values()))


@contextmanager
def _sharing(
    outer: Call | None, shared: Call, blocks: asyncio.AbstractEventLoop | None
) -> Generator[Woken, None, None]:
    """What to wait for until another call has the result, or the one that waits is given up."""
    woken = Woken()
    if not begin(outer, lambda: (shared,), woken, blocks):
        raise hindered(outer, "what it needs waits for it")
    shared.waiters += 1
    shared.outcome.wake(woken)
    try:
        yield woken
    finally:
        shared.waiters -= 1
        end(outer, woken)


def _in_the_way(
    run: Run, shared: Call, own: asyncio.AbstractEventLoop | None, blocks: asyncio.AbstractEventLoop | None
) -> InTheWay | None:
    """What keeps it from entering its component. Once the program waits for it, it is the program's own call."""
    gate, limit = gate_of(shared.component), run.bindings.facts(shared.component).concurrency or 1
    if any(party.gone for party in shared.around()):
        raise hindered(shared.outer, _DROPPED)
    if shared.wanted:
        found = gate.enter(shared, limit, own, blocks)
        for call in found.give_up if found is not None else ():
            call.abandon()
        return found
    try:
        found = gate.enter_nested(shared, limit)
    except CallCancelled as busy:
        raise hindered(shared.outer, busy.what) from None
    if found is not None and shared.wanted:  # the program has come meanwhile
        wake((found.woken,))
    return found


def _shared(run: Run, shared: Call, result: Any, given: Sequence[Any]) -> Any:
    """A copy for the caller; others get one too, unless it is not what they would have got. Of what nobody else may
    have, the caller gets what there is."""
    assert shared.method.copy is not None
    if shared.hindered:
        give_up(run, shared)
    else:
        run.done(shared, result, given)
    given_to_others = shared.outcome.over and not shared.outcome.dropped
    return shared.method.copy(result) if given_to_others else result


def _failed(run: Run, shared: Call, error: BaseException) -> None:
    """A demand that has joined gets the component's failure, but has no part in an early call's cancellation."""
    if isinstance(error, CallCancelled | TurnedAway | asyncio.CancelledError):
        give_up(run, shared)
    else:
        run.failed(shared, error)


def give_up(run: Run, cancelled: Call) -> None:
    """Early work that was cancelled: whoever waits for it does without."""
    if cancelled.tells:
        note_told(cancelled.component, cancelled.method.name, cancelled.tells)
    run.calls.drop(cancelled)
    cancelled.outcome.drop()
    cancelled.chunks.close()


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
