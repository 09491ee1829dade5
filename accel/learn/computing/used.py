"""What of a function's result stands in the calls of a site."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence

from ...text.functions import Computed
from ...text.paths import as_text, follow
from ...text.steps import Step
from ...text.values import Tree, Vector, freeze, leaves, texts_of
from ..covers.cover import stands_alone
from ..covers.index import SHORTEST

WORD = re.compile(r"\w+")


class Used:
    """What the calls of one run hold. `wanted`: of that, what functions are to give; `exactly`: as it stands."""

    def __init__(self, inputs: Sequence[Tree], wanted: frozenset[Hashable], exactly: bool) -> None:
        self._wanted = wanted
        self._exactly = exactly
        self._pieces = "\0".join(part for part in wanted if isinstance(part, str))
        self.words = frozenset(WORD.findall(self._pieces))
        self._text = "\0".join(text for each in inputs for text in texts_of(each))
        self._asked: dict[tuple[str, bool], bool] = {}
        """What stands there, as far as it was asked: many functions give the same number."""
        self._wholes = wanted if exactly else frozenset(freeze(part) for each in inputs for part in _wholes(each))

    def of(self, result: Tree, step: Step, of_list: bool) -> set[str]:
        """What of a result stands in the calls: a list or a vector as it is, a list in this order, something of a list,
        or a text that nobody knew by itself. `step`: that gave it, of a list or not."""
        if isinstance(result, list | Vector) and result and freeze(result) in self._wholes:
            return {"\0".join(texts_of(result)) or str(result)}
        if isinstance(result, list):
            return self._in_order(result, _by_number(step, result))
        shown = as_text(result)
        if not shown or not shown.strip():
            return set()
        if self._exactly:
            return {shown} if shown in self._wanted else set()
        asked = (shown, of_list)
        if asked not in self._asked:
            self._asked[asked] = _stands(shown, self._text if of_list else self._pieces)
        return {shown} if self._asked[asked] else set()

    def _in_order(self, items: Sequence[Tree], by_number: bool) -> set[str]:
        """The first text of the first element that stands before that of another one, and in which order; of an element
        that is alone, its longest one; else what stands there of the one with the least number, or with the greatest.
        """
        for path, leaf in leaves(items[0]) if len(items) > 1 else ():
            texts = [as_text(follow(item, path)) for item in items]
            other = next((text for text in texts if text != leaf), None)
            if isinstance(leaf, str) and leaf and other and self._may_be((leaf, other)):
                if 0 <= self._text.find(leaf) < self._text.find(other):
                    there = [text for text in texts if text and text in self._text]
                    return {leaf, "\0".join((*there, str(len(texts))))}
        if len(items) == 1 and not by_number:
            alone = max((leaf for _, leaf in leaves(items[0]) if isinstance(leaf, str)), key=len, default="")
            stands = len(alone) >= SHORTEST[0] and alone in self._text and self._may_be((alone,))
            return {alone} if stands else set()
        ends = leaves([items[0], items[-1]]) if items and by_number else ()
        said = {leaf for _, leaf in ends if isinstance(leaf, str) and leaf.strip()}
        return {text for text in said if self._may_be((text,)) and _stands(text, self._text)}

    def _may_be(self, shown: Iterable[str]) -> bool:
        return not self._exactly or self._wanted.issuperset(shown)

    def lacks(self, texts: Iterable[str]) -> bool:
        """Whether one of these stands in the calls, and is no known value."""
        return any(_stands(text, self._pieces) for text in texts)


def _wholes(tree: Tree) -> Iterator[Tree]:
    """Lists and vectors that may be what a function gave."""
    if isinstance(tree, Vector):
        yield tree
    elif isinstance(tree, dict | list):
        if isinstance(tree, list) and tree:
            yield tree
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from _wholes(part)


def _by_number(step: Step | None, items: Sequence[Tree]) -> bool:
    """Whether this function has put them in the order of a number that each has."""
    if not isinstance(step, Computed) or step.name not in ("ranked", "ranked by product") or not items:
        return False
    return isinstance(items[0][step.given[0]], int | float)


def _stands(shown: str, text: str) -> bool:
    at = text.find(shown)
    while at >= 0 and not (len(shown) >= SHORTEST[0] or stands_alone(text, at, at + len(shown))):
        at = text.find(shown, at + 1)
    return at >= 0
