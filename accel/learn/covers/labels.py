"""What a program says before each element of a list, by what kind it is: ``Customer: ...  Agent: ...``.

Such words are no known values. Where the elements of a list follow each other in a text, and what stands before each of
them goes by a short field, they are a step from that field (`Label`), and a value of a row as others are (`beside`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from ...text.paths import follow
from ...text.steps import Label
from ...text.turns import ROLES
from ...text.values import Tree, is_class_name
from .beside import Run, runs
from .cover import ends_alike
from .holes import ANY, Hole, OpenPath, Parts, Rank, Row, filled
from .index import Values

MOST_BEHIND = 2
"""Elements that follow the others in another form: the question, behind the chat before it."""
MOST = 6
"""Different kinds of elements."""
LONGEST = 32
"""Characters of what is said,"""
LONGEST_KIND = 16
"""and of the field that it goes by."""
_WORDS = re.compile(r"[^\W\d_](?:[\w .'-]*\w)?$")


@dataclass(frozen=True, slots=True)
class _Elements:
    """The first elements of a list, which stand in a text one after the other."""

    node: str
    path: OpenPath
    """To each of them;"""
    rows: Sequence[Row]
    rank: Rank

    def field(self, values: Values, name: str) -> list[Tree]:
        """What each has there."""
        return [follow(values.outputs[self.node], (*filled(self.path, row), name)) for row in self.rows]


def labelled(values: Values, parts: Parts) -> Parts:
    """`parts` with holes for such words."""
    at = 1
    while "label" in values.readings and at < len(parts) - 2:
        found = [run for run in runs(parts, at) if run[0] > 1]
        count, step = max(((run[0], -run[3]) for run in found), default=(0, 0))
        for first, fewer in product(range(at - 1, at - 1 - step, 2), range(min(MOST_BEHIND + 1, count - 1))):
            texts = [part for part in parts[first::-step][: count - fewer] if isinstance(part, str)]
            if len(texts) > 2 and len(set(texts[first < at :])) < 2:
                continue
            split = _split(values, texts, list(_lists(parts[at], found, -step)), goes_on=first < at)
            if split is not None:
                instead = dict(zip(range(first, first - step * count, -step), split, strict=False))
                parts = [new for place, part in enumerate(parts) for new in instead.get(place, [part])]
                at += 2 * (first < at)
                break
        at += 2
    return parts


def _lists(first: object, found: Sequence[Run], step: int) -> Iterator[_Elements]:
    """The lists whose first elements follow each other from this hole on, so many parts after the other."""
    assert isinstance(first, Hole)
    for count, (node, path), row, by in found:
        if by == step:
            last = len(path) - 1 - path[::-1].index(ANY)
            rows = [(*row[:-1], number) for number in range(count)]
            yield _Elements(node, path[: last + 1], rows, first.origins[node, path].rank)


def _split(values: Values, texts: Sequence[str], lists: Sequence[_Elements], goes_on: bool) -> list[Parts] | None:
    """Each text as what stands before the words, these, and what stands behind them; None if there are none.
    `goes_on`: the first one begins as it likes, before all elements."""
    behind = ends_alike(texts)
    behind = behind[next((at for at, one in enumerate(behind) if not one.isalnum()), len(behind)) :]
    before = [text[: len(text) - len(behind)] for text in texts]
    said = [match.group() if (match := _WORDS.search(text[-2 * LONGEST :])) else "" for text in before]
    ahead = [text[: len(text) - len(words)] for text, words in zip(before, said, strict=True)]
    if not all(said) or len(set(said)) < 2 or max(map(len, said)) > LONGEST or len(set(ahead[goes_on:])) > 1:
        return None
    labels = _labels(values, lists, said)
    return [[text, hole, behind] for text, hole in zip(ahead, labels, strict=True)] if labels is not None else None


def _labels(values: Values, lists: Sequence[_Elements], said: Sequence[str]) -> list[Hole] | None:
    """The words as what the program says for a short field of the elements; None if they go by none."""
    labels = [Hole() for _ in said]
    for elements in lists:
        if len(elements.rows) < len(said):
            continue
        first = follow(values.outputs[elements.node], filled(elements.path, elements.rows[0]))
        for name in first if isinstance(first, dict) else ():
            kinds = elements.field(values, name)[: len(said)]
            told = {kind: words for kind, words in zip(kinds, said, strict=True) if _tells(values, name, kind)}
            label = Label(tuple(sorted(told.items())))
            if [label.of(kind) for kind in kinds] == said and len(told) <= MOST and all(map(values.says, label.own)):
                for hole, row in zip(labels, elements.rows, strict=False):
                    hole.origin((elements.node, (*elements.path, name, label)), elements.rank).rows.append(row)
                break
    return labels if labels[0].origins else None


def _tells(values: Values, name: str, kind: Tree) -> bool:
    """Whether a field says what kind of an element it is: its class, a role, or a word of the program's. Anybody's name
    is none: it would stand in a plan that is saved."""
    if not isinstance(kind, str) or is_class_name(name, kind):
        return isinstance(kind, str)
    return kind.casefold() in ROLES or (0 < len(kind) <= LONGEST_KIND and values.says(kind))
