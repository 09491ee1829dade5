"""What a run is expected to demand: the e-graph evaluated against everything the run has published so far.

Lives on the issuer thread alone. Each event re-evaluates the nodes that depend on what changed; elements whose input
is known and whose call is allowed are handed to the run to be issued. Demands always win over predictions.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any

from ..evaluate import UNKNOWN, Index, has_gap, nested, pasted, predict
from ..extract import Open, Partial
from ..ir import Graph, Node
from ..values import Tree, freeze

if TYPE_CHECKING:
    from .call import Call
    from .run import Run


CHARS_PER_TOKEN = 4
"""Of English text; the known part of a prompt is judged before it is encoded."""


class Element:
    """One expected demand of a node."""

    __slots__ = ("binding", "call", "input", "key", "known", "measured", "pasted", "prefilled", "value")

    def __init__(self) -> None:
        self.binding: Index = ()
        """What the element is bound to; empty for a demand that nothing predicted."""
        self.input: Tree = UNKNOWN
        self.pasted: list[str] = []
        """The values that holes put into `input`, where not all may go to its endpoint; judged together with it."""
        self.key: Hashable = None
        """The key of the complete predicted input; None while something is missing."""
        self.call: Call | None = None
        self.value: Tree = UNKNOWN
        self.prefilled = 0
        self.measured: Tree = UNKNOWN
        self.known = 0
        """Characters known of `measured`, see `known_prefix`."""


class Outlook:
    """The elements of one node."""

    __slots__ = ("complete", "elements", "frozen", "node", "unbound")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.elements: list[Element] = []
        self.complete = not node.many
        self.frozen = False
        """The framework node is over: no more demands will come."""
        self.unbound = False
        """An input is complete, but not yet whose it is: the run has to use that component first."""

    def element(self, position: int) -> Element:
        while len(self.elements) <= position:
            self.elements.append(Element())
        return self.elements[position]

    def output(self) -> Tree:
        if not self.node.many:
            return self.elements[0].value if self.elements else UNKNOWN
        predicted = self.elements if self.node.dims == 1 else [e for e in self.elements if e.binding]
        values = [element.value for element in predicted]
        return nested([element.binding for element in predicted], values, self.node.dims, self.complete)


class Forecast:
    """See the module. `env.value` is this object's `value`."""

    def __init__(self, run: Run, graph: Graph) -> None:
        self.run = run
        self.graph = graph
        self.states = {node.name: Outlook(node) for node in graph.nodes}
        self.reasons: dict[str, str] = {}
        """For every node that was ready: the last reason why it was held, empty if it was issued."""

    # --- what is known

    def value(self, node: str) -> Tree:
        return self.states[node].output()

    def publish(self, node: str, position: int, value: Tree) -> None:
        """A value of a source node (run input, what entered or left a framework node)."""
        if node in self.states:
            self.states[node].element(position).value = value
            self.advance({node})

    # --- events

    def demanded(self, call: Call) -> None:
        """The program made a call: find its place, the predicted one if the input matches, else the site's next."""
        if call.bound is None:
            place = self._matching(call) or self._next_at_site(call)
            if place is not None and self._bind(call, *place):
                self.advance({place[0]})
        if call.over:
            self.finished(call)
        elif call.text:
            self.grown(call)  # it may have begun before this forecast was there
        self.advance(set())

    def finished(self, call: Call) -> None:
        if call.bound is None:
            self.advance(set())
            return
        name, position = call.bound
        element = self.states[name].element(position)
        if element.call is not call:
            return
        value = call.output if call.state == "done" else UNKNOWN
        if not (element.value is not UNKNOWN and not has_gap(element.value) and freeze(element.value) == freeze(value)):
            element.value = value
        self.advance({name})

    def grown(self, call: Call) -> None:
        """More of a streamed output is known."""
        if call.bound is None or call.over:
            return
        name, position = call.bound
        element = self.states[name].element(position)
        if element.call is call:
            element.value = {"content": Partial(call.text)}
            self.advance({name})

    def left(self, framework_node: str, again: bool) -> None:
        """A framework node is over; unless it may run again, its calls are now exactly those it demanded."""
        changed = set()
        for name, state in self.states.items():
            if state.node.within != framework_node or again or state.frozen:
                continue
            state.frozen = True
            for element in state.elements:
                if element.call is not None and not element.call.demanded:
                    self._drop(element)
            if state.node.many:
                state.elements = [e for e in state.elements if e.call is not None and e.call.demanded]
                for position, element in enumerate(state.elements):
                    if element.call is not None:
                        element.call.bound = (name, position)
                state.complete = True
            changed.add(name)
        self.advance(changed)

    # --- places

    def _matching(self, call: Call) -> tuple[str, int] | None:
        for name, state in self.states.items():
            for position, element in enumerate(state.elements):
                if element.key == call.key and (element.call is None or not element.call.demanded):
                    return name, position
        return None

    def _next_at_site(self, call: Call) -> tuple[str, int] | None:
        """The first position at this site that the program hasn't demanded; a wrong prediction there is replaced."""
        if call.record is None:
            return None
        spare = None
        for node in self.graph.by_site.get(call.record.site, ()):
            if node.op.name != call.method.op:
                continue
            state = self.states[node.name]
            for position, element in enumerate(state.elements):
                if element.call is None or not element.call.demanded:
                    if element.key is None:
                        return node.name, position
                    spare = spare or (node.name, position)
            if not state.elements or (node.many and not state.complete):
                return node.name, len(state.elements)
        return spare

    def _bind(self, call: Call, name: str, position: int) -> bool:
        """Give a demand its place; True if that took back a predicted value."""
        element = self.states[name].element(position)
        old = element.call
        taken_back = False
        if old is not None and old is not call:
            if old.key == call.key:
                old.fed = old.method.op == "searching"
                if not old.fed:
                    self.run.note_miss(name)
            else:
                element.value = UNKNOWN
                taken_back = True
                self.run.note_miss(name)
            old.bound = None
            self.run.calls.drop(old)
        elif element.key is not None and element.key != call.key:
            self.run.note_miss(name)
        element.call = call
        call.bound = (name, position)
        return taken_back

    def _drop(self, element: Element) -> None:
        call = element.call
        element.call = None
        element.value = UNKNOWN
        if call is not None:
            call.bound = None
            self.run.calls.drop(call)

    # --- evaluation

    def advance(self, changed: set[str]) -> None:
        """Re-evaluate what depends on `changed`, in graph order, then issue what is ready and allowed."""
        if self.run.closed:
            return
        if changed:
            for node in self.graph.nodes:
                touched = not changed.isdisjoint(self.graph.producers[node.name]) or self._bindable(node)
                if touched and self._update(node):
                    changed.add(node.name)
        self._issue_ready()

    def _bindable(self, node: Node) -> bool:
        """Whether only the component was missing, and now is known."""
        return self.states[node.name].unbound and self.run.binding(node) is not None

    def start(self) -> None:
        """Evaluate everything once; later events only touch dependents."""
        for node in self.graph.nodes:
            if node.predictable:
                self._update(node)
        self._issue_ready()

    def _update(self, node: Node) -> bool:
        """Re-predict one node; True if anything a consumer can see changed."""
        state = self.states[node.name]
        if state.frozen:
            return False
        bound = self.run.binding(node)
        prediction = predict(node, self)
        state.unbound = bound is None and any(not has_gap(tree) for tree in prediction.inputs)
        changed = state.complete != prediction.complete
        state.complete = prediction.complete
        judged = bound is not None and not bound.facts.local and self.run.settings.egress == "known"
        for position, (tree, binding) in enumerate(zip(prediction.inputs, prediction.bindings, strict=True)):
            grew = position >= len(state.elements)
            element = state.element(position)
            changed |= grew
            element.binding = binding
            if element.call is not None and element.call.demanded:
                continue
            element.input = tree
            element.pasted = pasted(node.input, binding, position, self) if judged else []
            if bound is None or has_gap(tree):
                key: Hashable = None
            else:
                key = bound.key(tree)
            if key == element.key and key is not None:
                continue
            if element.call is not None:
                self._drop(element)
                changed = True
            element.key = key
            if key is not None:
                known = self.run.calls.unbound(key)
                if known is not None:
                    element.call = known
                    known.bound = (node.name, position)
                    if known.state == "done":
                        element.value = known.output
                    changed = True
        if prediction.complete:
            surplus = state.elements[len(prediction.inputs) :]
            for element in surplus:
                if element.call is not None and not element.call.demanded:
                    self._drop(element)
            if surplus and not any(e.call is not None for e in surplus):
                del state.elements[len(prediction.inputs) :]
                changed = True
        return changed

    def _ready(self) -> Iterator[tuple[int, Node, int, Element]]:
        for order, node in enumerate(self.graph.nodes):
            if not node.predictable or self.states[node.name].frozen:
                continue
            for position, element in enumerate(self.states[node.name].elements):
                if element.call is None and element.input is not UNKNOWN:
                    yield order - 10_000 * node.depth, node, position, element

    def _issue_ready(self) -> None:
        for _, node, position, element in sorted(self._ready(), key=lambda ready: (ready[0], ready[2])):
            if element.key is None:
                if not has_gap(element.input):
                    self.reasons[node.name] = self.run.refuses(node, element.pasted)
                elif node.prefills:
                    self._prefill(node, element)
                continue
            if node.stage_of and self.run.calls.has(element.key):
                continue  # the program, or another call, has begun with it already
            reason = self._refusal(node, element) or _beyond_seen(node, position) or self._out_of_order(node, position)
            if not reason:
                call = self.run.issue(node, element.input, element.key)
                if isinstance(call, str):
                    reason = call
                else:
                    element.call = call
                    call.bound = (node.name, position)
                    if call.state == "done":
                        element.value = call.output
            self.reasons[node.name] = reason

    def _refusal(self, node: Node, element: Element) -> str:
        """Why an element may not be issued now; empty if it may."""
        for name in node.after:
            if has_gap(self.value(name)):
                return f"waits for {name} to be written"
        return self.run.refuses(node, element.pasted)

    def _out_of_order(self, node: Node, position: int) -> str:
        before = self.states[node.name].elements[position - 1] if node.in_order and position else None
        return "waits for the element before it" if before is not None and has_gap(before.value) else ""

    def _prefill(self, node: Node, element: Element) -> None:
        if element.measured is not element.input:
            element.measured, element.known = element.input, known_prefix(element.input)
        known = element.known
        if known < element.prefilled + node.prefill_tokens * CHARS_PER_TOKEN:
            return
        if self.run.refuses(node, element.pasted):  # what its call comes after doesn't matter: a prefix reads nothing
            return
        if self.run.prefill(node, element.input):
            element.prefilled = known


def _beyond_seen(node: Node, position: int) -> str:
    seen = node.level.seen if node.level is not None else None
    return "more elements than any run so far had" if seen is not None and position >= seen else ""


def known_prefix(tree: Tree) -> int:
    """Characters known of an input whose last text is still growing; 0 if anything else is missing."""
    gaps = [leaf for leaf in _texts(tree) if isinstance(leaf, Partial)]
    texts = [leaf for leaf in _texts(tree) if isinstance(leaf, str)]
    if len(gaps) != 1 or _has_unknown(tree):
        return 0
    return sum(len(text) for text in texts)


def _texts(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict | list):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from _texts(value)


def _has_unknown(tree: Any) -> bool:
    if tree is UNKNOWN or isinstance(tree, Open):
        return True
    if isinstance(tree, dict | list):
        return any(map(_has_unknown, tree.values() if isinstance(tree, dict) else tree))
    return False
