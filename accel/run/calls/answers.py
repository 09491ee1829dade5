"""Which call answers a demand: the exact-match rules of retirement."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence

from ...parts.components import Facts, talks, tells_within
from ...parts.methods.epochs import epoch
from ...parts.methods.methods import Method
from ...text.comparable import is_comparable
from ...trace.ambient import Ambient, unchanged
from ..waits.waiting import loop_here
from .call import Call


def answering(calls: Sequence[Call], site: str, method: Method, ambient: Ambient, facts: Facts) -> Call | None:
    """Of the calls with the demand's key, the one that answers it. Those that were issued for its call site come first:
    two sites may ask the same and get different samples, of which what follows is predicted."""
    own, others = (call for call in calls if call.site == site), (call for call in calls if call.site != site)
    for call in itertools.chain(own, others):
        if call.useless:
            continue
        alone = call.tells or call.outcome.dropped  # the program's, with a result for nobody else
        if call.demanded and (method.copy is None or not facts.pure or call.state != "done" or alone):
            continue
        if facts.pure and may_retire(call, method, ambient, facts):
            return call
    return None


def may_retire(
    call: Call, method: Method, ambient: Ambient, facts: Facts, loop: asyncio.AbstractEventLoop | None = None
) -> bool:
    """Whether the result of `call` may stand for this demand (invariants 3 and 5). `loop`: where it is waited for, if
    that is not here."""
    if not unchanged(call.ambient, ambient) or not is_comparable(call.input):
        return False
    if method.op == "searching":
        same_epoch = bool(facts.owned) and epoch(call.resource) == call.epoch
        if not (same_epoch or facts.readonly or facts.deterministic):
            call.fed = call.only_feeds  # one that is too old by now was in vain
            return False
    if method.is_async != call.method.is_async and not facts.twins:
        return False
    streams = method.kind in ("stream", "astream")
    if (streams or call.method.name != method.name) and tells_within(call.component, method.name) != "":
        return False
    if streams != (call.method.kind in ("stream", "astream")):
        if streams or not facts.streams_equal or talks(call.component, method.name):
            return False
    if call.loop is not None and call.state != "done":
        return (loop or loop_here()) is call.loop and method.kind in ("async", "astream")
    return True


def may_borrow(known: Call, call: Call, facts: Facts) -> bool:
    """Whether `known`, of another run of the batch, may stand for `call`, which is about to be made."""
    method = call.method
    if known.useless or known.outcome.dropped or known.tells or tells_within(known.component, known.method.name):
        return False
    if method.op == "searching" and known.epoch != epoch(known.resource):
        return False
    if known.state == "running" and not known.early:
        if known.method.kind in ("stream", "astream"):
            return False  # goes on as its reader does
        if known.method.is_async and known.loop is None:
            return False  # on a loop that is not known yet
    return may_retire(known, method, call.ambient, facts, call.loop)


def may_share(call: Call, method: Method, ambient: Ambient, facts: Facts) -> bool:
    """Whether a call inside an early one may wait for `call` and take a copy of its result."""
    if call.useless or call.outcome.dropped:
        return False
    if call.state == "running" and not call.early and call.method.kind != "sync":
        return False  # the program's own, on a loop that may be waiting for us
    return may_retire(call, method, ambient, facts)
