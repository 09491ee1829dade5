"""Holes: covered parts of an input, with all that is known of where they may come from."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...text.steps import Step
from ...text.templates import Counter
from ...trace.record import Visit


class AnyPosition:
    """In a skeleton: an open position. There is one, compared as the object it is, which takes no time."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "#"


ANY = AnyPosition()
Path = tuple[Step, ...]
OpenPath = tuple[Step | AnyPosition, ...]
Skeleton = tuple[str, OpenPath]
"""A node and a path whose positions are left open: `ANY` where a coordinate has an int."""
Row = tuple[int, ...]
"""The positions of one value along a skeleton."""
Rank = tuple[int, int]
"""The age of a source, least first: what is known ahead of program order, then what was known first."""
Modes = list[tuple[str, ...] | None]
"""By what equal elements of a list may have been dropped (`Collect.distinct`)."""


@dataclass(slots=True)
class Source:
    """One place where a value was seen."""

    node: str
    path: Path
    known: int
    """Position in the trace from which on it was known."""
    rank: Rank
    late: bool = False
    """It is known when the program gets there, and no sooner."""
    visit: Visit | None = None
    """The visit of a framework node that it entered or left."""
    computed: bool = False
    """Nothing brought it: a function may have made it of what something brought."""
    ahead: bool = False
    """Of a call that no node explains yet."""

    @property
    def skeleton(self) -> Skeleton:
        return self.node, tuple(ANY if isinstance(step, int) else step for step in self.path)

    @property
    def row(self) -> Row:
        return tuple(step for step in self.path if isinstance(step, int))


@dataclass(slots=True)
class Origin:
    """One skeleton that a hole may come from."""

    rank: Rank
    rows: list[Row] = field(default_factory=list)
    limit: int | None = None
    """How many elements are joined or collected, where it isn't all of them."""
    modes: Modes | None = None
    """Of a list that is made of elements."""


@dataclass(slots=True)
class Hole:
    """A covered part of a text, or a value that is handed on."""

    origins: dict[Skeleton, Origin] = field(default_factory=dict)
    sep: tuple[str | Counter, ...] | None = None
    joined: bool = False
    column: int = 0
    """For joins of rows: which of a row's values it is,"""
    columns: int = 1
    """of so many."""

    def origin(self, skeleton: Skeleton, rank: Rank) -> Origin:
        """That of this skeleton, new or known."""
        origin = self.origins.setdefault(skeleton, Origin(rank))
        origin.rank = min(origin.rank, rank)
        return origin

    def rows(self, skeleton: Skeleton) -> list[Row]:
        origin = self.origins.get(skeleton)
        return origin.rows if origin is not None else []


@dataclass(slots=True)
class Start:
    """A list of two elements or more that begins with a value."""

    skeleton: Skeleton
    """With stars;"""
    rows: list[Row]
    """of all its elements."""
    fixed: int
    """So many positions of a row are those of the list itself."""
    unique: bool
    """Of equal elements only the first is meant."""


Parts = list[str | Hole | Counter]
"""Literals at even places, holes at odd ones."""


def filled(path: OpenPath, row: Row) -> Path:
    """The path with its open positions set, in order; stars stay."""
    positions = iter(row)
    return tuple(next(positions) if isinstance(step, AnyPosition) else step for step in path)
