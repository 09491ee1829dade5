"""Decisions by short values: which runs make a call, and which elements of a list it is made for.

Routers, judges and graders answer with a word or a field, and the program goes on by it. A value that always went with
the call, and another one that never did, make a table (`When`). Several values may tell equally well so far: then all
of them must agree, until further traces part them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ...graph.ir import Node, When
from ...text.constants import Constants
from ...text.evaluate import Env
from ...text.extract import extract
from ...text.functions import THRESHOLDS, thresholds
from ...text.paths import UNKNOWN, Index
from ...text.steps import STAR, VERDICTS, Extract, Step
from ...text.templates import Ref
from ...text.values import Tree, is_handed_on, leaves
from ...trace.beside import BESIDE
from .readings import Readings

DECIDE = ("none", "llm", "tool")
"""Engines whose outputs decide: what was given, said or done, not what a search happened to find."""
MAX_DECISIONS = 3
"""More values that tell equally well are too many: nothing is decided before there are further traces."""
MAX_VALUES = 2 / 3
"""Different values by the number of runs that had one."""
LONGEST_NUMBER = 8
"""Characters."""
MAX_LEAVES = 200
"""Of one output: longer ones are no decisions."""


class Known(Env, Protocol):
    """The outputs of a trace, and since when they were there."""

    found: set[str]
    """Texts that searches brought."""
    readings: Readings
    constants: Callable[[], Constants]
    """Of the program."""
    said: dict[tuple[str, Index, bool], dict[Ref, Said]]
    """The short values among them, by node and element, for those nodes whose outputs won't change; those that numbers
    say by themselves, and those that they say beside the program's."""

    def since(self, node: str, path: tuple[str | int, ...]) -> int:
        """The position in the trace from which on this value was known."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one expected call: `made` or not, in a run that knew `env`, for the element `binding`."""

    run: int
    """Runs with equal inputs have equal numbers: they are one witness."""
    env: Known
    binding: Index
    made: bool
    before: int | None = None
    """When the call was made, as a position in the trace."""


@dataclass(slots=True)
class Table:
    """What one value said, for every outcome where it was there."""

    ref: Ref
    yes: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    no: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """By value, the runs in which it was seen."""

    def holds(self) -> bool:
        """Whether it tells anything: no value says both, one that says yes was seen in two runs, and the values are
        few: names and numbers that come once or twice go with anything."""
        seen = [*self.yes.values(), *self.no.values()]
        few = len(seen) <= max(2, sum(map(len, seen)) * MAX_VALUES)
        either = bool(self.no) and not self.yes.keys() & self.no.keys()
        return either and few and any(len(runs) > 1 for runs in self.yes.values())

    def is_proven(self) -> bool:
        """Whether every value was seen in two runs."""
        return all(len(runs) > 1 for runs in (*self.yes.values(), *self.no.values()))

    def seen_in(self, runs: int) -> When:
        """The values that at least so many runs with different inputs agree on. Those of one run alone may be
        somebody's data (invariant 10)."""
        yes, no = (frozenset(v for v, seen in said.items() if len(seen) >= runs) for said in (self.yes, self.no))
        return When(self.ref, yes, no)


def decisions(outcomes: Sequence[Outcome], earlier: Sequence[Node]) -> tuple[Table, ...]:
    """What tells the calls that were made from those that were not, by outputs of `earlier` nodes; empty if nothing
    does, or too much."""
    tables = _tables(outcomes, earlier, beside=False)
    runs = [{outcome.run for outcome in outcomes if outcome.made is made} for made in (True, False)]
    if not tables and min(map(len, runs)) > 1:  # a number beside another one says one of two things: chance is greater
        tables = [table for table in _tables(outcomes, earlier, beside=True) if table.is_proven()]
    return tuple(tables) if len(tables) <= MAX_DECISIONS else ()


