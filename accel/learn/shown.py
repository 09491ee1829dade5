"""Whether runs show what stands in the places of a node's input.

A run without elements tells nothing of how a program chooses them, and none without a value what stands beside one.
Where a list is no longer than what is left of it, or a function gives what it was given, a filter fits as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..graph.ir import Node
from ..text.evaluate import Env, NoElement, leaf_of
from ..text.paths import UNKNOWN, Index, enumerate_stars, step_into
from ..text.steps import GATHERS, Star
from ..text.templates import Collect, Join, Ref, Talk, Template, Whole, leaves_in
from ..text.values import Tree, freeze
from .computing.computed import FEWEST, is_computed
from .view import Fit, View

FEWEST_CHANGED = 2
"""Runs in which something is cut off, or a function gives something else than it was given."""
_Part = Ref | Join | Whole | Collect


def is_shown(node: Node, fits: Sequence[Fit], views: Sequence[View]) -> bool:
    """Whether enough runs with different inputs do, for each place."""
    return all(_is_shown(part, fits, views) for part in _parts(node.input))


def _parts(tree: Tree) -> Iterator[_Part]:
    """What may have nothing, is cut off or computed."""
    for leaf in leaves_in(tree):
        if isinstance(leaf, Template):
            yield from (hole for hole in leaf.holes if isinstance(hole, Join | Ref))
        elif not isinstance(leaf, Talk):
            yield leaf


def _is_shown(part: _Part, fits: Sequence[Fit], views: Sequence[View]) -> bool:
    refs = part.refs if isinstance(part, Join) else (part if isinstance(part, Ref) else part.ref,)
    computed = is_computed(refs)
    cut = isinstance(part, Join | Collect) and isinstance(part.limit, int)
    if isinstance(part, Ref) and not computed:
        return True
    some, changed = set[int](), set[int]()
    for fit, view in zip(fits, views, strict=True):
        for at, place in enumerate(fit.places):
            if _has_some(part, place, at, view.values):
                some.add(view.witness)
            if _is_cut(part, place, view.values) if cut else any(_changes(ref, place, view.values) for ref in refs):
                changed.add(view.witness)
    if (computed or cut) and len(changed) < FEWEST_CHANGED:
        return False
    return len(some) >= (FEWEST if computed else 2) or not (some or isinstance(part, Join))


def _has_some(part: _Part, place: Index, at: int, values: Env) -> bool:
    if isinstance(part, Join):
        return not isinstance(values.joined(part, place[: part.bound], at), NoElement)
    return isinstance(part, Ref) or bool(leaf_of(part, place, at, values) != [])


def _is_cut(part: _Part, place: Index, values: Env) -> bool:
    """Whether there are more elements than are taken."""
    assert isinstance(part, Join | Collect) and isinstance(part.limit, int)
    elements, _ = enumerate_stars(values.value(part.ref.node), part.ref.path, place[: part.bound])
    return len(elements) > part.limit


def _changes(ref: Ref, place: Index, values: Env) -> bool:
    """Whether a function on the way gives something else than it is given."""
    value, bound = values.value(ref.node), iter(place)
    for number, step in enumerate(ref.path):
        if isinstance(step, Star):
            element = next(bound, None)
            if element is None:
                return is_computed([Ref("", ref.path[number:])])  # of each element
            value = step_into(value, element)
            continue
        before, value = value, step_into(value, step)
        if isinstance(step, GATHERS) and value is not UNKNOWN and freeze(before) != freeze(value):
            return True
    return False
