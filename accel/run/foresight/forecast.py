"""What a run is expected to demand: the e-graph evaluated against everything the run has published so far.

Lives in the run's inbox: one event at a time. Each re-evaluates the elements that depend on what changed; those whose
input is known and whose call is allowed are handed to the run to be issued. Demands always win over predictions. The
work for an event doesn't depend on how long the run is (`outlook`, `touched`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Set
from heapq import heapify, heappop, heappush

from ...graph.ir import Node
from ...graph.predict import cap_of, predict
from ...graph.rules import Reason
from ...text.evaluate import Env
from ...text.extract import Open
from ...text.pasted import pasted
from ...text.paths import UNKNOWN, Index, follow, has_gap, replaces
from ...text.relay import relayed
from ...text.templates import Field
from ...text.values import Tree, equal
from ...trace.record import Visit
from ..calls.call import Call
from ..plans.compiled import Compiled
from ..plans.touched import Changed, Places, note
from ..run import Run
from ..settings import Bound
from ..waits.gates import gate_of
from .displaced import Displaced
from .expected import Expected, kin_of, looks_like
from .outlook import Element, Outlook, freeze


class Forecast(Env):
    """See the module. `env.value` is this object's `value`."""

    def __init__(self, run: Run, compiled: Compiled) -> None:
        self.run = run
        self.compiled, self.graph = compiled, compiled.graph
        nodes = zip(self.graph.nodes, compiled.listed, strict=True)
        self.states = {node.name: Outlook(node, order, listed) for order, (node, listed) in enumerate(nodes)}
        self._by_urgency = [self.states[name] for name in compiled.by_urgency]
        self._unbound: set[int] = set()
        """Nodes that may have become ready by their component alone."""
        self._expected = Expected()
        self._foreign: dict[str, list[str]] = {}
        self._replaced: set[Field] = set()
        """Of those fields of the run's input, the ones that the program's state has something else in by now."""
        self._failed: dict[Hashable, tuple[str, int]] = {}
        """Places of demands that failed, by their key: the program may try again."""
        self._displaced = Displaced(run.calls.drop)
        self._over: Set[str] = frozenset()
        """Framework nodes that don't come again."""
        self._behind: dict[str, tuple[Outlook, Bound]] = {}
        """Nodes of which more may be known than what has a place."""
        self.reasons: dict[str, Reason | None] = {}
        """For every node that was ready: the last reason why it was held, None if it was issued."""

    # --- what is known

    def value(self, node: str) -> Tree:
        return self.states[node].output()

    def publish(self, node: str, place: Index, value: Tree) -> None:
        """A value of a source node (run input, what entered or left a framework node)."""
        if (state := self.states.get(node)) is None:
            return
        before = len(state.elements)
        element = state.element_at(place)
        if element is not None:
            state.tell(element, value)
            self.advance({node: {element.position, *range(before, element.position)}})

    def entered(self, visit: Visit) -> None:
        """A framework node has this input, and these answers."""
        self._note_replaced(visit, visit.entered)
        self.publish(f"{visit.node}.in", visit.place, visit.entered)
        self.publish(f"{visit.node}.answers", visit.place, list(visit.answers) or UNKNOWN)

    def _note_replaced(self, visit: Visit, state: Tree) -> None:
        """The state of the program is that of the outermost nodes; those inside may have one of their own."""
        if visit.inside is None:
            given = self.run.trace.input
            open_to = self.compiled.given - self._replaced
            self._replaced |= {field for field in open_to if replaces(state, field, follow(given, field))}

    def leaving(self, node: Node, binding: Index, position: int) -> list[str]:
        """What an element would send, beside the program's words."""
        if node.name not in self._foreign:
            self._foreign[node.name] = self.run.plan.program.foreign(node)
        return [*self._foreign[node.name], *pasted(node.input, binding, position, self)]

    # --- events

    def demanded(self, call: Call) -> None:
        """The program made a call: find its place, the predicted one if the input matches, else the site's next."""
        if call.bound is None:
            self._bind_site(call)
        if call.bound is None:
            place = self._place_again(call) or self._predicted_place(call) or self._next_at_site(call)
            if place is not None:
                state = self.states[place[0]]
                one_more = place[1] >= len(state.elements)
                if one_more and self.graph.is_round(state.node):
                    state.go_on()
                if self._bind(call, *place) or one_more:
                    self.advance({place[0]: {place[1]}})
        if call.bound is not None:
            self.states[call.bound[0]].doubtful = False
        elif call.record is not None:
            self._end(self.compiled.gathered.get(call.record.site, ()))
        if call.over:
            self.finished(call)
        elif call.chunks.parts:
            self.grown(call)  # it may have begun before this forecast was there

    def replaced(self, gone: Call, call: Call) -> None:
        """The program makes a call of its own in the place of an early one that it had joined."""
        if gone.bound is not None and call.bound is None:
            element = self.states[gone.bound[0]].element(gone.bound[1])
            if element.call is gone:
                element.call, call.bound, gone.bound = call, gone.bound, None
        self.demanded(call)

    def turned_away(self, call: Call) -> None:
        """An early call that nobody has demanded: there may be room for it later."""
        if call.bound is None or call.demanded:
            return
        name, position = call.bound
        state = self.states[name]
        element = state.element(position)
        if element.call is call:
            self._drop(state, element)
            self.reasons[name] = gate_of(call.component).endpoint.reason()
            if not state.frozen:
                state.queue(element)
            self.advance({name: {position}})

    def finished(self, call: Call) -> None:
        if call.bound is None:
            return
        name, position = call.bound
        state = self.states[name]
        element = state.element(position)
        if element.call is not call:
            return
        value = call.output if call.state == "done" else UNKNOWN
        if call.useless and call.demanded:
            self._failed[call.key] = call.bound
        if value is UNKNOWN or not (value is element.value or equal(element.value, value)):
            state.tell(element, value)
            self.advance({name: {position}})

    def grown(self, call: Call) -> None:
        """More of a streamed output is known."""
        if call.bound is None or call.over:
            return
        name, position = call.bound
        state = self.states[name]
        element = state.element(position)
        if element.call is call:
            state.tell(element, call.chunks.known)
            self.advance({name: {position}})

    def left(self, visit: Visit, again: bool) -> None:
        """A framework node is over, and what ran inside it; unless it may run again, its calls are now exactly those it
        demanded."""
        self._note_replaced(visit, visit.left)
        self.publish(f"{visit.node}.out", visit.place, visit.left)
        changed: Changed = {}
        for name, state in self.states.items() if visit.graphs else ():
            if name.startswith(f"{visit.node}:") and state.close(visit.place):
                changed[name] = None
        self.advance(changed if again else {**changed, **freeze(self.states, {visit.node}, self._drop)})
        self._displaced.end(self.states)

    def behind(self, nodes: Set[str]) -> None:
        """The program has come to where it doesn't come back to these framework nodes from."""
        if nodes := nodes - self._over:
            self._over |= nodes
            self.advance(freeze(self.states, nodes, self._drop))
            self._displaced.end(self.states)

    def _end(self, names: Iterable[str]) -> None:
        """The program makes a call that what is gathered here lacks: from now on it is nothing."""
        for state in map(self.states.__getitem__, names):
            state.frozen = True
            for element in state.elements:
                state.tell(element, UNKNOWN)
        self.advance(dict.fromkeys(names))

    # --- places

    def _bind_site(self, call: Call) -> None:
        """What is expected at a call's site can be compared with it once its component is known: by this call, if it
        is the first one."""
        changed: Changed = {}
        for node in self.graph.by_site.get(call.record.site, ()) if call.record is not None else ():
            if self._bindable(node):
                self._update(node, changed)
        if changed:
            self.advance(changed)

    def _place_again(self, call: Call) -> tuple[str, int] | None:
        """Where the same call of this site failed before."""
        name, position = self._failed.get(call.key, ("", 0))
        if not name or call.record is None or self.states[name].node.site != call.record.site:
            return None
        failed = self.states[name].element(position).call
        return self._failed.pop(call.key) if failed is not None and failed.useless else None

    def _predicted_place(self, call: Call) -> tuple[str, int] | None:
        """Where this very call is expected: at its own site, if there, as two sites may ask the same and be answered
        differently."""
        site = call.record.site if call.record is not None else ""
        inside = call.record is not None and call.record.visit is not None and call.record.visit.inside is not None
        return self._expected.first(call.key, site, kin_of(call, self.states) if inside else None)

    def _next_at_site(self, call: Call) -> tuple[str, int] | None:
        """The first position at this site that the program hasn't demanded. A wrong prediction there is replaced,
        unless the call looks more like one of another node there: a retry of it."""
        if call.record is None:
            return None
        spare, kin = None, kin_of(call, self.states)
        nodes = [node for node in self.graph.by_site.get(call.record.site, ()) if node.op.name == call.method.op]
        for node in nodes:
            state = self.states[node.name]
            position = state.first_unpredicted()
            if position is not None and kin(node.name, state.elements[position]):
                return node.name, position
            free = state.first_free()
            if free is not None and kin(node.name, state.elements[free]):
                spare = spare or (node.name, free)
            more = node.many and (free != 0 if self.graph.is_round(node) else not state.complete)
            if (more or not state.elements) and position is None and not self.graph.is_laid_out(node):
                return node.name, len(state.elements)
        return spare if spare is not None and looks_like(call, self.states[spare[0]].node, nodes) else None

    def _bind(self, call: Call, name: str, position: int) -> bool:
        """Give a demand its place; True if that took back a predicted value."""
        state = self.states[name]
        element = state.element(position)
        old = element.call
        taken_back = False
        if old is not None and old.demanded and old is not call:
            old.bound = None  # it failed, and the program tries again
        elif old is not None and old is not call:
            if old.key == call.key:
                if not old.fed and old.state != "failed" and not self.run.calls.is_failing(old.identity):
                    self.run.note_miss(name)
            else:
                state.tell(element, UNKNOWN)
                taken_back = True
                self.run.note_miss(name)
            old.bound = None
            self._displaced.note(state, old) if taken_back else self.run.calls.drop(old)
        elif element.key is not None and element.key != call.key:
            self.run.note_miss(name)
        element.call = call
        call.bound = (name, position)
        return taken_back

    def _drop(self, state: Outlook, element: Element) -> None:
        call = element.call
        element.call = None
        state.tell(element, UNKNOWN)
        if call is not None:
            call.bound = None
            self.run.calls.drop(call)

    # --- evaluation

    def advance(self, changed: Changed) -> None:
        """Re-evaluate what depends on `changed`, in graph order."""
        if self.run.closed:
            return
        consumers = self.compiled.consumers
        coming = [order for name in changed for order in consumers.get(name, ())]
        coming += [order for order in self._unbound if self._bindable(self.graph.nodes[order])] if changed else ()
        heapify(coming)
        before = -1
        while coming:
            order = heappop(coming)
            if order == before:
                continue
            node, before = self.graph.nodes[order], order
            if self._update(node, changed):
                for consumer in consumers.get(node.name, ()):
                    heappush(coming, consumer)

    def _bindable(self, node: Node) -> bool:
        """Whether only the component was missing, and now is known."""
        return self.states[node.name].unbound and self.run.bindings.of(node) is not None

    def start(self) -> None:
        """Evaluate what may be known before anything is; later events only touch dependents."""
        changed: Changed = {}
        for node in self.compiled.at_start:
            self._update(node, changed)
        self.advance(changed)

    def _update(self, node: Node, changed: Changed) -> bool:
        """Re-predict one node where `changed` may touch it; True if what a consumer can see of it has changed, too."""
        state = self.states[node.name]
        if state.frozen:
            return False
        if node.relay is not None:
            held = state.hold(relayed(node.relay, self.value(node.relay.later.node), self))
            if held is not None:
                note(changed, node.name, held)
            return held is not None
        bound = self.run.bindings.of(node) if node.site else None
        whose = bound.whose if bound is not None else None
        places = self.compiled.reach[node.name].touched(changed) if state.whose == whose else None
        waits_for = self.compiled.reach[node.name].waits_for
        if places is None and state.may_wait(lambda: [self.states[name] for name in waits_for(changed)]):
            return False
        state.whose, state.put_off = whose, 0
        before, was_complete = len(state.elements), state.complete
        found, unbound = set(), False
        for position, tree, binding in self._predicted(state, places, changed):
            if node.gathers:
                if state.gather(position, tree, binding):
                    found.add(position)
                continue
            if self._expect(state, bound, position, tree, binding):
                found.add(position)
            unbound = unbound or (bound is None and not has_gap(tree))
        if places is None and node.name in self.compiled.nested and bound is not None and not state.complete:
            self._behind[node.name] = (state, bound)
        found.update(range(before, len(state.elements)))
        state.unbound = bound is None and (unbound or (places is not None and state.unbound))
        (self._unbound.add if state.unbound else self._unbound.discard)(state.order)
        fewer = state.complete and self._cut(state)
        if found or fewer or state.complete != was_complete:
            note(changed, node.name, found)
            return True
        return False

    def _predicted(self, state: Outlook, places: Places, changed: Changed) -> Iterable[tuple[int, Tree, Index]]:
        """Position, input and binding of all elements, or of those at `places`; says how many there are."""
        node, level = state.node, state.node.level
        if places is None:
            prediction = predict(node, self, self.compiled.make[node.name])
            state.complete, state.decided, state.count = prediction.complete, prediction.decided, len(prediction.inputs)
            if node.when and node.within and (level is None or level.domain is None):
                self.run.host.control.decide(node.name, node.within, state.decided)
            return zip(range(state.count), prediction.inputs, prediction.bindings, strict=True)
        if level is not None and level.domain is not None and level.domain.node in changed:
            domain = self.value(level.domain.node)
            coming = max(0, len(domain) - level.first)
            cap = cap_of(level, self)
            state.count = coming if cap is None else min(coming, cap)
            state.complete = level.exact and (not isinstance(domain, Open) or state.count == cap)
        first = level.first if level is not None else 0
        at = ((position, (position + first,)) for position in sorted(places) if position < state.count)
        make = self.compiled.make[node.name]
        return ((position, make(binding, position, self), binding) for position, binding in at)

    def _expect(self, state: Outlook, bound: Bound | None, position: int, tree: Tree, binding: Index) -> bool:
        """The element at this position is predicted to have this input; True if its output is another one now."""
        node = state.node
        element = state.element(position)
        state.bind(element, binding)
        if element.demanded:
            return False
        changed = False
        element.input = tree
        judged = bound is not None and bound.judges(self.run.settings.egress)
        element.pasted = self.leaving(node, binding, position) if judged else []
        key = None if bound is None or has_gap(tree) else bound.key(tree)
        if key is None or key != element.key:
            if element.call is not None:
                self._drop(state, element)
                changed = True
            state.set_key(element, key)
            if key is not None:
                self._expected.add(state, element)
                known = self.run.calls.unbound(key, node.site)
                if known is not None:
                    element.call = known
                    known.bound = (node.name, position)
                    if known.state == "done":
                        state.tell(element, known.output)
                    changed = True
        if element.call is None:
            state.queue(element)
        return changed

    def _cut(self, state: Outlook) -> bool:
        """Give up elements beyond the last one that is predicted, unless the program has demanded one of them."""
        surplus = state.elements[state.count :]
        for element in surplus:
            if element.call is not None and not element.call.demanded:
                self._drop(state, element)
        if not surplus or any(element.call is not None for element in surplus):
            return False
        state.cut(state.count)
        return True