def _tables(outcomes: Sequence[Outcome], earlier: Sequence[Node], beside: bool) -> list[Table]:
    """`beside`: of what numbers say beside the program's, that is whether they are greater."""
    made = next((outcome for outcome in outcomes if outcome.made), None)
    if made is None:
        return []
    tables: dict[frozenset[tuple[int, str]], list[Table]] = {}
    sources = (node for node in earlier if node.op.engine in DECIDE and not node.gathers and node.name != BESIDE)
    for source in sorted(sources, key=lambda node: node.at_boundary):
        said_then = _short_values(source, made, beside)
        known = [_short_values(source, outcome, beside) for outcome in outcomes] if said_then else []
        for ref in said_then:
            table, column = Table(ref), {}
            for number, outcome in enumerate(outcomes):
                said = known[number].get(ref)
                if said is None or (outcome.before is not None and said.since >= outcome.before):
                    if outcome.made:
                        break
                    continue
                column[number] = said.value
                own, other = (table.yes, table.no) if outcome.made else (table.no, table.yes)
                own[said.value].add(outcome.run)
                if said.value in other:
                    break  # it tells nothing; most values don't
            else:
                alike = tables.setdefault(frozenset(column.items()), []) if table.holds() else [table]
                # The same values elsewhere say the same later, but for those that runs are given: each may be the one.
                if not alike or (source.name == "input" and alike[-1].ref.node == "input"):
                    alike.append(table)
    return [table for alike in tables.values() for table in alike]


@dataclass(frozen=True, slots=True)
class Said:
    """A short value, and since when it was there."""

    value: str
    since: int


def _short_values(source: Node, outcome: Outcome, beside: bool) -> dict[Ref, Said]:
    """Every value of a node that a decision may go by; what belongs to the outcome's element has stars."""
    env, binding = outcome.env, outcome.binding
    on = env.readings
    constants = env.constants() if beside else Constants()
    if (source.name, binding, beside) not in env.said:
        found = env.said[source.name, binding, beside] = {}
        value = env.value(source.name)
        accidental = source.many and len(binding) < source.dims  # of many outputs any position would be one
        for path, leaf in leaves(value)[:MAX_LEAVES] if value is not UNKNOWN and not accidental else ():
            # What a search happened to find decides nothing, in whose hands it may be by now.
            if any(map(is_handed_on, path)) or (isinstance(leaf, str) and leaf in env.found):
                continue
            since = env.since(source.name, path)
            readings = _beside(leaf, source.op.streams, constants, on) if beside else _readings(leaf, source, on)
            for steps, said in readings if "verdict" in on else ():
                starred = _starred((*path, *steps), binding)
                if starred is not None:
                    found.setdefault(Ref(source.name, starred), Said(said, since))
    return env.said[source.name, binding, beside]


def _readings(leaf: Tree, source: Node, on: Readings) -> Iterator[tuple[tuple[Step, ...], str]]:
    """What a leaf says, and how to read that: the values in it if it is JSON that a model wrote, else itself."""
    whole, word = VERDICTS
    streams = source.op.streams
    for steps, item in _items(leaf, streams):
        by_word = streams and not steps and "first word" in on
        for verdict in (whole, word) if by_word else (whole,):
            said = verdict.of(item)
            if said is not None:
                yield (*steps, verdict), said


def _beside(leaf: Tree, streams: bool, constants: Constants, on: Readings) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Whether a number is greater than those of the program."""
    whole, _ = VERDICTS
    for steps, item in _items(leaf, streams):
        if isinstance(item, bool | str) and not (isinstance(item, str) and streams and len(item) <= LONGEST_NUMBER):
            continue
        for step, result in thresholds(item, constants, filter(on.__contains__, THRESHOLDS)):
            said = whole.of(result)
            if said is not None:
                yield (*steps, step, whole), said


def _items(leaf: Tree, streams: bool) -> Iterable[tuple[tuple[Step, ...], Tree]]:
    found = extract("json", leaf) if streams and isinstance(leaf, str) else None
    if not isinstance(found, dict | list):
        return (((), leaf),)
    return [((Extract("json"), *steps), item) for steps, item in leaves(found)]


def _starred(path: tuple[Step, ...], binding: Index) -> tuple[Step, ...] | None:
    """The path with the positions of the element as stars; None if it leads to another element."""
    places = iter(binding)
    starred: list[Step] = []
    for step in path:
        place = next(places, None) if isinstance(step, int) else None
        if place is not None and place != step:
            return None
        starred.append(step if place is None else STAR)
    return tuple(starred)
