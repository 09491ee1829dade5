"""Which components a program uses together: of a container that every run uses all of, it chooses none."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

ENOUGH = 3
"""Runs that used all of them: of several tenants' stores, one run uses one."""
MAX_USED = 256


@dataclass(slots=True)
class _Use:
    component: weakref.ref[Any]
    beside: frozenset[int]
    """Ids of all that every run used which used this one,"""
    runs: int
    """and how many these are."""


class Together:
    """Of one program."""

    def __init__(self) -> None:
        self._uses: dict[int, _Use] = {}
        """By id of the component, which is not kept alive."""

    def note(self, components: Iterable[Any]) -> None:
        """A run that came to its end has used these."""
        used = {id(component): component for component in components}
        together = frozenset(used)
        for at, component in used.items():
            known = self._uses.pop(at, None)
            if known is not None and known.component() is component:
                self._uses[at] = _Use(known.component, known.beside & together, known.runs + 1)
            elif (held := _weakly(component)) is not None:
                self._uses[at] = _Use(held, together, 1)
        while len(self._uses) > MAX_USED:
            del self._uses[next(iter(self._uses))]

    def uses_all(self, component: Any, entries: Iterable[Collection[int]]) -> bool:
        """Whether every run that used it, often enough, has used one of each of these, and the other way round. By
        ids."""
        use = self._of(id(component))
        if use is None or use.runs < ENOUGH:
            return False
        return all(any(self._go_together(use, id(component), at) for at in entry) for entry in entries)

    def _go_together(self, use: _Use, component: int, at: int) -> bool:
        other = self._of(at)
        return other is not None and at in use.beside and component in other.beside

    def _of(self, at: int) -> _Use | None:
        use = self._uses.get(at)
        return use if use is not None and use.component() is not None else None


def _weakly(component: Any) -> weakref.ref[Any] | None:
    try:
        return weakref.ref(component)
    except TypeError:  # its class has no room for that
        return None
