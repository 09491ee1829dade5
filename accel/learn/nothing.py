"""What programs say where a list has no element: nothing, or something else (``... or "none yet"``).

A text with elements does not show it: ``- one\\n- two\\n`` may be joined lines, or lines that have an end of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os.path import commonprefix

from ..graph.ir import Node
from ..text.evaluate import Env, NoElement, text_of
from ..text.extract import Partial
from ..text.templates import Instead, Join, Part, Template
from .covers.index import Values
from .covers.shape import Shape
from .view import Fit, View

LONGEST = 120
"""Characters that a program says instead."""


def unless_told(parts: Sequence[Part], at: int) -> Part:
    """A part of a text; a join of which no run has shown it, if what stands beside it may be part of its rows."""
    join = parts[at]
    if not isinstance(join, Join) or not join.sep:
        return join
    before, behind = (parts[at + by] if 0 <= at + by < len(parts) else "" for by in (-1, 1))
    first, last = join.sep[0], join.sep[-1]
    leads = isinstance(before, str) and isinstance(last, str) and _end_of_both(before, last).strip()
    ends = isinstance(behind, str) and isinstance(first, str) and len(join.sep) == 1 and behind.startswith(first)
    return replace(join, empty=None) if leads or ends else join


def with_nothing(node: Node, shape: Shape, views: Sequence[View], fits: Sequence[Fit]) -> Node:
    """A node of one call, whose input is the list of its leaves, with what the program says instead of elements in one
    of the runs that it does not explain; as it is if there is none."""
    for view, fit in zip(views, fits, strict=True):
        if fit.calls or node.level is not None or not view.complete:
            continue
        for call, _ in view.like(node, shape):
            there, _ = view.leaves_like(call, shape) or ([], None)
            told = [_told(leaf, text, view.values) for leaf, text in zip(node.input, there, strict=True)]
            if told != node.input:
                return replace(node, input=told)
    return node


def _told(leaf: object, text: object, values: Values) -> object:
    """The leaf so that it gives this text, if what it says instead of elements is all that it lacks."""
    if not isinstance(leaf, Template) or not isinstance(text, str):
        return leaf
    parts = list(leaf.parts)
    empty = [at for at, part in enumerate(parts) if isinstance(part, Join) and _is_empty(part, values)]
    if len(empty) != 1:
        return leaf
    (at,) = empty
    before, behind = (text_of(Template(tuple(some)), (), 0, values) for some in (parts[:at], parts[at + 1 :]))
    if isinstance(before, Partial) or isinstance(behind, Partial):
        return leaf
    begins = len(commonprefix([before, text]))
    ends = len(_end_of_both(behind, text[begins:]))
    said = text[begins : len(text) - ends]
    instead = Instead(said, len(before) - begins, len(behind) - ends)
    if not _stands_in(parts, at, instead) or len(said) > LONGEST or (said.strip() and not values.says(said)):
        return leaf
    join = parts[at]
    assert isinstance(join, Join)
    return Template((*parts[:at], replace(join, empty=instead), *parts[at + 1 :]))


def _is_empty(join: Join, values: Env) -> bool:
    return isinstance(values.joined(join, (), 0), NoElement)


def _stands_in(parts: Sequence[Part], at: int, instead: Instead) -> bool:
    """Whether what is left out stands in the texts of the program beside the join."""
    before = parts[at - 1] if at else ""
    behind = parts[at + 1] if at + 1 < len(parts) else ""
    return (not instead.before or (isinstance(before, str) and instead.before <= len(before))) and (
        not instead.behind or (isinstance(behind, str) and instead.behind <= len(behind))
    )


def _end_of_both(one: str, other: str) -> str:
    return commonprefix([one[::-1], other[::-1]])[::-1]
