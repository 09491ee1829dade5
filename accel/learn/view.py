"""One trace while it is being explained: the values known so far, and the calls no node has explained yet."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest

from ..graph.ir import Graph, Node
from ..graph.ops import OPS
from ..graph.predict import laid_out, nested, predict, told
from ..graph.topology import ANEW, leg_in, leg_of
from ..process.properties import cached_property
from ..process.spare import breathe
from ..text.paths import UNKNOWN, Index, enumerate_stars, follow, has_gap, replaces
from ..text.relay import Relay, relayed
from ..text.steps import STAR, Star
from ..text.templates import Field, Ref
from ..text.values import Opaque, Tree, freeze, texts_of
from ..trace.beside import BESIDE
from ..trace.record import CallRecord, Trace, Visit
from .covers.decisions import DECIDE, Outcome
from .covers.index import Values
from .covers.shape import Place, Shape, outline_of, split_at, taken_apart

Ancestry = tuple[bool, ...]
"""`Node.ancestry`."""
AT_ONCE_S = 0.01
"""In which frameworks and programs get from one thing to the next."""


@dataclass(slots=True)
class Fit:
    """How a candidate explains one trace."""

    calls: list[CallRecord]
    """By position."""
    predicted: int
    distinct: bool
    places: list[Index] = field(default_factory=list)
    """What each of the calls is bound to."""
    decided: bool = True
    """Whether the node's decisions say that the calls are made."""
    skips: bool = False
    """The program made some of the calls, and not those between them."""
    repeats: bool = False
    """It made equal ones."""

    @property
    def partial(self) -> bool:
        return self.predicted > len(self.calls)


