"""What a step of a language model's engine costs, from its profile."""

from __future__ import annotations

from ...engine.profile import Profile, at

BATCH_TOKENS, BLOCK_TOKENS, SLOTS = 256, 32, 32
"""Where the profile doesn't say: the settings of `accel_vllm` on a CPU."""


class Costs:
    """The profile as a function: seconds of prompt tokens, and of a step by how many requests decode in it."""

    def __init__(self, profile: Profile) -> None:
        if len(profile.prefill) < 2 or not profile.decode:
            raise ValueError("The limit needs a measured profile of the language model: prefill and decode curves.")
        self.batch_tokens = profile.batch_tokens or BATCH_TOKENS
        self.block_tokens = profile.block_tokens or BLOCK_TOKENS
        self.slots = profile.slots or SLOTS
        self.pass_s = profile.pass_s
        self._prefill = ((0, self.pass_s), *profile.prefill)
        # More requests never take less time; where a measurement says so, the larger batch's is nearer the truth.
        self._decode = tuple((n, min(s for k, s in profile.decode if k >= n)) for n, _ in profile.decode)

    def prompt_s(self, first: int, last: int) -> float:
        """Prompt tokens from position `first` up to `last`, beside whatever else the step does."""
        return at(self._prefill, last) - at(self._prefill, first)

    def decode_s(self, requests: float) -> float:
        """One token of each; in the mean, of so many."""
        return at(self._decode, requests)

    def step_s(self, requests: int, prompt_s: float) -> float:
        return (self.decode_s(requests) if requests else self.pass_s) + prompt_s

    def token_s(self) -> float:
        """Per token in the best batch."""
        return min(self.decode_s(n) / n for n in range(1, self.slots + 1))
