"""Where any of many texts begin in a text: told by their first characters, in one look along it.

What a look costs depends on the length of the text, and hardly on how many texts are looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from ...process.spare import breathe

T = TypeVar("T")
FEW = 32
"""So many beginnings are looked for one by one, which is quicker than a look at every position."""
SLICE = 20_000
"""Positions between two breaths."""


class Beginnings(Generic[T]):
    """Things by how they begin: with `size` characters, and then with up to `most`, as many texts begin alike."""

    def __init__(self, size: int, most: int) -> None:
        self._size, self._most = size, most
        self._things: dict[str, dict[int, dict[str, list[T]]]] = {}
        """By the first characters, by how many are sure, and by those."""
        self._order: list[str] = []
        self._looked: dict[str, tuple[int, list[tuple[int, str]]]] = {}
        """By text, how many of the beginnings have been looked for, and where they were found."""

    def add(self, text: str, thing: T, sure: int) -> None:
        """Of its text so many characters, and at least `size`, stand wherever it is to be found."""
        start = text[: self._size]
        if start not in self._things:
            self._things[start] = {}
            self._order.append(start)
        sure = min(sure, self._most)
        self._things[start].setdefault(sure, {}).setdefault(text[:sure], []).append(thing)

    def find(self, text: str) -> Iterator[tuple[int, T]]:
        """What may begin at some position of the text, and where."""
        done, found = self._looked.get(text, (0, []))
        if done < len(self._order):
            found = found + list(self._look(text, self._order[done:]))
            self._looked[text] = len(self._order), found
        for at, start in found:
            for sure, things in self._things[start].items():
                for thing in things.get(text[at : at + sure], ()):
                    yield at, thing

    def _look(self, text: str, starts: list[str]) -> Iterator[tuple[int, str]]:
        if len(starts) <= FEW:
            for start in starts:
                breathe()
                at = text.find(start)
                while at >= 0:
                    yield at, start
                    at = text.find(start, at + 1)
            return
        wanted = set(starts)
        end = len(text) - self._size + 1
        for begin in range(0, end, SLICE):
            breathe()
            for at in range(begin, min(end, begin + SLICE)):
                start = text[at : at + self._size]
                if start in wanted:
                    yield at, start
