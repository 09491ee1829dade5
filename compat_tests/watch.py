"""Which run of a program each call that reached a component belongs to, and whether anybody is still inside one."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from compat_tests.probe import Call, Probe

TURN: ContextVar[Turn | None] = ContextVar("turn", default=None)
"""Set before each run. Early calls run in a copy of the run's context: so it tells whose they are, however late."""

IDLE_S = 60.0


class Turn(NamedTuple):
    """One call of a program: a request, or what goes on after it was interrupted."""

    tenant: str
    position: int
    number: int


class Reached(NamedTuple):
    """A call that reached a component. The turn is None where a thread of the program has no context."""

    turn: Turn | None
    call: Call


@dataclass(eq=False)
class Watch(Probe):
    """A probe that knows about turns, and about components with a limit on calls."""

    reached: list[Reached] = field(default_factory=list)
    limits: dict[str, list[str]] = field(default_factory=dict)
    """By component, the permissions that its rate limiter gave and that no call has used."""

    keys: set[tuple[Turn | None, str, str | None]] = field(default_factory=set)
    """In which turn a component was called with which key; of a kept stream's turn that may be long ago."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.left = threading.Condition(self.lock)

    def enter(self, component: str, text: str, **kind: Any) -> Call:
        call = super().enter(component, text, **kind)
        with self.lock:
            self.reached.append(Reached(TURN.get(), call))
            self.keys.add((TURN.get(), call.component, call.key))
            unused = self.limits.get(component)
            if unused is not None and not unused:
                self.violations.append(f"{component} was called without its rate limiter's permission: {text!r}")
            elif unused:
                unused.pop()
        return call

    def leave(self, call: Call, answer: str | None) -> None:
        super().leave(call, answer)
        with self.left:
            self.left.notify_all()

    def idle(self) -> bool:
        """Waits until nobody is inside a component: a thread can't be cancelled, and may still be there."""
        with self.left:
            return self.left.wait_for(lambda: not any(self.inside.values()), IDLE_S)

    def forget(self) -> None:
        self.calls.clear()
        self.reached.clear()
