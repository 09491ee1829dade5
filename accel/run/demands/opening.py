"""The program makes a call: it is recorded, and what answers it is found."""

from __future__ import annotations

import contextvars
from collections.abc import Hashable
from time import thread_time
from typing import Any

from ...graph.topology import ANEW, site_of
from ...parts.components import Facts
from ...parts.identities.reads import NOTHING
from ...parts.methods.epochs import bump, epoch, resource_of
from ...parts.methods.methods import Method
from ...parts.network.recipients import recipient
from ...process.clock import now_s
from ...text.objects import in_class, own
from ...text.values import exactly
from ...trace.ambient import INCOMPARABLE, Ambient, set_since, user_vars
from ...trace.record import CallRecord
from .. import priorities
from ..calls.call import Call
from ..plans.learning import learn_within
from ..run import Run
from ..scope import Scope
from ..waits.waiting import loop_here


def open_call(
    run: Run, here: Scope, method: Method, component: Any, args: Any, kwargs: Any, called: str, sends: bool = True
) -> Call:
    """Record the demand and find what answers it: a call to join, or one for the program to run itself. `called`:
    the user's frames. `sends`: whether its input leaves now; of a stream, perhaps when it is read (`sent`)."""
    began_s, now = thread_time(), now_s()
    tree = method.seen_input(component, args, kwargs)
    identity = run.identities.of(component, method.by_object)
    changes = run.identities.changes(component)
    key = (method.family, identity, exactly(tree))
    node = here.visit.node if here.visit is not None else ""
    leg = here.visit.outermost.leg() if here.visit is not None else ANEW
    site = site_of(node, leg, method.family, type(component).__qualname__, called)
    parent = here.call.record if here.call is not None else None
    if parent is not None and (method.op != "embedding" or component is parent.component):
        parent.composite = True
        run.plan.note_composite(parent.site)
    record = CallRecord(
        site, here.within, method.name, method.family, method.op, component, identity, tree, key,
        run.trace.tick(), now, parent, here.visit,
    )  # fmt: skip
    guard = run.host.guard(manager) if (manager := _manager(args, kwargs)) is not None else None
    if guard is not None:
        run.plan.guarded[site] = guard
    if site not in run.plan.moved and (moved := _moved(run, component)):
        run.plan.moved[site] = moved
    facts = run.bindings.facts(component)
    writes = method.op == "ingestion"
    with run.lock:
        run.trace.calls.append(record)
        run.counts.demanded += 1
        keys = run.bindings.note(site, component, method, identity)
        ambient = _ambient(run, key, method)
        alone = writes or run.settings.speculate == "off"  # nothing answers it but its component
        call = None if alone else run.calls.claim(key, site, method, ambient, facts)
        if call is None:
            call = Call(method, component, identity, tree, key, ambient, standing="own")
            call.outer = here.call
            call.priority = priorities.of_demand(run, site, here.call)
            if method.op == "searching":
                call.resource = resource_of(component)
                call.epoch = epoch(call.resource)
            call = call if alone else _borrowed(run, call, facts, args, kwargs) or call
            if not alone and call.lender is None:
                run.calls.add(call)
            call.record = record
        elif call.record is None:
            call.record = record
            if not call.joined:
                call.outer = here.call
            else:
                call.joined_at = changes
        else:
            call = call.again(record)
        count = run.site_counts[site] = run.site_counts.get(site, 0) + 1
    call.priority.raise_to_demand()
    if sends:
        sent(run, call, component, keys)
    if writes:
        call.resource = resource_of(component)
        bump(call.resource)
    opened = call
    run.tell(lambda forecast: forecast.demanded(opened), here.visit)
    if not method.is_async and run.host.loop is not None and loop_here() is run.host.loop:
        run.inbox.elsewhere()
    if not run.quiet and not writes and count in (2, 4, 8, 16) and not call.joined:
        # Of calls that were all made at once nothing is left to be foreseen.
        one_by_one = 2 * run.ended[site] >= count
        if one_by_one and (call.bound is None or _is_unproven(run, site)):
            learn_within(run.plan, run, site)
    run.own_s += thread_time() - began_s
    return call


CONFIGURABLE = "configurable values"


def sent(run: Run, call: Call, component: Any, keys: tuple[str, ...]) -> None:
    """The program sends the input of a call to its component, which holds these credentials."""
    if not run.bindings.facts(component).local:
        call.sent_to = recipient(component, keys, call.input)
        run.ledger.add(call.sent_to, call.input)


def _is_unproven(run: Run, site: str) -> bool:
    """Whether calls of a site are predicted as one earlier run made them, and this run may show that it does, too."""
    nodes = run.graph.by_site.get(site, ())
    return not run.learnt_here and any(node.evidence.confidence != "verified" and node.predictable for node in nodes)


def _ambient(run: Run, key: Hashable, method: Method) -> Ambient:
    """What the demand sees, where that matters: to what may answer it, or be answered by it."""
    matters = method.copy is not None or run.calls.batch is not None or run.calls.has(key)
    if run.ambient is INCOMPARABLE or not matters:
        return run.ambient
    return user_vars(contextvars.copy_context()), run.host.config()


def _moved(run: Run, component: Any) -> str:
    """What the program has set since the run began: configurable values, or a ContextVar, if code of its own in the
    component may read it. Into values nobody looks but where that code names a ContextVar."""
    if run.ambient is INCOMPARABLE:
        return ""
    if run.host.config() != run.ambient[1]:
        return CONFIGURABLE
    reads = run.identities.reads(component)
    if reads is NOTHING:
        return ""
    here = contextvars.copy_context()
    names = set_since(run.entry, here)
    if not names and reads.context:
        before, now = run.ambient[0], user_vars(here)
        names = [var.name for var, value in now.items() if before.get(var) != value]
    return f"the ContextVar {names[0]}" if names else ""


def _manager(args: Any, kwargs: Any) -> Any:
    """The callback manager that a call is made with, if there is one."""
    return kwargs.get("run_manager") or next((arg for arg in args if _has_handlers(arg)), None)


def _has_handlers(arg: Any) -> bool:
    """Without asking the object, which may be anything."""
    return in_class(type(arg), "handlers") is not None or "handlers" in (own(arg) or ())


def _borrowed(run: Run, call: Call, facts: Facts, args: Any, kwargs: Any) -> Call | None:
    """What another run of the batch makes, or made, in place of a call of this one. A component of others may tell its
    callback manager of what it does, if there is somebody who hears it."""
    manager = _manager(args, kwargs)
    if getattr(manager, "handlers", ()) and not hasattr(type(call.component), "__accel__"):
        return None
    found = run.calls.borrow(call, facts)
    if found is None:
        return None
    found.priority.raise_to_demand()
    borrowed = found.again(None)
    borrowed.lender, borrowed.priority = found, call.priority
    return borrowed


def instead(run: Run, gone: Call, method: Method, component: Any, outer: Call | None) -> Call:
    """The joined call was dropped before it gave a result: the program runs its own, inside `outer`."""
    with run.lock:
        call = Call(method, component, gone.identity, gone.input, gone.key, gone.ambient, standing="own")
        call.outer, call.record, call.priority = outer, gone.record, gone.priority
        run.calls.add(call)
        if gone.record is not None:
            gone.record.delayed_s += now_s() - gone.record.started_s
    run.tell(lambda forecast: forecast.replaced(gone, call), gone.record.visit if gone.record is not None else None)
    return call
