"""A graph executed one node after the other, on a recorded run's answers: what passes must leave as it is.

A p-graph makes the calls of the program. An e-graph does its work in other pieces: embeddings that searches begin with,
micro-batches, prompts and answers that are known in part. Here each piece shows as the call that it retires into, or as
waste.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from accel.graph.ir import Graph, Node
from accel.graph.ops import OPS
from accel.graph.predict import laid_out, nested, predict, told
from accel.graph.verify import GraphError
from accel.text.evaluate import Env, maker, text_of
from accel.text.extract import Open, Partial
from accel.text.paths import UNKNOWN, Index, has_gap
from accel.text.relay import relayed
from accel.text.templates import Join, Ref, Template, leaves_in
from accel.text.values import Tree, freeze
from accel.trace.record import CallRecord, Trace

CHARS_PER_TOKEN = 4
"""Of English text; exact enough to say which texts make a micro-batch."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked of a component at a call site, and answered."""

    site: str
    method: str
    input: Hashable
    output: Hashable
    writes: int = 0
    """Of a read: how many writes came before it."""


@dataclass(frozen=True, slots=True)
class Made:
    """A call, as a node of a graph makes it."""

    node: str
    position: int
    asked: Asked
    sure: bool = True
    """Whether the graph says that the program makes it."""

    @property
    def is_guess(self) -> bool:
        """The program never made this call."""
        return self.asked.output is UNKNOWN


@dataclass(slots=True)
class Interpretation:
    """What came of a graph."""

    calls: list[Made] = field(default_factory=list)
    """In the order in which the graph made them; a call that begins with another one stands after it."""
    wasted: list[Made] = field(default_factory=list)
    """Work done for calls that did not take it,"""
    missed: list[Made] = field(default_factory=list)
    """and calls that were to take it and did not find it."""


class Recorded:
    """A trace to execute graphs on: every call of it gives its answer once."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._open: dict[str, list[CallRecord]] = {}
        self._inner: dict[CallRecord, list[CallRecord]] = {}
        for call in trace.calls:
            if call.ok and call.parent is not None and not call.parent.composite:
                self._inner.setdefault(call.parent, []).append(call)
            elif call.ok:
                self._open.setdefault(call.site, []).append(call)

    def given(self, node: Node) -> Tree:
        """The value of a source: the run's input, or what entered or left a framework node."""
        if node.name == "input":
            return self.trace.input
        name, _, way = node.name.rpartition(".")
        visits = [visit for visit in self.trace.visits if visit.node == name]
        held = ((told(node.ancestry, visit.place), visit.entered if way == "in" else visit.left) for visit in visits)
        values = {place: value for place, value in held if place is not None}
        return laid_out(values, node.dims, lambda _: True) if node.dims else values.get((), UNKNOWN)

    def answered(self, site: str, method: str, tree: Tree) -> CallRecord | None:
        """The first call with this input that has not given its answer yet."""
        asked = freeze(tree)
        calls = self._open.get(site, [])
        found = next((call for call in calls if call.family == method and freeze(call.input) == asked), None)
        if found is not None:
            calls.remove(found)
        return found

    def left(self, site: str) -> list[CallRecord]:
        """The calls of a site that no other node has made."""
        return self._open.pop(site, [])

    def inside(self, outer: CallRecord) -> list[CallRecord]:
        """The calls made inside this one."""
        return self._inner.get(outer, [])

    def inside_any(self, site: str, method: str, tree: Tree) -> CallRecord | None:
        """A call with this input made inside a call of this site."""
        asked = freeze(tree)
        inner = (call for outer, calls in self._inner.items() if outer.site == site for call in calls)
        return next((call for call in inner if call.family == method and freeze(call.input) == asked), None)

    def asked(self) -> list[Asked]:
        """All calls of the program, in its order."""
        calls = [call for call in self.trace.calls if call.ok]
        writes = [call for call in calls if call.parent is None and OPS[call.op].effect == "writes"]
        return [self.seen(call, sum(w.end is not None and w.end < call.start for w in writes)) for call in calls]

    @staticmethod
    def seen(call: CallRecord, writes: int) -> Asked:
        """A recorded call, `writes` after the beginning of the run."""
        reads = OPS[call.op].effect == "reads"
        return Asked(call.site, call.family, freeze(call.input), freeze(call.output), writes if reads else 0)


def waits_for(graph: Graph) -> dict[str, frozenset[str]]:
    """For every node those that must be over before it: whose outputs it needs, and what it comes after. What is left
    to the program comes when the program gets there, after all that is demanded before."""
    found = {}
    before: list[str] = []
    for node in graph.nodes:
        left = not node.predictable and node.op.engine != "none" and not node.schedule.stage_of
        known = graph.producers[node.name] if node.relay is None else {ref.node for ref in node.relay.refs[:-1]}
        needed = {*known, *node.schedule.after, *(before if left else ())}
        found[node.name] = frozenset(needed | ({node.schedule.begins_with} - {""}))
        before.append(node.name)
    return found


