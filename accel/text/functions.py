"""Library functions that programs apply to values before they put them into a prompt, and what frameworks do between
two calls.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations, product
from typing import Any

from .constants import NUMBER, SPEC, Constants, compiled_on
from .values import Tree, freeze

Given = str | int | float
LONGEST = 20_000
"""A text of more characters is not tried."""
NARROWEST = 16
"""Characters of a line that a program may ask for."""
WIDEST = 50
"""Last elements of a list that it may keep."""
_FLAGS = (0, int(re.DOTALL), int(re.IGNORECASE), int(re.MULTILINE))
_DATES = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%B %d, %Y", "%Y/%m/%d", "%d/%m/%Y")
"""How inputs write a day."""


@dataclass(frozen=True, slots=True)
class Computed:
    """What the function of this name gives (`FUNCTIONS`, `OF_FRAMEWORKS`), with these parameters."""

    name: str
    given: tuple[Given, ...] = ()

    def __str__(self) -> str:
        return f"|{self.name}" + (f"({', '.join(map(json.dumps, self.given))})" if self.given else "")

    def of(self, value: Tree) -> Tree:
        """Raises LookupError where the function gives nothing for such a value."""
        try:
            function = FUNCTIONS.get(self.name) or OF_FRAMEWORKS[self.name]
            return function.of(value, *self.given)
        except (ValueError, TypeError, ArithmeticError, AttributeError, RuntimeError, re.error, MemoryError) as error:
            raise LookupError(f"{self} is not defined here") from error


@dataclass(frozen=True, slots=True)
class Function:
    """`ways`: the parameters that come into question for a value."""

    of: Callable[..., Tree]
    says: str
    ways: Callable[[Any, Constants], Iterable[tuple[Given, ...]]]


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
    return [list(each) if isinstance(each, tuple) else each for each in compiled_on(text, pattern, flags).findall(text)]


def _group(text: str, pattern: str, group: int, flags: int) -> Tree:
    found = compiled_on(text, pattern, flags).search(text)
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
        except (ValueError, re.error):  # of a text that only looks like a form, such as "%d of %d"
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
    return ((),) if NUMBER.fullmatch(text) else ()


def _tables(text: str, constants: Constants) -> Iterator[tuple[Given, ...]]:
    for table in constants.tables if len(text) <= LONGEST_KEY else ():
        items = tuple(part for item in table for part in item)
        keys = {key for key, _ in table}
        yield from ((how, *items) for how in ("", "said") if _key(text, how) in keys)


def name_of(text: str) -> str:
    """A word that a model says, as a program looks it up."""
    return text.strip(" .,:;!?*_`'\"()[]\n").lower() if len(text) <= LONGEST_KEY else text


def _key(text: str, how: str) -> str:
    return name_of(text) if how else text


def _looked_up(text: str, how: str, *items: str) -> Tree:
    return dict(zip(items[::2], items[1::2], strict=True))[_key(text, how)]


def _in_any_case(value: Any, constants: Constants) -> Iterable[tuple[Given, ...]]:
    return ((),)


# --- of numbers -----------------------------------------------------------------------------------------------------


def as_number(value: Tree) -> int | float:
    """A number, or a text that is one. Raises LookupError for anything else."""
    if isinstance(value, str) and NUMBER.fullmatch(value):
        value = _number(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise LookupError("no number")
    return value


def _formatted(value: Tree, spec: str) -> Tree:
    if not SPEC.fullmatch(spec):  # a wide one may take all memory
        raise LookupError(spec)
    return format(as_number(value), spec)


def _factors(constants: Constants) -> Iterator[float]:
    """With shares of one that come in addition, or off."""
    shares = [n for n in constants.numbers if 0 < n < 1]
    yield from dict.fromkeys(
        (*(n for n in constants.numbers if n not in (0, 1)), *(1 + n for n in shares), *(1 - n for n in shares))
    )


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


def _most(items: Sequence[Tree]) -> tuple[Tree, int]:
    """As `Counter.most_common` says, which of equal ones takes the first, and how many are so. Where all differ, it is
    just the first."""
    (most, times), *_ = Counter(map(freeze, items)).most_common(1) if items else [(None, 0)]
    if times < 2:
        raise LookupError("nothing comes twice")
    return next(item for item in items if freeze(item) == most), times


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


def _pairs(items: Sequence[Tree], constants: Constants) -> Iterator[tuple[Given, ...]]:
    """The fields of dicts that may be multiplied."""
    numbers = [key for key, descending in _keys(items, constants) if not descending and type(items[0][key]) is not str]
    return combinations(numbers[:MOST_FACTORS], 2)


def _products(items: Sequence[Any], one: str, other: str) -> list[int | float]:
    return [as_number(item[one]) * as_number(item[other]) for item in items]


def _ranked_by_product(items: Sequence[Any], one: str, other: str, descending: int) -> Tree:
    products = iter(_products(items, one, other))
    return sorted(items, key=lambda _: next(products), reverse=bool(descending))


def _ranked(items: Sequence[Any], key: str, descending: int) -> Tree:
    return sorted(items, key=lambda item: item[key], reverse=bool(descending))


def _windows(items: Sequence[Tree], constants: Constants) -> Iterator[tuple[Given, ...]]:
    return ((n,) for n in constants.whole if 0 < n <= WIDEST)


def _end(items: Sequence[Tree], constants: Constants) -> Iterable[tuple[Given, ...]]:
    """As a program leaves the last one of a chat out, the question."""
    return ((1,),) if 1 in constants.whole else ()


FUNCTIONS: dict[str, Function] = {
    "before": Function(lambda text, sep: _split(text, sep)[0], "what stands before a separator", _parts),
    "after": Function(lambda text, sep: _split(text, sep)[-1], "what stands after the last one", _parts),
    "behind": Function(lambda text, sep: text.split(sep, 1)[1], "what stands after the first one", _parts),
    "split": Function(lambda text, sep: text.split(sep), "the parts between separators", _parts),
    "replace": Function(lambda text, old, new: text.replace(old, new), "a word replaced everywhere", _replaced),
    "re.sub": Function(
        lambda text, p, new, flags: compiled_on(text, p, flags).sub(new, text), "a pattern replaced", _sub
    ),
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
    "look up": Function(_looked_up, "what a dict has for it", _tables),
    "as number": Function(as_number, "the number that a text is", _if_number),
    "format": Function(
        _formatted, "a number as it is written",
        lambda number, constants: ((spec,) for spec in constants.specs),
    ),
    "round": Function(
        lambda number, digits: round(as_number(number), digits), "a rounded number",
        lambda number, constants: ((n,) for n in constants.whole if n < 8) if isinstance(number, float) else (),
    ),
    "int": Function(
        lambda number: int(as_number(number)), "its whole part",
        lambda number, constants: ((),) if isinstance(number, float) else (),
    ),
    "float": Function(
        lambda number: float(as_number(number)), "a whole number as another one",
        lambda number, constants: ((),) if isinstance(number, int) else (),
    ),
    "plus": Function(
        lambda number, n: as_number(number) + n, "a number and a constant",
        lambda number, constants: ((sign * n,) for n in constants.whole if n for sign in (1, -1)),
    ),
    "times": Function(
        lambda number, n: as_number(number) * n, "a number times a constant",
        lambda number, constants: ((n,) for n in _factors(constants)),
    ),
    "above": Function(lambda number, n: as_number(number) > n, "whether it is above a constant", _thresholds),
    "at least": Function(lambda number, n: as_number(number) >= n, "or equal to it", _thresholds),
    "sum": Function(lambda items: sum(_numbers(items)), "the sum", _in_any_case),
    "mean": Function(lambda items: sum(_numbers(items)) / len(items), "the mean", _in_any_case),
    "median": Function(lambda items: statistics.median(_numbers(items)), "the median", _in_any_case),
    "min": Function(lambda items: min(_numbers(items)), "the least", _in_any_case),
    "max": Function(lambda items: max(_numbers(items)), "the greatest", _in_any_case),
    "majority": Function(_majority, "what most are", _in_any_case),
    "most times": Function(lambda items: _most(items)[1], "how many are so", _in_any_case),
    "most of all": Function(lambda items: _most(items)[1] / len(items), "the share of them", _in_any_case),
    "sum of products": Function(
        lambda items, one, other: sum(_products(items, one, other)), "the sum of two fields' products", _pairs
    ),
    "how many": Function(lambda items, said: items.count(said), "how many are so", _said),
    "last": Function(lambda items: items[-1], "the last one", lambda items, constants: ()),
    "sorted": Function(lambda items: sorted(items), "in order", _in_any_case),
    "descending": Function(lambda items: sorted(items, reverse=True), "in falling order", _in_any_case),
    "reversed": Function(lambda items: items[::-1], "the other way round", _in_any_case),
    "ranked": Function(_ranked, "by a field", _keys),
    "last ones": Function(lambda items, n: items[-n:], "so many of the last ones", _windows),
    "but the last": Function(lambda items, n: items[:-n], "all but the last one", _end),
    "ranked by product": Function(
        _ranked_by_product, "by two fields' product",
        lambda items, constants: ((*pair, way) for pair in _pairs(items, constants) for way in (0, 1)),
    ),
}  # fmt: skip
"""By name."""
OF_TEXT = tuple(FUNCTIONS)[: tuple(FUNCTIONS).index("format")]
OF_NUMBER = ("format", "round", "int", "float", "plus", "times")
OF_LIST = tuple(FUNCTIONS)[tuple(FUNCTIONS).index("sum") :]
OF_EACH = ("re.search", "as number", "after", "before", "behind", "word count", "length")
"""Of those of texts, the ones that give something short of each element of a list."""
ORDERS = OF_LIST[OF_LIST.index("sorted") :]
OF_FRAMEWORKS: dict[str, Function] = {}
"""What frameworks compute between two calls, as their adapters say (`add_functions`)."""
THRESHOLDS = ("above", "at least")
MOST_THRESHOLDS = 24
MOST_FACTORS = 6
LONGEST_KEY = 64


def add_functions(functions: Mapping[str, Function]) -> None:
    """What a framework computes of values as its adapter sees them, by names that say whose it is."""
    OF_FRAMEWORKS.update(functions)


def ways(value: Tree, constants: Constants, names: Iterable[str] | None = None) -> Iterator[tuple[Computed, Tree]]:
    """Every function that gives something for a value, and that. `names`: of these alone."""
    kind: tuple[str, ...] = ()
    if isinstance(value, str):
        kind = OF_TEXT if len(value) <= LONGEST else ()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        kind = OF_NUMBER
    elif isinstance(value, list):
        kind = OF_LIST
    tried = (*kind, *OF_FRAMEWORKS) if isinstance(value, list | dict) else kind
    for name in tried if names is None else filter(tried.__contains__, names):
        try:
            for given in (FUNCTIONS.get(name) or OF_FRAMEWORKS[name]).ways(value, constants):
                step = Computed(name, given)
                try:
                    result = step.of(value)
                except LookupError:
                    continue
                if result != value or isinstance(value, list):  # some runs have nothing to cut off or to put in order
                    yield step, result
        except (TypeError, ValueError):  # of other things than this one
            continue


def thresholds(value: Tree, constants: Constants, names: Iterable[str]) -> Iterator[tuple[Computed, Tree]]:
    """Beside which of the program's numbers a value is the greater one. Of what is no number, nothing."""
    with suppress(LookupError, ValueError):  # the latter of more digits than the interpreter reads
        number = as_number(value)
        for name in names:
            yield from ((step := Computed(name, given), step.of(value)) for given in _thresholds(number, constants))
