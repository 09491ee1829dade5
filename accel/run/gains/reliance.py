"""How far what a graph foretells has come true: by what they asked for, the early calls of the last runs that the
program made, and those in vain. A node that was wrong is no longer certain, however sure its traces are."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from ...graph.ir import Node
from ...learn.memory import asked_for, once

WINDOW = 100
"""Runs over which waste is compared with what the program takes."""
MANY_WRONG = 2
"""So many nodes of a call site that were wrong make those doubtful that are learnt there in their place,"""
RECENT = 10
"""for so many runs."""
MAX_FORESEEN = 4_000


@dataclass(frozen=True, slots=True)
class Asked:
    """What an early call asked for: `what` nodes of a call `site` may change from lesson to lesson."""

    site: str
    what: Hashable = None


@once
def asked_of(node: Node) -> Asked:
    """Of a node of the p-graph."""
    level = (node.level.first, node.level.cap) if node.level is not None else None
    return Asked(node.site, (asked_for(node), tuple(when.ref for when in node.when), level))


UNSURE = Asked("")
"""Of a call that nothing says the program makes: that it may be in vain was known."""


@dataclass(slots=True)
class Tried:
    """What became of a run's early calls that the program was said to make."""

    made: Counter[Asked] = field(default_factory=Counter)
    """By the program."""
    vain: Counter[Asked] = field(default_factory=Counter)

    def note(self, asked: Asked, made: bool) -> None:
        if asked is not UNSURE:
            (self.made if made else self.vain)[asked] += 1


class Reliance:
    """Of one program. Whoever shares it guards it."""

    def __init__(self) -> None:
        self._runs = 0
        self._window: deque[tuple[Tried, bool]] = deque()
        self._made: Counter[Asked] = Counter()
        self._vain: Counter[Asked] = Counter()
        self._wrong: Counter[Asked] = Counter()
        """Of those in vain, the ones of runs that nobody else has ended: that came to their end, or raised."""
        self._erred: dict[str, dict[Asked, int]] = {}
        """By call site, the nodes that were wrong, and in which run for the last time."""
        self._foreseen: dict[Asked, None] = {}
        """What the program made after the lesson that said so: no early call of it has to show that it does."""
        self._again: Counter[Asked] = Counter()
        """Of those in vain, the runs since that made such a call of themselves, as long as all do."""

    def foresaw(self, made: Iterable[Asked], left_out: Iterable[Asked], tried: Tried) -> None:
        """A run made such calls, or did not, which a lesson before it had said; `tried`: its own."""
        for asked in made:
            self._foreseen.pop(asked, None)
            self._foreseen[asked] = None
            if self._vain[asked] and not tried.made[asked] and not tried.vain[asked]:
                self._again[asked] += 1
        for asked in left_out:
            self._again.pop(asked, None)
        while len(self._foreseen) > MAX_FORESEEN:
            del self._foreseen[next(iter(self._foreseen))]

    def note(self, tried: Tried, by_itself: bool) -> None:
        """A run is over. `by_itself`: nobody else has ended it."""
        self._runs += 1
        self._window.append((tried, by_itself))
        self._count(tried, by_itself, +1)
        for asked in tried.vain:
            self._again.pop(asked, None)
        for asked in tried.vain if by_itself else ():
            self._erred[asked.site] = {**self._recently(asked.site), asked: self._runs}
        if len(self._window) > WINDOW:
            self._count(*self._window.popleft(), -1)

    def _count(self, tried: Tried, by_itself: bool, sign: int) -> None:
        counts = [(self._made, tried.made), (self._vain, tried.vain)]
        for own, other in [*counts, (self._wrong, tried.vain)] if by_itself else counts:
            for asked, times in other.items():
                own[asked] += sign * times
                if not own[asked]:
                    del own[asked]
                    if own is self._vain:
                        self._again.pop(asked, None)

    def doubts(self, asked: Asked) -> bool:
        """Whether calls of it may be in vain, whatever the traces say."""
        return self._vain[asked] > 0 or self._others_erred(asked)

    def was_wrong(self, asked: Asked) -> bool:
        """Whether a run that nobody else has ended has done without an early call of it."""
        return self._wrong[asked] > 0 or self._others_erred(asked)

    def _others_erred(self, asked: Asked) -> bool:
        """Whether it is new where several were wrong, and nothing has come true of it yet."""
        new = not self._made[asked] and asked not in self._foreseen
        return new and len(self._recently(asked.site)) >= MANY_WRONG

    def _recently(self, site: str) -> dict[Asked, int]:
        erred = self._erred.get(site)
        if not erred:
            return {}
        kept = {asked: run for asked, run in erred.items() if run > self._runs - RECENT}
        if len(kept) < len(erred):
            self._erred[site] = kept
        return kept

    def chance(self, asked: Asked) -> float:
        """That the program makes a call of it, with one hit and one miss added to what was seen (Laplace). What it
        makes without an early call counts as well, until one is in vain: that may not show in what it asks for."""
        made, vain = self._made[asked] + self._again[asked], self._vain[asked]
        if not made and not vain:
            vain = len(self._recently(asked.site))
        return (made + 1) / (made + vain + 2)
