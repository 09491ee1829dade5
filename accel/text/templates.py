"""What a node's input is made of: references into a run's values, and texts with holes.

``str()`` of each is what a graph's text shows.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass

from .steps import Star, Step, path_text
from .turns import Turn
from .values import Tree

Field = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Ref:
    """A value of a run: what `node` puts out, followed along `path`."""

    node: str
    path: tuple[Step, ...] = ()

    @property
    def stars(self) -> int:
        count = 0
        for step in self.path:
            if isinstance(step, Star):
                count += 1
        return count

    @property
    def field(self) -> Field:
        """The beginning of the path that leads through fields and positions alone."""
        return tuple(step for step in itertools.takewhile(_is_plain, self.path) if isinstance(step, str | int))

    def __str__(self) -> str:
        return "{" + self.node + path_text(self.path) + "}"


def _is_plain(step: Step) -> bool:
    return isinstance(step, str | int)


@dataclass(frozen=True, slots=True)
class Counter:
    """The position of an element plus `offset`, as text: the number in ``[1] …  [2] …``."""

    offset: int

    def __str__(self) -> str:
        return f"{{#{self.offset:+d}}}" if self.offset else "{#}"


@dataclass(frozen=True, slots=True)
class Instead:
    """What stands where there is nothing to join: `said`, and so many characters less before and behind it."""

    said: str = ""
    before: int = 0
    behind: int = 0


@dataclass(frozen=True, slots=True)
class Join:
    """All elements of `ref` (its stars beyond those the node binds), with `sep` between them.

    `sep` may count: a `Counter` in it gives the position of the element that follows. Rows of several values go over
    lists side by side, as far as the shortest one goes. Without any star it is a value that may be missing or empty.
    """

    ref: Ref
    sep: tuple[str | Counter, ...]
    limit: int | Counter | None = None
    bound: int = 0
    """How many leading stars are the node's own; the others run over all elements."""
    rest: tuple[str | Ref, ...] = ()
    """What follows `ref` in every row."""
    empty: Instead | None = Instead()
    """None: no run has shown what the program does then."""

    @property
    def row(self) -> tuple[str | Ref, ...]:
        return (self.ref, *self.rest)

    @property
    def refs(self) -> tuple[Ref, ...]:
        return tuple(part for part in self.row if isinstance(part, Ref))

    def __str__(self) -> str:
        empty = f" or {json.dumps(self.empty.said)}" if self.empty is not None and self.empty.said else ""
        if not self.ref.stars:
            return f"{{{str(self.ref)[1:-1]}{empty or ' or nothing' * (self.empty is not None)}}}"
        limit = f"[:{self.limit}]" if self.limit is not None else ""
        sep = "".join(json.dumps(part)[1:-1] if isinstance(part, str) else str(part) for part in self.sep)
        row = "".join(json.dumps(part)[1:-1] if isinstance(part, str) else str(part) for part in self.row)
        return f"{{join{limit} {row if self.rest else row[1:-1]} by '{sep}'{empty}}}"


Part = str | Ref | Join | Counter


@dataclass(frozen=True, slots=True)
class Template:
    """A text with holes."""

    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return "".join(json.dumps(part)[1:-1] if isinstance(part, str) else str(part) for part in self.parts)

    @property
    def holes(self) -> tuple[Ref | Join | Counter, ...]:
        return tuple(part for part in self.parts if not isinstance(part, str))


@dataclass(frozen=True, slots=True)
class Whole:
    """A leaf that is a value of the run as it stands, of any type (a text, a number, a list of messages)."""

    ref: Ref

    def __str__(self) -> str:
        return str(self.ref)


@dataclass(frozen=True, slots=True)
class Collect:
    """A list of all elements of `ref` (its stars beyond the `bound` ones that are the node's own)."""

    ref: Ref
    bound: int = 0
    distinct: tuple[str, ...] | None = None
    """Of elements that are equal along this path (of themselves, if it is empty) only the first; None: all."""
    limit: int | None = None

    def __str__(self) -> str:
        limit = f" first {self.limit}" if self.limit is not None else ""
        distinct = "" if self.distinct is None else f" distinct{path_text(self.distinct)}"
        return f"[{self.ref}{distinct}{limit}]"


@dataclass(frozen=True, slots=True)
class Taken:
    """A turn that a run has taken: whose answer, and where the results of its calls are, each list by position."""

    turn: Turn
    answer: Ref
    results: tuple[Ref, ...]

    def __str__(self) -> str:
        return f"{self.answer} and {', '.join(map(str, self.results)) or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Talk:
    """A list of messages that has grown by turns. `start`: what it was before, a list or a leaf that gives one."""

    start: Tree
    turns: tuple[Taken, ...]
    after: int = 0
    """How many of the first messages stand behind the turns."""

    def __hash__(self) -> int:
        return hash((tuple(self.refs), self.after))  # lists and dicts have none

    def __str__(self) -> str:
        turns = ", then ".join(map(str, self.turns))
        return f"what {self.turns[0].answer} was asked, then {turns}"

    @property
    def refs(self) -> Iterator[Ref]:
        for leaf in leaves_in(self.start):
            yield from refs_in(leaf)
        for taken in self.turns:
            yield from (taken.answer, *taken.results)


Leaf = Template | Whole | Collect | Talk
"""The leaves of a node's input that are not literals."""


@dataclass(frozen=True, slots=True)
class Spread:
    """In a list of an input: a list of the run's, whose elements stand there one after the other: the messages so far,
    behind what a program says itself."""

    leaf: Whole | Collect

    def __str__(self) -> str:
        return f"*{self.leaf}"


@dataclass(frozen=True, slots=True)
class Bound:
    """A whole number that the run knows, and so many more."""

    ref: Ref
    more: int = 0

    def __str__(self) -> str:
        return f"{self.ref}{self.more:+d}" if self.more else str(self.ref)


def leaves_in(tree: Tree) -> Iterator[Leaf]:
    """What is pasted into an input, in order."""
    if isinstance(tree, Leaf):
        yield tree
    elif isinstance(tree, Spread):
        yield tree.leaf
    elif isinstance(tree, dict | list):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from leaves_in(value)


def refs_in(leaf: Leaf) -> Iterator[Ref]:
    """Every reference of a leaf, in order."""
    if isinstance(leaf, Whole | Collect):
        yield leaf.ref
    elif isinstance(leaf, Talk):
        yield from leaf.refs
    else:
        for hole in leaf.holes:
            if isinstance(hole, Ref):
                yield hole
            elif isinstance(hole, Join):
                yield from hole.refs
