"""Where the current code runs: in which run, inside which call."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ..trace.record import Visit
from .calls.call import Call
from .run import Run
from .waits.waiting import Party


class Scope(NamedTuple):
    """Where the current code runs: in which run, inside which call, early or as the program's own. Several are made for
    every call of the program."""

    run: Run
    visit: Visit | None = None
    """The framework node that is running, this time."""
    call: Call | None = None
    early: bool = False
    called: str = ""
    """Where the program called what its framework does here, in a task or thread of its own."""

    def called_at(self, site: str) -> Scope:
        """The same, where the program called this. Not by `_replace`, which takes three times as long."""
        return Scope(self.run, self.visit, self.call, self.early, site)

    @property
    def within(self) -> str:
        """The name of the framework node, of the outermost one; empty outside of any."""
        return self.visit.outermost.node if self.visit is not None else ""


class _CurrentScope:
    """The scope of the current code. None in a run that is gone: its code goes on as without Accel."""

    def __init__(self) -> None:
        self._held: ContextVar[Scope | None] = ContextVar("accel_scope", default=None)
        self.set, self.reset = self._held.set, self._held.reset

    def get(self) -> Scope | None:
        here = self._held.get()
        return None if here is None or here.run.gone else here


scope = _CurrentScope()
T = TypeVar("T")
C = TypeVar("C", contravariant=True)


class _Variable(Protocol[C]):
    def set(self, value: C, /) -> Token[Any]: ...

    def reset(self, token: Token[Any], /) -> None: ...


class Within(Generic[T]):
    """Around code for which a variable has a value. No generator, as every program passes here with each of its steps,
    also one that rests."""

    __slots__ = ("_token", "_value", "_variable")

    def __init__(self, variable: _Variable[T], value: T) -> None:
        self._variable, self._value = variable, value

    def __enter__(self) -> None:
        self._token = self._variable.set(self._value)

    def __exit__(self, *_: object) -> None:
        self._variable.reset(self._token)


of_no_run: ContextVar[Party | None] = ContextVar("accel_of_no_run", default=None)
"""The call that the current code is inside of, where it belongs to no run (`unscoped`)."""
