"""Running calls early: on Accel's daemon threads, or on the run's own loop where the leaf is a coroutine.

An early call sees a copy of the run's entry context, a cancel token and a priority behind every demand.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Iterable
from typing import Any

from ... import engine
from ...errors import CallCancelled
from ...graph.ir import Node
from ...graph.rules import (
    BUSY,
    CHANGED,
    FORMER,
    LATE,
    MUTABLE,
    NO_TWIN,
    OVERLAID,
    UNBUILT,
    UNHEARD,
    UNLOADED,
    UNVOUCHED,
    Reason,
)
from ...parts.components import called_plainly, facts_of, note_talks, note_told, talks, tells_within
from ...parts.identities.clients import is_closed
from ...parts.listed.table import listed
from ...parts.methods.epochs import epoch, resource_of
from ...parts.methods.methods import METHODS, Method
from ...parts.methods.patches import has_leaf, original, stands
from ...parts.network.http import causes
from ...process import threads
from ...text.comparable import is_comparable
from ...text.copies import hands_back
from ...text.objects import is_a, own
from ...text.values import Tree, exactly
from ...trace import homed
from ...trace.ambient import set_since
from .. import priorities
from ..calls.call import Call
from ..gains.reliance import UNSURE, Asked
from ..run import Run
from ..scope import Scope, scope
from ..settings import Bound, Key
from ..waits.gates import gate_of
from ..waits.waiting import loop_here
from . import lent
from .nested import give_up
from .turned_away import by_error


def could_stream(method: Method, component: Any) -> Method | None:
    """The streaming method of the same family and colour, if the component has it, and it may stand in for this one."""
    twin = METHODS.get((method.family, method.streamed))
    if twin is None or not has_leaf(component, twin.name):
        return None
    return twin if twin is method or may_stand_in(component, twin, method) else None


def streaming_twin(run: Run, method: Method, component: Any) -> Method | None:
    """The same, if merged chunks are equal."""
    return could_stream(method, component) if run.bindings.facts(component).streams_equal else None


def may_stand_in(component: Any, other: Method, method: Method) -> bool:
    """Whether a call through one method may answer a demand of another: neither is heard from within, and somebody
    vouches that coroutines give the same."""
    if method.is_async != other.is_async and not facts_of(component).twins:
        return False
    if (method.streamed == other.name) and talks(component, method.name):
        return False
    return tells_within(component, method.name) == "" and not tells_within(component, other.name)


def choose_method(run: Run, bound: Bound, node: Node) -> Method | Reason:
    """The leaf to run early: the one the program is going to call, or one whose result may stand for it; or why there
    is none.

    Where plain calls of a component that takes one at a time block its loop, they could not wait for a coroutine on it:
    then a thread of ours enters it.
    """
    method = bound.method
    narrow = (bound.facts.concurrency or 1) == 1
    if method.is_async and (run.host.loop is None or (narrow and called_plainly(bound.component))):
        sync = METHODS.get((method.family, method.sync_name))
        if sync is None or not has_leaf(bound.component, sync.name) or not may_stand_in(bound.component, sync, method):
            return NO_TWIN()
        method = sync
    if node.schedule.needs_partial or run.host.streaming:
        twin = streaming_twin(run, method, bound.component)
        if twin is not None:
            return twin
    return method if _is_called_so(run, node, method, bound.component) else UNHEARD()


def _is_called_so(run: Run, node: Node, method: Method, component: Any) -> bool:
    """Whether the program calls a component by this method in a run like this one: frameworks have models stream where
    somebody listens, and then alone. Until such a run has shown it, the method of the others says nothing."""
    if run.bindings.has_shown(node.site):
        return True
    if method.kind in ("stream", "astream"):
        return run.host.streaming or (node.site, True) not in run.plan.used.methods
    streamed = METHODS.get((method.family, method.streamed))
    return not run.host.streaming or streamed is None or not has_leaf(component, streamed.name)


def no_room(bound: Bound) -> Reason | None:
    """Why a further early call could not enter the component now."""
    gate = gate_of(bound.component)
    return gate.endpoint.holds() or (None if gate.has_room(bound.facts.concurrency or 1) else BUSY())


def issue(run: Run, node: Node, bound: Bound | None, tree: Tree, key: Key, asked: Asked = UNSURE) -> Call | Reason:
    """Start an early call for a complete, allowed input, predicted with this key; or say why it can't be. `bound`: what
    the node's calls go to at this moment; `asked`: what of, where the program is said to make it."""
    changes = run.identities.changes(bound.component) if bound is not None else 0
    if bound is None or bound.whose != key[:2] or not run.bindings.as_used(bound.component, bound.identity):
        run.bindings.renew()
        return CHANGED()
    method = choose_method(run, bound, node)
    if isinstance(method, Reason):
        return method
    if not all(stands(bound.component, name) for name in {bound.method.name, method.name}):
        return OVERLAID()
    if not bound.facts_now.pure:  # since the run first used it
        return UNVOUCHED(component=type(bound.component).__name__, why=bound.facts_now.reason)
    if not run.plan.program.stands(node, run.host.references):
        return FORMER()
    try:
        args, kwargs = method.build(bound.component, tree)
    except LookupError:
        return UNLOADED()
    except Exception:  # noqa: BLE001  # a class of the program's that can't be made of its fields
        return UNBUILT()
    if not _is_input(method, bound.component, args, kwargs, key):
        return UNBUILT()
    if not is_comparable(tree):
        return MUTABLE()
    call = Call(method, bound.component, bound.identity, tree, key, run.ambient, standing="early")
    call.issued_for, call.asked = node.site, asked
    call.keys, call.changes = bound.keys, changes
    if method.op == "searching":
        call.resource = resource_of(bound.component)
        call.epoch = epoch(call.resource)
        call.only_feeds = not (bound.facts.readonly or bound.facts.owned)
    call.priority = priorities.of_early(run, node)
    call.loop = run.host.loop if method.is_async else None
    lender = run.calls.borrow(call, bound.facts)
    if lender is not None:
        return lent.issue(run, node, call, lender)
    if not gate_of(bound.component).try_enter_early(call, bound.facts.concurrency or 1):
        run.calls.withdraw(call)
        return no_room(bound) or BUSY()
    if not run.calls.hold(call):
        call.leave()
        run.calls.withdraw(call)
        return LATE()
    run.plan.says.issued(run.name, node, bound.component)
    if method.kind in ("sync", "stream"):
        if not threads.spawn(lambda: _on_thread(run, call, args, kwargs)):
            run.calls.drop(call)
            call.leave()
            return BUSY()
    else:
        loop = run.host.loop
        assert loop is not None
        try:
            if loop_here() is loop:
                _on_loop(run, call, args, kwargs, looked=loop.get_task_factory() is None)
            else:
                loop.call_soon_threadsafe(lambda: _on_loop(run, call, args, kwargs))
        except RuntimeError:  # the loop is closed: the run was abandoned
            run.calls.drop(call)
            call.leave()
    return call


