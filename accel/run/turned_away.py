"""Calls that their endpoint turns away.

An early one ends at once: it neither waits nor tries again, and answers nobody. One of the program's that was sent
beside early ones is made again when there is room, as without these it might not have been turned away. Any other is
the program's affair, and its client's.
"""

from __future__ import annotations

from ..parts import http
from .call import Call
from .endpoints import TurnedAway
from .gates import gate_of
from .nested import hindered
from .run import Run
from .scope import scope


def _turned_away(began_s: float, after_s: float) -> None:
    """Somebody's request was."""
    here = scope.get()
    if here is None or here.call is None or here.call.state in ("done", "failed"):
        return  # what a call has begun may go on after it, in its context
    crowded = note(here.run, here.call, began_s, after_s)
    if here.early:
        raise TurnedAway(str(hindered(here.call, "its endpoint has turned it away")))
    if crowded and here.call.makes_room:
        raise TurnedAway("the endpoint has turned a call away, and early ones are there")


http.turned_away = _turned_away


def note(run: Run, call: Call, began_s: float, after_s: float = 0.0) -> bool:
    """A call was turned away that had been sent then; whether early ones were at its endpoint meanwhile."""
    endpoint = gate_of(call.component).endpoint
    for each in call.around():
        each.turned_away = True
    if endpoint.turned_away(began_s, after_s):
        run.plan.says.limited(call.component, endpoint.limit or 0)
    return endpoint.was_crowded(began_s)


def by_error(run: Run, call: Call, error: BaseException, began_s: float) -> bool:
    """Whether an error of a call that began then says that it was turned away, beside early ones if it is the
    program's. Of clients that Accel does not see sending, nothing else does."""
    if isinstance(error, TurnedAway):
        return True
    return http.says_so(error) and (note(run, call, began_s) or call.early)
