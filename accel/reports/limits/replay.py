"""The last run worked out anew: with the rules that held its calls back, or without some of them.

Calls take as long as they took, and start when their input was complete and no rule held them. Nothing gets in their
way but what did, in a component for one call at a time, and no engine is slower for having more to do: what comes out
is a bound.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...graph.ir import Graph, Node
from ...graph.rules import LOCAL, STREAMING, STREAMS_EQUAL
from ...graph.topology import Control
from ...learn.check import followed, handed, ties
from ...learn.view import Fit
from ...parts.components import facts_of, said_of
from ...parts.methods.methods import METHODS
from ...parts.network.recipients import recipient
from ...run.egress import texts_sent
from ...run.gains.soonest import streams
from ...run.issued.early import could_stream
from ...run.settings import Settings
from ...run.waits.gates import place_of
from ...text.pasted import pasted
from ...text.paths import Index
from ...text.templates import refs_in
from ...trace.flow import WHOLE, events_of
from ...trace.order import Event
from ...trace.record import CallRecord, Trace
from .held import (
    EGRESS,
    MANY,
    Held,
    Missing,
    Sent,
    elsewhere,
    has_own_name,
    held_of,
    in_doubt,
    is_free,
    is_predicted,
    more_at_a_time,
)

if TYPE_CHECKING:
    from ...run.plans.plan import Plan


@dataclass(slots=True)
class Ran:
    """How a run would have gone. All in seconds from its start."""

    end_s: float
    waits_s: list[float]
    """For every event how long the program waited for it."""


class Replay:
    """See the module."""

    def __init__(self, plan: Plan, trace: Trace, settings: Settings) -> None:
        learnt, self._keys = plan.learnt, plan.keys
        self.events: list[Event] = events_of(trace, None, ties(learnt, trace).deciding)
        self.calls: dict[int, Held] = {}
        """By event: calls that may be made early, or might if something was declared."""
        self._used = Counter(id(place_of(call.component)) for call in trace.calls)
        """By id of what takes calls, how many it took."""
        self._facts = {id(call.component): facts_of(call.component) for call in trace.calls}
        certain = settings.speculate == "certain"
        self._lets_stream: dict[int, Missing] = {}
        """By event, what would let its answer stream."""
        self._seen: dict[Hashable, list[tuple[int, list[str], list[str]]]] = {}
        """By remote endpoint, the texts that each event took there and brought back."""
        for number, event in enumerate(self.events):
            if event.call is not None and not self._facts[id(event.call.component)].local:
                texts = number, texts_sent(event.call.input), texts_sent(event.call.output)
                self._seen.setdefault(self._recipient(event.call), []).append(texts)
        view, fits = followed(learnt, trace, unexplained=True)
        sources = _Sources(learnt, self.events, trace, {node.name: fit for node, fit in fits})
        written = {type(call.component) for call in trace.calls if call.op == "ingestion"}
        inner: dict[CallRecord, list[CallRecord]] = {}
        for call in trace.calls:
            if call.parent is not None:
                inner.setdefault(call.parent, []).append(call)
        sure = _Sure(plan, self.events, trace.resumed)
        for node, fit in fits:
            for position, (call, place) in enumerate(zip(fit.calls, fit.places, strict=True)):
                at, parts = sources.numbers.get(call), inner.get(call, [])
                doubt = in_doubt(plan, node, settings)
                since = sure.since(at, certain and not node.when and doubt is None) if at is not None else None
                if at is None or since is None or not is_predicted(plan, node):
                    continue
                if not all(is_free(plan, each.component, each.method) for each in (call, *parts)):
                    continue
                facts = self._facts[id(call.component)]
                held = self.calls[at] = held_of(
                    call, facts, said_of(call.component), parts, type(call.component) in written, trace.on_loop
                )
                deciding = {when.ref.node for when in node.when}
                held.needs = sources.of(node, place, at, deciding) | ({since: WHOLE} if since >= 0 else {})
                held.unsure, held.doubt = sources.named(deciding, place, at), doubt
                if doubt is not None and not held.unsure and plan.worth.doubts(plan.asked(node)):
                    held.never.append(doubt)  # such calls were in vain, and there is nothing to wait for
                if doubt is not None and not node.when:
                    decided = sure.since(at, True) if node.evidence.always else None
                    held.unsure |= {decided: WHOLE} if decided is not None and decided >= 0 else {}
                    held.never += [doubt] if decided is None else []
                if (scope := elsewhere(plan, node)) is not None:
                    held.never.append(scope)
                held.streams = dict(self._streaming(held.needs))
                if settings.egress == "known":
                    values = [*plan.program.foreign(node), *pasted(node.input, place, position, view.values)]
                    held.sent = list(self._sent(at, call, values, parts))

    def _place(self, component: Any) -> int:
        """What takes so many calls at a time: of components that are made for each call, one that is used again."""
        place = place_of(component)
        return id(place if self._used[id(place)] > 1 else type(component))

    def _recipient(self, call: CallRecord) -> Hashable:
        return recipient(call.component, self._keys.note(call.component), call.input)

    def rules(self) -> frozenset[Missing]:
        """Everything that a declaration might lift."""
        return frozenset(rule for held in self.calls.values() for rule in held.rules())

    def held_by(self, rule: Missing) -> Iterator[tuple[int, CallRecord]]:
        """The calls that this rule holds, by event."""
        for number, held in sorted(self.calls.items()):
            call = self.events[number].call
            if call is not None and rule in held.rules():
                yield number, call

    def _sent(self, number: int, call: CallRecord, values: list[str], inner: list[CallRecord]) -> Iterator[Sent]:
        for each, texts in [(call, values), *((part, texts_sent(part.input)) for part in inner)]:
            if self._facts[id(each.component)].local:
                continue
            rule = EGRESS
            if said_of(each.component).local is None and has_own_name(each.component):
                rule = (LOCAL, type(each.component))
            yield Sent(rule, [self._had(number, each, text) for text in texts if text.strip()])

    def _had(self, number: int, call: CallRecord, text: str) -> list[tuple[int, bool]]:
        """Where the endpoint of a call had this text from before."""
        found = []
        for earlier, took, brought in self._seen.get(self._recipient(call), ()):
            other = self.events[earlier].call
            if earlier >= number or other is None:
                break
            if any(text in each for each in took):
                found.append((earlier, False))
            elif other.end is not None and other.end < call.start and any(text in each for each in brought):
                found.append((earlier, True))
        return found

    def run(self, lifted: frozenset[Missing]) -> Ran:
        """The run with these rules lifted."""
        asked: list[float] = []
        start: list[float] = []
        over: list[float] = []
        seen: list[float] = []
        inside: dict[int, list[tuple[float, float, bool]]] = {}

        def known_s(number: int, share: float) -> float:
            call = self.events[number].call
            lets = self._lets_stream.get(number)
            if share >= WHOLE or call is None or not (streams(call) or lets in lifted):
                return over[number]
            return start[number] + share * (over[number] - start[number])

        for number, event in enumerate(self.events):
            at = max((seen[before] for before in event.after), default=0.0) + event.think_s
            asked.append(at)
            held, call = self.calls.get(number), event.call
            ready = at
            if held is not None and lifted.issuperset(held.never):
                needs = held.needs if held.doubt in lifted else held.needs | held.unsure
                times = [known_s(source, share) for source, share in needs.items()]
                times += [
                    min((over[n] if out else asked[n] for n, out in had), default=at)
                    for sent in held.sent
                    if EGRESS not in lifted and sent.rule not in lifted
                    for had in sent.had
                ]
                ready = min(at, max(times, default=0.0))
            took, kept_s = call.took_s if call is not None else 0.0, 0.0
            if call is not None:
                spans = inside.setdefault(self._place(call.component), [])
                limit = self._facts[id(call.component)].concurrency or 1
                if held is not None and held.narrow in lifted:
                    limit = MANY
                ready = _entered_s(spans, ready, at, limit)
                if ready >= at and more_at_a_time(call.component) not in lifted:
                    ready = max(ready, at + call.delayed_s)  # by early calls in the only place, as it was
                kept_s = _in_the_way_s(spans, ready, ready + took, limit) if ready < at else 0.0
                spans.append((ready, ready + took, ready < at))
            start.append(ready)
            over.append(ready + took)
            again = held is not None and held.feeds is not None and held.feeds not in lifted
            seen.append(kept_s + (at + took if again else max(at, over[-1])))
        return Ran(seen[-1], [saw - at for saw, at in zip(seen, asked, strict=True)])

    def _streaming(self, needs: Mapping[int, float]) -> Iterator[tuple[int, Missing]]:
        """What would let the answers stream of which a part is enough."""
        for number, share in needs.items():
            call = self.events[number].call
            method = METHODS.get((call.family, call.method)) if call is not None else None
            if share >= WHOLE or call is None or method is None or streams(call):
                continue
            if could_stream(method, call.component) is not None:
                option = getattr(call.component, "streaming", None) is False
                lift = STREAMING if option else STREAMS_EQUAL
                if said_of(call.component).streams_equal is None:
                    self._lets_stream[number] = (lift, type(call.component))
                    yield number, self._lets_stream[number]


class _Sources:
    """What the learnt inputs of a run's calls are made of, as events."""

    def __init__(self, graph: Graph, events: list[Event], trace: Trace, fits: dict[str, Fit]) -> None:
        self._graph, self._events = graph, events
        self.numbers = {event.call: number for number, event in enumerate(events) if event.call is not None}
        self._made = handed(graph, {name: dict(zip(fit.places, fit.calls, strict=True)) for name, fit in fits.items()})
        self.steps = {n: event for n, event in enumerate(events) if event.visit is not None}
        """Framework nodes that start or end, by event."""

    def of(self, node: Node, place: Index, number: int, without: set[str]) -> dict[int, float]:
        """What this call needs; from what share on where a text tells. `without`: nodes that only decide."""
        texts = self._events[number].needs or {}
        pasted = {ref.node for leaf in node.leaves() for ref in refs_in(leaf)}
        deciding = self.named(without - pasted, place, number)
        found = self.named({ref.node for ref in node.taken()} - (without - pasted), place, number)
        return {n: share for n, share in texts.items() if n not in deciding} | found | self._ends(node, number)

    def _ends(self, node: Node, number: int) -> dict[int, float]:
        """What the last round of a loop handed on is known as that when the program has come to this call's node."""
        of_last = any(ref.path[:1] == (-1,) and self._graph.by_name[ref.node].relay is not None for ref in node.refs())
        call = self._events[number].call
        visit = call.visit.outermost if call is not None and call.visit is not None else None
        entered = (n for n, event in self.steps.items() if event.visit is visit and event.entered)
        return dict.fromkeys(entered, WHOLE) if of_last and visit is not None else {}

    def named(self, names: AbstractSet[str], place: Index, number: int) -> dict[int, float]:
        """The events of these nodes that this call needs."""
        texts = self._events[number].needs or {}
        return {
            source: texts.get(source, WHOLE) for name in sorted(names) for source in self._numbers(name, place, number)
        }

    def _numbers(self, name: str, place: Index, before: int) -> Iterator[int]:
        made, source = self._made.get(name), self._graph.by_name[name]
        if made is not None:  # those of the same element, where it is one of a list
            same = [call for index, call in made.items() if index[: len(place)] == place[: len(index)]]
            yield from (n for call in same if (n := self.numbers.get(call, before)) < before)
        elif source.site:
            yield from (n for call, n in self.numbers.items() if call.site == source.site and n < before)
        elif not source.gathers:
            yield from [n for n, event in self.steps.items() if n < before and name in _brought(event)][-1:]


