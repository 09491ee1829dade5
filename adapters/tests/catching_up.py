"""Letting early calls catch up with the program: without it, who comes first is a matter of threads."""

from __future__ import annotations

from concurrent.futures import Future, wait
from typing import Any

from accel.run.ongoing import followed
from accel.run.scope import scope
from accel.run.waits.waiting import Woken

WAIT_S = 30.0


def catch_up() -> None:
    """In a node, or in a call that the program makes: everything that may be issued by now was, and what of it runs on
    threads is over. (What runs on a loop may be waiting for this very thread.)"""
    here = scope.get()
    if here is None or here.early:
        return
    before: list[Any] | None = None
    while before != (early := _early(here.run)):
        assert not wait([over(call) for call in early], WAIT_S).not_done
        before = early


def _early(run: Any) -> list[Any]:
    assert followed(WAIT_S)
    return [call for call in run.calls.all() if call.early and call.loop is None]


def over(call: Any) -> Future[None]:
    """Resolved when it is."""
    end, woken = Future[None](), Woken()
    woken.tell(lambda _: end.set_result(None))
    call.outcome.wake(woken)
    return end