def _is_input(method: Method, component: Any, args: Any, kwargs: Any, key: Any) -> bool:
    """Whether a call with these arguments is the one with this key."""
    return bool(exactly(method.seen_input(component, args, kwargs)) == key[-1])


def _ended(run: Run, call: Call) -> None:
    """An early call has left its component, and others may take the place; unless the program has taken it over."""
    call.task = None
    if call.early:
        call.leave()
    run.stopped()


def _enter_context(run: Run, call: Call) -> None:
    homed.bring(run.entry, run.host.thread)
    scope.set(Scope(run, call=call, early=True))
    run.host.set_config()
    engine.cancel_token.set(call.token)
    engine.priority.set(call.priority)


def _on_thread(run: Run, call: Call, args: Any, kwargs: Any) -> None:
    try:
        if threads.before_call is not None:
            threads.before_call()
        if run.calls.begin(call) and not _changed(run, call, run.plan.keys.note(call.component)):
            run.entry.copy().run(_body, run, call, args, kwargs)
    finally:
        _ended(run, call)


def _body(run: Run, call: Call, args: Any, kwargs: Any) -> None:
    _enter_context(run, call)
    leaf_method = original(call.component, call.method)
    try:
        if call.method.kind == "stream":
            for chunk in leaf_method(*call.method.handed(args), **kwargs):
                if call.state == "dropped" or (not call.chunks.parts and _has_edited(run, call, args, kwargs)):
                    return
                call.chunks.note_asides(kwargs.get("run_manager"))
                run.feed(call, chunk)
            result = call.method.merged(call.chunks.parts)
        else:
            result = leaf_method(*call.method.handed(args), **kwargs)
    except BaseException as error:  # noqa: BLE001 - a failure is the demand's, if one has joined; else it is dropped
        _early_failed(run, call, kwargs, error)
    else:
        _early_done(run, call, args, kwargs, result)


def _on_loop(run: Run, call: Call, args: Any, kwargs: Any, looked: bool = False) -> None:
    """`looked`: at the component, in this turn of the loop, in which nothing of the program's has happened since."""
    if not run.calls.begin(call) or (not looked and _changed(run, call, run.plan.keys.note(call.component))):
        _ended(run, call)
        return

    async def body() -> None:
        _enter_context(run, call)
        leaf_method = original(call.component, call.method)
        try:
            if call.method.kind == "astream":
                stream = leaf_method(*call.method.handed(args), **kwargs)
                async for chunk in await stream if call.method.opens else stream:
                    if not call.chunks.parts and _has_edited(run, call, args, kwargs):
                        return
                    call.chunks.note_asides(kwargs.get("run_manager"))
                    run.feed(call, chunk)
                result = call.method.merged(call.chunks.parts)
            else:
                result = await leaf_method(*call.method.handed(args), **kwargs)
        except BaseException as error:
            _early_failed(run, call, kwargs, error)
            if is_a(error, asyncio.CancelledError):
                raise
        else:
            _early_done(run, call, args, kwargs, result)
        finally:
            _ended(run, call)

    assert call.loop is not None
    task = call.loop.create_task(body(), context=run.entry.copy())
    run.keep(task)
    call.task = task if not task.done() else None
    if call.state == "dropped":
        call.loop.call_soon(task.cancel)  # by another thread, just now; a task that never began would not end


