"""Text in a learnt template that is neither the program's nor a known value: somebody's data (invariant 10)."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import Node
from ..references import References
from ..templates import Collect, Counter, Join, Template, Whole
from ..texts import Texts
from ..values import Opaque, Tree, is_class_name


class Program:
    """What a program says by itself: looked up off its path, and again after a lesson that holds something else."""

    def __init__(self) -> None:
        self._references = References()
        self._texts: Texts | None = None
        self._stale = True
        """Since it was looked up a run has taught something."""

    def ran(self, references: References) -> None:
        """A run of the program is over, whose texts can be found from here."""
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
            self._texts = Texts(self._references.texts())
        return self._texts is None or not all(map(self._texts.cover, texts))


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
