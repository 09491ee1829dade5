"""The expected demands of one node, kept so that a run of any length costs the same for every event.

Nothing here looks at all elements of a node: places are found by pointers and heaps whose stale entries are dropped
when they come up, and each is dropped once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from heapq import heappop, heappush
from typing import Any

from ...graph.ir import Node
from ...graph.predict import laid_out, nested, told
from ...text.extract import Open, Partial
from ...text.paths import UNKNOWN, Index, has_gap
from ...text.values import Tree, equal, texts_of
from ..calls.call import Call
from ..settings import Key

GREW_BY = 16
"""What joins a list is looked at again, while it is open, when the list has grown by this part of itself."""
ASKED_AGAIN = 64
"""Elements of a node that were refused for reasons of their own, and are asked about again with one event."""


class Element:
    """One expected demand of a node."""

    __slots__ = ("binding", "call", "input", "key", "known", "measured", "pasted", "position", "prefilled", "value")

    def __init__(self, position: int) -> None:
        self.position = position
        self.binding: Index = ()
        """What the element is bound to; empty for a demand that nothing predicted."""
        self.input: Tree = UNKNOWN
        self.pasted: list[str] = []
        """The values that holes put into `input`, where not all may go to its endpoint; judged together with it."""
        self.key: Key | None = None
        """The key of the complete predicted input; None while something is missing."""
        self.call: Call | None = None
        self.value: Tree = UNKNOWN
        self.prefilled = 0
        self.measured: Tree = UNKNOWN
        self.known = 0
        """Characters known of `measured`, see `known_prefix`."""

    @property
    def demanded(self) -> bool:
        """Once it is, it stays so."""
        return self.call is not None and self.call.demanded


class Line:
    """Elements of one node that wait for something to be started, the first positions first."""

    __slots__ = ("_inside", "_next", "_refused")

    def __init__(self) -> None:
        self._next: list[tuple[int, int, Element]] = []
        self._refused: deque[Element] = deque()
        self._inside: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._inside)

    def add(self, element: Element) -> None:
        if id(element) not in self._inside:
            self._inside.add(id(element))
            heappush(self._next, (element.position, id(element), element))

    def turn(self) -> Iterator[Element]:
        """Each once, and of those refused before only so many; what comes out has left the line."""
        for _ in range(min(ASKED_AGAIN, len(self._refused))):
            element = self._refused.popleft()
            heappush(self._next, (element.position, id(element), element))
        while self._next:
            element = heappop(self._next)[2]
            self._inside.discard(id(element))
            yield element

    def refuse(self, element: Element) -> None:
        """Back to the end: it is this one that may not go now, others of the node may."""
        self._inside.add(id(element))
        self._refused.append(element)


class Outlook:
    """The elements of one node. Every run has one for each: what most never need is made when it is."""

    __slots__ = (
        "_closed", "_first_free", "_gaps", "_keyless", "_listed", "_nested", "_outputs", "_places", "ahead", "complete",
        "count", "decided", "doubtful", "elements", "frozen", "growing", "in_vain", "node", "order", "put_off", "ready",
        "unbound", "whose",
    )  # fmt: skip

    def __init__(self, node: Node, order: int, listed: bool) -> None:
        self.node = node
        self.order = order
        """In the graph."""
        self._listed = listed
        """Its outputs are one list, one after the other (`touched.is_listed`)."""
        self.elements: list[Element] = []
        self.complete = not node.many
        self.decided = not node.when
        """What decides whether its calls are made says that they are."""
        self.doubtful = False
        """Early calls were issued that may be in vain, and the program has made none of its calls yet."""
        self.frozen = False
        """The framework node is over: no more demands will come."""
        self.in_vain = False
        """It was to make calls as in every run before, and has made other ones: nobody knows what becomes of those."""
        self.unbound = False
        """An input is complete, but not yet whose it is: the run has to use that component first."""
        self.whose: Hashable = UNKNOWN
        """The component that the elements' keys were made for; unknown before they are first predicted."""
        self.count = 0
        """How many elements are predicted."""
        self.ahead: Sequence[Call] = ()
        """Calls of elements that have no position yet (`ahead`)."""
        self.put_off = 0
        """Changes since it was last predicted that were not looked at."""
        self.ready: Line | None = None
        """Elements to be issued,"""
        self.growing: Line | None = None
        """and those of which the beginning may be prefilled."""
        self._outputs: list[Tree] = Open()
        self._gaps = 0
        self._nested: tuple[bool, Tree] | None = None
        self._places: dict[Index, int] | None = None
        """Of a source with several lists, the positions of its elements;"""
        self._closed: frozenset[Index] = frozenset()
        """and the beginnings of places to which no more come."""
        self._first_free = 0
        self._keyless: list[int] | None = [] if node.predictable or node.site else None
        """Positions that may have no key yet; None where there are no calls."""

    def element(self, position: int) -> Element:
        while len(self.elements) <= position:
            if self._keyless is not None:
                heappush(self._keyless, len(self.elements))
            self.elements.append(Element(len(self.elements)))
            self._outputs.append(UNKNOWN)
            self._gaps += 1
            self._nested = None
        return self.elements[position]

    def element_at(self, place: Index) -> Element | None:
        """Of a source, that of a visit of its framework node; None where nothing refers to it."""
        if not self.node.ancestry:
            return self.element(place[0])
        binding = told(self.node.ancestry, place)
        if binding is None:
            return None
        if self.node.dims < 2:
            return self.element(binding[0] if binding else 0)
        places = self._places = self._places if self._places is not None else {}
        element = self.element(places.setdefault(binding, len(places)))
        self.bind(element, binding)
        return element

    def close(self, around: Index) -> bool:
        """The visit with this place is over, and what its graphs put out here, too; False if that tells nothing new."""
        binding = told(self.node.ancestry, around) if self.node.dims else None
        if binding is None or self.complete or binding in self._closed:
            return False
        self._closed |= {binding}
        self.complete, self._nested = not binding, None
        return True

    # --- what it puts out

    def tell(self, element: Element, value: Tree) -> None:
        """This is the value of the element from now on."""
        self._gaps += has_gap(value) - has_gap(element.value)
        element.value = self._outputs[element.position] = value
        self._nested = None

    def gather(self, position: int, tree: Tree, binding: Index) -> bool:
        """This is what calls gave, as far as it is known; False if it was before. Of a list that still grows, nobody
        follows a part."""
        element = self.element(position)
        self.bind(element, binding)
        known = UNKNOWN if has_gap(tree) else tree
        if known is element.value or (known is not UNKNOWN and equal(known, element.value)):
            return False
        self.tell(element, known)
        return True

    def output(self) -> Tree:
        """Of many, a list that is kept up to date: no reference takes it as a whole (`verify`)."""
        if self.in_vain:
            return UNKNOWN
        if not self.node.many:
            return self.elements[0].value if self.elements else UNKNOWN
        if not self._listed:
            return self._nested_output()
        if self.complete == isinstance(self._outputs, Open):
            self._outputs = list(self._outputs) if self.complete else Open(self._outputs)
        return self._outputs

    def _nested_output(self) -> Tree:
        if self._nested is None or self._nested[0] != self.complete:
            predicted = [element for element in self.elements if element.binding]
            values = [element.value for element in predicted]
            bindings = [element.binding for element in predicted]
            if self.node.at_boundary:
                lists: Tree = laid_out(dict(zip(bindings, values, strict=True)), self.node.dims, self._is_closed)
            else:
                lists = nested(bindings, values, self.node.dims, self.complete, self.node.is_sparse)
            self._nested = (self.complete, lists)
        return self._nested[1]

    def _is_closed(self, before: Index) -> bool:
        return any(before[:n] in self._closed for n in range(len(before) + 1))

    @property
    def open(self) -> bool:
        """Whether anything that it will put out is still missing."""
        if not self._listed:
            return has_gap(self.output())
        return not self.complete or self._gaps > 0

    @property
    def known(self) -> int:
        """How many elements have their value."""
        return len(self.elements) - self._gaps

    def may_wait(self, joined: Callable[[], Sequence[Outlook]]) -> bool:
        """Whether looking at one input that joins these as a whole can wait until there is more of them."""
        if self.node.level is not None or self.node.when or self.whose is UNKNOWN or not self.elements:
            return False
        if self.elements[0].key is not None or self.elements[0].call is not None:
            return False
        lists = joined()
        if not any(other.open for other in lists):
            return False
        self.put_off += 1
        return self.put_off * GREW_BY < max(other.known for other in lists)

    def hold(self, values: Sequence[Tree]) -> set[int] | None:
        """It puts out these from now on; the positions of those that are other ones now, None if nothing is."""
        fewer, complete = len(values) < len(self.elements), not isinstance(values, Open)
        found = set()
        for position, value in enumerate(values):
            element = self.element(position)
            if not equal(element.value, value):
                self.tell(element, value)
                found.add(position)
        if fewer:
            self.cut(len(values))
        if not found and not fewer and complete == self.complete:
            return None
        self.complete = complete
        return found

    # --- places

    def bind(self, element: Element, binding: Index) -> None:
        if element.binding != binding:
            element.binding = binding
            self._nested = None

    def go_on(self) -> None:
        """Its program makes a round more than was foreseen."""
        before = self.elements[-1].binding if self.elements else ()
        first = self.node.level.first if self.node.level is not None else 0
        self.bind(self.element(len(self.elements)), (before[0] + 1 if before else first + len(self.elements),))

    def set_key(self, element: Element, key: Key | None) -> None:
        element.key = key
        if key is None and self._keyless is not None:
            heappush(self._keyless, element.position)

    def first_free(self) -> int | None:
        """The first position that the program has not demanded."""
        while self._first_free < len(self.elements) and self.elements[self._first_free].demanded:
            self._first_free += 1
        return self._first_free if self._first_free < len(self.elements) else None

    def first_unpredicted(self) -> int | None:
        """The first such position of which the input isn't known."""
        while self._keyless:
            position = self._keyless[0]
            if position < len(self.elements) and self.elements[position].key is None:
                if not self.elements[position].demanded:
                    return position
            heappop(self._keyless)
        return None

    def queue(self, element: Element) -> None:
        """Something may be started for this element, now or later."""
        if element.key is not None or not has_gap(element.input):
            self.ready = Line() if self.ready is None else self.ready
            self.ready.add(element)
        elif self.node.schedule.prefills and element.input is not UNKNOWN:
            self.growing = Line() if self.growing is None else self.growing
            self.growing.add(element)

    def awaits(self, element: Element) -> bool:
        """Whether the element, which stood in line, still is one of these and has nothing that answers it."""
        here = element.position < len(self.elements) and self.elements[element.position] is element
        return here and element.call is None and element.input is not UNKNOWN

    # --- fewer elements

    def cut(self, count: int) -> None:
        """There are no more than so many."""
        self._keep(self.elements[:count])

    @property
    def given_up(self) -> list[Element]:
        """Those with an early call, if the program demands no more of them."""
        return [element for element in self.elements if element.call is not None and not element.demanded]

    def freeze(self) -> None:
        """The program has demanded all it will."""
        self.frozen = True
        if self.node.many:
            made = [element for element in self.elements if element.demanded]
            self.in_vain = self.node.evidence.always and not made and bool(self.elements)
            self._keep(made)
            self.complete = True
            for element in self.elements:
                if element.call is not None:
                    element.call.bound = (self.node.name, element.position)

    def _keep(self, kept: list[Element]) -> None:
        gone = set(map(id, self.elements)) - set(map(id, kept))
        for element in self.elements:
            if id(element) in gone:
                element.key = None  # no demand matches it any more
        self.elements, self._first_free, self._nested = kept, 0, None
        self._outputs = Open(element.value for element in kept)
        self._gaps = sum(map(has_gap, self._outputs))
        for position, element in enumerate(kept):
            if element.position != position:
                element.position = position
                if element.key is None and self._keyless is not None:
                    heappush(self._keyless, position)


def freeze(
    states: Mapping[str, Outlook], nodes: Set[str], drop: Callable[[Outlook, Element], None]
) -> dict[str, set[int] | None]:
    """These framework nodes don't come again; the nodes of the p-graph that this tells something of."""
    over = [state for state in states.values() if state.node.within in nodes and not state.frozen]
    for state in over:
        for element in state.given_up:
            drop(state, element)
        state.freeze()
    # What enters and leaves them has their name.
    over += [state for name, state in states.items() if name.rpartition(".")[0] in nodes and state.close(())]
    return dict.fromkeys(state.node.name for state in over)


def known_prefix(tree: Tree) -> int:
    """Characters known of an input whose last text is still growing; 0 if anything else is missing."""
    texts = list(texts_of(tree))
    if sum(isinstance(text, Partial) for text in texts) != 1 or _has_unknown(tree):
        return 0
    return sum(map(len, texts))


def _has_unknown(tree: Any) -> bool:
    if tree is UNKNOWN or isinstance(tree, Open):
        return True
    if isinstance(tree, dict | list):
        return any(map(_has_unknown, tree.values() if isinstance(tree, dict) else tree))
    return False
