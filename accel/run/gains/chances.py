"""How likely the calls of a program's nodes are, by all runs since they were learnt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...graph.ir import Graph, Node
from ...learn.lessons import Lesson
from ...learn.memory import asked_for
from ...process import forks
from ...text.values import Tree

QUIET_AFTER = 2
"""A node that misses this often in a row is no longer predicted until it is relearnt."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How well a node is known."""

    since: int
    """The run after which it was learnt; 0 for a loaded plan's."""
    made: int
    """Runs that made its calls,"""
    runs: int
    """of so many."""

    def __str__(self) -> str:
        since = f"since run {self.since}" if self.since else "since the plan was loaded"
        return since + (f", made in {self.made} of {self.runs} runs" if self.runs else "")


@dataclass(frozen=True, slots=True)
class _Rest:
    """A node with this input isn't predicted before so many runs are over: each time it keeps missing, twice as long.
    What it misses by may not show in the data (a tenant that is set just before the call)."""

    input: Tree = None
    times: int = 0
    until: int = 0


class Chances:
    """Of one program. Thread-safe."""

    def __init__(self) -> None:
        self._made: Counter[object] = Counter()
        self._runs: Counter[object] = Counter()
        """By what nodes ask for: the runs that made their calls, and all;"""
        self._here: Counter[object] = Counter()
        """and those that made as many calls at their site as any that made theirs:"""
        self._fewest: dict[object, int] = {}
        """this many, the nodes' own included."""
        self._since: dict[object, int] = {}
        """By what nodes ask for: the run after which they were learnt."""
        self._misses: Counter[str] = Counter()
        self._resting: dict[str, _Rest] = {}
        """Nodes that kept missing, by name."""
        self._widest: Counter[tuple[str, str]] = Counter()
        """By call site and domain, the most elements that any run had."""
        self._lock = forks.lock()

    # --- what runs ask and tell

    def standing(self, node: Node) -> Standing:
        """Since when a node of the p-graph is known, and how often it was demanded."""
        asked = asked_for(node)
        with self._lock:
            return Standing(self._since.get(asked, 0), self._made[asked], self._runs[asked])

    def share(self, node: Node) -> float:
        """That a call at its site is one of the node's, and not another one's instead; with one hit and one miss added
        to what was seen (Laplace), unless all were."""
        asked = asked_for(node)
        with self._lock:
            made, here = self._made[asked], self._here[asked]
        return 1.0 if made >= here else (made + 1) / (here + 2)

    def missed(self, name: str) -> None:
        """An early call for this node was not what the program asked."""
        with self._lock:
            self._misses[name] += 1

    def hit(self, name: str) -> None:
        with self._lock:
            self._misses.pop(name, None)

    # --- what finished runs and lessons show

    def note(self, graph: Graph, made: dict[str, int], sites: Mapping[str, int]) -> None:
        """How many calls of each node a run has made, and how many at each site."""
        all_made: Counter[object] = Counter()
        there: dict[object, int] = {}
        with self._lock:
            for name, count in made.items():
                node = graph.by_name[name]
                all_made[asked_for(node)] += count
                there[asked_for(node)] = sites.get(node.site, 0)
                if node.level is not None:
                    fan_out = (node.site, str(node.level.domain))
                    self._widest[fan_out] = max(self._widest[fan_out], count)
            for asked, count in all_made.items():  # nodes may ask the same: a run counts once
                self._made[asked] += count > 0
                self._runs[asked] += 1
                if count:
                    self._fewest[asked] = min(self._fewest.get(asked, there[asked]), there[asked])
                self._here[asked] += there[asked] >= self._fewest.get(asked, 1)

    def learnt(self, lesson: Lesson, run: int, sites: Sequence[Mapping[str, int]]) -> None:
        """Nodes that are new were made in the runs that they were learnt from, and in no others. `sites`: how many
        calls each of these made at every site."""
        with self._lock:
            made, runs, since, here = self._made, self._runs, self._since, self._here
            fewest, self._fewest = self._fewest, {}
            self._made, self._runs, self._since, self._here = Counter(), Counter(), {}, Counter()
            alike: dict[object, set[str]] = {}
            for node in lesson.graph.nodes:
                if node.predictable:
                    asked = asked_for(node)
                    names = alike.setdefault(asked, set())
                    names.add(node.name)
                    seen = sum(not names.isdisjoint(shape) for shape in lesson.shapes)
                    self._made[asked] = made.get(asked, seen)
                    self._runs[asked] = runs.get(asked, run)
                    counts = [called.get(node.site, 0) for called in sites]
                    made_in = [n for n, shape in zip(counts, lesson.shapes, strict=True) if not names.isdisjoint(shape)]
                    least = self._fewest[asked] = min([*made_in, fewest.get(asked, max(counts, default=1))])
                    self._here[asked] = here.get(asked, sum(n >= least for n in counts))
                    self._since[asked] = since.get(asked, run)

    def kept_missing(self) -> set[str]:
        with self._lock:
            return {name for name, count in self._misses.items() if count >= QUIET_AFTER}

    def hushed(self, learnt: Graph, before: Graph, run: int) -> Graph:
        """`learnt`, where nodes that kept missing are not predicted until a later trace explains them."""
        quiet, old = self.kept_missing(), before.by_name

        def hush(node: Node) -> Node:
            known, rest = old.get(node.name), self._resting.get(node.name, _Rest())
            if node.name in quiet and known is not None and known.input == node.input and node.predictable:
                times = rest.times + 1 if rest.input == node.input else 0
                rest = self._resting[node.name] = _Rest(node.input, times, run + 2 ** min(times + 2, 8))
            if rest.input == node.input and run < rest.until and node.predictable:
                return node.proven(confidence="seen", reason="kept missing")
            return node

        hushed = learnt.map(hush)
        with self._lock:
            for name in quiet:
                self._misses.pop(name, None)
        return hushed

    def widened(self, node: Node) -> Node:
        """With the most elements any run had, also of runs whose traces are gone."""
        level = node.level
        if level is None or level.seen is None:
            return node
        most = self._widest[node.site, str(level.domain)] = max(level.seen, self._widest[node.site, str(level.domain)])
        return node if most == level.seen else replace(node, level=replace(level, seen=most))
