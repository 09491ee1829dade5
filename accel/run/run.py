"""One run of an accelerated program: demands come in program order, early calls retire into them.

A demand is recorded, then answered: by the early call with the same key if there is one that may (it is taken over,
joined or already done), else by the component itself. Everything about predictions happens elsewhere, on the issuer
thread (`forecast`); the program's threads only look keys up.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import sys
from collections import Counter
from collections.abc import Callable, Sequence, Set
from functools import partial
from operator import methodcaller
from time import thread_time
from typing import Any

from .. import engine
from ..graph.ir import Graph
from ..graph.rules import Reason
from ..graph.topology import leg_in
from ..parts.components import declarations, kind_of, note_told
from ..parts.identities.identity import Identities
from ..parts.methods import patches
from ..parts.methods.epochs import bump
from ..parts.methods.methods import Method
from ..parts.network.recipients import recipient
from ..process import forks
from ..process.clock import now_s
from ..process.threads import collecting, issuer
from ..text.values import snapshot
from ..trace.ambient import INCOMPARABLE, at_begin, dimensions
from ..trace.beside import BESIDE, told_beside
from ..trace.record import CallRecord, Trace, Visit
from .bindings import Bindings
from .calls import batch, handing
from .calls.call import Call
from .calls.calls import Calls
from .calls.follower import Follower
from .egress import Ledger
from .gains.pace import load
from .gains.worth import Cost
from .ongoing import OPEN, new_name
from .plans.compiled import Compiled
from .plans.learning import learn_from
from .plans.plan import Plan
from .settings import Counts, Host, Settings
from .waits import gates
from .waits.inbox import Inbox
from .waits.steps import Steps
from .waits.waiting import took

Follow = Callable[["Run", Compiled], Follower]
Event = Callable[[Follower], None]


class Run:
    """See the module. Thread-safe; `finish` must be called exactly once."""

    gone = False
    """Left behind, by a fork or at the end of the interpreter (`gone`)."""

    def __init__(self, plan: Plan, settings: Settings, host: Host, value: Any, follow: Follow) -> None:
        self.plan, self.settings, self.host, self._follow = plan, settings, host, follow
        self.trace = Trace(snapshot(value), on_loop=host.loop is not None)
        self.trace.tick()
        self.name = new_name()
        due_s = self.trace.started_s + (settings.deadline_s or math.inf)
        self.session = engine.Session(self.name, due_s, plan.says.program)
        """What engines know it by."""
        self.counts = Counts()
        self.own_s = 0.0  # processor time of Accel's own
        self.staked = Cost()
        """What its early calls may waste that are in doubt."""
        self.closed = self.learnt_here = False
        self.quiet = settings.speculate == "off" or not patches.enabled or plan.mute == declarations()
        """No more early calls in this run: something raised or was retried, or they could not retire, or not go."""
        self.entry = contextvars.copy_context()
        variables, self.ambient = at_begin(self.entry, host.config)
        self.quiet = self.quiet or self.ambient is INCOMPARABLE  # nothing early could retire
        self.trace.ambient, self.trace.beside = dimensions(variables, host.beside), told_beside(variables, host.beside)
        plan.keys.check()
        self.ledger = Ledger()
        self.graph: Graph = plan.graph
        """The e-graph the run follows; from its first moment on: the program's first call comes at once."""
        self.learnt = plan.learnt
        """The p-graph it was rewritten from; grows with loops that this run shows."""
        self.learnt_at: set[str] = set()
        """Call sites of which it taught something that it followed itself."""
        self._followed = False
        """By a forecast, now or soon."""
        self.forecast: Follower | None = None
        self._without_place: list[tuple[Visit, Event]] = []
        """What happened in visits that have no place yet."""
        self.reasons: dict[str, Reason | None] = {}
        """Why nodes were held in the end."""
        self.announced: list[Callable[[], None]] = []
        """Loops of which the next calls may go when something has ended (`announced`)."""
        self.lock = forks.lock()
        self.inbox = Inbox(host.loop, self._issue_ready)
        self.calls = Calls(self.lock, self.counts, batch.member(self.trace.ambient, plan.keys))
        self.calls.accepting = not self.quiet
        self.identities = Identities(plan.used.seen)
        self.bindings = Bindings(plan, host, self.identities, self.trace)
        self.ended: Counter[str] = Counter()
        """By call site, how many calls have ended in this run: of one, whether it makes calls of its own is known."""
        self.entered = 0
        """How many calls of the program are inside their components."""
        self.site_counts: dict[str, int] = {}
        self.prefilling = 0  # prompts whose beginning is
        self._tasks: set[asyncio.Task[Any]] = set()
        self.token = engine.CancelToken()  # cancelled when the run is over: ends prefills
        load.count(+1)
        self.member = plan.pace.crowd.join(followed=True)
        if not self.quiet and plan.graph.nodes:
            self.adopt(plan.graph, learnt_here=False)
        OPEN.add(self)

    # --- following the program

    def adopt(self, graph: Graph, learnt_here: bool) -> None:
        """Predict with this graph from now on."""
        self._followed = True
        self.inbox.post(lambda: self._adopt(graph, learnt_here))

    def _adopt(self, graph: Graph, learnt_here: bool) -> None:
        if self.closed:
            return
        with self.lock:
            self.graph, self.learnt_here = graph, learnt_here
            self.bindings.renew()
            forecast = self._follow(self, self.plan.compiled(graph))
            forecast.reasons.update(self.forecast.reasons if self.forecast is not None else {})
            calls = [call for call in self.calls.all() if call.record is not None]
            for call in self.calls.all():
                call.bound = None
            visits, self._without_place = list(self.trace.visits), []
        forecast.publish("input", (0,), self.trace.input)
        forecast.publish(BESIDE, (0,), self.trace.beside)
        for visit in visits:
            self._hear(methodcaller("entered", visit), visit, forecast)
            if visit.end is not None:
                self._hear(methodcaller("left", visit, again=True), visit, forecast)
        for call in sorted(calls, key=lambda c: c.record.start if c.record else 0):
            self._hear(methodcaller("demanded", call), call.record.visit if call.record else None, forecast)
        with self.lock:
            self.forecast = forecast if not self.closed else None
        if self.forecast is not None:
            forecast.start()

    def tell(self, event: Event, visit: Visit | None = None) -> None:
        """Let the forecast know, when it is its turn. `visit`: where it happened, if that matters."""
        if self._followed:
            self.inbox.post(lambda: None if self.closed else self._hear(event, visit, self.forecast))

    def _hear(self, event: Event, visit: Visit | None, forecast: Follower | None) -> None:
        """At once, or when the visit has its place: before, what belongs to it would be taken for another one's."""
        if forecast is not None and visit is not None and not self.trace.has_place(visit):
            self._without_place.append((visit, event))
        elif forecast is not None:
            event(forecast)

    def _entered(self, visit: Visit, behind: Set[str], forecast: Follower) -> None:
        forecast.entered(visit)
        forecast.behind(behind)
        waiting, self._without_place = self._without_place, []
        for other, event in waiting:
            self._hear(event, other, forecast)

    def _issue_ready(self) -> None:
        if (forecast := self.forecast) is not None and not self.closed:
            forecast.issue_ready()

    def enter(
        self,
        node: str,
        value: Any,
        around: Visit | None = None,
        graph: str = "",
        order: tuple[int, ...] = (),
        outer: Visit | None = None,
        answers: Sequence[Any] = (),
    ) -> Visit:
        """A framework node starts with this input (`Trace.enter`). Control goes by the outermost ones."""
        began_s, entered, found = thread_time(), snapshot(value), tuple(map(snapshot, answers))
        with self.lock:
            visit = self.trace.enter(node, entered, around, graph, order, outer, found)
            if around is None:
                self.host.control.enter(node, visit.leg if visit.goes_on else None)
            behind = self.host.control.behind(self.plan.repeated)  # now: what is told may be heard later
        if visit.displaces and self._followed:
            self.adopt(self.graph, self.learnt_here)  # others have other places now
        self.tell(lambda forecast: self._entered(visit, behind, forecast), visit)
        self.own_s += thread_time() - began_s
        return visit

    def leave(self, visit: Visit, value: Any) -> None:
        """A framework node returned this value."""
        began_s, left, again = thread_time(), snapshot(value), True
        with self.lock:
            self.trace.leave(visit, left)
            if visit.inside is None:
                self.host.control.leave(visit.node)
                again = visit.node in self.plan.repeated or self.host.control.running.get(visit.node, 0) > 0
        self.tell(lambda forecast: forecast.left(visit, again), visit)
        self.own_s += thread_time() - began_s

    def fail(self, visit: Visit, error: BaseException, pauses: bool = False) -> None:
        """A framework node raised: whatever follows (a retry, the end) makes its own calls. `pauses`: by that it pauses
        the run, which is over once those beside it are; one inside another leaves that to it."""
        visit.failed, visit.interrupted, around = True, pauses, visit.outermost
        if visit is around:
            with self.lock:
                self.host.control.stop(visit.node, pauses)
        elif pauses:
            return
        if not isinstance(error, asyncio.CancelledError | GeneratorExit):  # those came from elsewhere
            leg = leg_in(around.node, around.leg())
            self.plan.note_barrier(around.node, self.trace.made_in(around), error, leg, pauses)
        if not pauses:
            self.silence()

    def silence(self) -> None:
        """Drop everything early and issue nothing more in this run."""
        self.quiet = True
        self.calls.drop_undemanded(forget=True)

    def finish(self, completed: bool) -> None:
        """The run ended, raised, was interrupted or abandoned: nothing early is left running."""
        raised = not completed and isinstance(sys.exc_info()[1], Exception)  # others came from elsewhere
        end = partial(self._finish, completed, raised)
        issuer.post(end) if collecting() else end()

    def _finish(self, completed: bool, raised: bool) -> None:
        with self.lock:
            if self.closed:
                return
            self.trace.ended_s, self.trace.raised = now_s(), raised
            self.trace.completed = completed and all(v.interrupted or not v.failed for v in self.trace.outermost)
            self.own_s += self.inbox.took_s
            self.closed = True
            self.token.cancel()
            self.calls.drop_undemanded(forget=False)
        self.session.end()
        OPEN.discard(self)
        self.reasons = self.forecast.reasons if self.forecast is not None else self.reasons
        # What holds this run goes, or only the garbage collector would find it.
        self.forecast = None
        self.announced.clear()
        self._without_place.clear()
        self.inbox.close()
        self.calls.forget()
        load.count(-1)
        self.trace.crowded = self.member.returned()
        learn_from(self.plan, self)

    # --- inside a component

    def entering(self, call: Call, in_task: bool) -> Steps[None]:
        """Into its component. Early calls may be in the way, of one that somebody vouches for."""
        facts = self.bindings.facts(call.component)
        limit = facts.concurrency or 1
        if facts.pure and not gates.enters(call, limit, in_task):
            self._delayed(call, (yield from gates.entering(call, limit, in_task)))

    def enter_component(self, call: Call) -> None:
        """A call of the program is inside, from now on."""
        call.entered_s = now_s()
        with self.lock:
            self.entered += 1

    def leave_component(self, call: Call) -> None:
        call.leave()
        with self.lock:
            self.entered -= 1

    def _delayed(self, call: Call, seconds: float) -> None:
        """Early calls were in the way of a demand for so long."""
        if seconds:
            self.counts.delayed += 1
            self.counts.delayed_s += seconds
            if call.record is not None:
                call.record.delayed_s += seconds
            self.plan.note_delay(kind_of(call.component))

    # --- closing a demand

    def done(self, call: Call, result: Any, given: Sequence[Any] = ()) -> None:
        """A call of the program, or an early one, has its result. `given`: what it was made with."""
        began_s, shared = thread_time(), handing.copied(call, result, given, self.disqualify)
        call.output, call.tokens = call.method.seen_output(result), call.method.counted(result)
        call.ended_s = now_s()
        with self.lock:
            if not call.happens("finish"):
                return
            if call.entered_s is not None and call.method.kind in ("sync", "async"):  # a stream takes its reader's time
                took(kind_of(call.component), call.ended_s - call.entered_s)
            if call.record is not None and not call.joined:
                self._close(call, call.record)
        if call.resource is not None and call.method.op == "ingestion":
            bump(call.resource)
        if not self.bindings.facts(call.component).local:
            if call.sent_to is None:
                call.sent_to = recipient(call.component, self.plan.keys.note(call.component), call.input)
            self.ledger.add(call.sent_to, call.output)
        if not call.early and not call.substituted:
            note_told(call.component, call.method.name, call.tells)
        call.chunks.close()
        self.calls.keep(call, result)
        call.outcome.give(shared)
        self.tell(lambda forecast: forecast.finished(call))
        self._follow_loops()
        self.own_s += thread_time() - began_s

    def _follow_loops(self) -> None:
        for loop in list(self.announced):
            self.inbox.post(loop)

    def _close(self, call: Call, record: CallRecord) -> None:
        record.output, record.tokens, record.end = call.output, call.tokens, self.trace.tick()
        record.ended_s, record.issued_s, record.answered_s = now_s(), call.issued_s, call.ended_s
        self.ended[record.site] += 1

    def failed(self, call: Call, error: BaseException) -> bool:
        """A call raised; the program may catch that, and go on or try again. False if it says nothing of the demand:
        what one object failed with, a connection that was closed, an equal one need not."""
        with self.lock:
            if call.stands_in:
                return False
            if not call.happens("fail"):
                return True
            call.ended_s = now_s()
            self.trace.failed(call.record)
        self.calls.keep(call)
        if call.resource is not None and call.method.op == "ingestion":
            bump(call.resource)
        call.chunks.close()
        call.outcome.fail(error)
        self.calls.note_failed(call, error)
        self.tell(lambda forecast: forecast.finished(call))
        return True

    def failed_join(self, call: Call, error: BaseException) -> None:
        """A joined call failed, and so the demand, as the first attempt; or nobody waits for it any more."""
        with self.lock:
            self.trace.failed(call.record if call.record is not None and call.record.end is None else None)
        self.calls.note_failed(call, error)
        self.tell(lambda forecast: forecast.finished(call))

    def retire(self, call: Call, method: Method, result: Any) -> Any:
        with self.lock:
            if call.record is not None:
                call.record.retired = True
                self._close(call, call.record)
            self.calls.note_retired(call)
            if call.early and call.bound is not None:
                self.plan.chances.hit(call.bound[0])
        if call.maker is not call:
            self.tell(lambda forecast: forecast.finished(call))
        return self.calls.handed(call, method, result)

    def feed(self, call: Call, chunk: Any, method: Method | None = None) -> None:
        call.chunks.feed(chunk)
        if method is not None:
            call.chunks.method = method
        if self.forecast is not None and not call.chunks.told:
            call.chunks.told = True
            self.inbox.post(lambda: self._grown(call))

    def _grown(self, call: Call) -> None:
        call.chunks.told = False
        if not self.closed and self.forecast is not None:
            self.forecast.grown(call)

    # --- early work

    def disqualify(self, call: Call, reason: str, remedy: str) -> None:
        """This component turned out not to be fit for early calls."""
        self.plan.disqualified[kind_of(call.component)] = reason
        self.plan.says.unfit(call.component, reason, remedy)
        self.calls.drop(call)

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Hold a reference to an early task until it is done: loops only hold weak ones."""
        self._tasks.add(task)
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # nobody waits for it, should its loop stop
        task.add_done_callback(self._tasks.discard)

    def note_miss(self, name: str) -> None:
        self.counts.missed += 1
        self.plan.chances.missed(name)

    def stopped(self) -> None:
        """Something finished: whatever waited for a slot may go now."""
        if self.forecast is not None:
            self.inbox.look_again()
        self._follow_loops()
