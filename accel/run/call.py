"""One primitive of a run: issued early, demanded by the program, or both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, Literal

from .. import forks
from ..clock import now_s
from ..components import kind_of
from ..engine import DEMAND, CancelToken, Priority
from ..intercept import Method
from ..record import CallRecord
from ..values import Tree
from .ambient import Ambient
from .gates import leave
from .waiting import Party, patience_s

State = Literal["queued", "running", "done", "failed", "dropped"]


Aside = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A call of a callback manager: method and arguments."""


class Call(Party):
    """A primitive with its input, from issue or demand to retirement. Guarded by the run's lock."""

    def __init__(
        self,
        method: Method,
        component: Any,
        identity: Hashable,
        input: Tree,
        key: Hashable,
        ambient: Ambient,
        early: bool,
    ) -> None:
        super().__init__(component)
        self.outer: Call | None = None
        self.method = method
        """The method that runs; the demand may come through another one of the same family."""
        self.identity = identity
        self.input = input
        self.key = key
        self.ambient = ambient
        self.early = early
        self.state: State = "queued"
        self.demanded = False
        self.joined = False
        """The demand was answered by this early call."""
        self.fed = False
        """Its value fed predictions although the program made its own call (invariant 5)."""
        self.future: Future[Any] = Future()
        self.chunks: list[Any] = []
        self.asides: dict[int, list[Aside]] = {}
        """What an early stream told the stand-in of its callback manager, by the number of the chunk it came with."""
        self.grew = forks.lock()
        self.wake: list[Callable[[], None]] = []
        """Called once when the next chunk or the end comes."""
        self.delta = method.delta
        self.token = CancelToken()
        self.priority: Priority = DEMAND
        """The engines it waits for look at it; an early call's may be raised."""
        self.task: asyncio.Task[Any] | None = None
        self.epoch = -1
        self.resource: object = None
        self.output: Tree = None
        self.record: CallRecord | None = None
        self.issued_for = ""
        """The call site that an early call was issued for."""
        self.bound: tuple[str, int] | None = None
        """Node and position in the e-graph."""
        self.partial_posted = False
        self.tells = ""
        """How it told listeners of itself from within (`nested.tells`)."""
        self.hindered = False
        """Something it asked for was refused, because it is early: its result is not what the program would get."""
        self.only_feeds = False
        """The program's own call will be made all the same."""
        self.abandon: Callable[[], None] = lambda: None
        """Give it up: whoever waits for it does without. Set once it is early."""
        self.waiters = 0
        """Demands that wait for it at the moment."""
        self.substituted = False
        """A demand that is being served with the streaming method, in place of the one that was called."""
        self.nested = False
        """Made by an early call, not issued for itself: unused, it is part of that call's waste."""
        self.issued_s: float | None = None
        self.ended_s: float | None = None
        self.tokens = (0, 0)

    @property
    def site(self) -> str:
        """Where the program made it, or is expected to."""
        return self.record.site if self.record is not None else self.issued_for

    @property
    def wanted(self) -> bool:
        """The program waits for it, or for the call that made it."""
        return self.demanded or (self.outer is not None and self.outer.wanted)

    @property
    def over(self) -> bool:
        return self.state in ("done", "failed", "dropped")

    @property
    def text(self) -> str:
        """What a stream has produced so far."""
        return "".join(map(self.delta, list(self.chunks))) if self.delta is not None else ""

    def note_asides(self, manager: Any) -> None:
        """Before the next chunk is fed, and after the last one."""
        said = manager.take() if hasattr(type(manager), "take") else []
        if said:
            self.asides[len(self.chunks)] = said

    def feed(self, chunk: Any) -> None:
        with self.grew:
            self.chunks.append(chunk)
            self._notify()

    def leave(self) -> None:
        """It is no longer inside its component. Idempotent."""
        leave(self)

    def patience_s(self) -> float:
        """How long a demand waits for it yet."""
        since = self.issued_s if self.issued_s is not None else now_s()
        return max(0.0, since + patience_s(kind_of(self.component)) - now_s())

    def close(self) -> None:
        """Wake whoever replays the chunks: there are no more."""
        with self.grew:
            self._notify()

    def _notify(self) -> None:
        waiting, self.wake = self.wake, []
        for wake in waiting:
            wake()

    def again(self, record: CallRecord) -> Call:
        """A further demand answered by this shared result."""
        other = Call(self.method, self.component, self.identity, self.input, self.key, self.ambient, early=False)
        other.state, other.future, other.output = self.state, self.future, self.output
        other.demanded = other.joined = True
        other.record, other.issued_s, other.tokens = record, self.issued_s, self.tokens
        other.priority = self.priority
        return other
