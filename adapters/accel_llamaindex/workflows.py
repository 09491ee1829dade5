"""Workflows and agents: a run goes on while the handler that `run` gives does. Their steps are opaque; their calls are
seen.

A step that waits for a person, or that is tried again, makes its calls anew: such workflows go on as without Accel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from llama_index.core.workflow import Workflow
from workflows.context import Context, serializers
from workflows.errors import WorkflowValidationError
from workflows.handler import WorkflowHandler
from workflows.plugins import basic
from workflows.runtime.types import plugin, results

from accel.parts.methods import patches
from accel.run.demands.streams import inside
from accel.run.plans.plan import Plan
from accel.run.run import Run
from accel.run.scope import scope
from accel.run.unfollowed import Unfollowed
from accel.trace.ambient import FRAMEWORK_VARS

FRAMEWORK_VARS.update(
    value for module in (serializers, basic, plugin, results) for value in vars(module).values()
    if isinstance(value, ContextVar)
)  # fmt: skip
_WAIT = "a step that waits for an event"
"""Stands among the barriers of a plan for steps that tell no sooner than when they run."""
_watching: set[asyncio.Task[None]] = set()


def started(run: Run | Unfollowed, start: Callable[[], WorkflowHandler]) -> WorkflowHandler:
    """The handler of a workflow that goes on in this run."""
    try:
        with inside(run):
            handler = start()
    except BaseException:
        run.finish(False)
        raise
    task = asyncio.ensure_future(_watch(run, handler))
    _watching.add(task)
    task.add_done_callback(_watching.discard)
    return handler


async def _watch(run: Run | Unfollowed, handler: WorkflowHandler) -> None:
    completed = False
    try:
        await handler.stop_event_result()
        completed = not has_waited(run.plan)
    except Exception:  # noqa: BLE001  it is for whoever awaits the handler
        return
    finally:
        run.finish(completed)


def watch_waits() -> None:
    """Hear of steps that wait for what somebody sends. Idempotent."""
    patches.wrap(Context, "wait_for_event", _waits)


def _waits(wrapped: Callable[..., Any], context: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Nothing is issued past it, in this run or a later one."""
    here = scope.get()
    if here is not None and not here.early:
        here.run.plan.note_barrier(_WAIT, {})
        here.run.silence()
    return wrapped(*args, **kwargs)


def has_waited(plan: Plan) -> bool:
    """Whether a step ever waited for an event in the middle of its work."""
    return _WAIT in plan.barriers


def may_follow(workflow: Workflow, plan: Plan) -> bool:
    """Whether its steps run once, and none of them waits for a person. One that is not valid says so when it runs."""
    if any(step._step_config.retry_policy for step in workflow._get_steps().values()):
        what = "a workflow with a step that is tried again (retry_policy) is not followed"
        plan.says.stands_down("retries", what, "try again inside the step, where it calls what may fail")
        return False
    try:
        return not workflow.validate()
    except WorkflowValidationError:
        return False
