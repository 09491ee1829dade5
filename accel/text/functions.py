"""Library functions that programs apply to values before they put them into a prompt.

All are pure, and have few parameters, which are constants of the program: where it splits a text, the pattern that it
searches, how it writes a number. So the few that come into question for a value can all be tried (`ways`), and the
smallest one that gives what every run has used is taken for what the program does (programming by examples).
"""

from __future__ import annotations

import json
import re
import statistics
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product
from time import thread_time
from typing import Any

from .values import Tree, freeze

Given = str | int | float
LONGEST = 20_000
"""A text of more characters is not tried."""
LONGEST_SEARCHED = 4_000
"""And of so many no pattern is."""
SLOW_S = 0.001
"""A pattern that takes longer on a part of a text is not tried on more of it: the interpreter cannot be had back from
it, and it may take many times as long on twice as many characters."""
FIRST_PART = 32
"""Characters of the first part; each further one is twice as long."""
MOST_REPEATS = 12
"""In one pattern."""
NARROWEST = 16
"""Characters of a line that a program may ask for."""
MOST = 200
"""Constants of one kind."""
_LITERAL = re.compile(r"(?:[\w#:<>/=\"' -](?![*?{])){2,}")
_SPECIAL = re.compile(r"\\[dwsSDWbn]|\.[*+]|[\])][*+?{]|\((?:\?:)?[^()]*\|")
_FLAGS = (0, int(re.DOTALL), int(re.IGNORECASE), int(re.MULTILINE))
_MARK = re.compile(r"(?<!\w)(?:[#$@%]\w{1,24}|\[[A-Z_]{2,24}\]|</?[a-z_]{2,24}>|<<\w{1,24}>>|\{\{\w{1,24}\}\})")
"""Where texts have a place for something, as prompts tell a model: results called #E1, names in brackets, tags."""
_PIECE = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<open>\((?:\?(?:P<\w+>|[:=!]|<[=!]))?)|(?P<close>\))|(?P<repeat>[*+]|\{\d*,\d*\})"
    r"|(?P<choice>\|)", re.DOTALL,
)  # fmt: skip
_REPEAT = re.compile(r"[*+]|\{\d")
_SPEC = re.compile(r"(?:\{\w*:)?(,?(?:\.\d)?[fdgeE%]|,|0\d{1,2}d?)\}?")
_DIRECTIVE = re.compile(r"%[YmdBbyAajUH]")
_NUMBER = re.compile(r"\s*[-+]?\d+(?:\.\d+)?\s*")
_DATES = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%B %d, %Y", "%Y/%m/%d", "%d/%m/%Y")
"""How inputs write a day."""


@dataclass(frozen=True, slots=True)
class Computed:
    """What the function of this name gives (`FUNCTIONS`), with these parameters."""

    name: str
    given: tuple[Given, ...] = ()

    def __str__(self) -> str:
        return f"|{self.name}" + (f"({', '.join(map(json.dumps, self.given))})" if self.given else "")

    def of(self, value: Tree) -> Tree:
        """Raises LookupError where the function gives nothing for such a value."""
        try:
            return FUNCTIONS[self.name].of(value, *self.given)
        except (ValueError, TypeError, ArithmeticError, AttributeError, re.error, MemoryError) as error:
            raise LookupError(f"{self} is not defined here") from error


@dataclass(frozen=True, slots=True)
class Function:
    """`ways`: the parameters that come into question for a value."""

    of: Callable[..., Tree]
    says: str
    ways: Callable[[Any, Constants], Iterable[tuple[Given, ...]]]


