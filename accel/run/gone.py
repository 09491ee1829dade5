"""Runs that are left behind: open when a process was forked, in the child; open when the interpreter ends.

Their code goes on as without Accel. Nobody else does: threads that answered them are no more, or are about to stand
still with whatever locks they hold. So nothing here waits, and nothing touches what the parent goes on using.
"""

from __future__ import annotations

import atexit
import gc
import threading
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

from .. import forks, intercept
from ..intercept import Method
from ..ir import Graph
from ..record import Visit
from . import gates, threads
from .call import Call
from .calls import Calls
from .run import OPEN, Run

_parents: list[object] = []
"""What the child must not finalise: it would close what the parent uses."""


class Gone(Run):
    """Takes the class of a run that is left behind: what is under way in it ends without effect."""

    gone = True

    def enter(self, node: str, value: Any) -> Visit:
        return Visit(node, 0, None, 0.0)

    def leave(self, visit: Visit, value: Any) -> None:
        return

    def fail(self, visit: Visit, error: BaseException) -> None:
        return

    def silence(self) -> None:
        return

    def finish(self, completed: bool) -> None:
        return

    def enter_component(self, call: Call) -> None:
        return

    async def aenter_component(self, call: Call) -> None:
        return

    @contextmanager
    def inside(self, call: Call) -> Generator[None, None, None]:
        yield

    def leave_component(self, call: Call) -> None:
        return

    def done(self, call: Call, result: Any) -> None:
        return

    def failed(self, call: Call, error: BaseException) -> None:
        return

    def failed_join(self, call: Call) -> None:
        return

    def retire(self, call: Call, method: Method, result: Any) -> Any:
        return method.copy(result) if method.copy is not None else result

    def feed(self, call: Call, chunk: Any, method: Method | None = None) -> None:
        call.chunks.append(chunk)

    def disqualify(self, call: Call, reason: str) -> None:
        return

    def note_miss(self, name: str) -> None:
        return

    def stopped(self) -> None:
        return


def leave(run: Run) -> None:
    """Demands that have joined an early call make their own."""
    run.__class__ = Gone
    run.closed = run.quiet = True
    run.graph, run.forecast, run.announced = Graph(), None, []
    calls, run.calls = run.calls, Calls(run._lock, run.counts)
    run.calls.accepting = False
    for call in calls.left_behind():
        if not threads.ended:
            # Of the parent's: those who wait for them are not here, and their locks may be held for ever.
            call.wake = []
            call.future._condition = threading.Condition()
        if call.early and not call.over:
            call.state = "dropped"
            if not threads.ended:
                call.future = Future()
            call.future.cancel()
            with suppress(RuntimeError):  # a closed loop wakes nobody
                call.close()


@forks.in_child
def _in_child() -> None:
    intercept.forget_runs()
    for run in list(OPEN):
        _parents.append(run)
        leave(run)
    OPEN.clear()


@atexit.register
def _at_end() -> None:
    threads.end()
    intercept.forget_runs()
    left = list(OPEN)
    for run in left:
        leave(run)
    gates.forget_all()
    if left:
        del run, left
        gc.collect()  # what their circles hold of the program is finalised in its own order, like the rest
