"""Parts of prompts that are known before the rest: the cache of an engine of ours, or of a server that is declared to
keep them (`served`), is warmed with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from ... import engine
from ...graph.ir import Node
from ...process import threads
from ...text.values import Tree
from .. import priorities
from ..run import Run
from ..settings import Bound
from ..waits.endpoints import TurnedAway
from . import served


def prefill(run: Run, node: Node, tree: Tree) -> bool:
    """Warm the cache of an engine with the known beginning of a prompt (Ayo, pass 3), one at a time, unless it has it;
    False if it can't be now."""
    bound = run.bindings.now(node, {})
    if bound is not None and _engine_of(run, bound) is None and not served.pays(run, bound, tree):
        return True
    with run.lock:
        if bound is None or run.prefilling:
            return False
        run.prefilling += 1
    started = _start(run, node, bound, tree)
    run.counts.prefills += started
    if not started:
        run.prefilling = 0
    return started


def warms(run: Run, bound: Bound) -> bool:
    """Whether there is a cache to warm; none for services that may keep no cache, or keep it at a price, nor while the
    run's batch keeps the engines busy."""
    member = run.calls.batch
    if member is not None and member.batch.crowded:
        return False
    return _engine_of(run, bound) is not None or served.method_of(run, bound) is not None


def least_tokens(run: Run, node: Node, bound: Bound | None) -> int:
    """How much more must be known for another part to pay."""
    own = bound is None or _engine_of(run, bound) is not None
    return node.schedule.prefill_tokens if own else max(served.LEAST_TOKENS, node.schedule.prefill_tokens)


def _engine_of(run: Run, bound: Bound) -> Callable[..., Any] | None:
    """What warms the cache of an engine of ours."""
    name = bound.method.prefill if run.host.loop is None else bound.method.aprefill
    return getattr(bound.component, name, None) if name else None


def _over(run: Run) -> None:
    with run.lock:
        run.prefilling -= 1
    run.stopped()


def _start(run: Run, node: Node, bound: Bound, tree: Tree) -> bool:
    loop = run.host.loop
    warm = _engine_of(run, bound)
    if warm is None:
        method = served.method_of(run, bound)
        asking = served.asking(run, node, bound, method, tree) if method is not None else None
        if method is None or asking is None:
            return False
        loop, work = loop if method.is_async else None, asking.work()
    else:
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
    except (Exception, TurnedAway):  # noqa: BLE001 - only a hint; the demand meets the engine's error itself
        run.counts.failed_prefills += 1
    finally:
        _over(run)


def _prefill_on_loop(
    run: Run, urgency: engine.Priority, loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[Any, Any, int]]
) -> None:
    async def body() -> None:
        engine.priority.set(urgency)
        try:
            await work()
        except (Exception, TurnedAway):  # noqa: BLE001 - as above
            run.counts.failed_prefills += 1
        finally:
            forget()
            _over(run)

    task = loop.create_task(body(), context=run.entry.copy())
    run.keep(task)
    forget = run.token.on_cancel(partial(_cancel_task, loop, task))


def _cancel_task(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
    with suppress(RuntimeError):  # a closed loop runs nothing any more
        loop.call_soon_threadsafe(task.cancel)
