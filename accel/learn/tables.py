"""Lists and dicts of a program's texts that its runs use as a whole: personas that all speak, questions that are all
asked. Nobody's are chosen there. Of one that some call site has used in part, the others may be somebody else's
(invariant 10), also where another site uses all of it: all documents are embedded, one is shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ..process.spare import breathe
from ..text.values import texts_of
from ..trace.record import Trace

ALL, PART, NONE = "all", "part", "none"
ENOUGH = 2
"""Runs that used all of it."""
Table = tuple[str, ...]
Asked = Mapping[str, Sequence[str]]
"""The texts of a run's calls, by call site."""


class Tables:
    """What the runs of a program have shown of them. Of those that no run has used no text is kept: it may be anybody's
    (what a list holds are requests, say)."""

    def __init__(self) -> None:
        self._shown: dict[Table, int] = {}
        """How many runs have used all of it, if one has."""
        self._partly: set[int] = set()
        """Hashes of those of which a run has used a part."""

    def look(self, tables: Iterable[Table], traces: Sequence[Trace]) -> None:
        """These are there now. Of a new one, runs from before tell, too."""
        before, self._shown = self._shown, {}
        asked = [_asked(trace) for trace in traces]
        for table in set(tables):
            if hash(table) in self._partly:
                continue
            if table in before:
                self._shown[table] = before[table]
            else:
                self._look_back(table, asked)

    def _look_back(self, table: Table, asked: Iterable[Asked]) -> None:
        breathe()
        used = [_used(table, texts) for texts in asked]
        if PART in used:
            self._partly.add(hash(table))
        elif ALL in used:
            self._shown[table] = used.count(ALL)

    def note(self, trace: Trace) -> bool:
        """A run is over; whether another table is used as a whole now, or one is so no longer."""
        asked = _asked(trace) if self._shown else {}
        return any([self._note(table, _used(table, asked)) for table in list(self._shown)])

    def _note(self, table: Table, used: str) -> bool:
        if used == ALL:
            self._shown[table] += 1
            return self._shown[table] == ENOUGH
        if used == PART:
            self._partly.add(hash(table))
            return self._shown.pop(table) >= ENOUGH
        return False

    def are_whole(self, table: Table) -> bool:
        return self._shown.get(table, 0) >= ENOUGH and not _overlap(table)


def _asked(trace: Trace) -> Asked:
    asked: defaultdict[str, list[str]] = defaultdict(list)
    for call in trace.calls if trace.completed else ():
        asked[call.site] += texts_of(call.input)
    return asked


def _used(table: Table, asked: Asked) -> str:
    found = {_used_at(table, texts) for texts in asked.values()}
    return next((used for used in (PART, ALL) if used in found), NONE)


def _used_at(table: Table, texts: Sequence[str]) -> str:
    used = [any(text in each for each in texts) for text in table]
    return ALL if all(used) else PART if any(used) else NONE


def _overlap(table: Table) -> bool:
    """Whether one of them is part of another, so that nothing tells which was used."""
    return any(one in other for at, one in enumerate(table) for to, other in enumerate(table) if at != to)