def _early_done(run: Run, call: Call, args: Any, kwargs: Any, result: Any) -> None:
    if _told(run, call, kwargs):
        return
    if _changed(run, call) or _leaves_behind(run, call):
        return
    if call.hindered or (result is None and call.chunks.parts):  # chunks that make no result
        give_up(run, call)
        return
    if _has_edited(run, call, args, kwargs):
        return
    if _hands_back(call, result, (*args, *kwargs.values())):
        run.disqualify(
            call,
            "it hands back the objects it was given, and an early call is given copies",
            "give back new objects, if its calls are to be early",
        )
    run.done(call, result, (*args, *kwargs.values()))


def _has_edited(run: Run, call: Call, args: Any, kwargs: Any) -> bool:
    """Whether it has changed what it was given, which the program would see, and go on with. Of the classes of the
    table none does."""
    if listed(type(call.component)) is not None:
        return False
    if _is_input(call.method, call.component, args, kwargs, call.key):
        return False
    run.disqualify(
        call,
        "it changes what it is given, and an early call is given copies",
        "have it change a copy, if its calls are to be early",
    )
    return True


def _told(run: Run, call: Call, kwargs: Any) -> bool:
    """Whether it told somebody of itself, or tried to: then the demand has to make the call."""
    manager = kwargs.get("run_manager")
    if getattr(manager, "looked_at", False):
        call.tells = "reads its callback manager"
    call.chunks.note_asides(manager)
    if call.chunks.asides and not call.chunks.parts:
        note_talks(call.component, call.method.name)
    if call.tells:
        note_told(call.component, call.method.name, call.tells)
        run.calls.drop(call)
    return bool(call.tells)


def _changed(run: Run, call: Call, keys: tuple[str, ...] | None = None) -> bool:
    """Whether the component is another one than when the call was issued, or was seen to be one meanwhile: then the
    answer may be, too, even if it is what it was again when the program makes the call. `keys`: the credentials with
    which it is about to be entered. Once the program has joined the call, what it changes is no more to it than to one
    of its own that is under way."""
    if call.joined_at == call.changes:
        return False
    same = run.identities.of(call.component, call.method.by_object) == call.identity
    if same and run.identities.changes(call.component) == call.changes and keys in (None, call.keys):
        return False
    run.calls.drop(call)
    return True


def _leaves_behind(run: Run, call: Call) -> bool:
    """Whether it set a ContextVar, where the program would not find it: in a context of its own."""
    names = set_since(run.entry, contextvars.copy_context())
    if names:
        run.disqualify(
            call,
            f"its calls set the ContextVar {names[0]}, which a program finds after its own calls alone",
            "have the answer say it, if calls are to be early",
        )
    return bool(names)


def _hands_back(call: Call, result: Any, given: Iterable[Any]) -> bool:
    """Whether a list shares objects with a list that was given, or anything that a declared method gives with anything:
    a program may change one and expect the other to have changed."""
    if call.method.direct:
        return listed(type(call.component)) is None and hands_back(result, given)
    if not is_a(result, list | tuple):
        return False
    shared = {id(held) for value in given if is_a(value, list | tuple) for held in _mutable(value)}
    return any(id(held) in shared for held in _mutable(result))


def _mutable(items: Iterable[Any]) -> Iterable[Any]:
    """The objects of a list and the containers they hold."""
    for item in items:
        fields = own(item) or {}
        yield from (item,) if fields or is_a(item, dict | list) else ()
        yield from (value for value in fields.values() if is_a(value, dict | list))


def _speaks_of_threads(error: BaseException) -> bool:
    """Whether a component says that it may not be called from where early calls are made."""
    return any("thread" in said for each in causes(error) for said in each.args if type(said) is str)


def _early_failed(run: Run, call: Call, kwargs: Any, error: BaseException) -> None:
    if _told(run, call, kwargs):
        return
    if is_closed(call.component):
        run.disqualify(
            call,
            "the program closes its client while others like it are still called",
            "keep one client open for all requests, instead of one for each that is closed after it",
        )
    if not call.method.is_async and _speaks_of_threads(error):
        run.disqualify(
            call,
            "it fails on any thread but the program's own",
            "open what it holds for all threads (SQLite: check_same_thread=False), or with each call",
        )
    away = by_error(run, call, error, call.issued_s or 0.0)
    if away or is_a(error, CallCancelled | asyncio.CancelledError) or not run.failed(call, error):
        give_up(run, call)
    if away:
        run.tell(lambda forecast: forecast.turned_away(call))