@dataclass(frozen=True)
class Constants:
    """What a program says, by what it may be for."""

    separators: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    specs: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    whole: tuple[int, ...] = ()
    numbers: tuple[float, ...] = ()

    @classmethod
    def among(cls, texts: Iterable[str]) -> Constants:
        """Those among a program's texts; numbers are written as texts, too."""
        said = sorted(set(texts), key=lambda text: (len(text), text))
        marks = sorted({mark for text in said for mark in _MARK.findall(text)})
        numbers = [text for text in said if _NUMBER.fullmatch(text) and len(text) <= 8]
        return cls(
            separators=tuple(dict.fromkeys((*marks[:MOST], *filter(_may_part, said))))[: 2 * MOST],
            patterns=tuple(text for text in said if _may_search(text))[:MOST],
            specs=tuple(dict.fromkeys(m[1] for text in said if (m := _SPEC.fullmatch(text))))[:MOST],
            dates=tuple(text for text in said if _DIRECTIVE.search(text) and len(text) <= 40)[:MOST],
            whole=tuple(sorted({int(text) for text in numbers if text.strip().isdecimal()}))[:MOST],
            numbers=tuple(sorted({float(text) for text in numbers}))[:MOST],
        )

    def searching(self, text: str) -> Iterator[str]:
        """The patterns that may be found in a text."""
        if len(text) > LONGEST_SEARCHED:
            return
        for pattern in self.patterns:
            literal = max(_LITERAL.findall(re.sub(r"\\.|\[[^\]]*\]", "\0", pattern)), key=len, default="")
            if literal.strip("\0").casefold() in text.casefold():
                with suppress(LookupError):
                    if _on(text, pattern, int(re.DOTALL)).search(text) is not None:
                        yield pattern


_slow: set[str] = set()
"""Patterns that took too long once."""


def _on(text: str, pattern: str, flags: int) -> re.Pattern[str]:
    """The pattern, if it takes no time on this text. Raises LookupError."""
    if len(text) > LONGEST_SEARCHED or pattern in _slow:
        raise LookupError("too long a text, or a pattern that takes too long")
    compiled, part = re.compile(pattern, flags), FIRST_PART
    while part < 2 * len(text):
        began_s = thread_time()
        compiled.search(text[:part])
        if thread_time() - began_s > SLOW_S:
            _slow.add(pattern)
            raise LookupError("a pattern that takes too long")
        part *= 2
    return compiled


def _may_part(text: str) -> bool:
    return 0 < len(text) <= 32 and not _NUMBER.fullmatch(text)


def _may_search(text: str) -> bool:
    """Whether a text is a pattern that may be tried: in none of its groups that repeat does anything repeat or is there
    a choice, which may take twice as long with every character."""
    if not _SPECIAL.search(text) or len(text) > 200 or re.search(r"\\[1-9]", text):
        return False
    groups, repeats, unbounded = [False], 0, False
    for piece in _PIECE.finditer(text):
        if piece["open"]:
            groups.append(False)
        elif piece["close"] and len(groups) > 1:
            unbounded = groups.pop()
            if unbounded and _REPEAT.match(text, piece.end()):
                return False
            groups[-1] = groups[-1] or unbounded
        elif piece["repeat"] or piece["choice"]:
            groups[-1] = True
            repeats += 1
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return False
    return repeats <= MOST_REPEATS


# --- of texts -------------------------------------------------------------------------------------------------------


def _parts(text: str, constants: Constants) -> Iterator[tuple[Given, ...]]:
    return ((sep,) for sep in constants.separators if sep in text)


def _split(text: str, sep: str) -> list[str]:
    if sep not in text:  # no run has shown what the program does then: all of it would be sent as a part
        raise LookupError(sep)
    return text.split(sep)


def _replaced(text: str, constants: Constants) -> Iterator[tuple[Given, ...]]:
    """What is replaced is the program's; what stands instead is short, or nothing."""
    news = ("", " ", "\n", *(sep for sep in constants.separators if len(sep) < 3))
    return ((old, new) for old in constants.separators if old in text for new in dict.fromkeys(news) if new != old)


def _sub(text: str, constants: Constants) -> Iterator[tuple[Given, ...]]:
    return ((p, new, flags) for p in constants.searching(text) for new in ("", " ") for flags in _FLAGS[:2])


def _groups(text: str, constants: Constants) -> Iterator[tuple[Given, ...]]:
    for pattern in constants.searching(text):
        yield from ((pattern, group, flags) for group in range(re.compile(pattern).groups + 1) for flags in _FLAGS)


def _all(text: str, constants: Constants) -> Iterator[tuple[Given, ...]]:
    return ((pattern, flags) for pattern in constants.searching(text) for flags in _FLAGS[:2])


def _found(text: str, pattern: str, flags: int) -> Tree:
    return [list(each) if isinstance(each, tuple) else each for each in _on(text, pattern, flags).findall(text)]


def _group(text: str, pattern: str, group: int, flags: int) -> Tree:
    found = _on(text, pattern, flags).search(text)
    if found is None or found[group] is None:
        raise LookupError(pattern)
    return found[group]


def _cut(text: str, constants: Constants) -> Iterator[tuple[Given, ...]]:
    return ((n,) for n in constants.whole if 1 < n < len(text))


