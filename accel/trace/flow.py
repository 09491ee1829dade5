"""A recorded run as events with their true edges: what every call had to wait for, whoever schedules it.

Data edges come from the values alone, not from what was learnt: an input needs the earliest output that an embedding or
a text in it was taken from (a whole answer, a line of it, a field of its JSON, a found passage), and of a streamed
answer only the part up to there; an embedding that no output holds needs those that it is the mean of. What leaves no
text behind (a yes, a count) makes no data edge, so that a schedule is judged too strictly rather than too kindly.
Control and hazard edges are added; all else is the program's own order and its time to think.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import add, mul

from ..graph.ops import OPS
from ..graph.topology import START, Topology
from ..text.extract import extract
from ..text.values import Tree, Vector, leaves, texts_of
from .order import Event, end_of, ordered
from .record import CallRecord, Trace

WHOLE = 1.0
SHORTEST = 4
"""Characters of a text that can be told from chance;"""
WORDLIKE = 12
"""shorter ones than this count only as whole words."""
MOST_IN_MEAN = 8
"""Embeddings of which another one may be the mean;"""
TOLERANCE = 1e-9
"""as exactly as numbers with so many digits tell."""


def events_of(
    trace: Trace,
    topology: Topology | None = None,
    deciding: Mapping[CallRecord, Sequence[CallRecord]] | None = None,
    using: Mapping[CallRecord, Mapping[int, float]] | None = None,
) -> list[Event]:
    """All events of a completed run. `topology`: where control may go; calls inside a framework node wait until it is
    sure to run (None: all are). `deciding`: for calls that are not made in every run, the calls that decide it; they
    wait for these instead. `using`: what an input is made of, also where no text tells, as positions in the trace
    with shares. Both as a learnt graph knows them (`accel.learn.check.ties`).
    """
    events: list[Event] = []
    control = _ControlEdges(topology)
    data = _DataEdges(trace)
    numbers: dict[CallRecord, int] = {}
    placed: dict[int, int] = {}
    """Events by position."""
    for at, event in ordered(trace):
        call = event.call
        if call is not None:
            if OPS[call.op].issuable:
                event.needs = {}
                data.add(event)
                _add_hazards(event, events)
                moment = control.edge(call.within)
                if deciding is not None and call in deciding:
                    event.needs |= {numbers[by]: WHOLE for by in deciding[call] if by in numbers}
                elif moment is not None:
                    event.needs[moment] = WHOLE
                for position, share in using.get(call, {}).items() if using is not None else ():
                    if position in placed:
                        event.needs.setdefault(placed[position], share)
            data.known(len(events), call)
            numbers[call] = len(events)
        elif event.visit is not None:
            control.passed(event.entered, event.visit.node, len(events))
        placed[at] = len(events)
        events.append(event)
    return [*events, end_of(trace, events)]


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

    def passed(self, entered: bool, node: str, number: int) -> None:
        """The program enters or leaves a framework node."""
        if self._topology is None:
            return
        if not entered:
            self._sure.pop(node, None)
            return
        for coming in (node, *self._topology.inevitable(node)):
            self._sure.setdefault(coming, number)

    def edge(self, within: str) -> int | None:
        """The moment that calls inside this node wait for, if any."""
        return self._sure.get(within)


# --- data


@dataclass(slots=True)
class _Piece:
    """A text that an output brought, and what share of the output had to be there for it."""

    text: str
    share: float
    news: bool | None = None
    """Whether nobody had it before; None as long as nobody asked."""

    def find(self, text: str) -> int:
        """Where it stands in another text; -1 if it doesn't."""
        at = text.find(self.text)
        while at >= 0 and len(self.text) < WORDLIKE and not _is_apart(text, at, at + len(self.text)):
            at = text.find(self.text, at + 1)
        return at


def _is_apart(text: str, at: int, end: int) -> bool:
    """Whether no letter, digit or underscore stands before or after this part of a text."""
    around = text[at - 1 : at] if at else "", text[end : end + 1]
    return not any(each.isalnum() or each == "_" for each in around)


@dataclass(slots=True)
class _Output:
    """What one call brought."""

    number: int
    call: CallRecord
    alternatives: list[list[_Piece]]
    asked: int
    """How many texts had been asked by then."""


