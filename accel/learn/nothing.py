"""What programs say where there is nothing: no element of a list, no value, no more of a text.

A text with elements does not show it: ``- one\\n- two\\n`` may be joined lines, or lines that have an end of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from os.path import commonprefix

from ..graph.ir import Node
from ..text.evaluate import Env, NoElement, text_of
from ..text.extract import Partial
from ..text.paths import is_missing
from ..text.steps import Clip
from ..text.templates import Instead, Join, Part, Ref, Template
from .covers.cover import ends_alike
from .covers.index import Values
from .covers.shape import Shape
from .traits import Path, may_be_chosen
from .view import Fit, View

LONGEST = 120
"""Characters that a program says instead,"""
LONGEST_MARK = 16
"""and those that it puts behind a text that it cuts off."""
MOST = 3
"""Places of a text."""


def unless_told(parts: Sequence[Part], at: int) -> Part:
    """A part of a text; a join of which no run has shown it, if what stands beside it may be part of its rows."""
    join = parts[at]
    if not isinstance(join, Join) or not join.sep:
        return join
    before, behind = (parts[at + by] if 0 <= at + by < len(parts) else "" for by in (-1, 1))
    first, last = join.sep[0], join.sep[-1]
    leads = isinstance(before, str) and isinstance(last, str) and ends_alike((before, last)).strip()
    ends = isinstance(behind, str) and isinstance(first, str) and len(join.sep) == 1 and behind.startswith(first)
    return replace(join, empty=None) if leads or ends else join


def with_nothing(node: Node, shape: Shape, views: Sequence[View], fits: Sequence[Fit]) -> Node:
    """A node of one call, whose input is the list of its leaves, with what the program says where there is nothing, as
    the runs show that it does not explain."""
    unlike = [
        (view, there[0])
        for view, fit in zip(views, fits, strict=True)
        if not fit.calls and node.level is None and view.complete
        for call, _ in view.like(node, shape)
        if (there := view.leaves_like(call, shape)) is not None
    ]
    explained = [view for view, fit in zip(views, fits, strict=True) if fit.calls]
    for _ in range(MOST):
        for view, texts in unlike:
            told = [
                _told(
                    leaf, [(view, text), *((other, held[at]) for other, held in unlike if other is not view)], explained
                )
                for at, (leaf, text) in enumerate(zip(node.input, texts, strict=True))
            ]
            if told != node.input:
                node = replace(node, input=told)
                break
        else:
            break
    return node


def _told(leaf: object, unlike: Sequence[tuple[View, object]], explained: Sequence[View]) -> object:
    """The leaf so that it gives the first of these texts, if what it says in one place where there is nothing is all
    that it lacks; as it is, if something else may keep the value out. Words that may be somebody's are not taken: then
    nothing is foreseen where there is nothing."""
    view, text = unlike[0]
    if not isinstance(leaf, Template) or not isinstance(text, str) or text == text_of(leaf, (), 0, view.values):
        return leaf
    missed = [(other, held) for other, held in unlike if text_of(leaf, (), 0, other.values) != held]

    def becomes(template: Template) -> list[View]:
        """The runs that only this template explains."""
        return [other for other, held in missed if text_of(template, (), 0, other.values) == held]

    for template, mark in _marked(leaf.parts):
        others = becomes(template)
        if view in others and not (_has_words(mark) and may_be_chosen(explained, others)):
            return template
    for template, said, path in _instead(leaf.parts, text, view.values):
        shown = becomes(template)
        others = [*explained, *(other for other, _ in unlike if other not in shown)]
        if view in shown and not may_be_chosen(explained, shown, path):  # else the value, and what stands beside it
            chosen = _has_words(said) and may_be_chosen(shown, others, path)
            return _unforeseen(leaf, template) if chosen else template
    return leaf


def _has_words(text: str) -> bool:
    return any(map(str.isalnum, text))


def _unforeseen(leaf: Template, template: Template) -> Template:
    """The second one without what it says instead, as the first one has it elsewhere."""
    parts = (
        replace(part, empty=None) if isinstance(part, Join) and part not in leaf.parts else part
        for part in template.parts
    )
    return Template(tuple(parts))


def _marked(parts: Sequence[Part]) -> Iterator[tuple[Template, str]]:
    """With what stands behind a value that is cut off as a mark of that, and the mark."""
    for at, (part, behind) in enumerate(pairwise(parts)):
        clip = part.path[-1] if isinstance(part, Ref) and part.path and not part.stars else None
        if isinstance(part, Ref) and isinstance(clip, Clip) and not clip.mark and isinstance(behind, str):
            for size in range(1, min(len(behind), LONGEST_MARK) + 1):
                cut = Ref(part.node, (*part.path[:-1], Clip(clip.n, behind[:size])))
                yield Template((*parts[:at], cut, *filter(None, [behind[size:]]), *parts[at + 2 :])), behind[:size]


def _instead(parts: Sequence[Part], text: str, values: Values) -> Iterator[tuple[Template, str, Path]]:
    """With what this text says where one hole has nothing, that, and where there is nothing."""
    empty = [at for at, part in enumerate(parts) if _has_nothing(part, values)]
    if len(empty) != 1:
        return
    (at,) = empty
    before, behind = (text_of(Template(tuple(some)), (), 0, values) for some in (parts[:at], parts[at + 1 :]))
    if isinstance(before, Partial) or isinstance(behind, Partial):
        return
    begins = _whole_words(text, len(commonprefix([before, text])), -1)
    ends = len(text) - _whole_words(text, len(text) - len(ends_alike((behind, text[begins:]))), 1)
    said = text[begins : len(text) - ends]
    instead = Instead(said, len(before) - begins, len(behind) - ends)
    if (
        _stands_in(parts, at, instead, values)
        and len(said) <= LONGEST
        and (not said.strip() or values.says(said) or said == "None")
    ):
        part = parts[at]
        join = Join(part, ()) if isinstance(part, Ref) else part
        assert isinstance(join, Join)
        yield Template((*parts[:at], replace(join, empty=instead), *parts[at + 1 :])), said, join.ref.field


def _has_nothing(part: Part, values: Env) -> bool:
    if isinstance(part, Join):
        return isinstance(values.joined(part, (), 0), NoElement)
    return isinstance(part, Ref) and not part.stars and is_missing(values.value(part.node), part.path)


def _whole_words(text: str, at: int, by: int) -> int:
    """The next place from there on at which no word is parted."""
    while 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum():
        at += by
    return at


def _stands_in(parts: Sequence[Part], at: int, instead: Instead, values: Values) -> bool:
    """Whether what is left out stands in the texts beside the join, and is the program's own."""
    before, behind = (parts[at + by] if 0 <= at + by < len(parts) else "" for by in (-1, 1))
    if not isinstance(before, str) or not isinstance(behind, str):
        return not instead.before and not instead.behind
    if instead.before > len(before) or instead.behind > len(behind):
        return False
    left_out = (before[len(before) - instead.before :], behind[: instead.behind])
    return all(values.says(text) for text in left_out if _has_words(text))
