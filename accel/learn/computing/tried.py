"""What one run knew before the calls of a site, what these hold, and what functions give of the one that stands in the
other (`computed`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ...graph.ir import Node
from ...process.spare import breathe
from ...text.constants import NUMBER, Constants
from ...text.functions import OF_EACH, OF_FRAMEWORKS, OF_LIST, Computed, name_of, ways
from ...text.paths import UNKNOWN, as_text, follow, has_gap, step_into
from ...text.steps import EDITS, GATHERS, ITEMS, STRIP, Clip, Count, Each, Escape, Step
from ...text.templates import Collect
from ...text.values import Tree, Vector, leaves
from ..covers.holes import ANY, Path, Skeleton, Source, filled
from ..view import View
from .used import WORD, Used

MAX_TRIED = 30_000
"""Results that are looked at in the first run,"""
MAX_BETWEEN = 400
"""and those of them that a further function is tried on."""
MAX_LISTS = 32
"""Lists that a framework made, on which one is tried, too."""
MAX_ITEMS = 200
"""Of a list: longer ones are not tried."""
MAX_TRIED_IN_EACH = 2_000
"""Results of functions of one element, of all lists,"""
MAX_IN_EACH = 16
"""and those of one list that a further function is tried on."""
MAX_PARTS = 12
"""Of one result, of which they are."""
SHORT = 32
"""Characters of a text that may become quite another one, as a day does."""
_INSIDE = (*GATHERS, Clip, Count, Escape)
"""Steps after which a value is no longer one that something brought."""
WRITTEN = ("format",)
"""What any number may go through at last."""
LAST = Computed("last")
_EDITS: tuple[Step, ...] = (STRIP, *EDITS)
MAX_ALIKE = 4
"""Of one result."""


@dataclass(frozen=True, slots=True)
class Way:
    """From values with this skeleton by these steps."""

    base: Skeleton
    steps: Path

    @property
    def size(self) -> tuple[int, int]:
        return len(self.base[1]) + len(self.steps), sum(len(str(step)) for step in self.steps)


@dataclass(slots=True)
class _Tree:
    """Ways from values with one skeleton, by their steps: those that begin alike are gone once."""

    ends: Way | None = None
    after: dict[Step, _Tree] = field(default_factory=dict)


_Try = tuple[Sequence[Skeleton], Path, Tree]
"""What a function is tried on: a value, and where from and by which steps it came."""


class Known:
    """What a run knew before the calls of a site, and what those hold."""

    def __init__(
        self, view: View, site: str, gathered: Sequence[Node], wanted: frozenset[Hashable], exactly: bool
    ) -> None:
        self._in_each = MAX_TRIED_IN_EACH
        self._keys: frozenset[str] = frozenset()
        """Of the program's dicts."""
        self._values = view.values
        calls = view.open[site]
        self._before = max(call.start for call in calls)
        self.used = Used([call.input for call in calls], wanted, exactly)
        self._bases: dict[Skeleton, list[Source]] = defaultdict(list)
        """What functions of one value are tried on,"""
        self._lists: dict[Skeleton, list[Source]] = defaultdict(list)
        """lists and whole answers,"""
        self._along: dict[Skeleton, dict[Path, None]] = defaultdict(dict)
        """and the paths along which their elements have something."""
        self.tried: Counter[int] = Counter()
        """Ways by how many steps they take."""
        self.changing: set[Way] = set()
        """Of the ways that were gone, those that give anything else than what they are given."""
        self._gather(gathered)

    def _gather(self, gathered: Sequence[Node]) -> None:
        seen: dict[tuple[str, Path], Source] = {}
        beside: dict[str, list[tuple[Node, Source]]] = defaultdict(list)
        """By the first of the nodes that a list gathers, the list."""
        for node in gathered:
            if sources := self._of_calls(node):
                beside[next(node.refs()).node].append((node, sources[0]))
        for text in list(self._values.texts):
            breathe()
            for source in self._values.seen(text, self._before):
                if not any(isinstance(step, _INSIDE) for step in source.path):
                    self._bases[source.skeleton].append(source)
                    for node, held in beside.get(source.node, ()):
                        element = (0,) if node.many or isinstance(node.input[0], Collect) else ()
                        if source.path[: len(element)] == element:
                            self._along[held.skeleton][source.path[len(element) :]] = None
                for at, step in enumerate(source.path):
                    if isinstance(step, _INSIDE):
                        break
                    if isinstance(step, int) or not at:
                        self._note_list(seen, source, at)
                if NUMBER.fullmatch(text):
                    self._note_dict(seen, source)
        for source in list(self._values.vectors(self._before)):
            for at in (at for at, step in enumerate(source.path) if isinstance(step, int)):
                self._note_list(seen, source, at)
        for source in (*seen.values(), *(source for node in gathered for source in self._of_calls(node))):
            self._lists[source.skeleton].append(source)

    def _of_calls(self, node: Node) -> list[Source]:
        """Where lists of what several calls gave stand that were known by then."""
        value = self._values.value(node.name)
        places: list[tuple[int, ...]] = (
            [(at,) for at in range(len(value))] if node.many and isinstance(value, list) else [()]
        )
        known = [self._values.since(node.name, place) for place in places]
        return [
            Source(node.name, place, since, (0, since))
            for place, since in zip(places, known, strict=True)
            if since < self._before and isinstance(follow(value, place), list)
        ]

    def _note_list(self, seen: dict[tuple[str, Path], Source], source: Source, at: int) -> None:
        """A list, or a whole answer, holds this value: it was known when the last of its elements was."""
        path, along = source.path[:at], source.path[at + 1 :]
        held = seen.get((source.node, path))
        if held is None or held.known < source.known:
            seen[source.node, path] = held = replace(source, path=path)
        if source.path[at] == 0 and not any(isinstance(step, _INSIDE) for step in along):
            self._along[held.skeleton][along] = None

    def _note_dict(self, seen: dict[tuple[str, Path], Source], source: Source) -> None:
        """A dict of numbers holds this one: its items are a list."""
        *before, key = source.path or (0,)
        held = self._value(replace(source, path=tuple(before))) if isinstance(key, str) else None
        if isinstance(held, dict) and len(held) > 1 and all(type(one) in (int, float) for one in held.values()):
            path = (*before, ITEMS)
            seen[source.node, path] = listed = replace(source, path=path)
            self._along[listed.skeleton] |= {("key",): None, ("value",): None}

    def all_ways(self, constants: Constants, names: Sequence[str]) -> Iterator[tuple[Way, frozenset[str]]]:
        """Every way to something that stands in the calls, and what that is."""
        self._keys = frozenset(name for table in constants.tables for name, _ in table)
        between, lists = defaultdict[tuple[type, str], list[_Try]](list), defaultdict[str, list[_Try]](list)
        found: dict[Way, set[str]] = defaultdict(set)
        tries = 0
        for bases, steps, value in (*self._on_lists(constants, names), *self._on_values()):
            note = self._noting(found, [(bases, steps)])
            for step, result in ways(value, constants, names):
                breathe()
                tries += 1
                note((step,), result)
                for path, leaf in leaves(result)[:MAX_PARTS] if len(between) < MAX_BETWEEN else ():
                    if len(alike := between[type(leaf), str(leaf)]) < MAX_ALIKE:
                        alike.append((bases, (*steps, step, *path), leaf))
                if isinstance(result, list) and step.name in OF_FRAMEWORKS and len(lists) < MAX_LISTS:
                    if len(alike := lists[str(result)]) < MAX_ALIKE:
                        alike.append((bases, (*steps, step), result))
            if tries > MAX_TRIED:
                break
        for alike in (*lists.values(), *between.values()):
            value = alike[0][-1]
            if tries > 2 * MAX_TRIED or not self._may_give(value):
                continue
            those = filter(names.__contains__, OF_FRAMEWORKS) if isinstance(value, list) else names
            note = self._noting(found, [(bases, steps) for bases, steps, _ in alike])
            for step, result in ways(value, constants, those):
                breathe()
                tries += 1
                note((step,), result)
                for written, text in ways(result, constants, WRITTEN) if "format" in names else ():
                    note((step, written), text)
        return ((way, frozenset(shown)) for way, shown in found.items())

    def _on_values(self) -> Iterator[_Try]:
        by_value: dict[tuple[type, str], list[Skeleton]] = defaultdict(list)
        values: dict[tuple[type, str], Tree] = {}
        for base, sources in self._bases.items():
            for source in sources:
                value = self._value(source)
                if isinstance(value, str | int | float):
                    key = type(value), str(value)
                    values[key] = value
                    if base not in by_value[key]:
                        by_value[key].append(base)
        return ((by_value[key], (), value) for key, value in values.items() if self._may_give(value))

    def _may_give(self, value: Tree) -> bool:
        """Whether a value has a word of what is wanted, or as many characters or words as are wanted; or is as short as
        a day or a number, which may be written in another way, or a name in a dict."""
        if not isinstance(value, str) or (len(value) <= SHORT and any(map(str.isdigit, value))):
            return True
        if not self._keys.isdisjoint((value, name_of(value))):
            return True
        sizes = str(len(value)), str(len(value.split()))
        return not self.used.words.isdisjoint(WORD.findall(value)) or not self.used.words.isdisjoint(sizes)

    def _on_lists(self, constants: Constants, names: Sequence[str]) -> Iterator[_Try]:
        """Lists as they are, and what all of their elements have somewhere, as it is, edited, and what functions give
        of it that is short; and whole answers."""
        of_lists = any(name in OF_LIST or name in OF_FRAMEWORKS for name in names)
        for base, sources in self._lists.items() if of_lists else ():
            for source in sources:
                items = self._value(source)
                if isinstance(items, dict) and not has_gap(items):
                    yield [base], (), items
                if not isinstance(items, list) or not 2 <= len(items) <= MAX_ITEMS or has_gap(items):
                    continue
                breathe()
                yield [base], (), items
                for along in self._along[base]:
                    plain = step_into(items, Each(along), whole=True) if along else items
                    if plain is not UNKNOWN and along:
                        yield [base], (Each(along),), plain
                    for edit in (*_EDITS, *self._of_each(plain, constants, names)):
                        edited = step_into(items, each := Each((*along, edit)), whole=True)
                        if edited is not UNKNOWN and edited != plain:
                            yield [base], (each,), edited

    def _of_each(self, items: Tree, constants: Constants, names: Sequence[str]) -> Iterator[Computed]:
        """Functions that give of each of these texts something short; of those that give the same, few."""
        alike: Counter[str] = Counter()
        texts = isinstance(items, list) and all(isinstance(item, str) for item in items)
        for step, first in ways(items[0], constants, filter(names.__contains__, OF_EACH)) if texts else ():
            if self._in_each <= 0:
                return
            self._in_each -= 1
            if isinstance(first, str | int | float) and len(str(first)) <= SHORT and len(alike) <= MAX_IN_EACH:
                found = str(step_into(items, Each((step,)), whole=True))
                alike[found] += 1
                if alike[found] <= MAX_ALIKE and found != str(UNKNOWN):
                    yield step

    def _value(self, source: Source) -> Tree:
        return follow(self._values.outputs[source.node], source.path)

    def _noting(
        self, found: dict[Way, set[str]], places: Sequence[tuple[Sequence[Skeleton], Path]]
    ) -> Callable[[Path, Tree], None]:
        """For what functions give of a value that stands at these places. Most of it stands in no call."""
        of_kind: dict[bool, list[tuple[Skeleton, Path]]] = defaultdict(list)
        for bases, before in places:
            for base in bases:
                of_kind[base in self._lists].append((base, before))
        kinds = [*of_kind.items()]
        lengths = [*Counter(len(before) for _, held in kinds for _, before in held).items()]
        tried, stands = self.tried, self.used.of

        def note(steps: Path, result: Tree) -> None:
            for length, count in lengths:
                tried[length + len(steps)] += count
            for of_list, held in kinds:
                if shown := stands(result, steps[-1], of_list):
                    show(held, steps, shown)
            if isinstance(result, str) and (stripped := result.strip()) != result:
                for of_list, held in kinds:
                    if shown := stands(stripped, STRIP, of_list):
                        show(held, (*steps, STRIP), shown)

        def show(held: Sequence[tuple[Skeleton, Path]], path: Path, shown: set[str]) -> None:
            for base, before in held:
                found[Way(base, (*before, *path))] |= shown

        return note

    def tried_by(self, way: Way) -> int:
        """How many ways were tried that take no more steps than this one."""
        return max(1, sum(ways for steps, ways in self.tried.items() if steps <= len(way.steps)))

    # --- ways of another run

    def shown(self, found: Collection[Way]) -> dict[Way, frozenset[str]]:
        """What stands in these calls by each of these ways; those by which nothing does are missing. Notes which give
        anything else than what they are given."""
        shown: dict[Way, set[str]] = defaultdict(set)
        for base, tree in _trees(found).items():
            of_list = base in self._lists
            if self._is_empty(base):
                shown |= {way: {""} for way in found if way.base == base}
            for source in self._sources(base):
                value = self._value(source)
                for way, result in _gone(value, tree, not has_gap(value)):
                    breathe()
                    shown[way] |= self.used.of(result, way.steps[-1], of_list)
                    emptied = result == [] and isinstance(value, list) and value
                    shown[way] |= {""} if emptied else set()  # a chat's messages before its first question
                    if way not in self.changing and result != value:
                        self.changing.add(way)
        return {way: frozenset(texts) for way, texts in shown.items() if texts}

    def _is_empty(self, base: Skeleton) -> bool:
        """Whether there is a list without elements, of which functions give nothing."""
        node, path = base
        return ANY not in path and follow(self._values.value(node), filled(path, ())) == []

    def _sources(self, base: Skeleton) -> Iterator[Source]:
        yield from self._bases.get(base, ())
        yield from self._lists.get(base, ())

    def _results(self, way: Way) -> Iterator[tuple[Source, Tree]]:
        for source in self._sources(way.base):
            result = follow(self._value(source), way.steps)
            if result is not UNKNOWN and not has_gap(result):
                yield source, result

    def add(self, found: Iterable[Way]) -> None:
        for way in found:
            for source, result in list(self._results(way)):
                at = (*source.path, *way.steps)
                if isinstance(result, list | Vector):
                    self._values.add_computed(result, replace(source, path=at, computed=True))
                held = leaves(result)
                held += leaves(result[-1], (LAST,)) if isinstance(result, list) and result else []
                for path, leaf in held:
                    text = as_text(leaf)
                    if text:
                        self._values.add_computed(text, replace(source, path=(*at, *path), computed=True))


def _trees(found: Iterable[Way]) -> dict[Skeleton, _Tree]:
    trees: dict[Skeleton, _Tree] = {}
    for way in found:
        tree = trees.setdefault(way.base, _Tree())
        for step in way.steps:
            tree = tree.after.setdefault(step, _Tree())
        tree.ends = way
    return trees


def _gone(value: Tree, tree: _Tree, whole: bool) -> Iterator[tuple[Way, Tree]]:
    """What the ways of a tree give of a value, where that is known. `whole`: it has no gap, so nothing of it has."""
    if tree.ends is not None and (whole or not has_gap(value)):
        yield tree.ends, value
    for step, after in tree.after.items():
        result = step_into(value, step, whole)
        if result is not UNKNOWN:
            yield from _gone(result, after, whole)
