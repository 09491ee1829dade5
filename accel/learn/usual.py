"""What was always said beside that of which a call is made: flags of the same answers.

A flag that has been the same in all runs has decided nothing so far. In a run in which it is another one, nothing tells
that the call is made as ever: an answer that is "sufficient" may name further questions which nobody asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..graph.ir import Node, When
from ..text.paths import follow
from ..text.steps import STAR, Step, Verdict
from ..text.templates import Ref
from ..text.values import Tree
from .view import Fit, View

MOST = 4
"""Flags of one node."""
_VERDICT = Verdict()


def usual(node: Node, fits: Sequence[Fit], views: Sequence[View], earlier: Sequence[Node]) -> tuple[When, ...]:
    """What held whenever the calls of a node were made, in runs with two different inputs at least."""
    made = [view for view, fit in zip(views, fits, strict=True) if fit.calls]
    if not node.evidence.always or node.when or len({view.witness for view in made}) < 2:
        return ()
    answers = {source.name for source in earlier if source.op.streams}
    found: dict[Ref, When] = {}
    for ref in dict.fromkeys(ref for ref in node.refs() if ref.node in answers):
        for flag in _flags(ref, made[0]):
            said = {_VERDICT.of(follow(view.values.value(flag.node), flag.path[:-1])) for view in made}
            value = said.pop()
            if value is not None and not said:
                found.setdefault(flag, When(flag, frozenset({value}), only=True))
    return tuple(found.values())[:MOST]


def _flags(ref: Ref, view: View) -> Iterator[Ref]:
    """The flags beside the value, in each object that it is taken out of."""
    whole = view.values.value(ref.node)
    for number, step in enumerate(ref.path):
        if step is STAR:
            return
        path: tuple[Step, ...] = ref.path[:number]
        holder: Tree = follow(whole, path)
        for key, value in holder.items() if isinstance(step, str) and isinstance(holder, dict) else ():
            if isinstance(value, bool):
                yield Ref(ref.node, (*path, key, _VERDICT))
