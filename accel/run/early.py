"""Running calls early: on Accel's daemon threads, or on the run's own loop where the leaf is a coroutine.

An early call sees a copy of the run's entry context, a cancel token and a priority behind every demand.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Hashable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import engine
from ..components import called_plainly, facts_of, note_told, tells_within
from ..errors import CallCancelled
from ..identity import identity_of
from ..intercept import METHODS, Method, Scope, epoch, has_leaf, original, resource_of, scope
from ..ir import Node
from ..values import Tree, freeze, is_comparable
from . import priorities, threads
from .call import Call
from .gates import gate_of
from .nested import give_up
from .waiting import Woken, auntil, until, wake

if TYPE_CHECKING:
    from .run import Run
    from .settings import Bound


BUSY = "its component is busy"
LATE = "the run is over, or the program has just made this call itself"
"""No other call of it could be issued now, either."""


def streaming_twin(run: Run, method: Method, component: Any) -> Method | None:
    """The streaming method of the same family and colour, if the component has it and merged chunks are equal."""
    twin = METHODS.get((method.family, method.streamed))
    if twin is None or not has_leaf(component, twin.name) or not run.bindings.facts(component).streams_equal:
        return None
    return twin if twin is method or may_stand_in(component, twin, method) else None


def may_stand_in(component: Any, other: Method, method: Method) -> bool:
    """Whether a call through one method may answer a demand of another: neither is heard from within, and somebody
    vouches that coroutines give the same."""
    if method.is_async != other.is_async and not facts_of(component).twins:
        return False
    return tells_within(component, method.name) == "" and not tells_within(component, other.name)


def choose_method(run: Run, bound: Bound, node: Node) -> Method | None:
    """The leaf to run early: the one the program is going to call, or one whose result may stand for it.

    Where plain calls of a component that takes one at a time block its loop, they could not wait for a coroutine on it:
    then a thread of ours enters it.
    """
    method = bound.method
    narrow = (bound.facts.concurrency or 1) == 1
    if method.is_async and (run.host.loop is None or (narrow and called_plainly(bound.component))):
        sync = METHODS.get((method.family, method.sync_name))
        if sync is None or not has_leaf(bound.component, sync.name) or not may_stand_in(bound.component, sync, method):
            return None
        method = sync
    if node.needs_partial or run.host.streaming:
        return streaming_twin(run, method, bound.component) or method
    return method


def issue(run: Run, node: Node, bound: Bound, tree: Tree, key: Hashable) -> Call | str:
    """Start an early call for a complete, allowed input; or say why it can't be."""
    method = choose_method(run, bound, node)
    if method is None:
        return (
            "no coroutine of it can run early here; accel.register(..., twins=True) if its plain methods give the same"
        )
    try:
        args, kwargs = method.build(bound.component, tree)
    except LookupError:
        return "its input holds an object of a class that is not loaded here"
    if freeze(method.read(bound.component, args, kwargs)) != freeze(tree):
        return "its input can't be rebuilt exactly"
    if not is_comparable(tree):
        return "its input holds an object that may change meanwhile"
    call = Call(method, bound.component, bound.identity, tree, key, run.ambient, early=True)
    call.issued_for = node.site
    if method.op == "searching":
        call.resource = resource_of(bound.component)
        call.epoch = epoch(call.resource)
        call.only_feeds = not (bound.facts.readonly or bound.facts.owned)
    if not gate_of(bound.component).try_enter_early(call, bound.facts.concurrency or 1):
        return BUSY
    call.priority = priorities.of_early(run, node)
    if not run.calls.hold(call):
        call.leave()
        return LATE
    if method.kind in ("sync", "stream"):
        threads.spawn(lambda: _on_thread(run, call, args, kwargs))
    else:
        loop = run.host.loop
        assert loop is not None
        call.loop = loop
        try:
            loop.call_soon_threadsafe(lambda: _on_loop(run, call, args, kwargs))
        except RuntimeError:  # the loop is closed: the run was abandoned
            run.calls.drop(call)
            call.leave()
    return call


