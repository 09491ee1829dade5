"""Runs of one batch: calls that are equal, and repeat what they give, are made once and handed out as copies.

What answers a demand inside a run answers one in another run of its batch by the same rules (`answers`), and besides
only where everything that came in beside the input is the same, credentials as well. Who needs a call that another run
is making waits for it as for an early one (`waiting`); if it fails or is given up, he makes his own.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar, Token
from uuid import uuid4

from ...engine import Priority, priority
from ...engine.placement import Operator
from ...parts.components import Facts
from ...parts.identities.credentials import Keys
from ...parts.methods.repeats import repeats
from ...process import forks
from ...process.clock import now_s
from ...trace.ambient import INCOMPARABLE
from ..waits.outcome import Outcome
from .answers import may_borrow
from .call import Call

MOST_KEPT = 2_000
"""Results that are kept for the runs to come: the ones that were used last."""
TRIED, ONE_IN = 16, 16
"""So many runs are followed for the sake of sharing alone; then as many as share at least one call in so many runs."""
CROWD = 4
"""So many runs at once keep engines busy: a part of a prompt that is computed early takes the time of another's."""


_open: weakref.WeakSet[Batch] = weakref.WeakSet()


class Batch:
    """What its runs share. Thread-safe."""

    def __init__(self, most: int = MOST_KEPT, outline: Sequence[Operator] = ()) -> None:
        """outline: what it is going to ask of language models, as far as is known."""
        self.outline = outline
        self.name = f"batch-{uuid4().hex}"
        self.runs = 0
        """That were followed."""
        self._ended = 0
        self.calls = 0
        """That were not made, because another run made an equal one,"""
        self.seconds = 0.0
        """how long these took there,"""
        self.tokens = [0, 0]
        """and how many tokens they read and wrote."""
        self.apart = 0
        """Calls that were made each, although only what came in beside the input was another one."""
        self.inputs = 0
        """That have come to their end,"""
        self.resumed = 0
        """of these, those whose results an earlier batch had."""
        self.took_s = 0.0
        self._most = most
        self._open = True
        self._known: OrderedDict[Hashable, Call] = OrderedDict()
        self._within: OrderedDict[int, int] = OrderedDict()
        """By the hash of a call, that of all it is found by, the last time."""
        self._lock = forks.lock()
        _open.add(self)

    @property
    def hopeful(self) -> bool:
        """Whether its runs are worth following for what they may share."""
        return self._open and (self._ended < TRIED or self.calls * ONE_IN >= self._ended)

    @property
    def crowded(self) -> bool:
        return self.runs - self._ended > CROWD

    def close(self) -> None:
        """It is over: what still runs makes its own calls."""
        with self._lock:
            self._open = False
            self._known.clear()

    def find(self, call: Call, facts: Facts) -> Call | None:
        """The call of another run that may stand for this one, which is about to be made; else this one may stand for
        others from now on."""
        with self._lock:
            known = self._known.get(call.lent_as)
            if known is not None and may_borrow(known, call, facts):
                self._known.move_to_end(call.lent_as)
                return known
            self._note_apart(call)
            if known is None or known.over:
                self._put(call.lent_as, call)
        return None

    def _note_apart(self, call: Call) -> None:
        made, found_by = hash(call.key), hash(call.lent_as)
        self.apart += self._within.get(made, found_by) != found_by
        self._within[made] = found_by
        while len(self._within) > self._most:
            self._within.popitem(last=False)

    def keep(self, call: Call, kept: Call | None) -> None:
        """It is over: from now on its copy stands for others, or nothing."""
        with self._lock:
            if self._known.get(call.lent_as) is not call:
                return
            if kept is None:
                del self._known[call.lent_as]
            else:
                self._put(call.lent_as, kept)

    def count(self, call: Call) -> None:
        """It has answered a demand of another run."""
        with self._lock:
            self.calls += 1
            self.seconds += call.took_s
            self.tokens = [self.tokens[0] + call.tokens[0], self.tokens[1] + call.tokens[1]]

    def ended(self) -> None:
        """One of its runs is over, or shares nothing any more."""
        with self._lock:
            self._ended += 1

    def note_resumed(self) -> None:
        with self._lock:
            self.resumed += 1

    def _put(self, key: Hashable, call: Call) -> None:
        if not self._open:
            return
        self._known[key] = call
        self._known.move_to_end(key)
        while len(self._known) > self._most:
            self._known.popitem(last=False)


class Member:
    """A run's part in its batch. `within`: all that came in beside its input."""

    def __init__(self, batch: Batch, within: Mapping[str, str], keys: Keys) -> None:
        self.batch = batch
        self._within = frozenset(within.items())
        self._keys = keys
        with batch._lock:
            batch.runs += 1

    def find(self, call: Call, facts: Facts) -> Call | None:
        """See `Batch.find`; None for a call that is not shared."""
        if call.ambient is INCOMPARABLE or not repeats(call.component, call.method, call.input, facts):
            return None
        variables, config = call.ambient
        keys = self._keys.note(call.component)
        call.lent_as = (call.key, frozenset(variables.items()), config, self._within, keys)
        return self.batch.find(call, facts)

    def keep(self, call: Call, result: object) -> None:
        """What a call gave that others may have, too: a copy, as the program may change what it gets; None where it
        failed or was given up."""
        if call.kept is not None:
            return
        hand_on, kept = call.method.hands_on, None
        alone = call.tells or call.hindered or call.outcome.dropped
        if hand_on is not None and result is not None and not alone:
            try:
                copied = hand_on(result)
            except Exception:  # noqa: BLE001  # an object of the program's that can't be copied is nobody else's
                copied = None
            if copied is not None:
                kept = call.again(None)
                kept.state, kept.outcome = "done", Outcome()
                kept.took_s, kept.ended_s = call.took_s, call.ended_s
                kept.outcome.give(copied)
        call.kept = kept
        self.batch.keep(call, kept)


_around: ContextVar[Batch | None] = ContextVar("accel_batch", default=None)


def here() -> Batch | None:
    """The batch whose runs begin here."""
    batch = _around.get()
    return batch if batch is not None and batch._open else None


def member(within: Mapping[str, str], keys: Keys) -> Member | None:
    """The part in it of a run that begins here."""
    batch = here()
    return Member(batch, within, keys) if batch is not None else None


def context_of(batch: Batch, base: Context) -> Context:
    """A copy of a context; the run that begins in it is this batch's."""
    context = base.copy()
    context.run(_enter, batch)
    return context


@contextmanager
def scope_of(batch: Batch) -> Generator[Batch, None, None]:
    """Runs that begin inside are this batch's."""
    around, urgency = _enter(batch)
    try:
        yield batch
    finally:
        priority.reset(urgency)
        _around.reset(around)


def _enter(batch: Batch) -> tuple[Token[Batch | None], Token[Priority]]:
    """Also calls of runs that nobody follows say to engines whose they are."""
    return _around.set(batch), priority.set(Priority(0, batch.name, now_s(), batch=True, outline=batch.outline))


@forks.in_child
def _in_child() -> None:
    """What is under way there goes on in the parent only."""
    for batch in list(_open):
        batch._known.clear()
