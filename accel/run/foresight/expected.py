"""Which element of a run's nodes a demand takes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from heapq import heappop, heappush
from os.path import commonprefix

from ...graph.ir import Node
from ...graph.predict import is_kin
from ...text.templates import Template
from ...text.values import Tree
from ..calls.call import Call
from .outlook import Element, Outlook

Kin = Callable[[str, Element], bool]
"""Whether an element of a node may be a certain call."""


def kin_of(call: Call, states: Mapping[str, Outlook]) -> Kin:
    """Of a call: an element that goes by what a visit was given that ran beside the call's is another one's, even if it
    asks the same. `states`: by name, the nodes of its run."""
    visit = call.record.visit if call.record is not None else None

    def kin(name: str, element: Element) -> bool:
        level = states[name].node.level
        if visit is None or level is None or level.domain is None or not element.binding:
            return True
        source = states[level.domain.node].node
        return not source.ancestry or is_kin(level.domain, source.ancestry, element.binding, visit.node, visit.place)

    return kin


def looks_like(call: Call, node: Node, others: Sequence[Node]) -> bool:
    """Whether a call looks as much like one of the node as like one of any other at its site."""
    return len(others) < 2 or likeness(node.input, call.input) >= max(
        likeness(each.input, call.input) for each in others
    )


def likeness(asked: Tree, given: Tree) -> int:
    """How many characters an input begins its texts with as a node's input does."""
    if isinstance(asked, Template):
        asked = asked.parts[0] if isinstance(asked.parts[0], str) else ""
    if isinstance(asked, str) and isinstance(given, str):
        return len(commonprefix((asked, given)))
    if isinstance(asked, dict) and isinstance(given, dict):
        return sum(likeness(each, given[key]) for key, each in asked.items() if key in given)
    if isinstance(asked, list) and isinstance(given, list):
        return sum(map(likeness, asked, given))
    return 0


class Expected:
    """Elements by the key they had once and their call site, in the order in which demands take them."""

    def __init__(self) -> None:
        self._by_key: dict[Hashable, dict[str, list[tuple[int, int, int, str, Element]]]] = {}

    def add(self, state: Outlook, element: Element) -> None:
        """An element that has got its key."""
        found = self._by_key.setdefault(element.key, {}).setdefault(state.node.site, [])
        heappush(found, (state.order, element.position, id(element), state.node.name, element))

    def first(self, key: Hashable, site: str, kin: Kin | None = None) -> tuple[str, int] | None:
        """The node and position of the first element with this key that no demand has taken; those of this site come
        first. `kin`: which of them may be meant, where not all may."""
        by_site = self._by_key.get(key, {})
        for found in by_site.values():
            while found and (found[0][-1].key != key or found[0][-1].demanded):
                heappop(found)
        heads = {where: found[0] for where, found in by_site.items() if found}
        if kin is not None:
            open_to = {
                where: [e for e in found if e[-1].key == key and not e[-1].demanded and kin(e[-2], e[-1])]
                for where, found in by_site.items()
            }
            heads = {where: min(found) for where, found in open_to.items() if found}
            if not heads:
                return None
        if not heads:
            self._by_key.pop(key, None)
            return None
        *_, name, element = heads.get(site) or min(heads.values())
        return name, element.position