def _ended(run: Run, call: Call) -> None:
    """An early call has left its component, and others may take the place; unless the program has taken it over."""
    if call.early:
        call.leave()
    run.stopped()


def _enter_context(run: Run, call: Call) -> None:
    scope.set(Scope(run, call=call, early=True))
    run.host.set_config()
    engine.cancel_token.set(call.token)
    engine.priority.set(call.priority)


def _on_thread(run: Run, call: Call, args: Any, kwargs: Any) -> None:
    try:
        if threads.before_call is not None:
            threads.before_call()
        if run.calls.begin(call) and not _changed(run, call):
            run.entry.copy().run(_body, run, call, args, kwargs)
    finally:
        _ended(run, call)


def _body(run: Run, call: Call, args: Any, kwargs: Any) -> None:
    _enter_context(run, call)
    leaf_method = original(call.component, call.method.name)
    try:
        if call.method.kind == "stream":
            for chunk in leaf_method(*args, **kwargs):
                if call.state == "dropped":
                    return
                call.note_asides(kwargs.get("run_manager"))
                run.feed(call, chunk)
            call.note_asides(kwargs.get("run_manager"))
            assert call.method.merge is not None
            result = call.method.merge(call.chunks)
        else:
            result = leaf_method(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001 - a failure is the demand's, if one has joined; else it is dropped
        _early_failed(run, call, kwargs, error)
    else:
        _early_done(run, call, args, kwargs, result)


def _on_loop(run: Run, call: Call, args: Any, kwargs: Any) -> None:
    if not run.calls.begin(call) or _changed(run, call):
        _ended(run, call)
        return

    async def body() -> None:
        _enter_context(run, call)
        leaf_method = original(call.component, call.method.name)
        try:
            if call.method.kind == "astream":
                stream = leaf_method(*args, **kwargs)
                async for chunk in await stream if call.method.opens else stream:
                    call.note_asides(kwargs.get("run_manager"))
                    run.feed(call, chunk)
                call.note_asides(kwargs.get("run_manager"))
                assert call.method.merge is not None
                result = call.method.merge(call.chunks)
            else:
                result = await leaf_method(*args, **kwargs)
        except BaseException as error:
            _early_failed(run, call, kwargs, error)
            if isinstance(error, asyncio.CancelledError):
                raise
        else:
            _early_done(run, call, args, kwargs, result)
        finally:
            _ended(run, call)

    assert call.loop is not None
    call.task = call.loop.create_task(body(), context=run.entry.copy())
    run.keep(call.task)


def _early_done(run: Run, call: Call, args: Any, kwargs: Any, result: Any) -> None:
    if _told(run, call, kwargs):
        return
    if _changed(run, call):
        return
    if call.hindered:
        give_up(run, call)
        return
    if _hands_back(result, (*args, *kwargs.values())):
        run.disqualify(call, "it hands back the objects it was given, and an early call is given copies")
    run.done(call, result)


def _told(run: Run, call: Call, kwargs: Any) -> bool:
    """Whether it told somebody of itself, or tried to: then the demand has to make the call."""
    if getattr(kwargs.get("run_manager"), "looked_at", False):
        call.tells = "reads its callback manager"
    if call.tells:
        note_told(call.component, call.method.name, call.tells)
        run.calls.drop(call)
    return bool(call.tells)


def _changed(run: Run, call: Call) -> bool:
    """Whether the component is another one than when the call was issued: then the answer may be, too, even if it is
    what it was again when the program makes the call."""
    if identity_of(call.component, call.method.by_object) == call.identity:
        return False
    run.calls.drop(call)
    return True


def _hands_back(result: Any, given: Iterable[Any]) -> bool:
    """Whether a list shares objects with a list that was given: a program may change one and expect the other to have
    changed."""
    if not isinstance(result, list | tuple):
        return False
    shared = {id(held) for value in given if isinstance(value, list | tuple) for held in _mutable(value)}
    return any(id(held) in shared for held in _mutable(result))


def _mutable(items: Iterable[Any]) -> Iterable[Any]:
    """The objects of a list and the containers they hold."""
    for item in items:
        fields = vars(item) if hasattr(item, "__dict__") else {}
        yield from (item,) if fields or isinstance(item, dict | list) else ()
        yield from (value for value in fields.values() if isinstance(value, dict | list))


def _early_failed(run: Run, call: Call, kwargs: Any, error: BaseException) -> None:
    if _told(run, call, kwargs):
        return
    if isinstance(error, CallCancelled | asyncio.CancelledError):
        give_up(run, call)
    else:
        run.failed(call, error)


# --- joining a stream -----------------------------------------------------------------------------------------------


def replay(call: Call, manager: Any) -> Generator[Any, None, None]:
    """The chunks of a running or finished stream, as they come, and what it said to its callback manager with each.
    A stream that does not begin in time is given up."""
    position = 0
    while True:
        woken = _grown_beyond(call, position)
        if woken is not None:
            until(woken, call.patience_s() if not position else None)
            if not woken.done():
                call.abandon()
            continue
        for name, args, kwargs in call.asides.get(position, ()):
            getattr(manager, name)(*args, **kwargs)
        if position == len(call.chunks):
            return
        position += 1
        yield call.chunks[position - 1]


async def areplay(call: Call, manager: Any) -> AsyncGenerator[Any, None]:
    """As `replay`."""
    position = 0
    while True:
        woken = _grown_beyond(call, position)
        if woken is not None:
            await auntil(woken, call.patience_s() if not position else None)
            if not woken.done():
                call.abandon()
            continue
        for name, args, kwargs in call.asides.get(position, ()):
            await getattr(manager, name)(*args, **kwargs)
        if position == len(call.chunks):
            return
        position += 1
        yield call.chunks[position - 1]


def _grown_beyond(call: Call, position: int) -> Woken | None:
    """None if there is another chunk, or no more will come; else what to wait for."""
    with call.grew:
        if len(call.chunks) > position or call.over:
            return None
        woken = Woken()
        call.wake.append(partial(wake, (woken,)))
        return woken


# --- prefill --------------------------------------------------------------------------------------------------------


def prefill(run: Run, node: Node, bound: Bound, tree: Tree) -> bool:
    """Warm the cache of an engine of ours with the known beginning of a prompt (Ayo, pass 3)."""
    loop = run.host.loop
    name = bound.method.prefill if loop is None else bound.method.aprefill
    warm = getattr(bound.component, name, None) if name else None
    if warm is None:
        return False
    args, kwargs = bound.method.build(bound.component, tree)
    kwargs.pop("run_manager", None)
    work = partial(warm, *args, **kwargs)
    urgency = priorities.of_early(run, node)
    if loop is None:
        threads.spawn(lambda: _prefill_on_thread(run, urgency, work))
    else:
        try:
            loop.call_soon_threadsafe(_prefill_on_loop, run, urgency, loop, work)
        except RuntimeError:  # the loop is closed: the run was abandoned
            return False
    return True


def _prefill_on_thread(run: Run, urgency: engine.Priority, work: Callable[[], Any]) -> None:
    def body() -> None:
        engine.cancel_token.set(run.token)
        engine.priority.set(urgency)
        work()

    try:
        run.entry.copy().run(body)
    except Exception:  # noqa: BLE001 - a prefill is only a hint; the demand meets the engine's error itself
        run.counts.failed_prefills += 1
    finally:
        run.prefill_over()


def _prefill_on_loop(
    run: Run, urgency: engine.Priority, loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[Any, Any, int]]
) -> None:
    async def body() -> None:
        engine.priority.set(urgency)
        try:
            await work()
        except Exception:  # noqa: BLE001 - as above
            run.counts.failed_prefills += 1
        finally:
            forget()
            run.prefill_over()

    task = loop.create_task(body(), context=run.entry.copy())
    run.keep(task)
    forget = run.token.on_cancel(partial(_cancel_task, loop, task))


def _cancel_task(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
    with suppress(RuntimeError):  # a closed loop runs nothing any more
        loop.call_soon_threadsafe(task.cancel)
