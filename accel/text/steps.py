"""The steps of a path: fields, positions, and what is done with a value on its way into an input.

``str()`` of each is what a graph's text shows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .dumps import Dump
from .functions import Computed
from .turns import Called
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
    """``[:n]``: the first n characters of a text, and a mark behind one that had more."""

    n: int
    mark: str = ""

    def __str__(self) -> str:
        return f"[:{self.n}]" + (f"|marked {json.dumps(self.mark)}" if self.mark else "")

    def shown(self, text: str, done: bool) -> str:
        """The text as it is if nobody can tell yet whether it has more."""
        if len(text) > self.n or (len(text) == self.n and not self.mark):
            return text[: self.n] + self.mark
        return str(text) if done else text


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
    def own(self) -> list[str]:
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
