"""An early call that need not be made: another run of the batch makes it, or has made it."""

from __future__ import annotations

from ...graph.ir import Node
from ...graph.rules import BUSY, LATE, Reason
from ..calls.call import Call
from ..run import Run
from ..waits.waiting import Woken, begin, end
from .nested import give_up


def issue(run: Run, node: Node, call: Call, lender: Call) -> Call | Reason:
    """Give an early call what the lender gives, once it does; or say why not."""
    call.lender = lender
    call.loop = None if lender.over else lender.loop  # a demand may wait only where it may wait for the lender
    if not run.calls.hold(call):
        return LATE()
    run.calls.begin(call)
    run.plan.says.issued(run.name, node, call.component)
    if not _wait(run, call, lender):
        run.calls.drop(call)
        return BUSY()
    return call


def _wait(run: Run, call: Call, lender: Call) -> bool:
    woken = Woken()
    if not lender.outcome.over and not begin(call, lambda: (lender,), woken):
        return False
    woken.tell(lambda _: _woken(run, call, lender, woken))
    lender.lent(+1)
    lender.outcome.wake(woken)
    return True


def _woken(run: Run, call: Call, lender: Call, woken: Woken) -> None:
    """Whoever wakes may hold the lender's run's lock, so that nothing is done here that takes another's."""
    lender.lent(-1)
    end(call, woken)
    run.inbox.post(lambda: _look(run, call, lender))


def _look(run: Run, call: Call, lender: Call) -> None:
    """The lender is over, or something changed for the call."""
    kept = lender.given
    if call.over:
        return
    if not lender.outcome.over:
        if not _wait(run, call, lender):
            give_up(run, call)
        return
    hand_on = call.method.hands_on
    if kept is None or hand_on is None:
        give_up(run, call)
    else:
        call.took_s = kept.took_s
        run.done(call, hand_on(kept.outcome.result()))
        call.loop = None
    run.stopped()