def _lines(text: str, constants: Constants) -> Iterator[tuple[int]]:
    return ((n,) for n in constants.whole if NARROWEST <= n < len(text))


def _shortened(text: str, constants: Constants) -> Iterator[tuple[Given, ...]]:
    marks = (" [...]", *(sep for sep in ("...", " ...", "…", " …", "") if sep in constants.separators))
    return ((n, mark) for (n,) in _lines(text, constants) for mark in marks)


def _days(text: str, constants: Constants) -> Iterator[tuple[Given, ...]]:
    if len(text) > 32 or not any(map(str.isdigit, text)):
        return
    for form in dict.fromkeys((*_DATES, *constants.dates)):
        try:
            datetime.strptime(text, form)
        except ValueError:
            continue
        days = {sign * n * times for n in (0, *constants.whole) if n <= 400 for sign in (1, -1) for times in (1, 7)}
        yield from product((form,), sorted(days, key=abs), dict.fromkeys((form, *constants.dates, "%Y-%m-%d")))


def _day(text: str, form: str, days: int, shown: str) -> Tree:
    if not days and shown == form:
        raise LookupError("the same day")
    return (datetime.strptime(text, form) + timedelta(days=days)).strftime(shown)


def _number(text: str) -> Tree:
    return float(text) if "." in text else int(text)


def _if_number(text: str, constants: Constants) -> Iterable[tuple[Given, ...]]:
    return ((),) if _NUMBER.fullmatch(text) else ()


def _in_any_case(value: Any, constants: Constants) -> Iterable[tuple[Given, ...]]:
    return ((),)


# --- of numbers -----------------------------------------------------------------------------------------------------


