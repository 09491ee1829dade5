"""What waits for an engine: the most urgent first, then the earliest."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from ..engine import Priority

T = TypeVar("T")


class Waiting(Generic[T]):
    """Entries by priority, then arrival. A priority may be raised while its entry waits, so order is found out when an
    entry is taken, in time proportional to how many wait. Not thread-safe; lives on an engine's loop."""

    def __init__(self) -> None:
        self._entries: list[tuple[Priority, int, T]] = []
        self._arrivals = itertools.count()

    def add(self, entry: T, priority: Priority) -> None:
        self._entries.append((priority, next(self._arrivals), entry))

    def first(self) -> T:
        """Whose turn it is; IndexError if nothing waits."""
        return self._entries[self._first()][2]

    def take(self) -> T:
        """As `first`, and it waits no longer."""
        return self._entries.pop(self._first())[2]

    def drop(self, unwanted: Callable[[T], bool]) -> None:
        self._entries = [held for held in self._entries if not unwanted(held[2])]

    def clear(self) -> None:
        self._entries.clear()

    def _first(self) -> int:
        if not self._entries:
            raise IndexError("nothing waits")
        return min(range(len(self._entries)), key=lambda i: (self._entries[i][0].value, self._entries[i][1]))

    def __iter__(self) -> Iterator[T]:
        return (entry for _, _, entry in self._entries)

    def __len__(self) -> int:
        return len(self._entries)
