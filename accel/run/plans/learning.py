"""What runs teach: they are counted as they end; then, on the learner's thread, it is seen how far they were foreseen,
those that were not are a lesson, and a program that has nothing to gain rests."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from time import thread_time

from ...graph.rules import AT_ONCE, UNVOUCHED
from ...learn.carried import carried
from ...learn.check import judge
from ...parts.components import declarations, facts_of
from ...process.threads import learner, while_kept
from ...trace.record import Trace
from ..gains.hopes import held_sites
from ..gains.pace import HOPE
from ..gains.reliance import asked_of
from . import telemetry
from .lived import Lived
from .plan import Plan

FIRST = 8
"""So many runs of a program are learnt from before all that waits of others that have had theirs."""
MAX_CALLS = 2_000
"""A run with more calls is not learnt from: the learner stays bounded."""
MAX_SITES = 4_000
"""A program with more call sites is not followed any more: what is kept for each, its last component among it, would
grow for as long as it runs."""


def learn_from(plan: Plan, run: Lived) -> None:
    """A run is over: count it and, off the program's path, learn what it showed."""
    waits = plan.count(run)
    plan.caps.ended(run)
    plan.worth.settle(run.trace, run.counts, run.staked, run.calls.tried, 1 + plan.pace.let_pass())
    if plan.pace.ended(run.trace, run.own_s):
        plan.says.rests(plan.pace.every)
    ended_s = run.trace.ended_s or run.trace.started_s
    plan.says.ended(run.name, run.counts, ended_s - run.trace.started_s, run.reasons)
    telemetry.ended(plan.says.program, run.trace, run.counts, run.entry)
    if waits:
        learner.post(while_kept(plan, _learn_from_next), first=plan.runs <= FIRST)


def learn_within(plan: Plan, run: Lived, site: str) -> None:
    """A loop is going on at a site nobody predicts: two iterations may be enough for the rest of them."""
    if plan.within.asks(run, site):
        learner.post(while_kept(plan, _learn_within, site))


# --- on the learner's thread


def _learn_from_next(plan: Plan) -> None:
    """From the run that has waited longest."""
    run = plan.next_waiting()
    if run is None:
        return
    began_s = thread_time()
    saved_s = plan.tally.note(run.trace)
    plan.pace.saved(run.trace, saved_s)
    try:
        _learn_from(plan, run)
        _hope(plan, run, saved_s)
    finally:
        plan.took(thread_time() - began_s)


def _learn_within(plan: Plan, site: str) -> None:
    """In the run in which the site is to be learnt, if it is still going on when there is time for a lesson."""
    run = plan.within.take(site)
    if run is not None and not run.closed and len(run.trace.calls) <= MAX_CALLS:
        _note_facts(plan, run)
        if plan.within.learns(run, site, plan.traces[::-1]):
            run.adopt(plan.rewritten(run.learnt), learnt_here=True)


def _learn_from(plan: Plan, run: Lived) -> None:
    trace = run.trace
    _note_facts(plan, run)
    plan.program.ran(run.host.references)
    plan.is_last(trace)
    plan.reasons |= run.reasons
    plan.within.answered(run.learnt_at, {call.site for call in trace.calls if call.retired})
    if len(trace.calls) > MAX_CALLS:
        what = f"a run with more than {MAX_CALLS} calls is not learnt from"
        plan.says.stands_down("calls", what, "accelerate the parts of the program that such runs are made of")
    elif trace.completed and trace.calls:
        known = declarations()  # first: one that comes meanwhile is not known yet
        plan.mute = known if _may_not_be_early(plan, run) else -1
        if _was_foreseen(plan, run):
            _look_again(plan, run)
        elif plan.memory.add(trace) and plan.patience.is_over(plan.memory.calls) and not plan.hopes.lost:
            if not plan.used.saved or len(plan.traces) > 1:  # one run proves less than what was saved
                _teach(plan, trace)


def _note_facts(plan: Plan, run: Lived) -> None:
    trace, seen = run.trace, plan.contexts.bindings
    counts = Counter(visit.node for visit in trace.visits)
    plan.note_repeated({node for node, count in counts.items() if count > 1})
    plan.used.note(trace, run.host, run.identities, seen.forget)
    seen.note(set(trace.sites), trace.ambient)
    if len(plan.used.at) > MAX_SITES:
        plan.pace.stop()
        what = f"more than {MAX_SITES} call sites were seen, as if each run had its own: no more runs are followed"
        plan.says.stands_down("sites", what, "give nodes and functions names that stay")


