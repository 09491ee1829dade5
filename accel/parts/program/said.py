"""What was found of a program's own texts (`texts`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...text.constants import Table
from .places import Place

Column = tuple[tuple[str, Place], ...]
"""Texts that stand in the entries of a list or dict, with their places."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Hashes of what a program held when it was accelerated."""

    texts: frozenset[int] = frozenset()
    """Of its variables, attributes and dicts;"""
    columns: frozenset[int] = frozenset()
    """of its lists and dicts, with their names;"""
    rows: frozenset[int] = frozenset()
    """of each entry of its dicts, with their names."""

    def __or__(self, other: Standing) -> Standing:
        return Standing(self.texts | other.texts, self.columns | other.columns, self.rows | other.rows)


NOTHING = Standing()


@dataclass(frozen=True, slots=True)
class Said:
    """What a program says by itself, at one moment."""

    texts: dict[str, Place | None]
    """And where they stand; None of constants."""
    held: dict[str, Place]
    """What variables and attributes that code names hold, whoever put it there."""
    columns: list[Column]
    """The texts of every short list and dict that code names, as they stand in its entries one after the other: a
    program chooses among them, or goes through all. Those alone that were the same when it was accelerated."""
    tables: list[Table] = field(default_factory=list)
    """The short dicts that code names, as far as what they have for each key is a text, or printed as one; without the
    entries that were not the same when it was accelerated."""
    moved: list[tuple[str, str]] = field(default_factory=list)
    """Those entries."""
