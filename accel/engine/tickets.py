"""What stands in an engine's line."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

from .protocols import Priority

T = TypeVar("T")

AGING_S = 60.0
"""Early work that has waited this long is raised to a demand; a demand that has goes before all others, first come,
first served. So nothing starves, neither beside long runs nor beside many."""


@dataclass(eq=False, slots=True)
class Ticket(Generic[T]):
    """A call that waits, with those of its entries (texts, requests) that are not taken yet."""

    entries: deque[T]
    priority: Priority
    number: int
    """Of its arrival at the engine."""
    since_s: float
    """When it came, or was raised because it had waited so long."""
    begun: bool = False

    @property
    def bucket(self) -> str | int:
        """A call of no run is a run by itself."""
        return self.priority.run or self.number

    @property
    def arrived_s(self) -> float:
        return self.priority.arrived_s if self.priority.run else self.since_s
