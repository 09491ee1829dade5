"""The calls of one run: issued, demanded or both, found by key."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...parts.components import Facts
from ...parts.methods.methods import Method
from ...process.clock import now_s
from ...text.values import Tree, exactly
from ...trace.ambient import Ambient
from ..gains.reliance import Tried
from ..gains.worth import paid, worked
from ..settings import Counts
from ..waits.waiting import loop_here
from .answers import answering, may_share
from .batch import Member
from .call import Call

if TYPE_CHECKING:
    from threading import RLock

FAILING_FROM = 2
"""A component of which so many different calls have failed in a run is not called early any more in it."""


class Calls:
    """Every change of a call's state that several threads may race for happens here, under one lock."""

    def __init__(self, lock: RLock, counts: Counts, batch: Member | None = None) -> None:
        self.lock = lock
        self.counts = counts
        self.tried = Tried()
        self.batch = batch
        """The run's part in the batch that it belongs to."""
        self.accepting = True
        """False when the run is over or silenced: nothing is issued any more."""
        self._by_key: dict[Hashable, list[Call]] = {}
        self._early: set[Call] = set()
        """Those that may still be waiting or running."""
        self._raised = False
        """A call of the program's."""
        self._failed: dict[Hashable, set[Hashable]] = {}
        """By component, the keys of calls that failed."""

    def all(self) -> list[Call]:
        with self.lock:
            return [call for calls in self._by_key.values() for call in calls]

    def left_behind(self) -> list[Call]:
        """`all`, without waiting for the lock."""
        return [call for calls in list(self._by_key.values()) for call in list(calls)]

    def add(self, call: Call) -> None:
        with self.lock:
            self._by_key.setdefault(call.key, []).append(call)

    def claim(self, key: Hashable, site: str, method: Method, ambient: Ambient, facts: Facts) -> Call | None:
        """The call that answers a demand, if there is one (`answers`): it is joined, or taken over if it has not
        started."""
        with self.lock:
            call = answering(self._by_key.get(key, ()), site, method, ambient, facts)
            if call is None:
                return None
            if call.state == "queued" and not call.borrowers and call.happens("take over"):
                call.method = method
                self.counts.issued -= 1
                call.leave()
                return call
            call.happens("join")
        call.look_again()
        return call

    def borrow(self, call: Call, facts: Facts) -> Call | None:
        """The call of another run of the batch that may stand for this one, which is about to be made; else this one
        may stand for theirs. Nothing is shared in a run that raised: a retry makes its own calls."""
        shares = self.batch is not None and self.accepting and not self._raised
        return self.batch.find(call, facts) if self.batch is not None and shares else None

    def withdraw(self, call: Call) -> None:
        """An early call is not made after all."""
        self.keep(call)
        call.happens("drop")
        call.outcome.drop()

    def keep(self, call: Call, result: Any = None) -> None:
        """A call is over, for other runs of the batch that want the same; without a result, they make it themselves."""
        if self.batch is not None and call.lent_as is not None:
            if call.entered_s is not None and call.ended_s is not None:
                call.took_s = call.ended_s - call.entered_s
            self.batch.keep(call, result)

    def handed(self, call: Call, method: Method, result: Any) -> Any:
        """What a demand gets of a result that retires into it."""
        if self.batch is not None and call.lender is not None:
            self.batch.batch.count(call)
        copy = method.copy if call.maker is call else method.hands_on
        return copy(result) if copy is not None else result

    def outstanding(self) -> int:
        """Early calls that are waiting or running."""
        with self.lock:
            self._early = {call for call in self._early if call.early and not call.over}
            return len(self._early)

    def unbound(self, key: Hashable, site: str) -> Call | None:
        """A call with this key that has no place in the graph yet; one of this site comes first."""
        free = self._without_place(key)
        return next((call for call in free if call.site == site), free[0] if free else None)

    def unplaced(self, key: Hashable) -> Call | None:
        """An early call with this key that has no place in the graph yet, and that the program has not asked for."""
        free = self._without_place(key)
        return next((call for call in free if call.standing == "early" and call.record is None), None)

    def _without_place(self, key: Hashable) -> list[Call]:
        with self.lock:
            return [call for call in self._by_key.get(key, ()) if call.bound is None and not call.useless]

    def has(self, key: Hashable) -> bool:
        """Whether this call was made or issued, and may still answer."""
        with self.lock:
            return any(not call.useless for call in self._by_key.get(key, ()))

    def made(self, key: Hashable, site: str) -> list[Call]:
        """The program's own calls of this site with this key."""
        with self.lock:
            found = self._by_key.get(key, ())
            return [call for call in found if call.standing == "own" and call.site == site and not call.useless]

    def are_for(self, key: Hashable, node: str) -> bool:
        """Whether such a call stands for an element of this node of the e-graph."""
        with self.lock:
            found = self._by_key.get(key, ())
            return any(call.bound is not None and call.bound[0] == node and not call.useless for call in found)

    def hold(self, call: Call) -> bool:
        """Make an early call known to demands; False if the run is over, or the program has just made this call."""
        with self.lock:
            if not self.accepting:
                return False
            if any(c.standing == "own" and c.bound is None for c in self._by_key.get(call.key, ())):
                return False
            self._by_key.setdefault(call.key, []).append(call)
            self._early.add(call)
            self.counts.issued += 1
            call.dropped_by = self.drop
            return True

    def begin(self, call: Call) -> bool:
        """An early call is about to run: False if it was dropped or taken over meanwhile."""
        with self.lock:
            if not call.happens("begin"):
                return False
            call.issued_s = call.entered_s = now_s()
            return True

    def share(
        self, method: Method, component: Any, identity: Hashable, tree: Tree, ambient: Ambient, facts: Facts
    ) -> tuple[Call, bool]:
        """A shareable call made inside an early one: the call, and whether the caller has to run it."""
        key = (method.family, identity, exactly(tree))
        with self.lock:
            for call in self._by_key.get(key, ()):
                if may_share(call, method, ambient, facts):
                    call.nested = True
                    return call, False
            call = Call(method, component, identity, tree, key, ambient, standing="early")
            call.happens("begin")
            call.nested = True
            found = self.borrow(call, facts)
            if found is not None:
                borrowed = found.again(None)
                borrowed.lender = found
                return borrowed, False
            call.loop = loop_here() if method.kind == "async" else None
            call.dropped_by = self.drop
            self._by_key.setdefault(key, []).append(call)
            self._early.add(call)
        return call, True

    def note_retired(self, call: Call) -> None:
        """The program has what an early call brought, or another of its own."""
        self.counts.retired += call.early
        self.counts.shared += not call.early
        if call.early:
            self.tried.note(call.asked, made=True)

    def drop(self, call: Call) -> None:
        """Give up an early call that nobody demanded."""
        with self.lock:
            if call.demanded and (not call.joined or call.state == "done"):
                return
            before = call.state
            if not call.early or not call.happens("drop"):
                return
            made = call.fed or call.given_up
            idle = bool(call.waits)  # inside, for a place of a call that it begins with: it has done nothing
            in_vain = not (made or call.nested or call.turned_away or idle) and call.lender is None
            wasted = before != "queued" and in_vain
            was_over, never_began = before == "done", before == "queued" and call.loop is not None
            call.outcome.drop()
            held = self._by_key.get(call.key)
            if held is not None and call in held:
                held.remove(call)
            if wasted:
                self._note_wasted(call)
            elif call.turned_away:
                self.counts.turned_away += not call.nested
            elif made:
                self.counts.fed += call.fed
                self.tried.note(call.asked, made=True)
        self.keep(call)
        if was_over:
            return
        if never_began:
            call.leave()  # its loop may be closed, and then nothing else would
        call.let_go()
        call.token.cancel()
        task = call.task
        if call.loop is not None and task is not None:
            with suppress(RuntimeError):  # a closed loop runs nothing any more
                call.loop.call_soon_threadsafe(task.cancel)
        call.chunks.close()

    def _note_wasted(self, call: Call) -> None:
        self.counts.wasted += 1
        self.tried.note(call.asked, made=False)
        so_far = call.output if call.output is not None else call.chunks.known
        self.counts.wasted_tokens += worked(call.method.op, call.tokens, call.input, so_far)
        self.counts.wasted_s += call.lasted_s()
        given, wrote = paid(call.method.op, call.tokens, call.input, so_far)
        self.counts.wasted_input_tokens += given
        self.counts.wasted_output_tokens += wrote

    def note_failed(self, call: Call, error: BaseException) -> None:
        """A call failed, or was given up by whoever made it. If the program tries again, nothing that it has had before
        is shared with it; what nobody has seen may still answer. A component that keeps failing is left alone."""
        with self.lock:
            if not call.demanded and not call.nested and call.lender is None:
                self._note_wasted(call)
            elif isinstance(error, GeneratorExit):
                return  # the program has read as much of a stream as it wanted
            if call.demanded:
                self._raised = True
                for key, calls in list(self._by_key.items()):
                    self._by_key[key] = [other for other in calls if not other.demanded and not other.nested]
            if isinstance(error, asyncio.CancelledError):
                return
            self._failed.setdefault(call.identity, set()).add(call.key)
            if self.is_failing(call.identity):
                for other in self.all():
                    if other.identity == call.identity and other.state == "queued":
                        self.drop(other)

    def is_failing(self, identity: Hashable) -> bool:
        """Whether calls of this component have failed too often in this run to be made early."""
        return len(self._failed.get(identity, ())) >= FAILING_FROM

    def drop_undemanded(self, forget: bool) -> None:
        """Give up everything early that nobody demanded, and accept no more; `forget`: share nothing either."""
        with self.lock:
            if self.batch is not None and self.accepting:
                self.batch.batch.ended()
            self.accepting = False
            for call in self.all():
                left = call.joined and not call.waiters and not call.over  # a stream that nobody has begun to read
                if call.early and not call.borrowers and (left or not call.demanded):
                    self.drop(call)
            if forget:
                self.forget()

    def forget(self) -> None:
        """Nothing is shared any more."""
        with self.lock:
            self._by_key.clear()
            self._early.clear()