def interpret(graph: Graph, trace: Trace, order: Sequence[str] | None = None) -> Interpretation:
    """What a graph makes of the run that a trace recorded. `order`: of all nodes, if it is not the graph's. Raises
    `GraphError` for an order in which a node comes before what it waits for, and for pieces that are none."""
    waits = waits_for(graph)
    run = _Interpreter(graph, Recorded(trace))
    names = list(order if order is not None else graph.by_name)
    for name in names:
        if not waits[name] <= run.over:
            raise GraphError(f"{name} comes before {', '.join(sorted(waits[name] - run.over))}, which it waits for")
        run.execute(graph.by_name[name])
    if any(node.relay is not None for node in graph.nodes):
        run.go_round(names)
    return run.result()


class _Interpreter(Env):
    def __init__(self, graph: Graph, recorded: Recorded) -> None:
        self._graph, self._recorded = graph, recorded
        self._outputs: dict[str, Tree] = {}
        self._answers: dict[tuple[str, int, Hashable], Tree] = {}
        """Of the calls made so far, by node, position and input: none is made twice."""
        self._ready: dict[str, dict[Hashable, Made]] = {}
        """By stage what it has made, by input,"""
        self._taken: set[Made] = set()
        """and what of that was taken."""
        self._calls: list[Made] = []
        self._missed: list[Made] = []
        self._writes = 0
        self.over: set[str] = set()

    def go_round(self, names: Sequence[str]) -> None:
        """Whatever follows from what rounds of loops have handed on. What nobody foresees comes after that."""
        nodes, handed = [self._graph.by_name[name] for name in names], None
        for left in (None, *(node for node in nodes if self._waits(node))):
            if left is not None:
                self.execute(left, loops=False)
            before = None
            while handed is None or handed != before:
                before = handed
                for node in nodes:
                    self.execute(node)
                handed = [freeze(self.value(node.name)) for node in nodes if node.relay is not None]

    def _waits(self, node: Node) -> bool:
        """Whether it is left to the program, while rounds of loops may yet foresee its calls. Nobody foresees writes,
        and reads come before them or after."""
        loops = any(other.relay is not None for other in self._graph.nodes)
        left = not node.predictable and node.op.engine != "none" and not node.schedule.stage_of
        return loops and left and node.op.effect != "writes"

    def value(self, node: str) -> Tree:
        """`Env`: what is known."""
        return self._outputs.get(node, UNKNOWN)

    def result(self) -> Interpretation:
        made = [made for stage in self._ready.values() for made in stage.values()]
        return Interpretation(self._calls, [each for each in made if each not in self._taken], self._missed)

    # --- nodes

    def execute(self, node: Node, loops: bool = True) -> None:
        """All calls of a node."""
        if node.gathers:
            found = predict(node, self)
            self._outputs[node.name] = found.inputs if node.many else found.inputs[0]
        elif node.relay is not None:
            self._outputs[node.name] = relayed(node.relay, self.value(node.relay.later.node), self)
        elif node.op.engine == "none":
            self._outputs[node.name] = self._recorded.given(node)
        elif node.predictable:
            self._publish(node, *self._elements(node, sure=False))
        elif not node.schedule.stage_of and not (loops and self._waits(node)):
            calls = self._recorded.left(node.site)
            outputs = [self._retire(node, position, call, False) for position, call in enumerate(calls)]
            self._outputs[node.name] = outputs if node.many else outputs[0] if outputs else UNKNOWN
        self.over.add(node.name)

    def _elements(self, node: Node, sure: bool) -> tuple[list[Index], list[Tree]]:
        """What the elements are bound to and put out whose calls can be made, and which the program makes. `sure`: only
        those that are decided."""
        prediction = predict(node, self, maker(node.input))
        if sure and not prediction.decided:
            return [], []
        bindings, outputs = [], []
        for position, (tree, binding) in enumerate(zip(prediction.inputs, prediction.bindings, strict=True)):
            if has_gap(tree):
                continue
            if node.schedule.prefills:
                tree = maker(_in_pieces(node, binding, position, self))(binding, position, self)
            output = self._call(node, position, tree, node.evidence.always and prediction.decided)
            if output is not UNKNOWN:
                bindings.append(binding)
                outputs.append(output)
        return bindings, outputs

    def _publish(self, node: Node, bindings: list[Index], outputs: list[Tree]) -> None:
        if node.schedule.needs_partial:
            for at, output in enumerate(outputs):
                for part in _growing(output):
                    self._tell(node, bindings[: at + 1], [*outputs[:at], part], complete=False)
                    self._go_on(node)
        self._tell(node, bindings, outputs, complete=True)

    def _tell(self, node: Node, bindings: list[Index], outputs: list[Tree], complete: bool) -> None:
        if node.is_placed:
            self._outputs[node.name] = nested(bindings, outputs, node.dims, complete, node.is_sparse)
        elif node.many:
            self._outputs[node.name] = outputs if complete else Open(outputs)
        else:
            self._outputs[node.name] = outputs[0] if outputs else UNKNOWN

    def _go_on(self, node: Node) -> None:
        """Whatever can begin with the part of this node's output that is known now."""
        for name in self._graph.consumers[node.name]:
            consumer = self._graph.by_name[name]
            after = set(consumer.schedule.after)
            if consumer.predictable and node.name not in after and after <= self.over:
                self._elements(consumer, sure=True)

    # --- calls

    def _call(self, node: Node, position: int, tree: Tree, sure: bool) -> Tree:
        """What a predicted call gives; unknown if the program never made it."""
        asked = (node.name, position, freeze(tree))
        if asked not in self._answers:
            is_stage = bool(node.schedule.stage_of)
            self._answers[asked] = self._stage(node, tree) if is_stage else self._ask(node, position, tree, sure)
        return self._answers[asked]

    def _ask(self, node: Node, position: int, tree: Tree, sure: bool) -> Tree:
        call = self._recorded.answered(node.site, node.method, tree)
        if call is not None:
            return self._retire(node, position, call, sure)
        self._calls.append(Made(node.name, position, Asked(node.site, node.method, freeze(tree), UNKNOWN), sure))
        return UNKNOWN

    def _retire(self, node: Node, position: int, call: CallRecord, sure: bool) -> Tree:
        """A call of the program's gets its answer."""
        for inner in self._recorded.inside(call):
            whole = Made(node.name, position, Recorded.seen(inner, 0), sure)
            self._calls.append(self._begun(node, whole, call, inner) if node.schedule.begins_with else whole)
        self._calls.append(Made(node.name, position, Recorded.seen(call, self._writes), sure))
        self._writes += node.op.effect == "writes"
        return call.output

    def _stage(self, node: Node, tree: Tree) -> Tree:
        """What a search begins with, made on its own."""
        inner = self._recorded.inside_any(node.site, node.method, tree)
        made = Asked(node.site, node.method, freeze(tree), UNKNOWN) if inner is None else Recorded.seen(inner, 0)
        self._ready.setdefault(node.name, {})[made.input] = Made(node.name, 0, made)
        return inner.output if inner is not None else UNKNOWN

    def _begun(self, node: Node, whole: Made, outer: CallRecord, inner: CallRecord) -> Made:
        """What a call begins with, as its stage has it."""
        stage, first = self._graph.by_name[node.schedule.begins_with], node.first
        if first is None or inner.family != stage.method:
            return whole
        if stage.schedule.batch_tokens:
            return replace(whole, asked=_aggregate(_at(outer.input, first.path), inner, stage.schedule.batch_tokens))
        ready = self._ready.get(stage.name, {}).get(whole.asked.input)
        if ready is None:
            self._missed.append(whole)
            return whole
        self._taken.add(ready)
        return replace(whole, asked=ready.asked)


