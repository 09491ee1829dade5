"""What a program computes from values, by example: sources for what calls hold and no known value explains.

Only where a site stays unexplained, and only after three runs with different inputs: every function of the table
(`accel.text.functions`) is tried on what the first of these runs knew, one upon the other at most. What then stands in
the calls of all of them is a source like others, so that the search for templates judges it, and the smallest one wins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from math import log2

from ...graph.ir import Node
from ...text.constants import Constants
from ...text.functions import FUNCTIONS, OF_FRAMEWORKS, ORDERS, Computed
from ...text.paths import UNKNOWN, as_text, enumerate_stars, follow
from ...text.steps import GATHERS, Each, Step
from ...text.templates import Ref
from ...text.values import Vector, freeze, texts_of
from ..covers.fold import cover_text
from ..covers.foreign import FEWEST_WORDS
from ..covers.index import SHORTEST
from ..view import Fit, View
from .tried import MAX_ALIKE, Known, Way

FEWEST = 3
"""Runs with different inputs: two may agree on a function by chance."""
TABLES = ("look up",)
AGREED = ("majority",)
MAX_WAYS, MAX_LONGEST = 48, 12
"""That are kept: of the smallest, and of those that give the longest texts."""
MAX_FIRST = 24
"""To one result of the first run."""
BITS_OF_A_CHARACTER = 3.0
"""That one of a text tells, at least: digits have 3.3, words of prose two to four."""


_Shown = Mapping[Way, Sequence[frozenset[str]]]
"""By way, what it gives of the calls of each run."""


def computes(node: Node) -> bool:
    """Whether anything in its input, or what decides on its calls, is computed."""
    return is_computed((*node.refs(), *(when.ref for when in node.when)))


def is_computed(refs: Iterable[Ref]) -> bool:
    """Whether any of these gives what a function made."""
    return any(isinstance(step, GATHERS) for ref in refs for step in ref.path)


def looks_up(node: Node) -> bool:
    """Whether it holds a dict of the program's, of whose texts a run uses one: the others may be anybody's."""
    return any(_is_table(step) for ref in node.refs() for step in ref.path)


def agrees(node: Node) -> bool:
    """Whether it holds what most of several are."""
    return any(isinstance(step, Computed) and step.name in AGREED for ref in node.refs() for step in ref.path)


def _is_table(step: Step) -> bool:
    return (isinstance(step, Computed) and step.name in TABLES) or (
        isinstance(step, Each) and any(map(_is_table, step.path))
    )


def compute(
    views: Sequence[View],
    site: str,
    constants: Constants,
    gathered: Sequence[Node] = (),
    wanted: Mapping[int, frozenset[Hashable]] | None = None,
    only: Sequence[str] = (),
) -> bool:
    """Add sources for what the open calls of a site hold; False if there are none. `gathered`: lists of what several
    calls gave; `wanted`: by number of the view, the texts and other values, frozen, that are to be given, which is what
    stands in the calls otherwise; `only`: these functions, on all that stands in the calls."""
    held = [view for view in views if view.open.get(site) and (wanted is None or wanted.get(view.number))]
    if len({view.witness for view in held}) < FEWEST:
        return False
    readings = held[0].values.readings
    names = [name for name in only or FUNCTIONS if name in readings]
    names += OF_FRAMEWORKS if "framework" in readings and not only else ()
    if wanted is not None:
        told = [wanted[view.number] for view in held]
    else:
        literals = _literals(held, site) if not only else None
        told = [_texts(view, site) for view in held] if literals is None else literals
        if not any(told):
            return False
    # All are tried on what is least; what chooses of lists, on the longest ones.
    both = sorted(zip(held, told, strict=True), key=lambda each: len(each[0].values.texts), reverse=only == ORDERS)
    first, *others = (Known(view, site, gathered, texts, wanted is not None) for view, texts in both)
    results = {way: [shown] for way, shown in _few_alike(first.all_ways(constants, names))}
    for known in others:
        results = {way: [*results[way], shown] for way, shown in known.shown(results).items()}
    changing = set[Way]().union(*(known.changing for known in others))
    first.shown(results.keys() - changing)
    results = {way: told for way, told in results.items() if way in changing or way in first.changing}
    results = {way: told for way, told in results.items() if _is_no_chance(told, first.tried_by(way))}
    found = [way for unknown in (True, False) for way in _smallest(_of_kind(results, first, unknown))]
    for known in (first, *others):
        known.add(found)
    return bool(found)


def _is_no_chance(told: Sequence[frozenset[str]], tried: int) -> bool:
    """Whether what a way gives of the calls of each run says more than which one it is of all that were tried (minimum
    description length): of thousands, some give the same digit in three runs."""
    distinct = {text for texts in told for text in texts}
    characters = sum(map(len, distinct))
    return BITS_OF_A_CHARACTER * characters + len(told) * log2(len(distinct)) >= log2(tried)


def _literals(views: Sequence[View], site: str) -> list[frozenset[Hashable]] | None:
    """What is no known value in the calls of each, and not in those of all; nor what the program says there itself: it
    chooses such texts, and works them out of nothing. None if there are parts of values alone, by which no two of them
    agree."""
    texts = [
        {
            part
            for call in view.open[site]
            for text in texts_of(call.input)
            for part in cover_text(view.values, text, call.start, SHORTEST[0])
            if isinstance(part, str)
        }
        for view in views
    ]
    same = set.intersection(*texts)
    if all(found <= same for found in texts):
        return None
    return [frozenset(text for text in found - same if not _is_own(views[0], text)) for found in texts]


def _is_own(view: View, text: str) -> bool:
    """Whether the program says this text, of which no function would give so many words; numbers it may."""
    program = view.values.program
    words = len(text.split()) >= FEWEST_WORDS and not any(map(str.isdigit, text))
    return program is not None and words and program.own(text)


def _texts(view: View, site: str) -> frozenset[Hashable]:
    return frozenset(text for call in view.open[site] for text in texts_of(call.input))


def late_values(views: Sequence[View], fits: Sequence[Fit], refs: Sequence[Ref]) -> dict[int, frozenset[Hashable]]:
    """By number of the view, what these refer to in its calls."""
    found: dict[int, set[Hashable]] = {view.number: set() for view in views}
    for view, fit in zip(views, fits, strict=True):
        for ref in refs:
            value = view.values.value(ref.node)
            for place in fit.places:
                leaves_there = enumerate_stars(value, ref.path, place)[0] if value is not UNKNOWN else ()
                held = [follow(value, ref.path, index) for index in leaves_there]
                found[view.number].update(text for text in map(as_text, held) if text)
                found[view.number].update(freeze(each) for each in held if isinstance(each, list | Vector))
    return {number: frozenset(values) for number, values in found.items()}


def _of_kind(results: _Shown, known: Known, unknown: bool) -> _Shown:
    """Those that give what nobody else does, or the others: a value of a list may be the first one by chance."""
    return {way: told for way, told in results.items() if known.used.lacks(told[0]) is unknown}


def _few_alike(found: Iterable[tuple[Way, frozenset[str]]]) -> Iterator[tuple[Way, frozenset[str]]]:
    """Of ways from one node to one result of the first run, the smallest: the others have to be gone in all runs."""
    alike: Counter[object] = Counter()
    for way, shown in sorted(found, key=lambda each: (each[0].size, str(each[0]))):
        alike[way.base[0], shown] += 1
        if alike[way.base[0], shown] <= MAX_FIRST:
            yield way, shown


def _smallest(results: _Shown) -> Iterator[Way]:
    """Of ways from one node to one result, few; of all, so many, and those that give most of the calls."""
    alike: Counter[object] = Counter()
    most: set[object] = set()
    smallest = {way: number for number, way in enumerate(sorted(results, key=lambda way: (way.size, str(way))))}
    groups = {
        way: (way.base[0], isinstance(way.steps[-1], Computed) and way.steps[-1].name in ORDERS, *results[way])
        for way in smallest
    }
    for way in sorted(smallest, key=lambda way: (-max(map(len, results[way][0])), smallest[way])):
        if len(most) < MAX_LONGEST:
            most.add(groups[way])
    for way, told in groups.items():
        alike[told] += 1
        if alike[told] <= MAX_ALIKE and (len(alike) <= MAX_WAYS or told in most):
            yield way
