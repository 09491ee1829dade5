"""Texts for a regular expression, by `rstr`."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

from accel.errors import InvalidRequest, MissingExtra

_ATTEMPTS = 32  # anchors and look-around may come out by chance
_LONGEST = 20_000


class _Dice(random.Random):
    """Dice for `rstr`: characters that read well before others, in an order that no hash seed changes, and few
    repetitions. Raises OverflowError for what gets too long."""

    left = _LONGEST

    def choice(self, seq: Any) -> Any:
        if isinstance(seq[0], str):
            seq = sorted([char for char in seq if char.isalnum() or char == " "] or seq)
        return super().choice(seq)

    def randint(self, a: int, b: int) -> int:
        drawn = super().randint(a, max(a, min(b, a + 12)))
        self.left -= drawn
        if self.left < 0:
            raise OverflowError(f"it asks for more than {_LONGEST} characters")
        return drawn


Match = Callable[[str, str], object]


def matching(pattern: str, dice: random.Random, matches: Match = re.fullmatch) -> str:
    """A text that a regular expression matches, by default wholly. Raises InvalidRequest if none is found."""
    try:
        import rstr
    except ImportError as error:
        raise MissingExtra("A text for a regular expression from a simulated model", "sim", "rstr") from error
    reason = "look-around and anchors may be too much for it"
    for _ in range(_ATTEMPTS):
        try:
            text = rstr.Rstr(_Dice(dice.getrandbits(64)), nonword="-.,:;!?/()").xeger(pattern)
            if matches(pattern, text):
                return str(text)
        except (re.error, OverflowError, RecursionError) as error:
            reason = str(error)
            break
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            continue  # something that rstr can't write
    raise InvalidRequest(f"No text was found for the regular expression {pattern!r}: {reason}.")
