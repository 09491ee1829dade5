"""One run of an accelerated program: demands come in program order, early calls retire into them.

A demand is recorded, then answered: by the early call with the same key if there is one that may (it is taken over,
joined or already done), else by the component itself. Everything about predictions happens elsewhere, on the issuer
thread (`forecast`); the program's threads only look keys up.
"""

from __future__ import annotations

import asyncio
import contextvars
import weakref
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .. import engine, forks, intercept
from ..clock import now_s
from ..components import kind_of, note_told
from ..identity import identity_of
from ..intercept import Method, Scope, bump, epoch, resource_of
from ..ir import Graph, Node
from ..record import CallRecord, Trace, Visit
from ..values import Tree, freeze, snapshot
from . import demands, early, gates, permits, priorities, threads
from .ambient import INCOMPARABLE, Ambient, at_begin, dimensions, user_vars
from .bindings import Bindings
from .call import Call
from .calls import Calls
from .egress import Ledger, endpoint_key
from .forecast import Forecast
from .settings import Counts, Host, Settings
from .threads import collecting, issuer
from .waiting import took

if TYPE_CHECKING:
    from ..learn.plan import Plan
    from .announced import Announced


OPEN: weakref.WeakSet[Run] = weakref.WeakSet()
"""The runs that are going on."""


