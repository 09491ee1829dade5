"""Runs that are left behind: open when a process was forked, in the child; open when the interpreter ends.

Their code goes on as without Accel. Nobody else does: threads that answered them are no more, or are about to stand
still with whatever locks they hold. So nothing here waits for them, but for a moment at the end (`threads.LAST_S`),
and nothing touches what the parent goes on using.
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ..graph.ir import Graph
from ..parts.identities import reads
from ..parts.methods.methods import Method
from ..process import forks, threads
from ..trace.record import Visit
from .calls.call import Call
from .calls.calls import Calls
from .gains.pace import load
from .ongoing import OPEN, open_runs
from .run import Run
from .waits import gates
from .waits.outcome import Outcome
from .waits.steps import Steps

_parents: list[object] = []
"""What the child must not finalise: it would close what the parent uses."""


class Gone(Run):
    """Takes the class of a run that is left behind: what is under way in it ends without effect."""

    gone = True

    def enter(
        self,
        node: str,
        value: Any,
        around: Visit | None = None,
        graph: str = "",
        order: tuple[int, ...] = (),
        outer: Visit | None = None,
        answers: Sequence[Any] = (),
    ) -> Visit:
        return Visit(node, 0, None, 0.0)

    def leave(self, visit: Visit, value: Any) -> None:
        return

    def fail(self, visit: Visit, error: BaseException, pauses: bool = False) -> None:
        return

    def silence(self) -> None:
        return

    def finish(self, completed: bool) -> None:
        return

    def entering(self, call: Call, in_task: bool) -> Steps[None]:
        yield from ()

    def enter_component(self, call: Call) -> None:
        return

    def leave_component(self, call: Call) -> None:
        return

    def done(self, call: Call, result: Any, given: Sequence[Any] = ()) -> None:
        return

    def failed(self, call: Call, error: BaseException) -> bool:
        return True

    def failed_join(self, call: Call, error: BaseException) -> None:
        return

    def retire(self, call: Call, method: Method, result: Any) -> Any:
        return self.calls.handed(call, method, result)

    def feed(self, call: Call, chunk: Any, method: Method | None = None) -> None:
        call.chunks.feed(chunk)

    def disqualify(self, call: Call, reason: str, remedy: str) -> None:
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
    calls, run.calls = run.calls, Calls(run.lock, run.counts)
    run.calls.accepting = False
    for call in calls.left_behind():
        if not threads.ended:
            # Of the parent's: those who wait for them are not here, and what they hold may be held for ever.
            call.chunks.forget_waiting()
        if call.early and not call.over:
            call.happens("drop")
            if not threads.ended:
                call.outcome = Outcome()
            call.outcome.drop()
            with suppress(RuntimeError):  # a closed loop wakes nobody
                call.chunks.close()


@forks.in_child
def _in_child() -> None:
    load.forget_runs()
    for run in open_runs():
        _parents.append(run)
        leave(run)
    OPEN.clear()


@atexit.register
def _at_end() -> None:
    threads.end()
    load.forget_runs()
    left = open_runs()
    for run in left:
        leave(run)
    gates.forget_all()
    reads.forget_all()
    if left:
        del run, left
        gc.collect()  # what their circles hold of the program is finalised in its own order, like the rest
