"""What the calls of a site are given by the program itself, and where some are given more than others."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from typing import Any

from ..graph.first import First, leads
from ..graph.ir import Node
from ..parts.methods.methods import METHODS
from ..text.paths import follow
from ..text.templates import Field
from ..text.values import Tree, containers, exactly, freeze, holds_number, leaves, texts_of
from ..trace.record import CallRecord
from ..trace.released import Released
from .covers.cover import EDITED
from .covers.fold import cover_text
from .covers.index import SHORTEST
from .covers.shape import Place
from .view import View

MAX_COMPARED = 8
"""Calls of one site in one trace of which it is seen how long their lists are."""
MAX_FIELDS, MAX_TWINS = 200, 4
"""Of what a run was given, and of one node."""


def given_always(views: Sequence[View], site: str) -> set[Hashable]:
    """What every call of a site was given, in runs with different inputs, and is part of the program: lists and dicts,
    also where an element happens to be a value the run has seen (the ids of all records, say); and, with their places,
    texts of which the first call of no run could know anything (the names of tools), although answers repeat them. What
    every call has from a search before it is none of that, if all searches found the same."""
    called = [view for view in views if view.open.get(site)]
    if len({view.witness for view in called}) < 2 or "constant" not in views[0].values.readings:
        return set()
    calls = [call for view in called for call in view.open[site]]
    wholes = set.intersection(*(set(map(freeze, _wholes_of(call.input))) for call in calls))
    if wholes:
        wholes -= set.intersection(*(_found_before(view, call) for view in called for call in view.open[site]))
    firsts = [(view, view.open[site][0]) for view in called]
    texts = [set(_texts_in(call.input)) for _, call in firsts]
    texts += [set(_texts_in(call.input)) for call in calls] if any(texts) else []
    unknown = (
        (place, text)
        for place, text in set.intersection(*texts)
        if all(
            len(cover_text(view.values, text, call.start, shortest)) == 1
            for view, call in firsts
            for shortest in (SHORTEST[-1], EDITED)
        )
    )
    return {*wholes, *unknown}


def varying(views: Sequence[View], site: str) -> Set[Place]:
    """Where the calls of a site have lists of dicts, some of them longer ones."""
    lengths: dict[Place, set[int]] = {}
    calls = [call for view in views for call in view.open.get(site, ())[:MAX_COMPARED]]
    for call in calls if "spread" in views[0].values.readings else ():
        for place, held in containers(call.input):
            if isinstance(held, list) and isinstance(held[0], dict):
                lengths.setdefault(place, set()).add(len(held))
    return {place for place, found in lengths.items() if len(found) > 1}


def _found_before(view: View, call: CallRecord) -> set[Hashable]:
    """The lists that a call was given as a search had found them."""
    values = view.values
    return {
        freeze(tree)
        for tree in _wholes_of(call.input)
        if isinstance(tree, list) and values.found.issuperset(texts_of(tree)) and values.seen_whole(tree, call.start)
    }


def _texts_in(tree: Tree) -> Iterator[tuple[Place, str]]:
    return ((place, leaf) for place, leaf in leaves(tree) if isinstance(leaf, str) and leaf)


def first_of(call: CallRecord, tree: Tree = None) -> First | None:
    """What the call's component does first, as its adapter says; `tree`: the input's template, which must tell it."""
    method = METHODS.get((call.family, call.method))
    inner = method.inner if method is not None else None
    first: Any = call.first
    if not isinstance(call, Released):
        first = inner.first(call.component, call.input) if inner is not None else None
    return first if first is None or tree is None or leads(tree, first.path) else None


def asked_instead(calls: Iterable[CallRecord]) -> set[int]:
    """Those of a run, by `id`, that were made as another component had failed with the same input: nothing tells that
    before, and the one that is there for that case need not be told what the first one is."""
    failed: dict[Hashable, list[CallRecord]] = {}
    for call in calls:
        if call.failed:
            failed.setdefault(freeze(call.input), []).append(call)
    return {
        id(call)
        for call in (calls if failed else ())
        if any(
            other.start < call.start and other.identity != call.identity for other in failed.get(freeze(call.input), ())
        )
    }


def twins(node: Node, views: Sequence[View]) -> tuple[tuple[Field, Field], ...]:
    """Fields of the run's input that were the same as one of those in its templates, in all of these runs: a home
    address and one for deliveries. Of a run in which they differ nothing tells which one the program goes by."""
    if len({view.witness for view in views}) < 2:
        return ()
    (first, *others), given = [view.trace.input for view in views], node.given()
    beside = [
        (path, exactly(value)) for path, value in leaves(first)[:MAX_FIELDS] if path not in given and _names(value)
    ]
    found = [
        (used, path)
        for used, value in ((used, exactly(follow(first, used))) for used in sorted(given, key=str))
        for path, held in beside
        if held == value and all(exactly(follow(other, used)) == exactly(follow(other, path)) for other in others)
    ]
    return tuple(found[:MAX_TWINS])


def _names(value: Tree) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""


def _wholes_of(tree: Tree) -> Iterator[Tree]:
    """What may come from somewhere as it stands: lists of at least two texts and nothing else, dicts with numbers."""
    if isinstance(tree, list) and len(tree) > 1 and all(isinstance(item, str) for item in tree):
        yield tree
    elif isinstance(tree, dict | list):
        if isinstance(tree, dict) and holds_number(tree):
            yield tree
        for item in tree.values() if isinstance(tree, dict) else tree:
            yield from _wholes_of(item)