@dataclass(eq=False)
class View:
    """See the module."""

    number: int
    trace: Trace
    complete: bool
    values: Values = field(default_factory=Values)
    open: dict[str, list[CallRecord]] = field(default_factory=dict)
    nodes: set[str] = field(default_factory=set)
    """Those that explain its calls."""
    made: dict[str, list[CallRecord]] = field(default_factory=dict)
    """By node its calls."""
    _replaced: dict[Field, float] = field(default_factory=dict)
    indexed: bool = True
    """Whether its values are looked for in inputs; a known graph needs only the outputs."""
    witness: int = 0
    """The number of the first trace that proves nothing for this one (`witness`)."""
    _split: dict[tuple[int, tuple[Place, ...]], tuple[Hashable, list[Tree], Hashable] | None] = field(
        default_factory=dict
    )
    _outlines: dict[int, int] = field(default_factory=dict)

    def ran(self, framework_node: str) -> bool:
        return any(visit.node == framework_node for visit in self.trace.visits)

    def stopped(self, node: Node) -> bool:
        """Whether there is no telling which more calls the program would have made: their framework node paused the
        run, or only went on in other legs than theirs."""
        paused, legs = self._legs.get(node.within, (False, ()))
        inner = node.site.partition("|")[0]
        return paused or bool(legs) and leg_of(node.site) not in (leg_in(inner, leg) for leg in legs)

    @cached_property
    def _legs(self) -> dict[str, tuple[bool, set[str]]]:
        """By framework node, whether it paused the run, and the legs that it went through."""
        found: dict[str, tuple[bool, set[str]]] = {}
        for visit in self.trace.outermost if self.complete else ():
            paused, legs = found.get(visit.node, (False, set()))
            found[visit.node] = paused or visit.interrupted, legs | set(visit.legs or [ANEW])
        return found

    def is_drawn(self, framework_node: str) -> bool:
        """Whether the framework tells when it runs."""
        return bool(framework_node) and (self.trace.drawn or framework_node in self.trace.chosen)

    def replaced_at(self, field: Field) -> float:
        """The position in the trace from which on the program's state had something else in a field than the run was
        given."""
        if field not in self._replaced:
            given = follow(self.trace.input, field)
            visits = self.trace.outermost
            held = [(visit.start, visit.entered) for visit in visits]
            held += [(visit.end, visit.left) for visit in visits if visit.end is not None]
            self._replaced[field] = min((at for at, state in held if replaces(state, field, given)), default=math.inf)
        return self._replaced[field]

    def first_round(self, site: str) -> list[CallRecord]:
        """The open calls of a site that the first visit of their framework node made, and the visits beside it."""
        calls = self.open.get(site, [])
        first = next((visit for visit in self.trace.visits if calls and visit.node == calls[0].within), None)
        if first is None:
            return []
        row = self.trace.rows.get((first.node, first.inside), []) if first.order[1:] else []
        beside = [visit for visit in row if visit.order[:-1] == first.order[:-1]] or [first]
        spans = [(visit.start, visit.end) for visit in beside if visit.end is not None]
        return [call for call in calls if any(start < call.start < end for start, end in spans)]

    def ready(self) -> dict[str, list[CallRecord]]:
        """By site the open calls before which no open call elsewhere has ended."""
        ends = sorted(
            (min((call.end for call in calls if call.end is not None), default=math.inf), site)
            for site, calls in self.open.items()
        )
        first = {site: next((end for end, other in ends if other != site), math.inf) for site in self.open}
        return {site: [call for call in calls if call.start < first[site]] for site, calls in self.open.items()}

    # --- values

    def add_sources(self, ancestries: Mapping[str, Ancestry], answered: Container[str] = ()) -> None:
        """Run input and everything that entered or left framework nodes, by their `Node.ancestry`; what they found
        `answered`, of those with such a source."""
        values, trace = self.values, self.trace
        values.outputs["input"], values.outputs[BESIDE] = trace.input, trace.beside
        values.moments = {call.start: call.visit for call in trace.calls if call.visit is not None}
        if self.indexed:
            searches = (call for call in trace.calls if OPS[call.op].engine not in DECIDE)
            values.found = {text for call in searches for text in texts_of(call.output)} | trace.found
            values.add("input", (), trace.input, 0, early=True, texts=True)
            if trace.beside is not None:
                values.add(BESIDE, (), trace.beside, 0, early=True, texts=True)
        visits: dict[str, list[tuple[Index, Visit]]] = {name: [] for name in ancestries}
        for visit in trace.visits:
            place = told(ancestries[visit.node], visit.place)
            if place is not None:
                visits[visit.node].append((place, visit))
        for name, held in visits.items():
            found: list[tuple[Index, Visit, int | None, Tree]]
            for way in ("in", "out", "answers") if name in answered else ("in", "out"):
                source = f"{name}.{way}"
                if way == "in":
                    found = [(place, visit, visit.start, visit.entered) for place, visit in held]
                elif way == "out":
                    found = [(place, visit, visit.end, visit.left) for place, visit in held]
                else:
                    found = [(place, v, v.start, list(v.answers)) for place, v in held if v.answers]
                outputs = {place: value for place, _, _, value in reversed(found)}
                dims = sum(ancestries[name])
                values.outputs[source] = laid_out(outputs, dims, lambda _: True) if dims else outputs.get((), UNKNOWN)
                for place, visit, known, value in found:
                    if known is not None and self.indexed:
                        values.add(source, place, value, known, early=False, texts=False, visit=visit)
                    elif known is not None:
                        values.note(source, place, known)

    def hand_on(self, name: str, relay: Relay, site: str) -> None:
        """The values of a relay. Its rounds are the calls of a node that is known, else the open ones of this site."""
        made, known = self.open.get(site, []), relay.later.node in self.values.outputs
        rounds = [call.output if call.ok else UNKNOWN for call in made]
        values = relayed(relay, self.values.value(relay.later.node) if known else rounds, self.values)
        self.values.outputs[name] = list(values)
        since = [] if relay.start is None else [self.known_at(relay.start, ())]
        if known:
            since += [self.known_at(relay.later, (at,)) for at in range(len(values))]
        else:
            since += [call.end if call.end is not None else call.start for call in made]
        for at, moment in zip(range(relay.first, len(values)), since, strict=False):
            self.values.note(name, (at,), moment)
            last = [(-1,)] if at == len(values) - 1 else []
            for path in [(at,), *last] if self.indexed else []:
                self.values.add(name, path, values[at], moment, early=True, texts=True, handed=True)

    def known_at(self, ref: Ref, binding: Index) -> int:
        """The position in the trace from which on the value was known that an element refers to."""
        bound = iter(binding)
        path = (next(bound, 0) if isinstance(step, Star) else step for step in ref.path)
        return self.values.since(ref.node, tuple(step for step in path if isinstance(step, str | int)))

    def take(self, node: Node, calls: list[CallRecord], bindings: Sequence[Index] = ()) -> None:
        """These calls are explained; make their outputs sources for later sites."""
        outputs = [call.output if call.ok else UNKNOWN for call in calls]
        paths: list[Index] = [(position,) if node.many else () for position in range(len(calls))]
        if node.is_placed:
            self.values.outputs[node.name] = nested(bindings, outputs, node.dims, True, node.is_sparse)
            paths, _ = enumerate_stars(self.values.outputs[node.name], (STAR,) * node.dims)
        else:
            self.values.outputs[node.name] = outputs if node.many else outputs[0] if outputs else UNKNOWN
        if calls and node.predictable:
            self.nodes.add(node.name)
        self.made[node.name] = calls
        taken = set(map(id, calls))
        held = self.open.get(node.site)
        if held is not None:
            self.open[node.site] = [call for call in held if id(call) not in taken]
        for path, call in zip(paths, calls, strict=True) if self.indexed else ():
            if call.ok and call.end is not None and not isinstance(call.output, Opaque):
                self.values.add(node.name, path, call.output, call.end, early=True, texts=node.op.streams)

    def gather(self, node: Node) -> None:
        """Put together what calls have given; unknown where one of them was not made."""
        found = predict(node, self.values)
        items = [UNKNOWN if has_gap(tree) else tree for tree in found.inputs]
        self.values.outputs[node.name] = (items if found.complete else UNKNOWN) if node.many else items[0]
        made = [self.made.get(ref.node, []) for ref in dict.fromkeys(node.refs())]
        rows: list[tuple[Index, Iterable[CallRecord]]] = [((), chain(*made))]
        if node.many:
            rows = [((at,), row) for at, row in enumerate(zip(*made, strict=False))]
        for place, calls in rows:
            self.values.note(node.name, place, max((call.end or 0 for call in calls), default=0))

    def work_out(self, node: Node, graph: Graph) -> None:
        """The value of a node that makes no calls, by those of others."""
        if node.gathers:
            self.gather(node)
        if node.relay is not None:
            self.hand_on(node.name, node.relay, graph.by_name[node.relay.later.node].site)

    # --- nodes against calls

    def fit(self, node: Node, shape: Shape | None = None) -> Fit:
        """Which of the open calls the node predicts, in its order; empty unless they are a beginning of it. With a
        `shape` the node's input is the list of its leaves."""
        breathe()
        if shape is None:
            node, shape = taken_apart(node)
        prediction = predict(node, self.values)
        known = [(freeze(t), b) for t, b in zip(prediction.inputs, prediction.bindings, strict=True) if not has_gap(t)]
        inputs = [tree for tree, _ in known]
        calls = self.like(node, shape)
        plain = assign(inputs, calls)
        unique = list(dict.fromkeys(inputs))
        if (
            "distinct" in self.values.readings
            and len(unique) < len(inputs)
            and (plain is None or len(plain) < len(inputs))
        ):
            assigned = assign(unique, calls)
            # Dropping duplicates explains more than stopping early, if then nothing is left over.
            if assigned is not None and (plain is None or len(assigned) == len(unique)):
                first = {tree: binding for tree, binding in reversed(known)}
                return Fit(assigned, len(unique), True, [first[tree] for tree in unique[: len(assigned)]])
        skips, plain = plain is None, plain or []
        places = [binding for _, binding in known[: len(plain)]]
        expected = len(plain) if self.stopped(node) else len(inputs)
        repeats = len(set(inputs[: len(plain)])) < len(plain)
        return Fit(plain, expected, False, places, prediction.decided, skips, repeats)

    def follow(self, node: Node) -> Fit:
        """`fit`, and what it predicts is explained."""
        fit = self.fit(node)
        if fit.skips and not self.complete:
            self._set_aside(node)
        self.take(node, fit.calls, fit.places)
        return fit

    def _set_aside(self, node: Node) -> None:
        """Visits side by side make calls in any order: those that the node predicts are no other node's, although some
        before them are still to come."""
        calls = self.open.get(node.site, [])
        if len({call.visit for call in calls}) > 1:
            bare, shape = taken_apart(node)
            expected = {freeze(tree) for tree in predict(bare, self.values).inputs}
            held = {id(call) for call, there in self.like(bare, shape) if there in expected}
            self.open[node.site] = [call for call in calls if id(call) not in held]

    def leaves_like(self, call: CallRecord, shape: Shape) -> tuple[list[Tree], Hashable] | None:
        """What a call has at the places of a shape, as it is and frozen; None if there is more that differs."""
        if shape.outline is not None:
            if id(call) not in self._outlines:
                self._outlines[id(call)] = outline_of(call.input)
            if self._outlines[id(call)] != shape.outline:
                return None
        key = (id(call), shape.places)
        if key not in self._split:
            split = split_at(call.input, shape.places)
            self._split[key] = (*split, freeze(split[1])) if split is not None else None
        held = self._split[key]
        return held[1:] if held is not None and held[0] == shape.rest else None

    def like(self, node: Node, shape: Shape) -> list[tuple[CallRecord, Hashable]]:
        """The open calls that differ from the node in its leaves alone, and what they have there."""
        calls = (call for call in self.open.get(node.site, ()) if call.family == node.method)
        return [(call, there[1]) for call in calls if (there := self.leaves_like(call, shape)) is not None]

    def gains_nothing(self, fit: Fit, late: Sequence[Ref]) -> bool:
        """Whether each of these calls followed at once on what entered or left a framework node."""
        return all(
            any(self._follows_at_once(call, ref, binding) for ref in late)
            for call, binding in zip(fit.calls, fit.places, strict=True)
        )

    def _follows_at_once(self, call: CallRecord, ref: Ref, binding: Index) -> bool:
        """Whether nothing happened between this value's moment and the call, and no time passed."""
        known = self.known_at(ref, binding)
        if call.started_s - self._moments.get(known, -math.inf) > AT_ONCE_S:
            return False
        return bisect_left(self._happened, call.start) == bisect_right(self._happened, known)

    @cached_property
    def _moments(self) -> dict[int, float]:
        """When framework nodes were entered and left, by position in the trace."""
        visits = self.trace.visits
        left = {visit.end: visit.ended_s for visit in visits if visit.end is not None and visit.ended_s is not None}
        return left | {visit.start: visit.started_s for visit in visits}

    @cached_property
    def _happened(self) -> list[int]:
        """The positions of calls, and of framework nodes that were left."""
        calls, visits = self.trace.calls, self.trace.visits
        ends = [*(call.end for call in calls), *(visit.end for visit in visits if not visit.graphs)]
        return sorted([*(end for end in ends if end is not None), *(call.start for call in calls)])

    def outcomes(self, node: Node, shape: Shape | None = None) -> Iterator[Outcome]:
        """What became of every call that the node without its level's bounds would expect."""
        if shape is None:
            node, shape = taken_apart(node)
        level = replace(node.level, cap=None) if node.level is not None else None
        expected = predict(replace(node, level=level), self.values)
        made, stopped = _last_first(self.like(node, shape)), self.stopped(node)
        for tree, binding in zip(expected.inputs, expected.bindings, strict=True):
            if has_gap(tree):
                continue
            calls = made.get(freeze(tree))
            if calls or not stopped:
                yield Outcome(self.witness, self.values, binding, bool(calls), calls.pop().start if calls else None)


