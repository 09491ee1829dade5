"""A report as plain text of at most a hundred columns."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

from ..graph.rules import COMPOSITE, LIMITED, PART
from ..run.gains.pace import GAINLESS, NO_TIME, UNREAD

if TYPE_CHECKING:
    from ..run.calls.batch import Batch
    from ..run.gains.caps import CapNow
    from ..run.plans.plan import Plan
    from ..run.switch import State
    from .measured import Measured
    from .rows import Row

WIDTH = 100
WITHIN = (COMPOSITE.name, PART.name)
"""Reasons of calls around and inside others, which say less than those others' own."""
MOST_GAINS = 8
"""In the text."""
LITTLE_LESS = 1.02
"""Of what a request took, its best schedule may be this much: clocks differ by as much."""
PASSED = {
    GAINLESS: "as those before gained nothing",
    UNREAD: "as enough are still to be learnt from",
    NO_TIME: "as there was no time to spare",
}
"""Why runs were not followed."""
STATES: dict[State, str] = {
    "off": 'Accel is off, and programs run as without it; ACCEL=on or accel.set_mode("on") turns it on.',
    "watch": 'Accel only watches, and nothing is early; ACCEL=on or accel.set_mode("on") turns it on.',
    "uninstalled": "Accel is uninstalled, and programs run as without it, until something is accelerated again.",
}
"""Of the process, where it is not on."""


def text(report: Measured) -> str:
    lines = [*headline(report), *_gains(report), *_calls(report)]
    return "\n".join(part for line in lines for part in folded(line))


def folded(line: str, deeper: int = 4) -> list[str]:
    """A line in as many as it needs, all but the first indented by so much more."""
    if len(line) <= WIDTH:
        return [line]
    indent = len(line) - len(line.lstrip())
    return wrap(line, WIDTH, subsequent_indent=" " * (indent + deeper), break_on_hyphens=False)


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def learnt_from(plan: Plan, noun: str) -> str:
    """What is known of a program comes from there."""
    runs = plan.learnt.runs
    if not plan.saved.nodes:
        return f"learnt from {plural(runs, noun)}"
    return f"from a loaded plan{f' and {plural(runs, noun)}' if runs else ''}"


def seconds(value: float) -> str:
    """With as many digits as tell something."""
    return f"{value:.2f} s" if value >= 0.1 or value <= -0.1 or value == 0.0 else f"{value * 1000:.1f} ms"


def headline(report: Measured) -> Iterator[str]:
    """What matters, a line each."""
    requests = len(report.requests)
    if report.state in STATES:
        yield STATES[report.state]
    if report.stopped and not requests:
        return
    if not requests:
        yield "Nothing is measured yet: no request that was followed has ended well, without a node that raised."
    elif not any(request.early for request in report.requests):
        yield f"Nothing was early yet: {seconds(report.took_s)} per request, {_mean(report)}"
    else:
        more = "saved" if report.saved_s > -5e-5 else "lost"
        yield (
            f"{seconds(abs(report.saved_s))} {more} per request: {seconds(report.took_s)} instead of "
            f"{seconds(report.alone_s)} ({report.ratio:.2f}x), {_mean(report)}"
        )
    if report.last is not None:
        last, limit = report.last, report.limit_s
        since = " since its last pause" if len(report.parts) > 1 else ""
        said = f"  last request{since}: {seconds(last.took_s)} instead of {seconds(last.alone_s)}"
        if limit is not None and limit <= LITTLE_LESS * last.took_s:  # guesses that come true are sooner
            engines = "on these engines" if report.limit is not None else "if calls get in nobody's way"
            said += f"; its best schedule {engines}: {seconds(limit)}"
        yield said
    elif report.runs:
        yield "  last request: it or a node of it raised, or it was stopped, or made too many calls to be worked out"
    if report.deadlines.runs:
        met, runs = report.deadlines.met, report.deadlines.runs
        yield f"  deadlines: {met} of {plural(runs, 'request')} met theirs ({met / runs:.0%})"
    yield from _spent(report)
    if report.batch is not None:
        yield from batched(report.batch)


def batched(batch: Batch) -> Iterator[str]:
    """What the runs of a batch shared."""
    resumed = f", {batch.resumed} of them from the journal" if batch.resumed else ""
    yield f"  last batch: {plural(batch.inputs, 'input')} in {seconds(batch.took_s)}{resumed}"
    read, wrote = batch.tokens
    tokens = f"; models would have read {plural(read, 'token')} and written {wrote}" if read or wrote else ""
    if batch.calls:
        calls = f"{plural(batch.calls, 'call')} not made, as another run made an equal one"
        yield f"  {calls}: {seconds(batch.seconds)} of such calls{tokens}"
    else:
        yield "  no call of its runs was shared: none was made twice that repeats what it gives"
    if batch.apart:
        what = "although only the configuration or a ContextVar was another one, such as a thread_id"
        yield f"  {plural(batch.apart, 'call')} made again {what}"


def _mean(report: Measured) -> str:
    mean = f"in the mean of {plural(len(report.requests), 'request')}"
    return f"{mean} that were followed, of {report.runs + report.passed}" if report.passed else mean


