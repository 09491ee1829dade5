"""What one trace has seen: its values by text, by list and by record, each with all places where it was seen."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from itertools import takewhile
from operator import is_
from typing import Any

from ...process.spare import breathe
from ...text.constants import Constants
from ...text.evaluate import Env
from ...text.extract import EXTRACTORS, extract
from ...text.paths import DROPPED, UNKNOWN, Index, enumerate_stars, follow
from ...text.steps import COUNT, EDITS, ESCAPES, HEADS, ITEMS, STRIP, Extract, Head, Step
from ...text.templates import Counter, Join, Ref
from ...text.turns import ARGS, CALLS, ID
from ...text.values import Tree, Vector, containers, freeze, holds_number, is_class_name, is_handed_on, is_view, leaves
from ...trace.beside import BESIDE
from ...trace.record import Inside, Visit
from .beginnings import Beginnings
from .decisions import Said
from .foreign import Wording
from .holes import Hole, Parts, Path, Row, Skeleton, Source, Start
from .readings import ALL, Readings

MAX_VALUES = 6_000
MAX_SOURCES = 96
"""Of one text."""
MAX_ITEMS = 200
"""That an extractor may find in one text."""
SHORTEST = (8, 3)
"""The shortest value that counts as pasted, first try and second. Shorter ones are only looked for where literals of
one site differ (`fold.mates`)."""
MOST_PLACES = 8
"""Of a short value in a text, where none is looked for."""
SEED = 20
"""A clipped value is recognised by its first characters, this many at least."""

Counted = tuple[bool, bool, bool, bool, frozenset[str]]
Ends = tuple[tuple[int, Head], ...]
"""Where the first parts of a text end (its first sentence, line ...), those that are long enough to be recognised."""


class Values(Env):
    """Grows as nodes are learnt."""

    def __init__(
        self,
        cautious: bool = False,
        readings: Readings = ALL,
        program: Wording | None = None,
        constants: Callable[[], Constants] = Constants,
    ) -> None:
        self.program = program
        self.constants = constants
        self._asked: dict[str, bool] = {}
        """What it was asked before: it looks through the whole program."""
        self.cautious = cautious
        """Prefer what the framework node was given over what may be known earlier: little has been seen yet."""
        self.readings = readings
        self.late = True
        """Whether values that are known late count as sources."""
        self.computed = False
        """Whether what functions give of known values counts."""
        self.ahead = False
        """Whether what calls gave that no node explains yet."""
        self.growing = False
        """Whether a first element may be all that a list has so far."""
        self.without: frozenset[str] = frozenset()
        """Nodes that don't."""
        self.outputs: dict[str, Tree] = {}
        """What each node put out: a list for a node with many outputs."""
        self.texts: dict[str, list[Source]] = {}
        self.holes: dict[tuple[str, int, int, Counted], Hole | None] = {}
        """Of texts as they stand (`cover.known`), by text, moment, number of sources, and whether late ones counted."""
        self.covers: dict[tuple[str, int, int, Counted], Parts] = {}
        """Of texts, by moment, shortest value and whether late ones counted; until a value is added."""
        self.lists: dict[tuple[Skeleton, Row], list[Start]] = {}
        """By place, the lists that begin there (`joins`)."""
        self.found: set[str] = set()
        self.said: dict[tuple[str, Row, bool], dict[Ref, Said]] = {}
        """See `decisions.Known` for both."""
        self.moments: dict[int, Visit] = {}
        """By the moment of a call, the visit of a framework node that made it."""
        self._computed: set[tuple[object, str, Path, int]] = set()
        """What was added as computed: value, node, path, and since when it was known."""
        self._wholes: dict[object, list[Source]] = {}
        """Lists, vectors and records that may be handed on as they stand;"""
        self._plain: dict[object, list[tuple[Tree, Source]]] = {}
        """lists and dicts that may have been printed;"""
        self._printable: list[tuple[Tree, Source]] = []
        """those that are not in `_plain` yet: few texts hold any."""
        self._since: dict[str, dict[Path, int]] = {}
        """By node, since when the value at a path was known."""
        self._alike: dict[tuple[str, Path, Path], tuple[bool, bool]] = {}
        self._elements: dict[tuple[str, Path], list[Row]] = {}
        self._frozen: dict[tuple[str, Path, Path | None], list[Hashable]] = {}
        self._as_shown: dict[str, list[tuple[Step, str]]] = {}
        self._joined: dict[tuple[Join, Index, int], tuple[list[Tree], str]] = {}
        """Texts, and the outputs that they were put together of: most candidates for a call hold the same."""
        self._begun, self._short = (Beginnings[tuple[str, Ends]](n, SEED) for n in SHORTEST)
        self._bare, self._short_bare = (Beginnings[tuple[str, str]](n, SEED) for n in SHORTEST)
        """Texts without what an edit may change."""

    def says(self, text: str) -> bool:
        """Whether the program says a text as it stands, in one piece."""
        if text not in self._asked:
            self._asked[text] = self.program is not None and self.program.says(text)
        return self._asked[text]

    @property
    def counted(self) -> Counted:
        """What counts as a source."""
        return self.late, self.computed, self.ahead, self.growing, self.without

    def value(self, node: str) -> Tree:
        """`Env`: the recorded outputs."""
        return self.outputs.get(node, UNKNOWN)

    def joined(self, join: Join, binding: Index, position: int) -> str:
        at = join, binding[: join.bound], position if isinstance(join.limit, Counter) else 0
        outputs = [self.value(ref.node) for ref in join.refs]
        held = self._joined.get(at)
        if held is None or not all(map(is_, held[0], outputs)):
            held = self._joined[at] = outputs, super().joined(join, binding, position)
        return held[1]

    def since(self, node: str, path: tuple[str | int, ...]) -> int:
        """The position in the trace from which on this value was known."""
        known = self._since.get(node, {})
        return next((known[path[:n]] for n in range(len(path) + 1) if path[:n] in known), 0)

    def note(self, node: str, path: Path, known: int) -> None:
        """The value at this path was known from this position of the trace on."""
        self._since.setdefault(node, {})[path] = known

    # --- what was seen

    def seen(self, text: str, before: int) -> list[Source]:
        """The sources of a text that were known by then."""
        return self._by_then(self.texts.get(text, ()), before)

    def knows(self, text: str, before: int) -> bool:
        """Whether there are any."""
        return any(self._counts(source, before) for source in self.texts.get(text, ()))

    def seen_whole(self, value: Tree, before: int) -> list[Source]:
        """Those of a list, a vector or a record."""
        return self._by_then(self._wholes.get(freeze(value), ()), before)

    def vectors(self, before: int) -> Iterator[Source]:
        """All vectors."""
        for value in [value for value in self._wholes if isinstance(value, Vector)]:
            yield from self.seen_whole(value, before)

    def seen_plain(self, value: Tree, before: int) -> list[tuple[Tree, Source]]:
        """Lists and dicts equal to this one, as they are and where they were seen."""
        while self._printable:
            held, source = self._printable.pop()
            self._plain.setdefault(freeze(held), []).append((held, source))
        return [(held, source) for held, source in self._plain.get(freeze(value), ()) if self._counts(source, before)]

    def beginning_in(self, text: str, shortest: int) -> Iterator[tuple[int, str, Ends]]:
        """Where values that are so long may begin in a text: those, and where their first parts end."""
        for by_length in (self._begun, self._short)[: 2 if shortest < SHORTEST[0] else 1]:
            for at, (value, ends) in by_length.find(text):
                if len(value) >= shortest:
                    yield at, value, ends

    def given_in(self, text: str, before: int) -> Iterator[tuple[int, str]]:
        """Where short fields of what the run was given begin in a text, that the program never says: from where else
        would they come? Not what stands there often, as common words do. Nobody asks unless it is known what the
        program says."""
        places: dict[str, list[int]] = {}
        for at, (value, _) in self._short.find(text) if self.program is not None else ():
            if text.startswith(value, at):
                places.setdefault(value, []).append(at)
        for value, begins in places.items():
            if len(begins) <= MOST_PLACES and not value.isdigit() and self._is_field(value, before):
                yield from ((at, value) for at in begins if not self.says(value))

    def _is_field(self, value: str, before: int) -> bool:
        """Whether the run was given it, by name and in no list."""
        given = (source for source in self.seen(value, before) if source.node in ("input", BESIDE))
        return any(all(type(step) is str for step in source.path) for source in given)

    def edited_in(self, text: str) -> Iterator[tuple[int, str]]:
        """Where values may begin in a text, edited on their way or not."""
        folded = text.casefold()
        for by_length in (self._bare, self._short_bare):
            for at, (value, bare) in by_length.find(folded):
                if folded.startswith(bare, at):
                    yield at, value

    def _by_then(self, sources: Iterable[Source], before: int) -> list[Source]:
        return [source for source in sources if self._counts(source, before)]

    def _counts(self, source: Source, before: int) -> bool:
        if source.known >= before or (source.late and not self.late) or source.node in self.without:
            return False
        if (source.computed and not self.computed) or (source.ahead and not self.ahead):
            return False
        return source.visit is None or source.visit.inside is None or reaches(source.visit, self.moments.get(before))

    # --- lists in outputs

    def alike(self, node: str, path: Path, rest: Path) -> tuple[bool, bool]:
        """Of the list at `path`: whether it has one element, and whether all are equal along `rest`."""
        key = (node, path, rest)
        if key not in self._alike:
            items = follow(self.outputs[node], path)
            listed = isinstance(items, list) and DROPPED not in items
            inside = (follow(item, rest) for item in (items if listed else ()))
            first = next(inside, UNKNOWN)
            equal = listed and "unique" in self.readings and all(item == first for item in inside)
            self._alike[key] = listed and "single" in self.readings and len(items) == 1, equal
        return self._alike[key]

    def elements(self, node: str, path: Path) -> list[Row]:
        """The positions of all elements that a path with stars runs over."""
        key = (node, path)
        if key not in self._elements:
            self._elements[key] = enumerate_stars(self.outputs[node], path)[0]
        return self._elements[key]

    def frozen(self, node: str, path: Path, distinct: Path | None = None) -> list[Hashable]:
        """All elements that a path with stars runs over, frozen; of those equal along `distinct` only the first."""
        key = (node, path, distinct)
        if key not in self._frozen:
            items = [follow(self.outputs[node], path, row) for row in self.elements(node, path)]
            if distinct is not None:
                first: dict[Hashable, Hashable] = {}
                for item, own in zip(items, self.frozen(node, path), strict=True):
                    first.setdefault(freeze(follow(item, distinct)) if distinct else own, own)
                self._frozen[key] = list(first.values())
            else:
                self._frozen[key] = [freeze(item) for item in items]
        return self._frozen[key]

    # --- adding

    def forget(self, node: str) -> None:
        """There is no such node after all."""
        self.covers.clear()
        self.holes.clear()
        self.outputs.pop(node, None)
        self._since.pop(node, None)
        of_lists: tuple[dict[Any, Any], ...] = (self._alike, self._elements, self._frozen, self.said)
        for found in of_lists:
            for key in [key for key in found if key[0] == node]:
                del found[key]
        self.lists = {key: starts for key, starts in self.lists.items() if key[0][0] != node}
        for known in (self.texts, self._wholes):
            for sources in known.values():
                sources[:] = [source for source in sources if source.node != node]
        self._computed = {each for each in self._computed if each[1] != node}
        for held in self._plain.values():
            held[:] = [(value, source) for value, source in held if source.node != node]
        self._printable = [(value, source) for value, source in self._printable if source.node != node]

    def add(
        self,
        node: str,
        prefix: Path,
        tree: Tree,
        known: int,
        early: bool,
        texts: bool,
        visit: Visit | None = None,
        ahead: bool = False,
        handed: bool = False,
    ) -> None:
        """Index a value. `early`: it may be known ahead of program order; `texts`: look for lists inside texts;
        `visit`: of the framework node that it entered or left; `ahead`: see `Source`; `handed`: it is what something
        gave before, which comes first."""
        self.note(node, prefix, known)
        self.covers.clear()
        rank = (int(early), -known) if self.cautious else (int(not early), known + handed)
        source = partial(Source, node, known=known, rank=rank, late=not early, visit=visit, ahead=ahead)
        stack: list[tuple[Path, Tree]] = [(prefix, tree)]
        while stack and len(self.texts) < MAX_VALUES:
            breathe()
            path, value = stack.pop()
            if isinstance(value, dict | list) and value:
                self._printable.append((value, source(path)))
                if self._is_handed_on(path, value):
                    self._wholes.setdefault(freeze(value), []).append(source(path))
            if isinstance(value, dict):
                if path and is_handed_on(path[-1]):
                    continue
                # The names in calls of tools are the program's words, which a model only chose from.
                said = (ARGS, ID) if path[-2:-1] == (CALLS,) else value
                items = [(key, value[key]) for key in said if key in value and not is_class_name(key, value[key])]
                stack.extend(((*path, key), item) for key, item in reversed(items))
                if "items" in self.readings and path and ITEMS not in path and _is_mapping(value):
                    stack.append(((*path, ITEMS), ITEMS.shown(value)))
            elif isinstance(value, list):
                if value and "count" in self.readings:
                    self._add_text(COUNT.shown(value), source((*path, COUNT)))
                stack.extend(((*path, i), value[i]) for i in range(len(value) - 1, -1, -1))
            elif isinstance(value, str):
                self._add_text(value, source(path))
                for step, shown in self._shown(value):
                    self._add_text(shown, source((*path, step)))
                if texts and len(value) > 2:
                    self._add_extracted(path, value, source)
            elif isinstance(value, Vector):
                self._wholes.setdefault(value, []).append(source(path))
            elif "number" in self.readings and _is_number(value):
                self._add_text(str(value), source(path))

    def _is_handed_on(self, path: Path, value: Tree) -> bool:
        """Whether a list or dict may go into an input as it stands."""
        if isinstance(value, list):
            return "list" in self.readings
        as_part = path and (isinstance(path[-1], int) or is_handed_on(path[-1]))
        return "record" in self.readings and bool(as_part or holds_number(value))

    def _shown(self, text: str) -> list[tuple[Step, str]]:
        """How else programs may show a text; the same text is in many states of one program."""
        if text not in self._as_shown:
            shown = {escape.shown(text): escape for escape in reversed(ESCAPES)} if "escape" in self.readings else {}
            ways: list[tuple[Step, str]] = [(STRIP, text.strip())] if "strip" in self.readings else []
            ways += [(escape, way) for way, escape in shown.items()]
            self._as_shown[text] = [(step, way) for step, way in ways if way != text]
        return self._as_shown[text]

    def _add_extracted(self, path: Path, text: str, source: Callable[[Path], Source]) -> None:
        for name in filter(self.readings.__contains__, EXTRACTORS):
            found = extract(name, text)
            if not isinstance(found, list | dict) or not found or (name != "json" and len(found) > MAX_ITEMS):
                continue
            base = (*path, Extract(name))
            if name == "json":
                self._printable += [(value, source((*base, *steps))) for steps, value in containers(found)]
            if isinstance(found, list) and len(found) > 1:
                self._wholes.setdefault(freeze(found), []).append(source(base))
            for steps, leaf in leaves(found):
                if isinstance(leaf, str) or _is_number(leaf):
                    self._add_text(str(leaf), source((*base, *steps)))

    def _add_text(self, text: str, source: Source) -> None:
        if text not in self.texts:
            if not text:
                return
            self.texts[text] = []
            self._add_beginnings(text)
        if len(self.texts[text]) < MAX_SOURCES:
            self.texts[text].append(source)

    def add_computed(self, value: Tree, source: Source) -> None:
        """What a program may have computed (`computed`): a text, a list or a vector."""
        self.covers.clear()
        whole = freeze(value)
        at = whole, source.node, source.path, source.known
        if at in self._computed:
            return
        self._computed.add(at)
        if isinstance(value, str):
            self._add_text(value, source)
        held = self.texts[value] if isinstance(value, str) else self._wholes.setdefault(whole, [])
        if not held or held[-1] is not source:
            held.append(source)

    def _add_beginnings(self, text: str) -> None:
        n, (pasted, shortest) = len(text), SHORTEST
        if n < pasted:
            if n >= shortest:
                self._short.add(text, (text, ()), n)
            return
        ends = tuple((end, head) for head in HEADS if (end := text.find(head.end)) >= pasted)
        ends = ends if "head" in self.readings else ()
        self._begun.add(text, (text, ends), min(n, *(end for end, _ in ends)) if ends else n)
        bare = EDITS[-1].shown(text).casefold()
        if len(bare) >= shortest:
            (self._bare if len(bare) >= pasted else self._short_bare).add(bare, (text, bare), len(bare))


def reaches(visit: Visit, other: Visit | None) -> bool:
    """Whether what is known inside a visit may be known in another one: not where both run side by side. Nor beyond a
    graph that ran beside others: which of them it was, their numbers don't tell."""
    own, others = visit.line, other.line if other is not None else ()
    shared = sum(1 for _ in takewhile(lambda both: both[0].start == both[1].start, zip(own, others, strict=False)))
    if shared < min(len(own), len(others)):
        end = own[shared].end
        if end is None or end >= others[shared].start:
            return False
    return not any(isinstance(part, Inside) and part.beside for part in own[shared:])


def _is_number(value: Tree) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_mapping(value: dict[str, Tree]) -> bool:
    """Whether a dict looks like one from names to things of one kind, not like a record."""
    kinds = {type(item) for item in value.values()}
    return len(value) > 1 and len(kinds) == 1 and kinds <= {str, dict, list} and not is_view(value)
