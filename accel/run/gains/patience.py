"""How many runs go by between two lessons about one program, and how many lessons between two in which functions are
tried for a call site: the more of them taught nothing, the more."""

from __future__ import annotations

from ...learn.lessons import Lesson

PATIENCE = 2
"""Lessons in a row that may explain no more than those before; then they get rarer."""
CALLS_A_RUN = 100
"""How many calls a lesson may look through for each run since the last one, if that one taught nothing."""
MOST_LACKED = 2
"""Runs that are learnt from although they were foreseen."""
FIRST_REST = 2
"""Lessons that pass a site over after functions explained nothing of it once: a try takes seconds of the processor."""
LEAST_GAIN = 0.01
"""How much more of all calls a lesson must explain to count as one that taught something."""


class Patience:
    def __init__(self) -> None:
        self._unexplained = 0
        """Runs since the last lesson that the graph did not fully explain."""
        self._in_vain = 0
        """Lessons in a row that explained no more than one before."""
        self._lacks_runs, self._lackings = False, 0
        """Whether a lesson wanted one more run, and how often it got one."""
        self._explained = 0.0
        """The largest share of calls that a lesson explained."""
        self._rests: dict[str, tuple[int, int]] = {}
        """By call site that no function explained: how many lessons pass it over from now on, and from then on."""

    def hope(self) -> None:
        """The program is another one: lessons may teach more than they did."""
        self._in_vain = 0
        self._rests.clear()

    def passed_over(self) -> frozenset[str]:
        """Call sites for which the next lesson tries no functions."""
        return frozenset(site for site, (lessons, _) in self._rests.items() if lessons)

    def takes_one_more(self) -> bool:
        """Whether to learn from a run that was foreseen, as it may teach something all the same; so often, no more."""
        self._lackings += self._lacks_runs
        return self._lacks_runs and self._lackings <= MOST_LACKED

    def is_over(self, calls: int) -> bool:
        """After one more run that was not foreseen, whether it is time for a lesson. `calls`: that it looks through; if
        the last one taught nothing, it depends on them."""
        self._unexplained += 1
        rarely: int = 2 ** min(max(0, self._in_vain - PATIENCE), 6)
        return self._unexplained >= (max(calls // CALLS_A_RUN, rarely) if self._in_vain else 1)

    def learnt(self, lesson: Lesson, complete: bool, changed: bool) -> bool:
        """Whether a lesson taught something. `complete`: it foresees its last run; `changed`: what the program made
        before counts no more."""
        better = complete or lesson.explained > self._explained + LEAST_GAIN
        self._unexplained, self._in_vain = 0, 0 if better else self._in_vain + 1
        self._explained = lesson.explained if changed else max(self._explained, lesson.explained)
        self._lacks_runs = lesson.lacks_runs
        resting = {site: (lessons - 1, then) for site, (lessons, then) in self._rests.items() if lessons}
        tried = {site: self._rests.get(site, (0, FIRST_REST))[1] for site in lesson.in_vain}
        self._rests = resting | {site: (lessons, 2 * lessons) for site, lessons in tried.items()}
        return better