def _spent(report: Measured) -> Iterator[str]:
    counts, last = report.counts, report.last
    if last is not None:
        yield f"  early: {last.early} of the {plural(last.calls, 'call')} of the last request, {counts.retired} in all"
    share = f", {report.wasted_share:.1%} of what language models took" if report.wasted_share > 0.0005 else ""
    yield (
        f"  in vain: {plural(counts.wasted, 'early call')}, {seconds(counts.wasted_s)}, "
        f"{plural(counts.wasted_tokens, 'token')}{share}"
    )
    if report.wastes_much:
        yield f"  for less in vain: {report.spares}"
    for each in report.caps:
        yield f"  cap of {each.cap}: {_used(each)}"
    if report.money is not None:
        yield f"  money: {report.money['cost']:.4g} per request, of that {report.money['wasted']:.2g} in vain"
    whys = [f"{count} {PASSED[why]}" for why, count in sorted(report.passed_for.items())]
    passed = f", let {report.passed} pass: {', '.join(whys)}" if whys else ""
    own = f"{seconds(report.own_s)} of processor time per request"
    yield f"  Accel itself: {own}; followed {plural(report.runs, 'request')}{passed}"
    if counts.turned_away:
        away = f"{plural(counts.turned_away, 'early call')} turned away by the endpoint (429 or the like)"
        yield f"  {away}, which is sent fewer at a time from then on; {LIMITED.remedy}"
    if counts.delayed:
        waited = f"waited {seconds(counts.delayed_s)} for early ones to leave"
        yield f"  {plural(counts.delayed, 'time')} a call of the program {waited}"


def _used(now: CapNow) -> str:
    cap = now.cap
    amounts = ((now.calls, cap.calls, "calls"), (now.tokens, cap.tokens, "tokens"), (now.money, cap.money, "of money"))
    used = ", ".join(f"{amount:.4g} {name}" for amount, bound, name in amounts if bound is not None)
    most = " by the one that uses most of it" if cap.per else ""
    up = f"; used up{f' for {now.used_up}' if cap.per else ''}, nothing is early there" if now.used_up else ""
    return f"{used} used{most}{up}; {plural(now.held_runs, 'request')} held back so far"


def _gains(report: Measured) -> Iterator[str]:
    if report.declarations:
        yield ""
        yield "What would gain more, at most, if it is true (in seconds of the last request):"
    if len(report.declarations) > 1:
        yield f"  {seconds(report.advice.gain_s):>8}  all of these lines together"
    for each in report.declarations[:MOST_GAINS]:
        together = ", with the other lines" if each.together else ""
        yield f"  {seconds(each.gain_s):>8}  {each.line}"
        yield f"            {plural(each.calls, 'call')}, {each.where}{together}; be sure that {each.sure}"
    gaining = {declaration.line for declaration in report.declarations}
    unknown = [each for each in report.undeclared if each.line not in gaining]
    if unknown:
        yield ""
        yield "Nobody vouches for these; declare what only answers, and keeps nothing between calls:"
    yield from (f"  {each}" for each in unknown[:MOST_GAINS])
    if report.unseen:
        yield ""
        yield hidden(report.unseen)


def hidden(names: list[str]) -> str:
    """What was declared in vain."""
    several = f" and {len(names) - MOST_GAINS} more" if len(names) > MOST_GAINS else ""
    line = f'accel.register({names[0]}, methods=["..."], readonly=True)'
    return (
        f"Declared, but no call of it can be seen: {', '.join(names[:MOST_GAINS])}{several}. "
        f"Name the methods that your program calls: {line}"
    )


def _calls(report: Measured) -> Iterator[str]:
    parts = [part for part in report.parts if part]
    for number, part in enumerate(parts):
        yield ""
        yield "The last request, by your lines:" if not number else "After a pause:"
        for row in part:
            yield f"  {title(row)}"
            yield from (f"    {said}" for said in sayings(row))


def title(row: Row) -> str:
    """Whose row it is."""
    times = ", ".join(amounts(row))
    if not row.has_line:
        place = f"node {row.nodes[0]}" if row.nodes else row.place
    else:
        place = row.place + (f" in {row.function}" if row.function else "")
    return f"{place}  {row.what}: {times}{', ' * bool(times)}{seconds(row.took_s)}"


def amounts(row: Row) -> Iterator[str]:
    """How many of what, as the user sees it."""
    if row.calls:
        yield plural(row.made or row.calls, "call") + (f" ({row.calls} in all)" if 0 < row.made < row.calls else "")
    if row.uses:
        yield plural(row.uses, "use")


def sayings(row: Row) -> Iterator[str]:
    """What became of its calls."""
    if row.early:
        yield f"{row.early} early, {seconds(row.saved_s)} saved{'; ' * bool(row.standing)}{row.standing}"
    telling = [late for late in row.late if late.rule not in WITHIN]
    for late in telling or row.late:
        bound = f" (up to {seconds(late.sooner_s)} sooner)" if late.sooner_s else ""
        count = f"{late.calls} not early" if row.early or len(telling) > 1 else "not early"
        yield f"{count}: {late.why}{bound}"
    if not row.early and row.standing:
        yield row.standing
