"""Text in a learnt template that is neither the program's nor a known value: somebody's data (invariant 10)."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import islice
from typing import Protocol

from ...graph.ir import Node
from ...process.properties import cached_property
from ...process.spare import breathe
from ...text.constants import Table
from ...text.steps import Clip, Label
from ...text.templates import Collect, Counter, Join, Ref, Spread, Talk, Template, Whole
from ...text.values import Opaque, Tree, freeze, is_class_name, is_view, texts_of
from ...trace.record import CallRecord, Trace
from .beginnings import Beginnings

SHORTEST = 20
"""A text that is recognised in a literal has so many characters,"""
FEWEST_WORDS = 3
"""and so many words;"""
LONGEST = 60
"""so many of its characters are enough: what is used of it may be cut off."""
IN_A_ROW = 5
"""So many words in a row are enough, too, wherever they stand and in whatever case."""
_WORD = re.compile(r"\w+")


class Wording(Protocol):
    """What a program says by itself."""

    def own(self, text: str) -> bool:
        """Whether these are words of the program's."""
        ...

    def says(self, text: str) -> bool:
        """Whether it says this as it stands, in one piece."""
        ...

    def constants(self) -> Iterable[str]:
        """All of it: patterns, separators and numbers among them."""
        ...

    def tables(self) -> Iterable[Table]:
        """The dicts in which it may look something up."""
        ...


class Data:
    """What runs have read, found or been answered: none of it is ever a literal, in no run's plan, whether the run that
    used it knew where it came from or not."""

    def __init__(self, traces: Sequence[Trace] = (), program: Wording | None = None) -> None:
        self._traces = traces
        self._program = program
        self._found: dict[str, bool] = {}
        """By words in a row, whether they were found or answered."""

    def _own(self, text: str) -> bool:
        return self._program is not None and self._program.own(text)

    def is_in(self, node: Node) -> bool:
        """Whether a literal of this node's holds any of it, beyond what the program says itself."""
        own = [text for text in said_by(node) if len(text) >= SHORTEST]
        texts = "\0".join(own)
        if any(texts.startswith(mark, at) and not self._own(mark) for at, mark in self._marks.find(texts)):
            return True
        return any(self._was_found(row) and not self._own(shown) for text in own for row, shown in rows_of(text))

    @cached_property
    def _marks(self) -> Beginnings[str]:
        """What such a text is recognised by: its lines, as far as they are long enough; of what went through the
        framework's nodes, which may also be the program's words, only the whole."""
        texts = [text for trace in self._traces for text in _data_of(trace)]
        found = {line.strip() for text in texts for line in text.splitlines()}
        found |= {
            text
            for trace in self._traces
            for visit in trace.visits
            for text in texts_of([visit.entered, visit.left, *visit.answers])
        }
        marks = Beginnings[str](SHORTEST, LONGEST)
        for mark in {text[:LONGEST] for text in found if len(text) >= SHORTEST and len(text.split()) >= FEWEST_WORDS}:
            marks.add(mark, mark, len(mark))
        return marks

    def _was_found(self, row: str) -> bool:
        """Whether a run has read this row of words, or was answered it: what an answer repeats of its question was not
        found there."""
        if row not in self._found:
            rows, each = self._words
            found = hash(row) in rows  # not a search through all of it for every row
            self._found[row] = found and any(row in words and row not in asked() for words, asked in each)
        return self._found[row]

    @cached_property
    def _words(self) -> tuple[set[int], list[tuple[str, Callable[[], str]]]]:
        """The hashes of all rows of words that were read or answered, and the words of each with what was asked for
        it."""
        each: list[tuple[str, Callable[[], str]]] = []
        for trace in self._traces:
            each += [(words_of([text]), str) for text in trace.found]
            each += [(words_of(texts_of(call.output)), cache(partial(_asked, call))) for call in trace.calls]
        return {hash(row) for words, _ in each for row in _rows_in(words)}, each


