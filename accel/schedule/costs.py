"""What a step of a language model's engine costs, from its measured profile."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine import Profile

Curve = Sequence[tuple[int, float]]


class Costs:
    """The measured profile as a function: seconds of prompt tokens, and of a step by how many requests decode in it."""

    def __init__(self, profile: Profile, batch_tokens: int, block_tokens: int, slots: int) -> None:
        if len(profile.prefill) < 2 or not profile.decode:
            raise ValueError("The limit needs a measured profile of the language model: prefill and decode curves.")
        self.batch_tokens = batch_tokens
        self.block_tokens = max(1, block_tokens)
        self.slots = slots
        (n, at_n), (m, at_m) = profile.prefill[0], profile.prefill[1]
        self.pass_s = max(0.0, at_n - n * (at_m - at_n) / (m - n))
        """A step that carries next to nothing."""
        self._prefill: Curve = ((0, self.pass_s), *profile.prefill)
        # More requests never take less time; where a measurement says so, the larger batch's is nearer the truth.
        decode = [(n, min(s for k, s in profile.decode if k >= n)) for n, _ in profile.decode]
        self._decode: Curve = decode

    def prompt_s(self, first: int, last: int) -> float:
        """Prompt tokens from position `first` up to `last`, beside whatever else the step does."""
        return _at(self._prefill, last) - _at(self._prefill, first)

    def decode_s(self, requests: int) -> float:
        """One token of each."""
        return _at(self._decode, requests)

    def step_s(self, requests: int, prompt_s: float) -> float:
        return (self.decode_s(requests) if requests else self.pass_s) + prompt_s

    def token_s(self) -> float:
        """Per token in the best batch."""
        return min(self.decode_s(n) / n for n in range(1, self.slots + 1))


def _at(curve: Curve, size: int) -> float:
    """Interpolated; beyond its ends along its last pieces."""
    if len(curve) == 1:
        return curve[0][1]
    right = next((i for i, (n, _) in enumerate(curve) if n >= size), len(curve) - 1)
    right = max(1, right)
    (n, at_n), (m, at_m) = curve[right - 1], curve[right]
    return max(0.0, at_n + (size - n) * (at_m - at_n) / (m - n))
