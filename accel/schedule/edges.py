"""A recorded run as events with their true edges: what every call had to wait for, whoever schedules it.

Data edges come from the graph's templates, evaluated on the run with one source at a time taken away: an input that is
complete all the same doesn't need that source, and of a streamed text it needs what came before the point from which
on it is complete. Control and hazard edges are added; all else is the program's own order and its time to think.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..evaluate import UNKNOWN, Prediction, has_gap, predict
from ..extract import Partial
from ..ir import OPS, Graph, Node
from ..record import CallRecord, Trace
from ..run.forecast import known_prefix
from ..run.topology import START, Topology
from ..values import Tree, freeze

WHOLE = 1.0


@dataclass(eq=False)
class Event:
    """A demand of the program, or (without a call) a moment in it: a framework node starts or ends, the run ends.

    Events are numbered in program order; edges name earlier events.
    """

    call: CallRecord | None
    after: tuple[int, ...] = ()
    """The calls that had ended before the program got here; it got here `think_s` seconds after the last of them."""
    think_s: float = 0.0
    needs: dict[int, float] | None = None
    """Which events its input is made of, and from what share of their output (0 to 1) on the input is complete.
    None: nothing explains the input, so it is known only when the program has made the call."""
    prefix: dict[int, float] = field(default_factory=dict)
    """For every event it needs: the share of its prompt, from the beginning, that is known without that event."""


def events_of(trace: Trace, graph: Graph, topology: Topology | None = None) -> list[Event]:
    """All events of a completed run. `topology`: where control may go; calls inside a framework node wait until it is
    sure to run (None: all are)."""
    elements = _Elements(trace, graph)
    moments = [("in", visit.node, visit.start, visit.started_s) for visit in trace.visits]
    moments += [
        ("out", visit.node, visit.end, visit.ended_s)
        for visit in trace.visits
        if visit.end is not None and visit.ended_s is not None
    ]
    ordered: list[tuple[int, float, CallRecord | tuple[str, str]]] = [
        (call.start, call.started_s, call) for call in elements.calls
    ]
    ordered += [(at, time_s, (suffix, node)) for suffix, node, at, time_s in moments]
    ordered.sort(key=lambda entry: entry[0])
    events: list[Event] = []
    numbers: dict[tuple[str, int], int] = {}
    control = _ControlEdges(topology)
    for at, time_s, what in ordered:
        number = len(events)
        event = _placed(events, trace, at, time_s)
        if isinstance(what, CallRecord):
            event.call = what
            place = elements.place.get(id(what))
            if place is not None:
                numbers[place] = number
                event.needs = elements.needs(what, numbers, event.prefix)
            if event.needs is not None:
                _add_hazards(event, events)
                if (number_of := control.edge(what.within)) is not None:
                    event.needs[number_of] = WHOLE
        else:
            name = f"{what[1]}.{what[0]}"
            control.passed(*what, number)
            numbers[(name, sum(1 for known in numbers if known[0] == name))] = number
        events.append(event)
    ended_s = trace.ended_s if trace.ended_s is not None else max((e.ended_s or 0.0 for e in elements.calls), default=0)
    events.append(_placed(events, trace, None, ended_s))
    return events


def _placed(events: Sequence[Event], trace: Trace, at: int | None, time_s: float) -> Event:
    """An event at this position and time, after the calls that had ended by then."""
    ended = [
        (number, event.call)
        for number, event in enumerate(events)
        if event.call is not None and event.call.end is not None and (at is None or event.call.end < at)
    ]
    latest_start = max((call.start for _, call in ended), default=-1)
    # What ended before another of them started is implied by that one.
    direct = [(n, call) for n, call in ended if call.end is not None and call.end > latest_start]
    known_s = max((call.ended_s for _, call in direct if call.ended_s is not None), default=trace.started_s)
    return Event(None, tuple(n for n, _ in direct), max(0.0, time_s - known_s))


def _add_hazards(event: Event, events: Sequence[Event]) -> None:
    """A read comes after every earlier write."""
    assert event.call is not None and event.needs is not None
    if OPS[event.call.op].effect == "reads":
        for number, other in enumerate(events):
            if other.call is not None and OPS[other.call.op].effect == "writes":
                event.needs[number] = WHOLE


class _ControlEdges:
    """From which moment on it is sure that the framework node a call is made in will run (once more)."""

    def __init__(self, topology: Topology | None) -> None:
        self._topology = topology
        self._sure: dict[str, int | None] = {}
        """By framework node, the moment since when its next, or present, visit is sure; None: from the start."""
        if topology is not None:
            self._sure = dict.fromkeys(topology.inevitable(START))

    def passed(self, suffix: str, node: str, number: int) -> None:
        """The program enters or leaves a framework node."""
        if self._topology is None:
            return
        if suffix == "out":
            self._sure.pop(node, None)
            return
        for coming in (node, *self._topology.inevitable(node)):
            self._sure.setdefault(coming, number)

    def edge(self, within: str) -> int | None:
        """The moment that calls inside this node wait for, if any."""
        return self._sure.get(within)


class _Elements:
    """The calls of a run at their places in the graph; an `Env` of everything the run knew in the end."""

    def __init__(self, trace: Trace, graph: Graph) -> None:
        self.calls = [
            call
            for call in trace.calls
            if call.ok and not call.composite and (call.parent is None or call.parent.composite)
        ]
        self.place: dict[int, tuple[str, int]] = {}
        self._graph = graph
        self._outputs: dict[str, Tree] = {"input": trace.input}
        for node in graph.nodes:
            name, _, suffix = node.name.rpartition(".")
            if node.op.name in ("enter", "exit"):
                visits = [visit for visit in trace.visits if visit.node == name]
                values = [visit.entered if suffix == "in" else visit.left for visit in visits]
                self._outputs[node.name] = values if node.many else values[0] if values else UNKNOWN
            elif node.site:
                self._locate(node)

    def value(self, node: str) -> Tree:
        return self._outputs.get(node, UNKNOWN)

    def _locate(self, node: Node) -> None:
        """Find the calls a node stands for: those with the inputs it predicts; an opaque node takes what is left."""
        free = [
            call
            for call in self.calls
            if call.site == node.site and call.family == node.method and id(call) not in self.place
        ]
        found: list[CallRecord | None] = list(free)
        if node.predictable:
            found = []
            for tree in predict(node, self).inputs:
                match = next((c for c in free if not has_gap(tree) and freeze(c.input) == freeze(tree)), None)
                found.append(match)
                if match is not None:
                    free.remove(match)
        for position, call in enumerate(found):
            if call is not None:
                self.place[id(call)] = (node.name, position)
        values = [UNKNOWN if call is None else call.output for call in found]
        self._outputs[node.name] = values if node.many else values[0] if values else UNKNOWN

    def needs(
        self, call: CallRecord, numbers: Mapping[tuple[str, int], int], prefix: dict[int, float]
    ) -> dict[int, float] | None:
        """See `Event.needs`; fills in `Event.prefix`."""
        name, position = self.place[id(call)]
        node = self._graph.by_name[name]
        if not node.predictable or not node.always:
            return None
        found: dict[int, float] = {}
        for source, at in self._sources(node):
            without = _Without(self, source, at, UNKNOWN)
            seen = predict(node, without)
            if _is_complete(seen, position):
                continue
            if (source, at) not in numbers:
                return None
            number = numbers[(source, at)]
            found[number] = self._share(node, position, source, at)
            if len(seen.inputs) > position:
                prefix[number] = known_prefix(seen.inputs[position]) / max(1, text_length(call.input))
        return found

    def _sources(self, node: Node) -> Iterator[tuple[str, int]]:
        """Every element of every node this one refers to, without the run's input."""
        for name in dict.fromkeys(ref.node for ref in node.refs()):
            if name != "input":
                value = self.value(name)
                count = len(value) if self._graph.by_name[name].many and isinstance(value, list) else 1
                for position in range(count):
                    yield name, position

    def _share(self, node: Node, position: int, source: str, at: int) -> float:
        """From what share of a streamed output on the input at `position` is complete."""
        value = self.value(source)
        output = value[at] if self._graph.by_name[source].many else value
        text = output.get("content") if isinstance(output, dict) else None
        if not self._graph.by_name[source].op.streams or not isinstance(text, str) or not text:
            return WHOLE

        def enough(length: int) -> bool:
            part = {"content": Partial(text[:length])}
            return _is_complete(predict(node, _Without(self, source, at, part)), position)

        low, high = 0, len(text)
        if not enough(high):
            return WHOLE
        while low < high:  # more of a text never makes less of an input known
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle + 1, high)
        return low / len(text)


class _Without:
    """What the run knew, with one value replaced."""

    def __init__(self, elements: _Elements, source: str, position: int, value: Tree) -> None:
        self._elements = elements
        self._source = source
        whole = elements.value(source)
        if isinstance(whole, list) and elements._graph.by_name[source].many:
            self._value: Tree = [value if i == position else item for i, item in enumerate(whole)]
        else:
            self._value = value

    def value(self, node: str) -> Tree:
        return self._value if node == self._source else self._elements.value(node)


def _is_complete(seen: Prediction, position: int) -> bool:
    return len(seen.inputs) > position and not has_gap(seen.inputs[position])


def text_length(tree: Tree) -> int:
    """Characters in all texts of a tree."""
    return sum(map(len, texts_of(tree)))


def texts_of(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict | list):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from texts_of(value)
