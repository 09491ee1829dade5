"""Whether a program does something new: then it is followed again, and learnt from, as if it had just begun."""

from __future__ import annotations

from collections.abc import Collection

AFTER = 4
"""A run that is not foreseen is news after so many that were, the first time; each time it was, after twice as many: a
program that is never all foreseen may rest."""

MANY = 1_000
"""Call sites. Where more come, each run has others, and that is no news."""


class Changes:
    """Of one program."""

    def __init__(self) -> None:
        self._sites: set[str] = set()
        self._foreseen = 0
        """Runs in a row."""
        self._after = AFTER

    def note(self, sites: Collection[str], foreseen: bool) -> bool:
        """A run has made calls at these sites. True if it is news: one of them is new, or all runs were foreseen for
        long."""
        new = 0 < len(self._sites) < MANY and not self._sites.issuperset(sites)
        if new or not self._sites:
            self._sites.update(sites)
        if foreseen:
            self._foreseen += 1
            return False
        surprised = self._foreseen >= self._after
        self._after *= 1 + surprised
        self._foreseen = 0
        return new or surprised