# --- pieces


def _in_pieces(node: Node, binding: Index, position: int, env: _Interpreter) -> Tree:
    """The input with its last text as partial prefills and the full one leave it."""
    last = [leaf for leaf in leaves_in(node.input) if isinstance(leaf, Template)][-1]
    for cut in node.schedule.prefills:
        if cut >= len(last.parts) or not isinstance(last.parts[cut], Ref | Join):
            raise GraphError(f"{node.name} has no hole at {cut} to prefill up to")
    ends = [*node.schedule.prefills, len(last.parts)]
    pieces = [last.parts[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    text = "".join(text_of(Template(piece), binding, position, env) for piece in pieces)
    return _with(node.input, last, Template((text,)))


def _with(tree: Tree, old: Template, new: Template) -> Tree:
    if isinstance(tree, dict):
        return {key: _with(value, old, new) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_with(value, old, new) for value in tree]
    return new if tree is old else tree


def _growing(output: Tree) -> Iterator[Tree]:
    """An answer word by word."""
    text = output.get("content") if isinstance(output, dict) else None
    if isinstance(text, str):
        for space in re.finditer(r"\s+", text):
            yield {"content": Partial(text[: space.end()])}


def _micro_batches(texts: list[str], tokens: int) -> Iterator[list[str]]:
    """Texts that follow each other, so many tokens at a time."""
    start = size = 0
    for at, text in enumerate(texts):
        own = len(text) // CHARS_PER_TOKEN + 1
        if at > start and size + own > tokens:
            yield texts[start:at]
            start, size = at, 0
        size += own
    yield texts[start:]


def _aggregate(texts: list[str], inner: CallRecord, tokens: int) -> Asked:
    """One embedding, of micro-batches that each give what their texts gave."""
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise GraphError(f"what {inner.method} at {inner.site} begins with are no texts")
    gave = dict(zip(inner.input["args"][0], inner.output, strict=True))
    batches = list(_micro_batches(texts, tokens))
    taken_in = [text for batch in batches for text in batch]
    vectors = [gave.get(text, UNKNOWN) for batch in batches for text in batch]
    return Asked(inner.site, inner.family, freeze({"args": [taken_in], "kwargs": {}}), freeze(vectors))


def _at(tree: Tree, path: tuple[str | int, ...]) -> Tree:
    for step in path:
        tree = tree[step]
    return tree
