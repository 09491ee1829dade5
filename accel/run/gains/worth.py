"""What an early call is worth that the program may not make: what it would save, against what it would waste.

Such a call goes if its chance times the seconds it saves exceed the chance that it is in vain times the seconds it
takes. Chances are counted: of the times that a run came to a framework node, how often it went on to calls at the site
(and of these, how many ask for the same, where not all do), with one hit and one miss added to what was seen (Laplace);
and of the node's early calls, how many the program made (`reliance`), which alone counts for what seemed certain
before. All waste together, with what this call would add to it in vain, and what those under way may be expected to
add, stays below a share of what the program itself takes, in seconds inside components and in tokens, over the last
runs.
"""

from __future__ import annotations

import os
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass

from ...graph.ops import OPS
from ...graph.rules import LATE, NOT_WORTH, WASTE, Reason
from ...process import forks
from ...text.values import Tree, length_of
from ...trace.record import CallRecord, Trace, Visit
from ..settings import Counts
from .caps import Vain
from .reliance import WINDOW, Asked, Reliance, Tried

MAX_COUNTED = 20_000
"""Pairs of a visit and a site; a run with more is not counted."""
CHARS_PER_TOKEN = 4
"""Of English text, where nothing else tells."""
LITTLE = 4
"""So many times at most that runs came to a node count once the program does something new."""
BEGIN = ""
"""Stands for the framework node that a run begins with: none."""


@dataclass(frozen=True, slots=True)
class Cost:
    seconds: float = 0.0
    tokens: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.seconds + other.seconds, self.tokens + other.tokens)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.seconds - other.seconds, self.tokens - other.tokens)

    def __mul__(self, times: float) -> Cost:
        return Cost(self.seconds * times, self.tokens * times)

    def within(self, other: Cost) -> bool:
        """Where tokens are not counted, seconds alone tell."""
        return self.seconds <= other.seconds and self.tokens <= other.tokens


@dataclass(slots=True)
class _Mean:
    times: float = 0.0
    total: Cost = Cost()

    def add(self, cost: Cost) -> None:
        self.times += 1
        self.total += cost

    def weigh(self, less: float) -> None:
        self.times, self.total = self.times * less, self.total * less

    @property
    def cost(self) -> Cost:
        return self.total * (1 / self.times) if self.times else self.total


@dataclass(frozen=True, slots=True)
class Doubt:
    """A call that may not be made."""

    site: str
    came: str
    """The framework node that the run came to last,"""
    since_s: float
    """and how long ago."""
    asked: Asked = Asked("")
    """What it asks for,"""
    share: float = 1.0
    """and how likely a call there asks for that."""
    foretold: bool = False
    """Nothing but that such calls were in vain speaks against it."""


@dataclass(slots=True)
class _Coming:
    """The calls of a site that a run has yet to make, those that it makes next."""

    left: int
    """Framework nodes that it comes to after them."""
    times: int = 0
    total_s: float = 0.0

    def add(self, started_s: float) -> None:
        self.times += 1
        self.total_s += started_s

    @property
    def mean_s(self) -> float:
        return self.total_s / self.times