def still_given(fields: Iterable[Field], made: Sequence[tuple[View, CallRecord]]) -> tuple[Field, ...]:
    """The fields of the run's input that the state of the program had unchanged when each of these calls was made."""
    return tuple(field for field in fields if all(call.start < view.replaced_at(field) for view, call in made))


def ancestries(views: Sequence[View]) -> dict[str, Ancestry]:
    """The framework nodes that ran, and which numbers of their visits' places were ever more than 0."""
    found: dict[str, Ancestry] = {}
    for view in views:
        for visit in view.trace.visits:
            found[visit.node] = either(found.get(visit.node, ()), tuple(map(bool, visit.place)))
    return found


def either(one: Ancestry, other: Ancestry) -> Ancestry:
    """What one of them tells apart."""
    return tuple(left or right for left, right in zip_longest(one, other, fillvalue=False))


def sites_of(views: list[View]) -> list[str]:
    """All call sites in the order of their first demand; calls that are composites stay, as sources."""
    order: dict[str, None] = {}
    for view in views:
        again = {(call.site, call.key) for call in view.trace.calls if call.ok}
        well = {site for site, _ in again}
        for call in view.trace.calls:
            if call.parent is not None and not call.parent.composite:
                continue  # embedding the query is part of the search
            # One that failed was made all the same, unless it was tried again; where all do, nothing is known of them.
            failed = call.failed and call.site in well and (call.site, call.key) not in again
            if call.ok or failed or (call.end is None and not view.complete):
                view.open.setdefault(call.site, []).append(call)
                order.setdefault(call.site)
    return list(order)


def _last_first(calls: list[tuple[CallRecord, Hashable]]) -> dict[Hashable, list[CallRecord]]:
    """Calls by what they ask; `pop` gives the earliest one that is left."""
    found: dict[Hashable, list[CallRecord]] = {}
    for call, key in reversed(calls):
        found.setdefault(key, []).append(call)
    return found


def assign(inputs: list[Tree], calls: list[tuple[CallRecord, Hashable]]) -> list[CallRecord] | None:
    """A call for each of the first predicted inputs; None unless the calls made are a beginning of the prediction."""
    by_input = _last_first(calls)
    assigned: list[CallRecord] = []
    missing = False
    for key in inputs:
        found = by_input.get(key)
        if found:
            if missing:
                return None  # a gap in the middle: the program skips elements by a rule we don't know
            assigned.append(found.pop())
        else:
            missing = True
    return assigned
