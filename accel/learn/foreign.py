"""Text in a learnt template that is neither the program's nor a known value: somebody's data (invariant 10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from ..ir import Node
from ..record import Trace
from ..references import References
from ..templates import Collect, Counter, Join, Template, Whole
from ..texts import Standing, Texts
from ..values import Opaque, Tree, is_class_name, texts_of

SHORTEST = 20
"""A text that is recognised in a literal has so many characters,"""
FEWEST_WORDS = 3
"""and so many words;"""
LONGEST = 60
"""so many of its characters are enough: what is used of it may be cut off."""


class Program:
    """What a program says by itself: looked up off its path, and again after a lesson that holds something else."""

    def __init__(self) -> None:
        self._references = References()
        self._ran = False
        self._standing: Standing = frozenset()
        """See `accel.texts`."""
        self._texts: Texts | None = None
        self._stale = True
        """Since it was looked up a run has taught something."""

    def look(self, references: References) -> None:
        """The program is accelerated, and has not run yet: what it holds is its own. Later it may be a run's."""
        if not self._ran:
            self._standing = frozenset((*self._standing, *references.standing()))

    def ran(self, references: References) -> None:
        """A run of the program is over, whose texts can be found from here."""
        self._ran = True
        self._references = references

    def changed(self) -> None:
        """Something new was learnt, maybe because the program is another one now."""
        self._stale = True

    def lacks(self, node: Node) -> bool:
        """Whether a literal of this node's holds words that the program doesn't."""
        texts = list(literals(node.input))
        if self._texts is not None and all(map(self._texts.cover, texts)):
            return False
        if self._stale:
            self._stale = False
            self._texts = Texts(self._references.texts(self._standing))
        return self._texts is None or not all(map(self._texts.cover, texts))

    def own(self, text: str) -> bool:
        """Whether these are words of the program's."""
        if self._texts is None:
            self._texts = Texts(self._references.texts(self._standing))
        return self._texts.cover(text)


class Data:
    """What runs have read, found or been answered: none of it is ever a literal, in no run's plan, whether the run that
    used it knew where it came from or not."""

    def __init__(self, traces: Sequence[Trace] = (), own: Callable[[str], bool] = lambda text: False) -> None:
        self._traces = traces
        self._own = own

    def is_in(self, node: Node) -> bool:
        """Whether a literal of this node's holds any of it, beyond what the program says itself."""
        texts = "\0".join(text for text in literals(node.input) if len(text) >= SHORTEST)
        return bool(texts) and any(mark in texts and not self._own(mark) for mark in self._marks)

    @cached_property
    def _marks(self) -> set[str]:
        """What such a text is recognised by: its lines, as far as they are long enough; of what went through the
        framework's nodes, which may also be the program's words, only the whole."""
        texts = [text for trace in self._traces for text in _data_of(trace)]
        found = {line.strip() for text in texts for line in text.splitlines()}
        found |= {
            text for trace in self._traces for visit in trace.visits for text in texts_of([visit.entered, visit.left])
        }
        return {text[:LONGEST] for text in found if len(text) >= SHORTEST and len(text.split()) >= FEWEST_WORDS}


def _data_of(trace: Trace) -> Iterator[str]:
    yield from trace.found
    for call in trace.calls:
        yield from texts_of(call.output)


def literals(tree: Tree) -> Iterator[str]:
    """All text, and all numbers, that a template has by itself."""
    if isinstance(tree, Template):
        for part in tree.parts:
            for piece in (*part.sep, *part.row) if isinstance(part, Join) else (part,):
                if isinstance(piece, str):
                    yield piece
    elif isinstance(tree, dict):
        for key, value in tree.items():
            if not is_class_name(key, value):
                yield from literals(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from literals(value)
    elif tree is not None and not isinstance(tree, bool | Whole | Collect | Counter | Opaque):
        yield str(tree)
