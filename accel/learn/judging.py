"""What traces prove of a node: its level's bounds, how sure it is, and what decides whether its calls are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..graph.ir import Confidence, Evidence, Level, Node
from ..text.templates import Bound, Ref
from ..text.values import freeze, leaves
from .computing.computed import FEWEST, computes
from .covers.decisions import Outcome, Table, decisions
from .covers.shape import Shape
from .shown import is_shown
from .view import Fit, View

MOST_BESIDE = 2
"""A loop goes round so many times more or less than the number says: its first or last round may be none of those."""


def judged(node: Node, fits: list[Fit], views: Sequence[View]) -> Node:
    """Level bounds and evidence."""
    level = node.level
    counts = [len(fit.calls) for fit in fits if fit.calls]
    complete = [(fit, view) for fit, view in zip(fits, views, strict=True) if view.complete and fit.calls]
    if level is not None and level.domain is not None:
        partial = [len(fit.calls) for fit, view in complete if fit.partial and not view.stopped(node)]
        cap: int | Bound | None = min(partial) if partial else None
        seen = max((len(fit.calls) for fit, _ in complete), default=None)
        fixed = not partial or (len(set(partial)) == 1 and all(len(f.calls) <= partial[0] for f, _ in complete))
        bound = _bound(fits, views) if not fixed else None
        cap, fixed = (bound, True) if bound is not None else (cap, fixed)
        distinct, repeats = any(fit.distinct for fit in fits), any(fit.repeats for fit in fits)
        level = replace(level, cap=cap, exact=fixed, seen=seen, distinct=distinct, repeats=repeats)
    elif level is not None:
        level = Level(None, repeat=min(counts))
    inputs = {view.witness for fit, view in zip(fits, views, strict=True) if fit.calls}
    confidence: Confidence = "seen"
    computed = computes(node)
    if len(inputs) >= (FEWEST if computed else 2) and is_shown(node, fits, views):
        confidence = "verified"
    elif not computed and any(len({freeze(call.input) for call in fit.calls}) > 1 for fit in fits):
        confidence = "looped"
    ran = [
        (bool(fit.calls) and not fit.skips) or bool(fit.predicted == 0 and (node.when or level is not None))
        for fit, view in zip(fits, views, strict=True)
        if view.complete
        and (fit.calls or not view.stopped(node))
        and (node.when or not view.is_drawn(node.within) or view.ran(node.within))
    ]
    reason = "" if confidence == "verified" else "seen in one input only"
    return replace(node, level=level, evidence=Evidence(confidence, always=all(ran), reason=reason))


def _bound(fits: list[Fit], views: Sequence[View]) -> Bound | None:
    """The number in the runs' inputs after which each of them stopped, if there were more elements at hand."""
    made = [(view, fit) for view, fit in zip(views, fits, strict=True) if view.complete and (fit.calls or fit.partial)]
    held = [dict(leaves(view.trace.input)) for view, _ in made]
    for path in held[0] if held else ():
        numbers = [number for given in held if type(number := given.get(path)) is int]
        if len(numbers) < len(held):
            continue
        both = [(view, fit, number) for (view, fit), number in zip(made, numbers, strict=True)]
        stopped = {len(fit.calls) - number for _, fit, number in both if fit.partial}
        more = stopped.pop()
        within = all(len(fit.calls) <= number + more for _, fit, number in both)
        runs = {number: view.witness for view, fit, number in both if fit.partial}
        if not stopped and within and abs(more) <= MOST_BESIDE and len(set(runs.values())) > 1:
            return Bound(Ref("input", path), more)
    return None


Told = dict[tuple[Outcome, ...], tuple[Table, ...]]
"""By what became of the calls of a node, what tells that."""


def decided(
    node: Node,
    fits: list[Fit],
    views: Sequence[View],
    earlier: Sequence[Node],
    shape: Shape | None = None,
    told: Told | None = None,
) -> tuple[Node, list[Fit]]:
    """The node with what decides whether its calls are made, if it sometimes isn't demanded and something tells.
    `told`: what was found before, after the same earlier nodes."""
    if node.when or all(not fit.skips and not fit.partial for fit in fits):
        return node, fits
    outcomes = tuple(outcome for view in views if view.complete for outcome in view.outcomes(node, shape))
    told = {} if told is None else told
    if (tables := told.get(outcomes)) is None:
        tables = told[outcomes] = decisions(outcomes, earlier)
    if not tables:
        return node, fits
    settled = replace(node, when=tuple(table.seen_in(1) for table in tables), level=_sparse(node, tables))
    fits = [view.fit(settled, shape) for view in views]
    settled = judged(settled, fits, views)
    if not settled.evidence.always:
        return node, [view.fit(node, shape) for view in views]
    return replace(settled, when=tuple(table.seen_in(2) for table in tables)), fits


def _sparse(node: Node, tables: Sequence[Table]) -> Level | None:
    """The node's level when these decide which of its elements there are."""
    level = node.level
    by_element = level is not None and level.domain is not None and any(table.ref.stars for table in tables)
    return replace(level, sparse=True, cap=None) if level is not None and by_element else level
