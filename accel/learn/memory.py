"""Which traces a plan keeps: few, but of every shape its program takes, and none from before the program changed; and
what they teach."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Protocol, TypeVar

from ..graph.ir import Graph, Node
from ..text.values import freeze, texts_of
from ..trace.record import Trace
from ..trace.released import release
from .covers.foreign import Wording
from .given import first_of
from .lessons import Lesson, lesson

T = TypeVar("T")
MAX_TRACES = 12
MAX_CALLS = 4_000
"""Of all traces kept."""
DRIFTED_AFTER = 2
"""Runs in a row that make another call where older ones made one: the program has changed."""


class Changing(Wording, Protocol):
    """What a program says by itself, and what of that it has changed."""

    def moved(self) -> Sequence[str]:
        """The texts of changed entries of its dicts: those that they held, and those that they hold."""
        ...


@dataclass(slots=True)
class _Kept:
    trace: Trace
    nodes: frozenset[str] = frozenset()
    """The nodes that explained its calls: its shape."""
    explained_later: bool = False
    """What was known explained a later run."""


@dataclass(slots=True)
class Memory:
    """Bounded: of the shape that most traces have, the oldest one makes room."""

    _kept: list[_Kept] = field(default_factory=list)
    _fickle: set[str] = field(default_factory=set)
    """Call sites that went back to what they did before they seemed to have changed."""
    _gone: dict[str, set[object]] = field(default_factory=dict)
    """By call site, what its calls looked like before the program changed."""
    _moved: Sequence[str] = ()
    """Texts of changed entries of the program's dicts, without whose runs all is explained;"""
    _refused: int = 0
    """and how many such runs there were."""

    @property
    def traces(self) -> list[Trace]:
        return [kept.trace for kept in self._kept]

    def add(self, trace: Trace) -> bool:
        """Keep a trace; one with the same input proves no more, and makes room. False if it teaches nothing."""
        if any(_told_at(trace, self._moved)):
            self._refused += 1
            if self._refused & (self._refused - 1):
                return False
            self._moved = ()  # after twice as many each time: it may have been changed back
        same = [kept for kept in self._kept if freeze(kept.trace.given) == freeze(trace.given)]
        if same and len(self._kept) > 1:
            self._kept.remove(same[0])
        self._kept.append(_Kept(trace))
        while len(self._kept) > MAX_TRACES or (len(self._kept) > 2 and self.calls > MAX_CALLS):
            shapes = Counter(kept.nodes for kept in self._kept[:-1])
            most, _ = shapes.most_common(1)[0]
            self._kept.remove(next(kept for kept in self._kept if kept.nodes == most))
        return True

    def taught(self, program: Changing, passed_over: frozenset[str]) -> tuple[Lesson, bool]:
        """What the traces teach, and whether older ones were of a program that has changed since, and are forgotten.
        `passed_over`: see `lesson`."""
        moved = program.moved()
        passed_over |= {site for kept in self._kept for site in _told_at(kept.trace, moved)}
        learnt = self._without(moved, program, passed_over) or lesson(self.traces, program, passed_over=passed_over)
        changed = self.changed(learnt)
        return (lesson(self.traces, program, passed_over=passed_over) if changed else learnt), changed

    def _without(self, moved: Sequence[str], program: Changing, passed_over: frozenset[str]) -> Lesson | None:
        """Where a program has changed entries of a dict, the others tell what it looks up there: the lesson of their
        runs, if it explains all of them. Those of the changed ones are forgotten then."""
        others = [kept for kept in self._kept if not any(_told_at(kept.trace, moved))]
        if not others or len(others) == len(self._kept):
            return None
        learnt = lesson([kept.trace for kept in others], program, passed_over=passed_over)
        if learnt.explained < 1.0:
            return None
        self._kept, self._moved = others, moved
        return learnt

    def supersede(self, last: Trace | None) -> None:
        """A run is not the last one any more."""
        for call in last.calls if last is not None else ():
            release(call, first_of(call))

    def explained(self) -> None:
        """A run went by that what is known explains."""
        if self._kept:
            self._kept[-1].explained_later = True

    @property
    def calls(self) -> int:
        """Of all traces."""
        return sum(len(kept.trace.calls) for kept in self._kept)

    def changed(self, lesson: Lesson) -> bool:
        """Note how the traces were explained; True if older ones were of a program that has changed since, and are
        forgotten now."""
        for kept, nodes in zip(self._kept, lesson.shapes, strict=True):
            kept.nodes = nodes
        stale = [node for node in lesson.graph.nodes if self._is_stale(node, lesson.graph)]
        for node in stale:
            self._gone.setdefault(node.site, set()).add(asked_for(node))
        names = {node.name for node in stale}
        before = len(self._kept)
        self._kept = [kept for kept in self._kept if not names & kept.nodes]
        return len(self._kept) < before

    def _is_stale(self, node: Node, graph: Graph) -> bool:
        """Whether the newest traces, and they alone, have another node in its place."""
        if not node.site or node.evidence.always or node.when or not node.predictable or node.site in self._fickle:
            return False
        here = [other for other in graph.by_site[node.site] if other.predictable]
        if any(asked_for(other) in self._gone.get(node.site, ()) for other in here):
            self._fickle.add(node.site)  # it is back: the program goes one way or the other
            return False
        if any(kept.explained_later for kept in self._kept[-DRIFTED_AFTER:-1]):
            return False
        others = {other.name for other in here if other is not node}
        held = [(node.name in kept.nodes, others & kept.nodes) for kept in self._kept]
        newest, older = held[-DRIFTED_AFTER:], held[:-DRIFTED_AFTER]
        instead = frozenset[str]().union(*(names for _, names in newest))
        return (
            any(had for had, _ in older)
            and all(names and not had for had, names in newest)
            and not any(names & instead for _, names in older)
        )


def _told_at(trace: Trace, moved: Sequence[str]) -> Iterator[str]:
    """Call sites at which a run was told one of these texts."""
    for call in trace.calls if moved else ():
        if any(text in told for told in texts_of(call.input) for text in moved):
            yield call.site


def once(of: Callable[[Node], T]) -> Callable[[Node], T]:
    """Worked out once for each node that somebody has: they are frozen, and asked about time and again."""
    found: dict[int, tuple[weakref.ref[Node], T]] = {}

    @wraps(of)
    def known(node: Node) -> T:
        held = found.get(key := id(node))
        if held is None or held[0]() is not node:
            held = found[key] = (weakref.ref(node, lambda _: found.pop(key, None)), of(node))
        return held[1]

    return known


@once
def asked_for(node: Node) -> object:
    """What a node asks for, whatever it is called."""
    called = tuple((when.ref, when.yes) for when in node.when if when.only)
    return node.site, freeze(node.input), called