def _was_foreseen(plan: Plan, run: Lived) -> bool:
    """Whether what is known explains the run. It is counted in any case."""
    trace, graph = run.trace, plan.learnt
    run.host.references.ran(call.component for call in trace.calls)
    plan.worth.note(trace)
    plan.deadlines.learn(trace)
    judged = judge(graph, trace)
    plan.chances.note(graph, judged.made, trace.sites)
    made_here = [name for name, made in judged.made.items() if made]
    asked = {name: asked_of(graph.by_name[name]) for name in judged.made}
    left_out = set(asked.values()) - (made := {asked[name] for name in made_here})
    plan.worth.foresaw(made, left_out, run.calls.tried)
    plan.contexts.note(graph, made_here, trace, plan.program.holds_others, plan.used.made_with(trace))
    foreseen = bool(graph.nodes) and judged.complete and not plan.patience.takes_one_more()
    if plan.changes.note(trace.sites, foreseen) and plan.pace.every > 1:
        plan.pace.news()
        plan.hopes.renew()
        plan.worth.forget()
        plan.within.hope()
        plan.patience.hope()
    return foreseen


def _may_not_be_early(plan: Plan, run: Lived) -> bool:
    """Whether nobody vouches for any component that a program calls, in this run and wherever one was foreseen."""
    reasons = [plan.reasons.get(node.name) for node in plan.graph.nodes if node.site and node.predictable]
    if not reasons or any(reason is None or reason.rule not in (UNVOUCHED, AT_ONCE) for reason in reasons):
        return False
    return not any(facts_of(call.component).pure for call in run.trace.calls)


def _look_again(plan: Plan, run: Lived) -> None:
    """At what is known, after a run that it explains."""
    plan.memory.explained()
    staged = any(node.schedule.stage_of for node in plan.graph.nodes)
    if not (staged or run.counts.issued or run.counts.prefills or plan.total.retired or run.trace.paused):
        plan.pace.idle()
    if plan.chances.kept_missing() or plan.learnt.map(plan.chances.widened) is not plan.learnt:
        plan.adopt(plan.learnt)
    else:
        plan.look_at_profiles()


def _teach(plan: Plan, trace: Trace) -> None:
    """A lesson, from all traces that are kept; the last one is this."""
    memory, program = plan.memory, plan.program
    learnt, changed = memory.taught(program, plan.patience.passed_over())
    ran = {visit.node for kept in memory.traces for visit in kept.visits}
    learnt = replace(learnt, graph=carried(learnt.graph, plan.saved, ran))
    called = [kept.sites for kept in memory.traces]
    plan.chances.learnt(learnt, plan.tally.runs, called)  # others may wait to be looked at
    program.changed()
    plan.used.whose = learnt.whose
    program.note(learnt.graph.nodes)
    plan.contexts.learnt(learnt.graph, program.lost)
    for shape, seen in zip(learnt.shapes, memory.traces, strict=True):
        plan.contexts.note(learnt.graph, shape, seen, program.holds_others, plan.used.made_with(seen))
    plan.adopt(learnt.graph)
    plan.says.learnt(learnt.graph, learnt.explained)
    if plan.patience.learnt(learnt, judge(plan.learnt, trace).complete, changed):
        plan.pace.news()
        plan.within.hope()


def _hope(plan: Plan, run: Lived, saved_s: float | None) -> None:
    """A program that has nothing to gain rests; with hope, it is followed again."""
    trace = run.trace
    if run.settings.speculate == "off" or not trace.completed or not trace.calls:
        return
    if plan.hopes.note(plan.learnt, trace, run.own_s, held_sites(run.learnt, run.reasons or plan.reasons), saved_s):
        plan.pace.news(HOPE)
    elif plan.hopes.unsaid and plan.pace.rest():
        lost = "no input of a call is there before the program makes it"
        plan.says.rests(plan.pace.every, lost if plan.hopes.lost else "what could be early may not go early")
