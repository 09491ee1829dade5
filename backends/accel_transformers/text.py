"""From tokens to text while they are decoded: whole characters only, and up to the first stop string."""

from collections.abc import Sequence
from typing import Any

CONTEXT_TOKENS = 6
"""Of the prompt: how a token reads can depend on those before it (a leading space, the bytes of one character)."""
UNFINISHED = "\ufffd"
"""What bytes become that are no character yet."""


class Detokenizer:
    """Decodes a growing answer. The window it decodes anew for each token starts two pieces of text earlier."""

    def __init__(self, tokenizer: Any, prompt: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._ids = list(prompt[-CONTEXT_TOKENS:])
        self._start = 0
        self._told = len(self._ids)

    def add(self, ids: Sequence[int], *, last: bool = False) -> str:
        """The text that has become certain; with `last` all that is left, unfinished characters included."""
        self._ids += ids
        known = self._decode(self._ids[self._start : self._told])
        text = self._decode(self._ids[self._start :])
        if len(text) <= len(known) or (text.endswith(UNFINISHED) and not last):
            return ""
        self._start, self._told = self._told, len(self._ids)
        return text[len(known) :]

    def _decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))


class StopStrings:
    """Ends a text before the first of the stop strings; holds back what may be the beginning of one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""

    def add(self, text: str, *, last: bool = False) -> tuple[str, bool]:
        """What can be told, and whether a stop string was met: then it is the end. With `last` nothing is held back."""
        text = self._held + text
        found = [place for stop in self._stops if (place := text.find(stop)) >= 0]
        if found:
            return text[: min(found)], True
        held = 0 if last else max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held], False


def _overlap(text: str, stop: str) -> int:
    """The length of the longest end of the text that begins the stop string."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)