def _rows_in(words: str) -> Iterator[str]:
    """All rows of what `words_of` gives."""
    for line in words.split("\n"):
        row: deque[str] = deque(maxlen=IN_A_ROW)
        for number, word in enumerate(line.split()):
            row.append(word)
            if len(row) == IN_A_ROW:
                yield f" {' '.join(row)} "
            if number % 1_000 == 0:
                breathe()


def _asked(call: CallRecord) -> str:
    return words_of(texts_of(call.input))


def words_of(texts: Iterable[str]) -> str:
    """All words, told without case, with spaces around them, in one line for each text."""
    lines = []
    for text in texts:
        words, shown = _WORD.finditer(text), [""]
        while some := [word.group() for word in islice(words, 1_000)]:
            shown += some
            breathe()
        lines.append(" ".join((*shown, "")))
    return "\n".join(lines).casefold()


def rows_of(text: str) -> Iterator[tuple[str, str]]:
    """All `IN_A_ROW` words, as `words_of` shows them, and as they stand in the text; fewer characters than `SHORTEST`
    tell nothing."""
    row: deque[tuple[str, int]] = deque(maxlen=IN_A_ROW)
    for word in _WORD.finditer(text):
        row.append((word.group(), word.start()))
        start = row[0][1]
        if len(row) == IN_A_ROW and word.end() - start >= SHORTEST:
            yield f" {' '.join(one for one, _ in row)} ".casefold(), text[start : word.end()]


def _data_of(trace: Trace) -> Iterator[str]:
    yield from trace.found
    for call in trace.calls:
        yield from texts_of(call.output)


def literals(tree: Tree, constant: Container[Hashable] = frozenset()) -> Iterator[str]:
    """All text, and all numbers, that a template has by itself, but for `constant` lists and dicts."""
    if isinstance(tree, Template):
        for part in tree.parts:
            pieces = (*part.sep, *part.row) if isinstance(part, Join) else (part,)
            yield from (piece for piece in pieces if isinstance(piece, str))
            for step in (step for ref in pieces if isinstance(ref, Ref) for step in ref.path):
                if isinstance(step, Label):
                    yield from step.own
                elif isinstance(step, Clip) and step.mark:
                    yield step.mark
            if isinstance(part, Join) and part.empty is not None:
                yield part.empty.said
    elif isinstance(tree, Talk):
        yield from literals([tree.start, *([taken.turn.said, taken.turn.told] for taken in tree.turns)], constant)
    elif isinstance(tree, dict | list):
        if not (constant and freeze(tree) in constant):
            for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
                if not is_class_name(str(key), value):
                    yield from literals(value, constant)
    elif tree is not None and not isinstance(tree, bool | Whole | Collect | Spread | Counter | Opaque):
        yield str(tree)


def said_by(node: Node) -> Iterator[str]:
    """All text, and all numbers, that a node's input has by itself. A search may also name somebody by a key."""
    yield from literals(node.input)
    yield from (key for key, _ in _of_arguments(node) if key)


def has_flags(node: Node) -> bool:
    """Whether a search is told yes, no or nothing, or given an object: by what somebody may see, maybe."""
    return any(value is None or isinstance(value, bool | Opaque) for _, value in _of_arguments(node))


def _of_arguments(node: Node) -> Iterator[tuple[str, Tree]]:
    """The arguments of a search, and what is inside them, with their keys in dicts of the program's."""
    given = node.input if isinstance(node.input, dict) and node.op.engine == "search" else {}
    inside = [(value, not given.keys() <= {"args", "kwargs"}) for value in given.values()]
    while inside:
        tree, keyed = inside.pop()
        if isinstance(tree, dict) and is_view(tree):
            continue
        if isinstance(tree, dict | list):
            for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
                yield (key if keyed and isinstance(key, str) else ""), value
                inside.append((value, True))
