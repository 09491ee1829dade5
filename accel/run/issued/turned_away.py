"""Calls that their endpoint turns away.

An early one ends at once: it neither waits nor tries again, and answers nobody. One of the program's that was sent
beside early ones is made again when there is room, as without these it might not have been turned away. Any other is
the program's affair, and its client's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...parts.network import http
from ...process.clock import now_s
from ..calls.call import Call
from ..run import Run
from ..scope import of_no_run, scope
from ..waits.endpoints import TurnedAway
from ..waits.gates import gate_of, making_room
from ..waits.steps import Do, Steps, meant
from ..waits.waiting import Party
from .nested import hindered


def _turned_away(began_s: float, after_s: float) -> None:
    """Somebody's request was."""
    here = scope.get()
    if here is None:
        party = of_no_run.get()
        if party is not None and noted(party, began_s, after_s) and party.makes_room:
            raise TurnedAway(_BESIDE)
        return
    if here.call is None or here.call.state in ("done", "failed"):
        return  # what a call has begun may go on after it, in its context
    crowded = note(here.run, here.call, began_s, after_s)
    if here.early:
        raise TurnedAway(str(hindered(here.call, "its endpoint has turned it away")))
    if crowded and here.call.makes_room:
        raise TurnedAway(_BESIDE)


_BESIDE = "the endpoint has turned a call away, and early ones are there"
http.turned_away = _turned_away


def _answers_call() -> bool:
    here = scope.get()
    return here is not None and here.call is not None


http.answers_call = _answers_call


def _withholds() -> bool:
    here = scope.get()
    return here is not None and here.early and here.call is not None


def _session_opened() -> None:
    """The program's own call is to open it, in its turn."""
    here = scope.get()
    if here is not None:
        raise TurnedAway(str(hindered(here.call, "its answer opens a session")))  # which no client tries again


http.withholds, http.session_opened = _withholds, _session_opened


def note(run: Run, call: Call, began_s: float, after_s: float = 0.0) -> bool:
    """A call was turned away that had been sent then; whether early ones were at its endpoint meanwhile."""

    def lowered(limit: int) -> None:
        run.plan.says.limited(call.component, limit)

    return noted(call, began_s, after_s, lowered)


def noted(party: Party, began_s: float, after_s: float, lowered: Callable[[int], None] | None = None) -> bool:
    """As `note`, of whatever call. `lowered`: told how many calls at a time the endpoint takes, if that is new."""
    endpoint = gate_of(party.component).endpoint
    for each in party.around():
        each.turned_away = True
    if endpoint.turned_away(began_s, after_s) and lowered is not None:
        lowered(endpoint.limit or 0)
    return endpoint.was_crowded(began_s)


def by_error(run: Run, call: Call, error: BaseException, began_s: float) -> bool:
    """Whether an error of a call that began then says that it was turned away, beside early ones if it is the
    program's. Of clients that Accel does not see sending, nothing else does."""
    if isinstance(error, TurnedAway):
        return True
    return http.says_so(error) and (note(run, call, began_s) or call.early)


def begun_first(ask: Callable[[], Any], *begun: Any) -> Callable[[], Any]:
    """What gives a stream that has been begun, and then asks for it anew, as often as it is turned away."""
    left = list(begun)
    return lambda: left.pop() if left else ask()


def asked(
    party: Party,
    ask: Callable[[], Any],
    in_task: bool,
    was_turned_away: Callable[[BaseException, float], bool],
    lost: Callable[[float], None],
) -> Steps[Any]:
    """What a component gives to a call of the program's. If it turns that away beside early ones, it is asked again
    when these have made room, and for the last time when they don't. `was_turned_away`: whether an error of a call that
    began then says so; `lost`: told the seconds that this took."""
    began_s = now_s()
    while party.makes_room:
        try:
            result = yield Do(ask)
            party.makes_room = False
            return result
        except BaseException as error:
            if not was_turned_away(meant(error), began_s):
                raise
            party.makes_room = yield from making_room(party, in_task)
        lost_s = now_s() - began_s
        began_s += lost_s
        lost(lost_s)
    return (yield Do(ask))