class _DataEdges:
    """Which earlier outputs the texts of an input were taken from."""

    def __init__(self, trace: Trace) -> None:
        self._given = sorted((text for text in texts_of(trace.input) if len(text) >= WORDLIKE), key=len, reverse=True)
        self._asked = ["\0".join(texts_of(trace.input))]
        """What the run began with and what it has sent so far: an answer that repeats it did not bring it."""
        self._outputs: list[_Output] = []
        self._vectors: dict[Vector, list[tuple[int, CallRecord]]] = {}
        """By vector, which events brought it."""

    def known(self, number: int, call: CallRecord) -> None:
        """The event with this number brought an output."""
        self._asked.append("\0".join(texts_of(call.input)))
        for vector in vectors_of(call.output):
            self._vectors.setdefault(vector, []).append((number, call))
        self._outputs.append(_Output(number, call, list(_alternatives(call)), len(self._asked)))

    def _made_of(self, vector: Vector, call: CallRecord) -> list[int]:
        """The events that gave a vector, or the last few of which it is the mean, whatever its length: so is the
        embedding of several texts that stand for one question."""

        def first(held: Sequence[tuple[int, CallRecord]]) -> list[int]:
            return [number for number, source in held if source.end is not None and source.end < call.start][:1]

        if vector in self._vectors:
            return first(self._vectors[vector])
        numbers = vector.numbers()
        total, found = [0.0] * len(numbers), list[int]()
        for other, held in reversed(self._vectors.items()):
            parts = other.numbers()
            given = first([(number, source) for number, source in held if source.op == "embedding"])
            if given and len(parts) == len(total):
                total, found = list(map(add, total, parts)), [*found, *given]
                if len(found) > 1 and _is_parallel(total, numbers):
                    return found
                if len(found) == MOST_IN_MEAN:
                    break
        return []

    def _is_news(self, output: _Output, piece: _Piece) -> bool:
        """Choosing among known texts is news, too: what a search or a reranking found counts, were it in the input."""
        if piece.news is None:
            chosen = not OPS[output.call.op].streams and len(piece.text) >= WORDLIKE
            piece.news = chosen or not any(piece.text in asked for asked in self._asked[: output.asked])
        return piece.news

    def _found(self, output: _Output, text: str, taken: set[str]) -> list[tuple[_Piece, int]]:
        """Pieces of an output that stand in a text and are not accounted for yet, and where."""
        for pieces in output.alternatives:
            found = [
                (piece, at)
                for piece in pieces
                if not any(piece.text in other for other in taken)
                and (at := piece.find(text)) >= 0
                and self._is_news(output, piece)
            ]
            if found:
                return found
        return []

    def add(self, event: Event) -> None:
        """Fill in `needs` and `prefix`. Where several outputs had a text, it counts for the one that explains most of
        the input, the earliest of those; a reranking goes before what it ranked."""
        call = event.call
        assert call is not None and event.needs is not None
        for vector in vectors_of(call.input):
            for number in self._made_of(vector, call):
                event.needs[number] = WHOLE
        text = "\0".join(texts_of(call.input))
        for given in self._given:
            text = text.replace(given, "\0" * len(given))  # there as a whole: nobody had to find it
        open_to = [output for output in self._outputs if output.call.end is not None and output.call.end < call.start]
        taken: set[str] = set()
        found = {output.number: self._found(output, text, taken) for output in open_to}
        while True:
            best: tuple[tuple[int, bool, int], _Output] | None = None
            for output in open_to:
                pieces = found[output.number]
                worth = sum(len(piece.text) for piece, _ in pieces), output.call.op == "reranking", -output.number
                if pieces and (best is None or worth > best[0]):
                    best = worth, output
            if best is None:
                return
            _, output = best
            open_to.remove(output)
            event.needs[output.number] = max(piece.share for piece, _ in found[output.number])
            event.prefix[output.number] = min(at for _, at in found[output.number]) / max(1, len(text))
            more = {piece.text for piece, _ in found[output.number]}
            taken |= more
            for output in open_to:
                if any(piece.text in other for piece, _ in found[output.number] for other in more):
                    found[output.number] = self._found(output, text, taken)


def _alternatives(call: CallRecord) -> Iterator[list[_Piece]]:
    """The texts of an output, wholes before their parts."""
    texts = [text.strip() for text in texts_of(call.output) if len(text.strip()) >= SHORTEST]
    yield [_Piece(text, WHOLE) for text in texts]
    content = call.output.get("content") if isinstance(call.output, dict) else None
    if not isinstance(content, str) or not content:
        return
    lines = []
    end = 0
    for line in content.splitlines(keepends=True):
        end += len(line)
        bare = line.strip().lstrip("-*•0123456789.) ").strip()
        if len(bare) >= SHORTEST:
            lines.append(_Piece(bare, end / len(content)))
    yield lines
    values = [text for text in texts_of(_json(content)) if len(text) >= SHORTEST]
    yield [_Piece(text, _share_of(text, content)) for text in values]


def _json(text: str) -> Tree:
    value = extract("json", text, True)
    return value if isinstance(value, dict | list) else None


def _share_of(piece: str, text: str) -> float:
    """Up to the character after the piece, which closes it."""
    at = text.find(piece)
    return min(WHOLE, (at + len(piece) + 1) / len(text)) if at >= 0 else WHOLE


def _is_parallel(one: Sequence[float], other: Sequence[float]) -> bool:
    def product(left: Sequence[float], right: Sequence[float]) -> float:
        return sum(map(mul, left, right), 0.0)

    both = product(one, other)
    return both > 0 and both * both >= (1 - TOLERANCE) * product(one, one) * product(other, other)


def vectors_of(tree: Tree) -> Iterator[Vector]:
    """All vectors of a tree."""
    yield from (leaf for _, leaf in leaves(tree) if isinstance(leaf, Vector))
