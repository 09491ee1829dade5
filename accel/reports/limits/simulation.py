"""A list schedule of a run's events on engines with the capacities of their profiles.

Time moves from one end of an engine's work to the next: a step of the language model, a batch of an embedding or
reranking engine. Whatever follows from what is over by then is worked out in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ...trace.flow import WHOLE
from ...trace.order import Event
from ...trace.record import CallRecord
from .workload import Workload

Rank = Callable[[int], float]
"""Which event goes first: lower."""


@dataclass(frozen=True, slots=True)
class Placed:
    """When the schedule runs a call, in seconds from the start of the run."""

    call: CallRecord
    start_s: float
    end_s: float
    sooner_s: float
    """How long before the program makes the call its input is complete."""


class _Request:
    """A call of the language model."""

    __slots__ = ("done", "first_s", "output", "produced", "prompt")

    def __init__(self, prompt: int, output: int) -> None:
        self.prompt, self.output = prompt, output
        self.done = 0
        """Prompt tokens in the KV cache."""
        self.produced = 0
        self.first_s = math.inf


class Simulation:
    """One schedule. `rank`: which call goes first where several wait. `eager`: known beginnings of prompts are
    prefilled when nothing complete is waiting. `in_order`: nothing starts before its demand."""

    def __init__(self, load: Workload, rank: Rank, eager: bool, in_order: bool = False) -> None:
        self.load, self.events, self.costs = load, load.events, load.costs
        self.eager, self.in_order = eager, in_order
        self.now = 0.0
        count = len(self.events)
        self.ready: list[float | None] = [None] * count
        self.over: list[float | None] = [None] * count
        self.seen: list[float | None] = [None] * count
        self.asked: list[float | None] = [None] * count
        self._open = list(range(count))
        self.requests: dict[int, _Request] = {}
        for number in load.texts:
            call = self.events[number].call
            assert call is not None
            self.requests[number] = _Request(max(1, call.tokens[0]), call.tokens[1])
        self._prompts = sorted(self.requests, key=rank)
        self._decoding: list[int] = []
        self._step: tuple[float, list[int]] | None = None
        """The end of the language model's step that is under way, and who gets a token then."""
        self._batched = sorted(load.batched, key=rank)
        self._busy: dict[str, float] = {}
        """By primitive, until when its engine serves a batch."""
        self._left_s: dict[int, float] = {}
        """Of calls that are served in batches, what their texts still take."""
        self.batch_starts: dict[int, float] = {}

    def run(self) -> tuple[float, list[Placed]]:
        """Makespan and schedule."""
        while True:
            self._follow()
            if self.seen[-1] is not None:
                return self.seen[-1], list(self._placed())
            self._start_step()
            self._start_batches()
            self.now = self._next_moment()
            if self._step is not None and self._step[0] <= self.now:
                self._end_step(self._step[1])

    def _placed(self) -> list[Placed]:
        placed = []
        for number, event in enumerate(self.events):
            start, end, asked = self.ready[number], self.over[number], self.asked[number]
            if event.call is not None and start is not None and end is not None and asked is not None:
                request = self.requests.get(number)
                begun = request.first_s if request else self.batch_starts.get(number, start)
                placed.append(Placed(event.call, max(start, begun), end, asked - start))
        return placed

    def _next_moment(self) -> float:
        coming = [self._step[0]] if self._step is not None else []
        coming += [until for until in self._busy.values() if until > self.now]
        for number in (*self._prompts, *self._batched):
            at = self.ready[number]
            if at is not None and at > self.now and self.over[number] is None:
                coming.append(at)
        return min(coming)

    # --- what follows

    def _follow(self) -> None:
        """Everything that follows from what is over by now."""
        left = []
        for number in self._open:
            event = self.events[number]
            if self.asked[number] is None:
                before = [self.seen[n] for n in event.after]
                if None not in before:
                    self.asked[number] = max((at for at in before if at is not None), default=0.0) + event.think_s
            if self.ready[number] is None:
                self.ready[number] = self._ready(number, event)
            ready, asked = self.ready[number], self.asked[number]
            is_delay = number not in self.requests and number not in self.load.batched
            if ready is not None and self.over[number] is None and is_delay:
                self.over[number] = ready + self.load.delay_s(event)
            over = self.over[number]
            if over is not None and asked is not None:
                self.seen[number] = max(over, asked)
            else:
                left.append(number)
        self._open = left

    def _ready(self, number: int, event: Event) -> float | None:
        asked = self.asked[number]
        if event.call is None or event.needs is None or self.in_order:
            return asked
        complete = 0.0
        for source, share in event.needs.items():
            at = self._known(source, share)
            if at is None:
                return asked
            complete = max(complete, at)
        return complete if asked is None else min(complete, asked)

    def _known(self, number: int, share: float) -> float | None:
        request = self.requests.get(number)
        if share < WHOLE and request is not None and request.produced >= math.ceil(share * request.output):
            return self.now
        return self.over[number] if self.events[number].call is not None else self.seen[number]

    # --- the language model

    def _start_step(self) -> None:
        if self._step is not None:
            return
        left = self.costs.batch_tokens - len(self._decoding)
        running = sum(1 for r in self.requests.values() if r.first_s < math.inf and r.produced < r.output)
        prompt_s = 0.0
        complete: list[int] = []
        for early in (False, True) if self.eager else (False,):
            for number in self._prompts:
                request = self.requests[number]
                if left <= 0:
                    break
                if request.done >= request.prompt:
                    continue
                ready = self.ready[number]
                is_ready = ready is not None and ready <= self.now
                if is_ready == early:
                    continue
                if is_ready and request.first_s == math.inf:
                    if running >= self.costs.slots:
                        continue
                    running += 1
                    request.first_s = self.now
                request.done = max(request.done, self._in_cache(number))
                chunk = min(left, (request.prompt if is_ready else self._known_tokens(number)) - request.done)
                if chunk <= 0:
                    continue
                prompt_s += self.costs.prompt_s(request.done, request.done + chunk)
                request.done += chunk
                left -= chunk
                if request.done >= request.prompt:
                    complete.append(number)
        if self._decoding or prompt_s or complete:
            self._step = (
                self.now + self.costs.step_s(len(self._decoding), prompt_s),
                [*self._decoding, *complete],
            )

    def _end_step(self, served: list[int]) -> None:
        self._step = None
        for number in served:
            request = self.requests[number]
            request.produced += 1
            if request.produced >= request.output:
                self.over[number] = self.now
        self._decoding = [number for number in served if self.over[number] is None]

    def _in_cache(self, number: int) -> int:
        return max(
            (min(self.load.cached(number, n), r.done) for n, r in self.requests.items() if n != number and r.done),
            default=0,
        )

    def _known_tokens(self, number: int) -> int:
        """Of a prompt whose end is not known yet, in whole blocks."""
        event, request = self.events[number], self.requests[number]
        if not event.needs:
            return 0
        known = {source: self._known(source, share) for source, share in event.needs.items()}
        missing = [source for source, at in known.items() if at is None or at > self.now]
        share = min((event.prefix.get(source, 0.0) for source in missing), default=0.0)
        return int(share * request.prompt) // self.costs.block_tokens * self.costs.block_tokens

    # --- engines that serve batches

    def _start_batches(self) -> None:
        """A batch is filled up with parts of calls: their texts are items of their own."""
        for op, profile in self.load.batch_profiles.items():
            if self._busy.get(op, 0.0) > self.now:
                continue
            pass_s = profile.batch_s(0, 0)
            room_s = profile.batch_s(1, profile.batch_tokens) - pass_s if profile.batch_tokens else 0.0
            taken_s = 0.0
            done: list[int] = []
            for number in self._batched:
                ready, call = self.ready[number], self.events[number].call
                if call is None or call.op != op or ready is None or ready > self.now or self.over[number] is not None:
                    continue
                if taken_s and taken_s >= room_s:
                    break
                left_s = self._left_s.setdefault(number, self.load.batch_work_s(number, pass_s, room_s))
                part_s = min(left_s, room_s - taken_s) if room_s else left_s
                self._left_s[number] = left_s - part_s
                self.batch_starts.setdefault(number, self.now)
                taken_s += part_s
                if self._left_s[number] <= 1e-12:
                    done.append(number)
            if taken_s or done:
                self._busy[op] = self.now + pass_s + taken_s
                for number in done:
                    self.over[number] = self._busy[op]
