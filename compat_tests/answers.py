"""What fake models answer: a function of the prompt."""

from __future__ import annotations

import hashlib
import json
import random
import re

WORDS = (
    "amber basin cedar delta ember fjord grove heron island jetty kelp lagoon meadow nectar orchid prairie quartz "
    "river summit tundra valley willow zephyr harbor canyon"
).split()


MARK = re.compile(r"(zq[a-z]\d+)[a-z]", re.IGNORECASE)
"""In all data of generated programs: says whose it is. The group is the request, the letter after it a part of it."""


class ModelError(Exception):
    """What a component raises for a prompt it can't serve."""


def digest(*parts: object) -> int:
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "big")


def follow(prompt: str, *salt: object) -> str:
    """Follows the instruction: lines, numbered list, bullets, commas, JSON, yes/no or free text, as the prompt says."""
    number = digest(prompt, *salt)
    draw = random.Random(number)
    words = draw.sample(WORDS, 6)
    asked = prompt.lower()
    marks = [found.group() for found in MARK.finditer(prompt)]
    if marks and number % 2:  # as models do: the answer speaks of what was asked, and is data of the same request
        words = [f"{words[0]} {marks[-1].lower()}x{number % 1000}", *words[1:]]
    if "fragile" in asked and number % 3 == 0:
        raise ModelError(f"the provider rejects {number % 1000}")
    count = 2 + (number % 16 == 0) + (number % 3 == 0)
    if "yes or no" in asked:
        return "yes" if number % 4 else "no"
    if "numbered" in asked:
        return "\n".join(f"{i + 1}. {words[i]} of the {words[-1]}" for i in range(count))
    if "bullets" in asked:
        return "Here you are:\n" + "\n".join(f"- {words[i]} {words[-1]}" for i in range(count))
    if "commas" in asked:
        return ", ".join(words[:count])
    if "json" in asked:
        return json.dumps({"topic": f"{words[5]} {words[4]}", "items": words[:count]})
    if "lines" in asked:
        return "\n".join(f"{words[i]} and {words[-1]}" for i in range(count))
    return f"{words[0]} {words[1]} near the {words[2]}, {number % 97} {words[3]}."


def sampled(prompt: str, variant: int) -> str:
    """One of the possible answers of the sampled model."""
    return follow(prompt.replace("fragile", ""), variant)
