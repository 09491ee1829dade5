"""The calls of one run: issued, demanded or both, found by key."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ..clock import now_s
from ..components import Facts
from ..identity import identity_of
from ..intercept import Method
from ..values import Tree, freeze
from .ambient import Ambient
from .answers import claim, may_share
from .call import Call
from .settings import Counts
from .waiting import loop_here

if TYPE_CHECKING:
    from threading import RLock


class Calls:
    """Every change of a call's state that several threads may race for happens here, under one lock."""

    def __init__(self, lock: RLock, counts: Counts) -> None:
        self.lock = lock
        self.counts = counts
        self.accepting = True
        """False when the run is over or silenced: nothing is issued any more."""
        self._by_key: dict[Hashable, list[Call]] = {}
        self._early: set[Call] = set()
        """Those that may still be waiting or running."""

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
        """The call that answers a demand, if there is one; see `answers.claim`."""
        with self.lock:
            call = claim(self._by_key.get(key, ()), site, method, ambient, facts)
            if call is not None and not call.joined:
                self.counts.issued -= 1  # taken over before it started
                call.leave()
        if call is not None and call.joined:
            call.look_again()
        return call

    def outstanding(self) -> int:
        """Early calls that are waiting or running."""
        with self.lock:
            self._early = {call for call in self._early if call.early and not call.over}
            return len(self._early)

    def unbound(self, key: Hashable, site: str) -> Call | None:
        """A call with this key that has no place in the graph yet; one of this site comes first."""
        with self.lock:
            free = [
                call
                for call in self._by_key.get(key, ())
                if call.bound is None and not (call.over and call.state != "done")
            ]
        return next((call for call in free if call.site == site), free[0] if free else None)

    def has(self, key: Hashable) -> bool:
        """Whether this call was made or issued, and may still answer."""
        with self.lock:
            return any(not call.over or call.state == "done" for call in self._by_key.get(key, ()))

    def hold(self, call: Call) -> bool:
        """Make an early call known to demands; False if the run is over, or the program has just made this call."""
        with self.lock:
            if not self.accepting:
                return False
            if any(c.demanded and c.bound is None and not c.joined for c in self._by_key.get(call.key, ())):
                return False
            self._by_key.setdefault(call.key, []).append(call)
            self._early.add(call)
            self.counts.issued += 1
            call.abandon = partial(self.drop, call)
            return True

    def begin(self, call: Call) -> bool:
        """An early call is about to run: False if it was dropped or taken over meanwhile."""
        with self.lock:
            if call.state != "queued":
                return False
            call.state = "running"
            call.issued_s = now_s()
            return True

    def share(self, method: Method, component: Any, tree: Tree, ambient: Ambient, facts: Facts) -> tuple[Call, bool]:
        """A shareable call made inside an early one: the call, and whether the caller has to run it."""
        identity = identity_of(component, method.by_object)
        key = (method.family, identity, freeze(tree))
        with self.lock:
            for call in self._by_key.get(key, ()):
                if may_share(call, method, ambient, facts):
                    call.nested = True
                    return call, False
            call = Call(method, component, identity, tree, key, ambient, early=True)
            call.state = "running"
            call.nested = True
            call.loop = loop_here() if method.kind == "async" else None
            call.abandon = partial(self.drop, call)
            self._by_key.setdefault(key, []).append(call)
            self._early.add(call)
        return call, True

    def drop(self, call: Call) -> None:
        """Give up an early call that nobody demanded."""
        with self.lock:
            if call.demanded and not call.joined:
                return
            if not call.early or (call.over and call.state == "dropped"):
                return
            wasted = call.state in ("running", "done") and not call.fed and not call.nested
            was_over = call.over
            call.state = "dropped"
            held = self._by_key.get(call.key)
            if held is not None and call in held:
                held.remove(call)
            if wasted:
                self.counts.wasted += 1
                self.counts.wasted_tokens += sum(call.tokens)
            elif call.fed:
                self.counts.fed += 1
            never_began = not was_over and call.loop is not None and call.task is None
        if was_over:
            return
        if never_began:
            call.leave()  # its loop may be closed, and then nothing else would
        call.let_go()
        call.token.cancel()
        if call.loop is not None and call.task is not None:
            with suppress(RuntimeError):  # a closed loop runs nothing any more
                call.loop.call_soon_threadsafe(call.task.cancel)
        call.future.cancel()
        call.close()

    def drop_undemanded(self, forget: bool) -> None:
        """Give up everything early that nobody demanded, and accept no more; `forget`: share nothing either."""
        with self.lock:
            self.accepting = False
            for call in self.all():
                if call.early and not call.demanded:
                    self.drop(call)
            if forget:
                self._by_key.clear()
                self._early.clear()