class Run:
    """See the module. Thread-safe; `finish` must be called exactly once."""

    gone = False
    """Left behind, by a fork or at the end of the interpreter (`gone`)."""

    def __init__(self, plan: Plan, settings: Settings, host: Host, value: Any) -> None:
        self.plan = plan
        self.settings = settings
        self.host = host
        self.trace = Trace(snapshot(value))
        self.trace.tick()
        self.name = priorities.run_name()
        self.counts = Counts()
        self.closed = False
        self.quiet = settings.speculate == "off" or not intercept.enabled
        """No more early calls in this run: something raised or was retried, or (after `uninstall`) nothing could retire
        them."""
        self.entry = contextvars.copy_context()
        variables, self.ambient = at_begin(self.entry, host.config)
        self.quiet = self.quiet or self.ambient is INCOMPARABLE  # nothing early could retire
        self.trace.ambient = dimensions(variables, host.beside)
        plan.keys.check()
        self.ledger = Ledger()
        self.graph: Graph = plan.graph
        """The e-graph the run follows; from its first moment on: the program's first call comes at once."""
        self.learnt = plan.learnt
        """The p-graph it was rewritten from; grows with loops that this run shows."""
        self.learnt_here = False
        self.forecast: Forecast | None = None
        self.announced: list[Announced] = []
        self._lock = forks.lock()
        self.calls = Calls(self._lock, self.counts)
        self.calls.accepting = not self.quiet
        self._visits: dict[str, int] = {}
        self.bindings = Bindings(self)
        self.ended: set[str] = set()
        """Call sites of which a call has ended in this run: whether it makes calls of its own is known."""
        self._inside = 0
        self._site_counts: dict[str, int] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._prefilling = 0
        self.token = engine.CancelToken()
        """Cancelled when the run is over: ends prefills."""
        intercept.count_run(+1)
        if not self.quiet and plan.graph.nodes:
            self.adopt(plan.graph, learnt_here=False)
        OPEN.add(self)
        if threads.ended:
            from .gone import leave  # needs this module

            leave(self)

    # --- following the program

    def adopt(self, graph: Graph, learnt_here: bool) -> None:
        """Predict with this graph from now on."""
        issuer.post(lambda: self._adopt(graph, learnt_here))

    def _adopt(self, graph: Graph, learnt_here: bool) -> None:
        if self.closed:
            return
        with self._lock:
            self.graph, self.learnt_here = graph, learnt_here
            forecast = Forecast(self, graph)
            if self.forecast is not None:
                forecast.reasons.update(self.forecast.reasons)
            calls = [call for call in self.calls.all() if call.record is not None]
            for call in self.calls.all():
                call.bound = None
            visits = list(self.trace.visits)
        forecast.publish("input", 0, self.trace.input)
        for visit in visits:
            forecast.publish(f"{visit.node}.in", visit.position, visit.entered)
            if visit.end is not None:
                forecast.publish(f"{visit.node}.out", visit.position, visit.left)
        for call in sorted(calls, key=lambda c: c.record.start if c.record else 0):
            forecast.demanded(call)
        self.forecast = forecast
        forecast.start()

    def _tell(self, event: Callable[[Forecast], None]) -> None:
        """Let the forecast know, on its own thread."""
        if self.graph.nodes or self.forecast is not None:
            issuer.post(lambda: self._heard(event))

    def _heard(self, event: Callable[[Forecast], None]) -> None:
        if self.forecast is not None and not self.closed:
            event(self.forecast)

    def enter(self, node: str, value: Any) -> Visit:
        """A framework node starts with this input."""
        visit = Visit(node, self.trace.tick(), snapshot(value), now_s())
        with self._lock:
            visit.position = self._visits[node] = self._visits.get(node, -1) + 1
            self.trace.visits.append(visit)
            self.host.control.enter(node)
        self._tell(lambda forecast: forecast.publish(f"{node}.in", visit.position, visit.entered))
        return visit

    def leave(self, visit: Visit, value: Any) -> None:
        """A framework node returned this value."""
        visit.left, visit.end, visit.ended_s = snapshot(value), self.trace.tick(), now_s()
        with self._lock:
            self.host.control.leave(visit.node)
            again = self.plan.repeats(visit.node) or self.host.control.running.get(visit.node, 0) > 0

        def tell(forecast: Forecast) -> None:
            forecast.publish(f"{visit.node}.out", visit.position, visit.left)
            forecast.left(visit.node, again)

        self._tell(tell)

    def fail(self, visit: Visit, error: BaseException) -> None:
        """A framework node raised or interrupted: whatever follows (a retry, the end) makes its own calls."""
        visit.failed = True
        with self._lock:
            self.host.control.running[visit.node] = self.host.control.running.get(visit.node, 1) - 1
        if not isinstance(error, asyncio.CancelledError | GeneratorExit):  # those came from elsewhere
            self.plan.note_barrier(visit.node)
        self.silence()

    def silence(self) -> None:
        """Drop everything early and issue nothing more in this run."""
        self.quiet = True
        self.calls.drop_undemanded(forget=True)

    def finish(self, completed: bool) -> None:
        """The run ended, raised, was interrupted or abandoned: nothing early is left running."""
        if collecting():
            issuer.post(lambda: self._finish(completed))
        else:
            self._finish(completed)

    def _finish(self, completed: bool) -> None:
        with self._lock:
            if self.closed:
                return
            self.trace.ended_s = now_s()
            self.trace.completed = completed and not any(visit.failed for visit in self.trace.visits)
            self.closed = True
            self.token.cancel()
            self.calls.drop_undemanded(forget=False)
        OPEN.discard(self)
        intercept.count_run(-1)
        self.plan.learn_from(self)

    # --- opening a demand

    def demand(self, here: Scope, method: Method, component: Any, wrapped: Any, args: Any, kwargs: Any) -> Any:
        """A patched leaf was called inside this run."""
        return demands.demand(self, here, method, component, wrapped, args, kwargs)

    def open(self, here: Scope, method: Method, component: Any, args: Any, kwargs: Any, called: str) -> Call:
        """Record the demand and find what answers it: a call to join, or one for the program to run itself. `called`:
        the user's frames."""
        now = now_s()
        tree = method.read(component, args, kwargs)
        identity = identity_of(component, method.by_object)
        key = (method.family, identity, freeze(tree))
        site = f"{here.within}|{method.family}|{type(component).__qualname__}|{called}"
        ambient: Ambient = self.ambient
        if ambient is not INCOMPARABLE:
            ambient = (user_vars(contextvars.copy_context()), self.host.config())
        parent = here.call.record if here.call is not None else None
        if parent is not None and (method.op != "embedding" or component is parent.component):
            parent.composite = True
            self.plan.note_composite(parent.site)
        record = CallRecord(
            site, here.within, method.name, method.family, method.op, component, identity, tree, key,
            self.trace.tick(), now, parent, here.visit,
        )  # fmt: skip
        facts = self.bindings.facts(component)
        writes = method.op == "ingestion"
        with self._lock:
            self.trace.calls.append(record)
            self.counts.demanded += 1
            self.bindings.note(site, component, method, identity)
            call = None if writes else self.calls.claim(key, site, method, ambient, facts)
            if call is None:
                call = Call(method, component, identity, tree, key, ambient, early=False)
                call.state, call.demanded, call.outer = "running", True, here.call
                call.priority = priorities.of_demand(self, site, here.call)
                if not writes:
                    self.calls.add(call)
                call.record = record
            elif call.record is None:
                call.record = record
                if not call.joined:
                    call.outer = here.call
            else:
                call = call.again(record)
            count = self._site_counts[site] = self._site_counts.get(site, 0) + 1
        call.priority.raise_to_demand()
        if not facts.local:
            self.ledger.add(endpoint_key(component), tree)
        if writes:
            call.resource = resource_of(component)
            bump(call.resource)
        elif method.op == "searching":
            call.resource = resource_of(component)
            call.epoch = epoch(call.resource) if call.epoch < 0 else call.epoch
        opened = call
        self._tell(lambda forecast: forecast.demanded(opened))
        if not self.quiet and not writes and count in (2, 4, 8, 16) and not call.joined and call.bound is None:
            self.plan.learn_within(self, site)
        return call

    def instead(self, gone: Call, outer: Call | None) -> Call:
        """The joined call was dropped before it gave a result: the program runs its own, inside `outer`."""
        with self._lock:
            call = Call(gone.method, gone.component, gone.identity, gone.input, gone.key, gone.ambient, early=False)
            call.state, call.demanded, call.outer = "running", True, outer
            call.record, call.priority = gone.record, gone.priority
            self.calls.add(call)
        self._tell(lambda forecast: forecast.demanded(call))
        return call

    def enter_component(self, call: Call) -> None:
        """Early calls may be in the way, of a component that somebody vouches for."""
        facts = self.bindings.facts(call.component)
        if facts.pure:
            self._delayed(call, gates.enter(call, facts.concurrency or 1))

    async def aenter_component(self, call: Call) -> None:
        facts = self.bindings.facts(call.component)
        if facts.pure:
            self._delayed(call, await gates.aenter(call, facts.concurrency or 1))

    @contextmanager
    def inside(self, call: Call) -> Generator[None, None, None]:
        """A call of the program is inside the component that it has entered."""
        with self._lock:
            self._inside += 1
        try:
            yield
        finally:
            self.leave_component(call)

    def leave_component(self, call: Call) -> None:
        call.leave()
        with self._lock:
            self._inside -= 1

    def _delayed(self, call: Call, seconds: float) -> None:
        """Early calls were in the way of a demand for so long."""
        if seconds:
            self.counts.delayed += 1
            self.counts.delayed_s += seconds
            self.plan.note_delay(kind_of(call.component))

    # --- closing a demand

    def done(self, call: Call, result: Any) -> None:
        """A call of the program, or an early one, has its result."""
        output = call.method.view(result) if result is not None else None
        call.output = snapshot(output)
        call.tokens = call.method.tokens(result) if call.method.tokens and result is not None else (0, 0)
        call.ended_s = now_s()
        with self._lock:
            if call.state == "dropped":
                return
            call.state = "done"
            since_s = call.issued_s if call.issued_s is not None else call.record.started_s if call.record else None
            if since_s is not None:
                took(kind_of(call.component), call.ended_s - since_s)
            if call.record is not None and not call.joined:
                self._close(call, call.record)
        if call.resource is not None and call.method.op == "ingestion":
            bump(call.resource)
        if not self.bindings.facts(call.component).local:
            self.ledger.add(endpoint_key(call.component), call.output)
        if not call.early and not call.substituted:
            note_told(call.component, call.method.name, call.tells)
        call.close()
        if not call.future.done():
            # What is shared is a copy of its own: the program may change what it got.
            call.future.set_result(call.method.copy(result) if call.method.copy and result is not None else result)
        self._tell(lambda forecast: forecast.finished(call))
        self._follow_loops()

    def _follow_loops(self) -> None:
        for loop in list(self.announced):
            issuer.post(loop.advance)

    def _close(self, call: Call, record: CallRecord) -> None:
        record.output, record.tokens = call.output, call.tokens
        record.end, record.ended_s = self.trace.tick(), now_s()
        record.issued_s, record.answered_s = call.issued_s, call.ended_s
        self.ended.add(record.site)

    def failed(self, call: Call, error: BaseException) -> None:
        """A call raised. A demand that fails silences the run: a retry must get calls of its own."""
        with self._lock:
            if call.state == "dropped":
                return
            call.state = "failed"
            call.ended_s = now_s()
            if call.record is not None:
                call.record.failed = True
                call.record.end, call.record.ended_s = self.trace.tick(), now_s()
        if call.resource is not None and call.method.op == "ingestion":
            bump(call.resource)
        call.close()
        if not call.future.done():
            call.future.set_exception(error)
        if call.demanded and not isinstance(error, GeneratorExit):
            self.silence()
        self._tell(lambda forecast: forecast.finished(call))

    def failed_join(self, call: Call) -> None:
        """A joined call failed: the failure is the demand's, as the first attempt."""
        with self._lock:
            if call.record is not None:
                call.record.failed = True
                call.record.end, call.record.ended_s = self.trace.tick(), now_s()
        self.silence()

    def retire(self, call: Call, method: Method, result: Any) -> Any:
        with self._lock:
            if call.record is not None:
                call.record.retired = True
                self._close(call, call.record)
            if call.early:
                self.counts.retired += 1
                if call.bound is not None:
                    self.plan.note_hit(call.bound[0])
            else:
                self.counts.shared += 1
        if method.copy is not None:
            return method.copy(result)
        return result

    def feed(self, call: Call, chunk: Any, method: Method | None = None) -> None:
        call.feed(chunk)
        if method is not None:
            call.delta = method.delta
        if self.forecast is not None and not call.partial_posted:
            call.partial_posted = True
            issuer.post(lambda: self._grown(call))

    def _grown(self, call: Call) -> None:
        call.partial_posted = False
        if self.forecast is not None:
            self.forecast.grown(call)

    # --- issuing (called by the forecast)

    def refuses(self, node: Node, values: list[str], decided: bool = True) -> str:
        """Why nothing may be issued for this node now; empty if it may."""
        return permits.refuses(self, node, values, decided)

    def budget_refuses(self) -> str:
        """Whether early work has used up what it may (invariants 7 and 9)."""
        with self._lock:
            outstanding = self.calls.outstanding()
            budget = self.settings.budget
            if outstanding >= budget.max_outstanding or self.counts.issued >= budget.max_issued:
                return "the budget of early calls is used up"
            limit = self.host.max_concurrency
            if limit is not None and outstanding + self._inside >= limit:
                return "max_concurrency is used up"
        return ""

    def issue(self, node: Node, tree: Tree, key: Hashable) -> Call | str:
        """Start an early call, or say why not."""
        bound = self.bindings.of(node)
        if bound is None or bound.key(tree) != key:
            return "its component changed"
        return early.issue(self, node, bound, tree, key)

    def prefill(self, node: Node, tree: Tree) -> bool:
        """Warm the engine's cache with what is known of a prompt; False if the component can't."""
        bound = self.bindings.of(node)
        with self._lock:
            if bound is None or self._prefilling:
                return False
            self._prefilling += 1
        started = early.prefill(self, node, bound, tree)
        self.counts.prefills += started
        if not started:
            self._prefilling = 0
        return started

    def prefill_over(self) -> None:
        with self._lock:
            self._prefilling -= 1
        self.stopped()

    def disqualify(self, call: Call, reason: str) -> None:
        """This component turned out not to be fit for early calls."""
        self.plan.disqualified[kind_of(call.component)] = reason
        self.calls.drop(call)

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Hold a reference to an early task until it is done: loops only hold weak ones."""
        self._tasks.add(task)
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # nobody waits for it, should its loop stop
        task.add_done_callback(self._tasks.discard)

    def note_miss(self, name: str) -> None:
        self.counts.missed += 1
        self.plan.note_miss(name)

    def stopped(self) -> None:
        """Something finished: whatever waited for a slot may go now."""
        self._tell(lambda forecast: forecast.advance({}))
        self._follow_loops()
