"""Inputs taken apart: the leaves that differ from run to run, and the rest, which must be the same.

Prompts are small, what surrounds them (schemas of tools, settings) may be large. Candidates for a template differ in
their leaves only, so that these alone are evaluated and compared one by one.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from ..ir import Node
from ..templates import Collect, Template, Whole
from ..values import Opaque, Tree, freeze, leaves

Place = tuple[str | int, ...]
_HOLE = Opaque(object())


@dataclass(frozen=True, slots=True)
class Shape:
    """Where the leaves of an input stand, and what is around them."""

    places: tuple[Place, ...]
    rest: Hashable


def shape_of(tree: Tree, leaf: type | tuple[type, ...] = (Template, Whole, Collect)) -> Shape:
    """The shape of a tree whose leaves of these types stand for something else."""
    places = tuple(place for place, value in leaves(tree) if isinstance(value, leaf))
    split = split_at(tree, places)
    assert split is not None
    return Shape(places, split[0])


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
        if not all(isinstance(step, int) and step < len(tree) for step in wanted):
            raise LookupError
        return [_cut(value, wanted[i], found) if i in wanted else value for i, value in enumerate(tree)]
    raise LookupError


def taken_apart(node: Node) -> tuple[Node, Shape]:
    """The node with nothing but its leaves, as a list."""
    return replace(node, input=list(node.leaves())), shape_of(node.input)
