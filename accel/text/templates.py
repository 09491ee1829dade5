"""What a node's input is made of: references into a run's values, and texts with holes.

``str()`` of each is what a graph's text shows.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .dumps import Dump
from .functions import Computed
from .turns import Called, Turn
from .values import Tree


@dataclass(frozen=True, slots=True)
class Star:
    """``[*]``: every element of a list; the k-th star of a path is bound by the k-th level of the node."""

    def __str__(self) -> str:
        return "[*]"


@dataclass(frozen=True, slots=True)
class Extract:
    """An extractor (`accel.text.extract`): a text seen as the list or object it contains."""

    name: str

    def __str__(self) -> str:
        return f"|{self.name}"


@dataclass(frozen=True, slots=True)
class Clip:
    """``[:n]``: the first n characters of a text."""

    n: int

    def __str__(self) -> str:
        return f"[:{self.n}]"


@dataclass(frozen=True, slots=True)
class Head:
    """``.split(end)[0]``: a text up to the first `end`, its first sentence or line."""

    end: str

    def __str__(self) -> str:
        return f"|up to {json.dumps(self.end)}"

    def shown(self, text: str) -> str:
        return text.split(self.end, 1)[0]


@dataclass(frozen=True, slots=True)
class Strip:
    """Text without surrounding white space."""

    def __str__(self) -> str:
        return "|strip"


@dataclass(frozen=True, slots=True)
class Unique:
    """At the end of a path: of the elements that its stars run over, the first ones of equal value."""

    def __str__(self) -> str:
        return "|unique"


@dataclass(frozen=True, slots=True)
class Items:
    """A dict as the list of its items, in order, each with ``key`` and ``value``."""

    def __str__(self) -> str:
        return "|items"

    def shown(self, mapping: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [{"key": key, "value": value} for key, value in mapping.items()]


@dataclass(frozen=True, slots=True)
class Escape:
    """Text as it stands inside the quotes of `json.dumps` ("json"; "json text" with ``ensure_ascii=False``) or `repr`
    ("repr"; "quoted" with the quotes, which depend on the text); see `Dump` for lists and dicts."""

    name: str

    def __str__(self) -> str:
        return f"|as {self.name}"

    def shown(self, text: str) -> str:
        if self.name == "quoted":
            return repr(text)
        return (repr(text) if self.name == "repr" else json.dumps(text, ensure_ascii=self.name == "json"))[1:-1]


@dataclass(frozen=True, slots=True)
class Count:
    """How many elements a list has, as text."""

    def shown(self, items: Sequence[Any]) -> str:
        return str(len(items))

    def __str__(self) -> str:
        return "|count"


@dataclass(frozen=True, slots=True)
class Edit:
    """A text after what programs do to items: ``lower``, ``upper``, ``title``, ``capitalize``, or ``bare``, without
    the punctuation around it."""

    name: str

    def __str__(self) -> str:
        return f"|{self.name}"

    def shown(self, text: str) -> str:
        return text.strip(_AROUND) if self.name == "bare" else str(getattr(text, self.name)())


@dataclass(frozen=True, slots=True)
class Label:
    """What a program says for each of a few short values: "Customer" for "human"."""

    said: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"|as one of {json.dumps(dict(self.said))}"

    def of(self, value: Tree) -> str | None:
        """None for any other value."""
        return next((text for key, text in self.said if key == value), None)

    @property
    def words(self) -> list[str]:
        """Of what it says, that which is no part of the value: the program's."""
        return [text for key, text in self.said if text.casefold() not in key.casefold()]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What decisions are told by: a short text without its case and the punctuation around it, or a longer one's first
    word; True, False and whole numbers as text."""

    word: bool = False

    def __str__(self) -> str:
        return "|first word" if self.word else "|verdict"

    def of(self, value: Any, done: bool = True) -> str | None:
        """None if the value is none of that, or not yet (`done`: nothing more will follow)."""
        if isinstance(value, bool | int):
            return None if self.word else str(value)
        if not isinstance(value, str) or not (done or self.word):
            return None
        if self.word:
            words = value.split(None, 1)
            return words[0].strip(_AROUND).casefold() if len(words) > 1 or (words and done) else None
        text = value.strip().strip(_AROUND).casefold()
        return text if 0 < len(text) <= LONGEST_VERDICT else None


@dataclass(frozen=True, slots=True)
class Each:
    """Of a list, what each element has along this path, in order."""

    path: tuple[Step, ...]

    def __str__(self) -> str:
        return f"|each {path_text(self.path)}"


GATHERS = (Each, Computed)
"""Steps that make one value of a whole list."""
LONGEST_VERDICT = 32
_AROUND = " .,:;!?*_`'\"()[]"
STAR = Star()
STRIP = Strip()
UNIQUE = Unique()
ITEMS = Items()
COUNT = Count()
QUOTED = Escape("quoted")
HEADS = tuple(map(Head, (". ", ".", "\n\n", "\n", ": ", ":", ", ", ",", "; ", " - ", "? ", "! ", " (")))
ESCAPES = tuple(Escape(name) for name in ("json", "json text", "repr"))
EDITS = tuple(Edit(name) for name in ("lower", "upper", "title", "capitalize", "bare"))
VERDICTS = (Verdict(), Verdict(word=True))
Step = (
    str | int | Star | Unique | Extract | Clip | Head | Strip | Items | Count | Dump | Escape | Edit | Label | Verdict
    | Called | Each | Computed
)  # fmt: skip
"""One step of a path: a field, a position, all positions, or a total function of the value."""


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
class Join:
    """All elements of `ref` (its stars beyond those the node binds), with `sep` between them.

    `sep` may count: a `Counter` in it gives the position of the element that follows. Rows of several values go over
    lists side by side, as far as the shortest one goes.
    """

    ref: Ref
    sep: tuple[str | Counter, ...]
    limit: int | Counter | None = None
    bound: int = 0
    """How many leading stars are the node's own; the others run over all elements."""
    rest: tuple[str | Ref, ...] = ()
    """What follows `ref` in every row."""

    @property
    def row(self) -> tuple[str | Ref, ...]:
        return (self.ref, *self.rest)

    @property
    def refs(self) -> tuple[Ref, ...]:
        return tuple(part for part in self.row if isinstance(part, Ref))

    def __str__(self) -> str:
        limit = f"[:{self.limit}]" if self.limit is not None else ""
        sep = "".join(json.dumps(part)[1:-1] if isinstance(part, str) else str(part) for part in self.sep)
        row = "".join(json.dumps(part)[1:-1] if isinstance(part, str) else str(part) for part in self.row)
        return f"{{join{limit} {row if self.rest else row[1:-1]} by '{sep}'}}"


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


def path_text(path: tuple[Step, ...]) -> str:
    out: list[str] = []
    for step in path:
        if isinstance(step, str):
            out.append(f".{step}" if step.isidentifier() else f"[{json.dumps(step)}]")
        elif isinstance(step, int):
            out.append(f"[{step}]")
        else:
            out.append(str(step))
    return "".join(out)


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