def _brought(event: Event) -> tuple[str, ...]:
    """The sources that are known when a framework node starts or ends."""
    node = event.visit.node if event.visit is not None else ""
    return (f"{node}.in", f"{node}.answers") if event.entered else (f"{node}.out",)


class _Sure:
    """Since when nothing in the program's control stood in the way of a call. The rules are those of runs, which are
    asked again after every step of the last one."""

    def __init__(self, plan: Plan, events: list[Event], resumed: bool) -> None:
        self._calls: dict[tuple[int, bool], int] = {}
        withins = {event.call.within for event in events if event.call is not None}
        topology = plan.topology.from_within if plan.topology is not None and resumed else plan.topology
        control = Control(topology, plan.barriers, (), ()) if topology is not None else None
        since = dict.fromkeys(((within, certain) for within in withins for certain in (True, False)), -1)
        for number in range(-1, len(events)):
            call = events[number].call if number >= 0 else None
            if call is not None:
                self._calls |= {(number, c): since[call.within, c] for c in (True, False) if (call.within, c) in since}
            elif control is not None:
                visit = events[number].visit if number >= 0 else None
                if visit is not None and events[number].entered:
                    control.enter(visit.node, visit.leg if visit.goes_on else None)
                elif visit is not None:
                    control.leave(visit.node)
                for within, certain in itertools.product(withins, (True, False)):
                    if control.refuses(within, certain):
                        since.pop((within, certain), None)
                    else:
                        since.setdefault((within, certain), number)

    def since(self, number: int, certain: bool) -> int | None:
        """The event since which it did not; -1: from the start; None: it does until the program makes the call.
        `certain`: nothing but the graph's shape makes sure of it."""
        return self._calls.get((number, certain))


def _entered_s(spans: list[tuple[float, float, bool]], ready: float, at: float, limit: int) -> float:
    """When a call gets into its component that is ready then and demanded `at` some time (`accel.run.waits.gates`)."""
    now = ready
    while now < at:
        ends = [end for begin, end, _ in spans if begin <= now < end]
        if len(ends) < limit:
            return now
        now = min(ends)
    while True:
        others = [(end, early) for begin, end, early in spans if begin <= now < end]
        if len(others) < limit or not any(early for _, early in others):
            return now
        now = min(end for end, early in others if early)


def _in_the_way_s(spans: list[tuple[float, float, bool]], begin: float, end: float, limit: int) -> float:
    """How long an early call keeps the program's own from entering its component, which begin while it is inside."""
    own = (at for at, _, early in spans if begin < at < end and not early)
    full = (at for at in own if sum(1 for other, over, _ in spans if other <= at < over) >= limit)
    return end - min(full, default=end)
