"""One request inside the batching loop: what it asks, and how its next token is chosen. Free of torch and transformers.

The loop's own thread calls `next_draw` and `next_mask`; the rest is read anywhere.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from random import Random
from typing import Any

from accel.engine import Priority, Sampling
from accel.errors import RequestError
from accel.process import clock


class Request:
    """Travels with the loop's own record of the request, which may be copied: this is never."""

    def __init__(self, prompt_tokens: int, sampling: Sampling, priority: Priority, matcher: Any = None) -> None:
        self.id = uuid.uuid4().hex
        self.prompt_tokens = prompt_tokens
        self.temperature = sampling.temperature
        self.nucleus = sampling.top_p if sampling.top_p < 1 else 2.0  # so that rounding never cuts off the tail
        self.priority = priority
        self.arrived_s = clock.now_s()
        self.constrained = matcher is not None
        self.cached_tokens = 0
        self.error: RequestError | None = None
        """Why it must end; the loop itself goes on with it until it is cancelled."""
        self._matcher = matcher
        self._accepted = 0
        self._dice = Random(sampling.seed)
        self._draws: list[float] = []

    def __deepcopy__(self, memo: object) -> Request:
        return self

    @property
    def sampled(self) -> bool:
        return self.temperature > 0

    def next_draw(self, produced: int) -> float:
        """The random number in [0, 1) for the token after so many: always the same one for the same place."""
        while len(self._draws) <= produced:
            self._draws.append(self._dice.random())
        return self._draws[produced]

    def next_mask(self, tokens: Sequence[int], bitmask: Any, row: int) -> None:
        """Mark in the row which tokens may follow `tokens`, all that the answer has so far.

        A failure must not reach the loop, which would end with all its requests; it is kept as this request's `error`.
        """
        if self.error is not None:
            return
        try:
            for token in tokens[self._accepted :]:
                if not self._matcher.accept_token(token):
                    raise RuntimeError(f"token {token} breaks the constraint")
            self._accepted = len(tokens)
            if not self._matcher.fill_next_token_bitmask(bitmask, row):
                bitmask[row].fill_(-1)  # anything may follow
        except RuntimeError as error:
            self.error = RequestError(f"The constraint could not be applied: {error}")
