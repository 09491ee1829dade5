"""One primitive of a run: issued early, demanded by the program, or both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal

from ...engine import DEMAND, CancelToken, Priority
from ...parts.components import kind_of
from ...parts.methods.methods import Method
from ...process import forks
from ...process.clock import now_s
from ...text.values import Tree
from ...trace.ambient import Ambient
from ...trace.record import CallRecord
from ..gains.reliance import UNSURE
from ..waits.chunks import Chunks
from ..waits.gates import leave
from ..waits.outcome import Outcome
from ..waits.waiting import Party, patience_s

State = Literal["queued", "running", "done", "failed", "dropped"]
Standing = Literal["early", "own", "joined", "again"]
Event = Literal["begin", "take over", "join", "finish", "fail", "drop"]

STATES: Mapping[tuple[State, Event], State] = {
    ("queued", "begin"): "running",
    ("queued", "take over"): "running",
    ("running", "finish"): "done",
    ("running", "fail"): "failed",
    ("queued", "drop"): "dropped",
    ("running", "drop"): "dropped",
    ("done", "drop"): "dropped",
}
"""Where an event leads. One that is not here comes too late, and changes nothing."""

STANDINGS: Mapping[tuple[Standing, Event], Standing] = {
    ("early", "take over"): "own",
    ("early", "join"): "joined",
}
"""How a call stands with the program, the same way: Accel's alone; made by the program; Accel's, and the answer to a
demand. Further demands that a shared result answers have calls of their own, `again`."""


_lending = forks.lock()


class Call(Party):
    """A primitive with its input, from issue or demand to retirement. Guarded by the run's lock."""

    __slots__ = (
        "ambient", "asked", "borrowers", "bound", "changes", "chunks", "dropped_by", "ended_s", "entered_s", "epoch",
        "fed", "given_up", "hindered", "identity", "input", "issued_for", "issued_s", "joined_at", "kept", "key",
        "keys", "lender", "lent_as", "method", "nested", "outcome", "output", "priority", "record", "resource",
        "sent_to", "standing", "state", "substituted", "task", "tells", "token", "tokens", "took_s", "waiters",
    )  # fmt: skip

    def __init__(
        self,
        method: Method,
        component: Any,
        identity: Hashable,
        input: Tree,
        key: Hashable,
        ambient: Ambient,
        standing: Standing,
    ) -> None:
        super().__init__(component)
        self.outer: Call | None = None
        self.method = method
        """The method that runs; the demand may come through another one of the same family."""
        self.identity = identity
        self.input = input
        self.key = key
        self.ambient = ambient
        self.standing = standing
        self.state: State = "queued" if standing == "early" else "running"
        self.outcome = Outcome()
        self.chunks = Chunks(method)
        self.output: Tree = None
        self.record: CallRecord | None = None
        """Of the demand."""
        self.issued_for = ""
        """The call site that an early call was issued for,"""
        self.asked = UNSURE
        """what it asks for,"""
        self.keys: tuple[str, ...] = ()
        """the credentials that its component held then,"""
        self.changes = 0
        """and how often that had been seen to change;"""
        self.joined_at: int | None = None
        """and when a demand joined it."""
        self.sent_to: Hashable = None
        """Who got its input (`accel.parts.network.recipients`), if that is nobody here: who has its output, too."""
        self.bound: tuple[str, int] | None = None
        """Node and position in the e-graph."""
        self.resource: object = None
        """What it reads or writes,"""
        self.epoch = -1
        """and after how many writes."""
        self.token = CancelToken()
        self.priority: Priority = DEMAND
        """The engines it waits for look at it; an early call's may be raised."""
        self.task: asyncio.Task[Any] | None = None
        self.dropped_by: Callable[[Call], None] | None = None
        """Gives it up; None before it is early."""
        self.waiters = 0
        """Demands that wait for it at the moment."""
        self.nested = False
        """Made by an early call, not issued for itself: unused, it is part of that call's waste."""
        self.fed = False
        """Its value fed predictions although the program made its own call (invariant 5)."""
        self.given_up = False
        """The program demanded it, and did not wait for its end."""
        self.tells = ""
        """How it told listeners of itself from within (`nested.tells`)."""
        self.hindered = False
        """Something it asked for was refused, because it is early: its result is not what the program would get."""
        self.substituted = False
        """A demand that is being served with the streaming method, in place of the one that was called."""
        self.lent_as: Hashable = None
        """By what other runs of its batch find it; None if they don't (`batch`)."""
        self.kept: Call | None = None
        """What they get, once it is done: a call that holds a copy of its result."""
        self.lender: Call | None = None
        """The call of another run that it gets its result from."""
        self.borrowers = 0
        """Calls of other runs that wait for it at the moment."""
        self.took_s = 0.0
        """How long it was inside its component."""
        self.issued_s: float | None = None
        self.entered_s: float | None = None
        """When it was inside its component."""
        self.ended_s: float | None = None
        self.tokens = (0, 0)

    def happens(self, event: Event) -> bool:
        """Go where the event leads; False if that is nowhere, because it comes too late."""
        state, standing = STATES.get((self.state, event)), STANDINGS.get((self.standing, event))
        self.state, self.standing = state or self.state, standing or self.standing
        return state is not None or standing is not None

    @property
    def early(self) -> bool:
        """Accel made it."""
        return self.standing in ("early", "joined")

    @property
    def demanded(self) -> bool:
        return self.standing != "early"

    @property
    def joined(self) -> bool:
        """It is not the program that runs it, or ran it, for this demand."""
        return self.standing in ("joined", "again")

    @property
    def stands_in(self) -> bool:
        """It is an early call of another object than the program calls, an equal one."""
        return self.early and self.record is not None and self.record.component is not self.component

    @property
    def over(self) -> bool:
        return self.state in ("done", "failed", "dropped")

    @property
    def useless(self) -> bool:
        """It is over and answers nothing."""
        return self.state in ("failed", "dropped")

    @property
    def site(self) -> str:
        """Where the program made it, or is expected to."""
        return self.record.site if self.record is not None else self.issued_for

    @property
    def wanted(self) -> bool:
        """The program waits for it, or for the call that made it."""
        return not self.gone and (self.demanded or (self.outer is not None and self.outer.wanted))

    def abandon(self) -> None:
        if self.dropped_by is not None:
            self.dropped_by(self)

    def leave(self) -> None:
        """It is no longer inside its component. Idempotent."""
        leave(self)

    def lasted_s(self) -> float:
        """How long it has been under way, if it is early."""
        if self.issued_s is None:
            return 0.0
        return (self.ended_s if self.ended_s is not None else now_s()) - self.issued_s

    def patience_s(self) -> float:
        """How long a demand waits for it yet."""
        maker = self.maker
        since = next((at_s for at_s in (maker.issued_s, maker.entered_s) if at_s is not None), now_s())
        return max(0.0, since + patience_s(kind_of(self.component)) - now_s())

    def lent(self, more: int) -> None:
        """So many more calls of other runs wait for it, or fewer."""
        with _lending:
            self.borrowers += more

    @property
    def maker(self) -> Call:
        """The call whose end a demand waits for."""
        return self.lender if self.standing == "again" and self.lender is not None else self

    @property
    def given(self) -> Call | None:
        """What other runs get of it: itself, if it is a copy that was kept for them."""
        return self if self.standing == "again" else self.kept

    def has_borrowed(self) -> bool:
        """Whether the call of another run gave something: then it is this one's result, too."""
        kept = self.lender.given if self.lender is not None else None
        if kept is None:
            return False
        self.state, self.outcome, self.output = kept.state, kept.outcome, kept.output
        self.tokens, self.took_s = kept.tokens, kept.took_s
        if self.record is not None and kept.ended_s is not None:  # for reports: as long as it took there
            self.ended_s = max(self.record.started_s, kept.ended_s)
            self.issued_s = self.ended_s - self.took_s
        return True

    def again(self, record: CallRecord | None) -> Call:
        """A further demand answered by this shared result."""
        other = Call(self.method, self.component, self.identity, self.input, self.key, self.ambient, standing="again")
        other.state, other.outcome, other.output = self.state, self.outcome, self.output
        other.record, other.issued_s, other.tokens = record, self.issued_s, self.tokens
        other.priority, other.resource, other.epoch = self.priority, self.resource, self.epoch
        return other
