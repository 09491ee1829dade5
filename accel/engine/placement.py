"""Which worker serves which operators of a batch, and in which order: Halo's beam search (section 3), over the cost
model that the measured profile gives.

All inputs of a batch go through an operator before a worker turns to its next one: to change models and caches in
between costs more than it gains. An operator goes to one worker, or its inputs are shared out among several. It begins
when those are free and the operators before it have ended; it takes what its prompts take to prefill, without what they
find in the cache of the operator before, and its answers to decode, in batches as large as its inputs allow; and before
that a switch, where the worker holds another model.

A partial placement costs what its busiest worker takes, and no less than all workers would with the rest shared out
evenly. Workers are few: any of them may serve an operator together. Synchronous, without a clock.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from .profile import Profile, at

WIDTH = 24
"""Partial placements that are kept at each step."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One call of every input. Tokens are of one of them, in the mean."""

    name: str
    model: str
    calls: int
    prompt_tokens: int
    answer_tokens: int
    after: tuple[str, ...] = ()
    shares: str = ""
    """An operator that its prompts begin like,"""
    shared_tokens: int = 0
    """and with how many tokens: they are in the cache of a worker that has just served that one."""

    def seconds(self, profile: Profile, workers: int = 1, cached: bool = False) -> float:
        """On each of so many workers that share its calls out among themselves."""
        calls = -(-self.calls // workers)
        at_once = max(1, min(calls, profile.slots or calls))
        prompt_s = profile.prefill_s(self.shared_tokens if cached else 0, self.prompt_tokens)
        return calls * (prompt_s + self.answer_tokens * at(profile.decode, at_once) / at_once)


@dataclass(frozen=True, slots=True)
class Placement:
    lines: tuple[tuple[str, ...], ...]
    """By worker, the operators that it serves, in their order."""
    seconds: float
    """Until the last one is served."""


@dataclass(frozen=True, slots=True)
class _Worker:
    free_s: float = 0.0
    model: str = ""
    line: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Partial:
    workers: tuple[_Worker, ...]
    ended_s: dict[str, float]

    @property
    def seconds(self) -> float:
        return max(worker.free_s for worker in self.workers)


def place(
    operators: Sequence[Operator], profile: Profile, workers: int, switch_s: float = 0.0, width: int = WIDTH
) -> Placement:
    """The best placement that was found. profile: of all models, on any worker. switch_s: until a worker holds another
    model than before; the first one is there. Raises ValueError for operators that wait for each other."""
    least_s = {operator.name: operator.seconds(profile, cached=True) for operator in operators}
    beam = [_Partial((_Worker(),) * workers, {})]
    for _ in operators:
        found: dict[Hashable, tuple[float, float, _Partial]] = {}
        for partial in beam:
            for after in _steps(partial, operators, profile, switch_s):
                # Which of equal workers is which makes no difference.
                workers_alike = sorted(after.workers, key=lambda worker: (worker.free_s, worker.line))
                key = (*workers_alike, *sorted(after.ended_s.items()))
                rest_s = sum(seconds for name, seconds in least_s.items() if name not in after.ended_s)
                busy_s = sum(worker.free_s for worker in after.workers)
                found[key] = (max(after.seconds, (busy_s + rest_s) / workers), busy_s, after)
        if not found:
            raise ValueError("operators wait for each other")
        best = sorted(found.values(), key=lambda one: one[:2])
        beam = [after for _, _, after in best[:width]]
    best_of = min(beam, key=lambda partial: partial.seconds)
    return Placement(tuple(worker.line for worker in best_of.workers), best_of.seconds)


def _steps(partial: _Partial, operators: Sequence[Operator], profile: Profile, switch_s: float) -> Iterable[_Partial]:
    """One operator more, on any workers."""
    count = len(partial.workers)
    for operator in operators:
        if operator.name in partial.ended_s or any(name not in partial.ended_s for name in operator.after):
            continue
        ready_s = max((partial.ended_s[name] for name in operator.after), default=0.0)
        for size in range(1, min(count, max(1, operator.calls)) + 1):
            for chosen in itertools.combinations(range(count), size):
                workers = list(partial.workers)
                for index in chosen:
                    workers[index] = _serve(workers[index], operator, profile, size, ready_s, switch_s)
                end_s = max(workers[index].free_s for index in chosen)
                yield _Partial(tuple(workers), {**partial.ended_s, operator.name: end_s})


def _serve(
    worker: _Worker, operator: Operator, profile: Profile, size: int, ready_s: float, switch_s: float
) -> _Worker:
    switches = worker.model not in ("", operator.model)
    # The models' switch needs no inputs; it goes on while those are made.
    begin_s = max(ready_s, worker.free_s + switch_s * switches)
    cached = bool(operator.shares) and worker.line[-1:] == (operator.shares,)
    seconds = operator.seconds(profile, size, cached)
    return replace(worker, free_s=begin_s + seconds, model=operator.model, line=(*worker.line, operator.name))