class Worth:
    """Of one program. Thread-safe."""

    def __init__(self) -> None:
        self._visits: defaultdict[str, float] = defaultdict(float)
        """How often runs came to a framework node,"""
        self._later: defaultdict[tuple[str, str], _Mean] = defaultdict(_Mean)
        """how often they went on from there to a call site, and after how many seconds, in the mean of the calls that
        they made there before they came to another node;"""
        self._calls: defaultdict[str, _Mean] = defaultdict(_Mean)
        """and what a call there took."""
        self._reliance = Reliance()
        self._window: deque[tuple[int, float, float, float, float]] = deque()
        """Of the last runs, those that were not followed with the next one that was: how many, seconds and tokens that
        their calls took, and those of early calls in vain;"""
        self._took, self._wasted = Cost(), Cost()
        """all together,"""
        self._at_stake = Cost()
        """and what calls that are under way may yet waste."""
        self._process = os.getpid()
        self._lock = forks.lock()

    # --- what runs ask

    def chance(self, doubt: Doubt) -> float:
        """That the run goes on to this call site, and makes this call there."""
        kept = self._reliance.chance(doubt.asked) if self._reliance.doubts(doubt.asked) else 1.0
        comes = (self._mean(doubt).times + 1) / (self._visits.get(doubt.came, 0.0) + 2) * doubt.share
        return kept if doubt.foretold else min(kept, comes)

    def doubts(self, asked: Asked) -> bool:
        """Whether a call may be in vain that seems certain: others like it were."""
        with self._lock:
            return self._reliance.doubts(asked)

    def was_wrong(self, asked: Asked) -> bool:
        """The same, by runs that nobody else has ended."""
        with self._lock:
            return self._reliance.was_wrong(asked)

    def refuses(self, doubt: Doubt, share: float) -> Reason | None:
        """Why a call in doubt may not go; `share`: the bound of all waste."""
        with self._lock:
            chance, cost, later = self.chance(doubt), self._calls[doubt.site].cost, self._mean(doubt).cost
            saves_s = min(cost.seconds, later.seconds - doubt.since_s) if later.seconds else cost.seconds
            if later.seconds and saves_s <= 0.0:
                return LATE()
            if chance * saves_s <= (1 - chance) * cost.seconds:
                return NOT_WORTH(chance=chance, saves_s=saves_s, cost_s=cost.seconds)
            wasted = self._wasted + self._staked() + cost  # as if it were in vain
            return None if wasted.within(self._took * share) else WASTE(share=share)

    def stake(self, doubt: Doubt) -> Cost:
        """Such a call is issued: what of it may be expected to be in vain. Given back to `settle`."""
        with self._lock:
            staked = self._calls[doubt.site].cost * (1 - self.chance(doubt))
            self._at_stake = self._staked() + staked
            return staked

    def _staked(self) -> Cost:
        """What is under way in a process that was forked is its parent's."""
        if self._process != os.getpid():
            self._process, self._at_stake = os.getpid(), Cost()
        return self._at_stake

    def usual(self) -> Vain:
        """What a call takes in the mean, for caps: its tokens may all be the dearest ones."""
        with self._lock:
            times = sum(mean.times for mean in self._calls.values())
            tokens = sum(mean.total.tokens for mean in self._calls.values()) / max(1, times)
        return Vain(1, tokens, tokens, tokens)

    def _mean(self, doubt: Doubt) -> _Mean:
        return self._later.get((doubt.came, doubt.site)) or _Mean()

    # --- what runs tell

    def settle(self, trace: Trace, counts: Counts, staked: Cost, tried: Tried | None = None, runs: int = 1) -> None:
        """A run has ended. `runs`: with those that nobody followed, which took about as much."""
        ended, runs = [call for call in trace.calls if call.ok], min(runs, WINDOW)
        took = runs * sum(map(_seconds, ended)), runs * sum(map(tokens_of, ended))
        with self._lock:
            self._window.append((runs, *took, counts.wasted_s, counts.wasted_tokens))
            while sum(entry[0] for entry in self._window) - self._window[0][0] >= WINDOW:
                self._window.popleft()
            _, took_s, took_tokens, wasted_s, wasted_tokens = map(sum, zip(*self._window, strict=True))
            self._took, self._wasted = Cost(took_s, took_tokens), Cost(wasted_s, wasted_tokens)
            self._at_stake = self._staked() - staked
            self._reliance.note(tried or Tried(), trace.completed or trace.raised)

    def foresaw(self, made: Iterable[Asked], left_out: Iterable[Asked], tried: Tried) -> None:
        """See `Reliance`."""
        with self._lock:
            self._reliance.foresaw(made, left_out, tried)

    def forget(self) -> None:
        """The program does something new: which way its runs went until now says little."""
        with self._lock:
            less = {node: min(1.0, LITTLE / times) for node, times in self._visits.items()}
            for node, part in less.items():
                self._visits[node] *= part
            for (node, _), later in self._later.items():
                later.weigh(less[node])

    def note(self, trace: Trace) -> None:
        """A run went this way."""
        visits = trace.outermost
        events: list[CallRecord | Visit] = [*trace.calls, *visits]
        events.sort(key=lambda event: -event.start)
        coming: dict[str, _Coming] = {}
        left = 0
        many = (len(visits) + 1) * len({call.site for call in trace.calls}) > MAX_COUNTED
        with self._lock:
            for event in events:
                if isinstance(event, CallRecord):
                    before = coming.get(event.site)
                    if before is None or before.left != left:
                        before = coming[event.site] = _Coming(left)
                    before.add(event.started_s)
                    if event.ok:
                        self._calls[event.site].add(_cost(event))
                elif not many:
                    self._came(event.node, event.started_s, coming)
                    left += 1
            if not many:
                self._came(BEGIN, trace.started_s, coming)

    def _came(self, node: str, at_s: float, coming: dict[str, _Coming]) -> None:
        self._visits[node] += 1
        for site, calls in coming.items():
            self._later[node, site].add(Cost(calls.mean_s - at_s))


def worked(op: str, told: tuple[int, int], *trees: Tree) -> int:
    """The tokens that a call took: as its component told, else by the texts that it was given, and gave so far."""
    if sum(told) or OPS[op].engine not in ("llm", "embedding", "rerank"):
        return sum(told)
    return sum(map(length_of, trees)) // CHARS_PER_TOKEN


def paid(op: str, told: tuple[int, int], given: Tree, got: Tree) -> tuple[int, int]:
    """The tokens that a language model was given and wrote, by the same rule; none of other components."""
    if OPS[op].engine != "llm":
        return 0, 0
    return told if sum(told) else (worked(op, told, given), worked(op, told, got))


def tokens_of(call: CallRecord) -> int:
    """The same of one that the program made."""
    return worked(call.op, call.tokens, call.input, call.output)


def _cost(call: CallRecord) -> Cost:
    """Of one that has ended."""
    return Cost(_seconds(call), tokens_of(call))


def _seconds(call: CallRecord) -> float:
    begun = call.issued_s if call.issued_s is not None else call.started_s
    ended = call.answered_s if call.answered_s is not None else call.ended_s
    return max(0.0, (ended if ended is not None else begun) - begun)
