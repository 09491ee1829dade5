"""What simulated engines answer, and how long that takes: functions of the prompt."""

from __future__ import annotations

import hashlib
import re

WORDS = "north coast stone early wooden narrow famous bright quiet ancient steep painted river engine garden".split()
VERDICT_S, TEXT_S, LOOKUP_S = (0.02, 0.08), (0.1, 0.3), (0.02, 0.05)
"""The shortest and the longest time of a short answer, of a text, and of an embedding or a tool."""
DIMENSION = 16
"""Of embeddings."""
_LIST = re.compile(r"Write (\d+) ([a-z ]+?), one per line")
_VERDICT = "yes or no"


def fraction(*parts: object) -> float:
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=6).digest(), "big") / 2**48


def vector(text: str) -> list[float]:
    return [fraction(text, place) - 0.5 for place in range(DIMENSION)]


def seconds(text: str, bounds: tuple[float, float]) -> float:
    low, high = bounds
    return low + (high - low) * fraction("seconds", text)


def answer(prompt: str) -> str:
    """A list where one is asked for, a verdict, or a sentence."""
    asked = _LIST.search(prompt)
    if asked is not None:
        return "\n".join(_sentence(f"{prompt} {number}", 6) for number in range(int(asked[1])))
    if _VERDICT in prompt:
        return "yes" if fraction(prompt) < 0.75 else "no"
    return _sentence(prompt, 18)


def answer_s(prompt: str) -> float:
    """How long a model takes for its answer."""
    return seconds(prompt, VERDICT_S if _VERDICT in prompt else TEXT_S)


def _sentence(text: str, length: int) -> str:
    digest = hashlib.blake2b(text.encode(), digest_size=length).digest()
    words = [WORDS[byte % len(WORDS)] for byte in digest]
    return f"{' '.join(words).capitalize()} {digest.hex()[:8]}."
