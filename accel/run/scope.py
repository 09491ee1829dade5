"""Where the current code runs: in which run, inside which call."""

from __future__ import annotations

from contextvars import ContextVar, Token
from dataclasses import dataclass

from ..trace.record import Visit
from .call import Call
from .run import Run
from .waiting import Party


@dataclass(frozen=True, slots=True)
class Scope:
    """Where the current code runs: in which run, inside which call, early or as the program's own."""

    run: Run
    visit: Visit | None = None
    """The framework node that is running, this time."""
    call: Call | None = None
    early: bool = False
    called: str = ""
    """Where the program called what its framework does here, in a task or thread of its own."""

    @property
    def within(self) -> str:
        """The name of the framework node, of the outermost one; empty outside of any."""
        return self.visit.outermost.node if self.visit is not None else ""


class _CurrentScope:
    """The scope of the current code. None in a run that is gone: its code goes on as without Accel."""

    def __init__(self) -> None:
        self._held: ContextVar[Scope | None] = ContextVar("accel_scope", default=None)

    def get(self) -> Scope | None:
        here = self._held.get()
        return None if here is None or here.run.gone else here

    def set(self, here: Scope) -> Token[Scope | None]:
        return self._held.set(here)

    def reset(self, token: Token[Scope | None]) -> None:
        self._held.reset(token)


scope = _CurrentScope()
of_no_run: ContextVar[Party | None] = ContextVar("accel_of_no_run", default=None)
"""The call that the current code is inside of, where it belongs to no run (`unscoped`)."""