def as_number(value: Tree) -> int | float:
    """A number, or a text that is one. Raises LookupError for anything else."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = _number(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise LookupError("no number")
    return value


def _formatted(value: Tree, spec: str) -> Tree:
    if not _SPEC.fullmatch(spec):  # a wide one may take all memory
        raise LookupError(spec)
    return format(as_number(value), spec)


def _thresholds(value: float, constants: Constants) -> Iterator[tuple[Given, ...]]:
    return ((constant,) for constant in constants.numbers[:MOST_THRESHOLDS])


# --- of lists -------------------------------------------------------------------------------------------------------


def _numbers(items: Sequence[Tree]) -> list[int | float]:
    return [as_number(item) for item in items]


def _majority(items: Sequence[Tree]) -> Tree:
    """As `Counter.most_common` and `max(set(items), key=items.count)` say where there is one."""
    (most, times), *others = Counter(map(freeze, items)).most_common(2) if items else [(None, 0)]
    if not times or (others and others[0][1] == times):
        raise LookupError("no majority")  # which one a program takes then depends on how it counts
    return next(item for item in items if freeze(item) == most)


def _said(items: Sequence[Tree], constants: Constants) -> Iterator[tuple[Given, ...]]:
    held = {item for item in items if isinstance(item, str)}
    return ((sep,) for sep in constants.separators if sep in held)


def _keys(items: Sequence[Tree], constants: Constants) -> Iterator[tuple[Given, ...]]:
    """The fields by which dicts may be put in order."""
    first = items[0] if items else None
    for key, value in first.items() if isinstance(first, dict) else ():
        if all(isinstance(item, dict) and type(item.get(key)) is type(value) for item in items):
            if isinstance(value, int | float | str) and not isinstance(value, bool):
                yield from ((key, 0), (key, 1))


def _ranked(items: Sequence[Any], key: str, descending: int) -> Tree:
    return sorted(items, key=lambda item: item[key], reverse=bool(descending))


FUNCTIONS: dict[str, Function] = {
    "before": Function(lambda text, sep: _split(text, sep)[0], "what stands before a separator", _parts),
    "after": Function(lambda text, sep: _split(text, sep)[-1], "what stands after the last one", _parts),
    "behind": Function(lambda text, sep: text.split(sep, 1)[1], "what stands after the first one", _parts),
    "split": Function(lambda text, sep: text.split(sep), "the parts between separators", _parts),
    "replace": Function(lambda text, old, new: text.replace(old, new), "a word replaced everywhere", _replaced),
    "re.sub": Function(lambda text, p, new, flags: _on(text, p, flags).sub(new, text), "a pattern replaced", _sub),
    "re.search": Function(_group, "a group of a pattern", _groups),
    "re.findall": Function(_found, "all places of a pattern", _all),
    "words": Function(lambda text, n: " ".join(text.split()[:n]), "the first words", _cut),
    "one line": Function(lambda text: " ".join(text.split()), "white space as blanks", _in_any_case),
    "textwrap.shorten": Function(
        lambda text, n, mark: textwrap.shorten(text, n, placeholder=mark), "cut off between words", _shortened
    ),
    "textwrap.fill": Function(lambda text, n: textwrap.fill(text, n), "broken into lines", _lines),
    "day": Function(_day, "a day that is so many days from another", _days),
    "length": Function(lambda text: len(text), "the number of characters", _in_any_case),
    "word count": Function(lambda text: len(text.split()), "the number of words", _in_any_case),
    "as number": Function(as_number, "the number that a text is", _if_number),
    "format": Function(
        _formatted, "a number as it is written",
        lambda number, constants: ((spec,) for spec in constants.specs),
    ),
    "round": Function(
        lambda number, digits: round(as_number(number), digits), "a rounded number",
        lambda number, constants: ((digits,) for digits in range(5)) if isinstance(number, float) else (),
    ),
    "int": Function(
        lambda number: int(as_number(number)), "its whole part",
        lambda number, constants: ((),) if isinstance(number, float) else (),
    ),
    "plus": Function(
        lambda number, n: as_number(number) + n, "a number and a constant",
        lambda number, constants: ((sign * n,) for n in constants.whole if n for sign in (1, -1)),
    ),
    "times": Function(
        lambda number, n: as_number(number) * n, "a number times a constant",
        lambda number, constants: ((n,) for n in constants.numbers if n not in (0, 1)),
    ),
    "above": Function(lambda number, n: as_number(number) > n, "whether it is above a constant", _thresholds),
    "at least": Function(lambda number, n: as_number(number) >= n, "or equal to it", _thresholds),
    "sum": Function(lambda items: sum(_numbers(items)), "the sum", _in_any_case),
    "mean": Function(lambda items: sum(_numbers(items)) / len(items), "the mean", _in_any_case),
    "median": Function(lambda items: statistics.median(_numbers(items)), "the median", _in_any_case),
    "min": Function(lambda items: min(_numbers(items)), "the least", _in_any_case),
    "max": Function(lambda items: max(_numbers(items)), "the greatest", _in_any_case),
    "majority": Function(_majority, "what most are", _in_any_case),
    "how many": Function(lambda items, said: items.count(said), "how many are so", _said),
    "sorted": Function(lambda items: sorted(items), "in order", _in_any_case),
    "descending": Function(lambda items: sorted(items, reverse=True), "in falling order", _in_any_case),
    "reversed": Function(lambda items: items[::-1], "the other way round", _in_any_case),
    "ranked": Function(_ranked, "by a field", _keys),
}  # fmt: skip
"""By name."""
OF_TEXT = tuple(FUNCTIONS)[: tuple(FUNCTIONS).index("format")]
OF_NUMBER = ("format", "round", "int", "plus", "times")
OF_LIST = tuple(FUNCTIONS)[tuple(FUNCTIONS).index("sum") :]
THRESHOLDS = ("above", "at least")
MOST_THRESHOLDS = 24


def ways(value: Tree, constants: Constants, names: Iterable[str] | None = None) -> Iterator[tuple[Computed, Tree]]:
    """Every function that gives something for a value, and that. `names`: of these alone."""
    kind: tuple[str, ...] = ()
    if isinstance(value, str):
        kind = OF_TEXT if len(value) <= LONGEST else ()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        kind = OF_NUMBER
    elif isinstance(value, list):
        kind = OF_LIST
    for name in kind if names is None else filter(kind.__contains__, names):
        try:
            for given in FUNCTIONS[name].ways(value, constants):
                step = Computed(name, given)
                try:
                    result = step.of(value)
                except LookupError:
                    continue
                if result != value:
                    yield step, result
        except (TypeError, ValueError):  # of other things than this one
            continue


def thresholds(value: Tree, constants: Constants, names: Iterable[str]) -> Iterator[tuple[Computed, Tree]]:
    """Beside which of the program's numbers a value is the greater one. Of what is no number, nothing."""
    with suppress(LookupError, ValueError):  # the latter of more digits than the interpreter reads
        number = as_number(value)
        for name in names:
            yield from ((step := Computed(name, given), step.of(value)) for given in _thresholds(number, constants))
