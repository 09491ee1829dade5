"""Steps to next use (KVFlow): how many calls later another prompt begins as this one does, so that a cache knows what
to keep. The nearest of those that share the beginning counts; one that waits for several calls, for the longest path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...engine.profile import Profile
from ...text.templates import Join, Leaf, Ref, Template, Whole
from ...text.values import Tree
from ..ir import Graph, Node


def next_use(graph: Graph, _: Mapping[str, Profile]) -> Graph:
    steps: dict[str, int] = {}
    for node in graph.nodes:
        before = (*graph.producers[node.name], *node.schedule.after)
        steps[node.name] = max((steps[name] for name in before), default=0) + (not (node.at_boundary or node.gathers))
    begins = {node.name: list(_parts(node.input)) for node in graph.nodes if node.predictable and node.op.splittable}

    def later(node: Node) -> Iterator[int]:
        for name, parts in begins.items():
            if steps[name] > steps[node.name] and _share(begins[node.name], parts):
                yield steps[name] - steps[node.name]
        if node.schedule.in_order and _share(begins[node.name], begins[node.name]):
            yield 1

    def known(node: Node) -> Node:
        return node.scheduled(next_use=min(later(node), default=0)) if node.name in begins else node

    return graph.map(known)


def _parts(tree: Tree) -> Iterator[object]:
    """Of a prompt, from its beginning on."""
    if isinstance(tree, Template):
        yield from tree.parts
    elif isinstance(tree, Whole):
        yield tree.ref
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from _parts(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _parts(value)
    else:
        yield tree


def _share(one: list[object], other: list[object]) -> bool:
    """Whether two prompts of a run begin with a value in common. Instructions alone are those of all runs."""
    for part, same in zip(one, other, strict=False):
        if part != same or (isinstance(part, Leaf | Ref | Join) and _of_element(part)):
            return False
        if isinstance(part, Ref):
            return True
    return False


def _of_element(part: object) -> bool:
    """Another one for each element of a level, or not to be compared."""
    return not isinstance(part, Ref) or bool(part.stars)


def summary(graph: Graph, profiles: Mapping[str, Profile]) -> str:
    return "" if next_use(graph, profiles) is not graph else "no prompt begins as an earlier one does"
