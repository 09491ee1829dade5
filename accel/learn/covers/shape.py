"""Inputs taken apart: the leaves that differ from run to run, and the rest, which must be the same.

Prompts are small, what surrounds them (schemas of tools, settings) may be large. Candidates for a template differ in
their leaves only, so that these alone are evaluated and compared one by one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...graph.ir import Node
from ...text.templates import Leaf, Spread
from ...text.values import Opaque, Tree, freeze, shape


@dataclass(frozen=True, slots=True)
class Span:
    """Of a list, all elements but so many at its beginning and its end: one leaf, however many they are. Those at the
    end have negative positions then."""

    front: int
    back: int


Place = tuple[str | int | Span, ...]
_HOLE = Opaque(object())


@dataclass(frozen=True, slots=True)
class Shape:
    """Where the leaves of an input stand, and what is around them."""

    places: tuple[Place, ...]
    rest: Hashable
    outline: int | None = field(default=None, compare=False)
    """Where all leaves are texts: what other inputs of this shape have, too, which is quicker to see (`outline_of`)."""


def outline_of(tree: Tree) -> int:
    """Equal for trees that differ in their leaves alone."""
    return hash(shape(tree))


def split_at(tree: Tree, places: tuple[Place, ...]) -> tuple[Hashable, list[Tree]] | None:
    """A tree without what stands at these places, and that; None if it has no such places."""
    found: list[Tree] = []
    wanted: dict[Any, Any] = {}
    for place in places:
        inner = wanted
        for step in place:
            inner = inner.setdefault(step, {})
    try:
        rest = _cut(tree, wanted, found) if places else tree
    except LookupError:
        return None
    return freeze(rest), found


def _cut(tree: Tree, wanted: dict[Any, Any], found: list[Tree]) -> Tree:
    if not wanted:
        found.append(tree)
        return _HOLE
    if isinstance(tree, dict):
        if not wanted.keys() <= tree.keys():
            raise LookupError
        return {key: _cut(value, wanted[key], found) if key in wanted else value for key, value in tree.items()}
    if isinstance(tree, list):
        span = next((step for step in wanted if isinstance(step, Span)), None)
        if span is not None:
            return _cut_out(tree, span, wanted, found)
        if not all(isinstance(step, int) and step < len(tree) for step in wanted):
            raise LookupError
        return [_cut(value, wanted[i], found) if i in wanted else value for i, value in enumerate(tree)]
    raise LookupError


def _cut_out(tree: list[Tree], span: Span, wanted: dict[Any, Any], found: list[Tree]) -> Tree:
    end = len(tree) - span.back
    if end < span.front:
        raise LookupError

    def cut(at: int, key: int) -> Tree:
        return _cut(tree[at], wanted[key], found) if key in wanted else tree[at]

    first = [cut(at, at) for at in range(span.front)]
    found.append(tree[span.front : end])
    return [*first, _HOLE, *(cut(at, at - len(tree)) for at in range(end, len(tree)))]


def put_at(tree: Tree, places: tuple[Place, ...], values: Sequence[Tree]) -> Tree:
    """The tree with these values at these places."""
    put = dict(zip(places, values, strict=True))
    spans = {place[:-1]: place[-1] for place in places if place and isinstance(place[-1], Span)}

    def visit(tree: Tree, path: Place) -> Tree:
        if path in put:
            return put[path]
        if isinstance(tree, dict):
            return {key: visit(value, (*path, key)) for key, value in tree.items()}
        if not isinstance(tree, list):
            return tree
        span = spans.get(path)
        if span is None:
            return [visit(value, (*path, i)) for i, value in enumerate(tree)]
        first = [visit(value, (*path, i)) for i, value in enumerate(tree[: span.front])]
        last = [visit(tree[i], (*path, i)) for i in range(-span.back, 0)]
        return [*first, Spread(put[(*path, span)]), *last]

    return visit(tree, ())


def _places(tree: Tree, path: Place = ()) -> Iterator[Place]:
    """Where the leaves of a node's input stand."""
    if isinstance(tree, Leaf):
        yield path
    elif isinstance(tree, dict):
        for key, value in tree.items():
            yield from _places(value, (*path, key))
    elif isinstance(tree, list):
        spread = next((i for i, value in enumerate(tree) if isinstance(value, Spread)), len(tree))
        for i, value in enumerate(tree):
            if i == spread:
                yield (*path, Span(i, len(tree) - i - 1))
            else:
                yield from _places(value, (*path, i if i < spread else i - len(tree)))


def taken_apart(node: Node) -> tuple[Node, Shape]:
    """The node with nothing but its leaves, as a list."""
    places = tuple(_places(node.input))
    split = split_at(node.input, places)
    assert split is not None
    return replace(node, input=list(node.leaves())), Shape(places, split[0])
