"""Words of a prompt, and phrases and sentences made of them."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

CONNECTING = (
    "the of and for with in on to from by as that which when because also more than between about into through while "
    "where before after over under without within during against across toward"
).split()

# Words that say nothing about a prompt's subject: the commonest of English, and those that instructions are made of.
_STOP = frozenset(
    CONNECTING
    + (
        "a an are be been being but can could did do does each few had has have how if is it its just like made make "
        "many may might most much must no not nothing only or other our out own said same should so some such their "
        "them then there these they this those too upon very was way were what who whom whose why will would yes you "
        "your i we he she his her my me us at any all both one two three four five six seven eight nine ten first "
        "answer answers answering respond response reply write writes return give given provide list lists line lines "
        "numbered bulleted bullet bullets number numbers json field fields key keys question questions query queries "
        "passage passages document documents context notes note text word words sentence sentences paragraph explain "
        "following below above using use uses please assistant user system helpful helps help score rate choose "
        "exactly per tell different several item items else according based suggest propose find sub"
    ).split()
)
_WORD = re.compile(r"[^\W\d_][\w']{2,24}")
_SUBJECT = re.compile(r"\b(?:question|query|topic|task|request|claim|subject)\s*:\s*([^\n]{1,300})", re.I)
_NO_WORDS = ("result", "detail", "reason", "example", "point", "source", "change", "effect", "method", "value")

_SCANNED = 6000
"""Characters of a prompt that are read for words, from both ends: enough for any answer."""
_DECK = 40


def content_words(text: str) -> list[str]:
    """The words that a text is about, in lower case and order; those of a question put to the reader come first, and
    several times. Never fewer than four."""
    if len(text) > _SCANNED:
        text = f"{text[: _SCANNED // 2]} {text[-_SCANNED // 2 :]}"
    subject = _SUBJECT.search(text)
    words = _words(text)
    few = len(set(words)) < 4
    return (_words(subject.group(1)) * 3 if subject else []) + words + (list(_NO_WORDS) if few else [])


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.lower()) if word not in _STOP]


class Writer:
    """Writes with the words given; what, the dice decide."""

    def __init__(self, dice: random.Random, words: Sequence[str]) -> None:
        self.dice = dice
        self._deck = dice.sample(words, min(_DECK, len(words)))
        self._next = 0
        self._last = ""

    def _word(self) -> str:
        for _ in self._deck:
            word = self._deck[self._next % len(self._deck)]
            self._next += 1
            if word != self._last:
                break
        self._last = word
        return word

    def words(self, count: int) -> list[str]:
        """Content words mixed with connecting ones; begins and ends with the former."""
        written: list[str] = []
        for position in range(count):
            inner = 0 < position < count - 1
            if inner and written[-1] not in CONNECTING and self.dice.random() < 0.6:
                written.append(self.dice.choice(CONNECTING))
            else:
                written.append(self._word())
        return written

    def phrase(self, least: int = 5, most: int = 14) -> str:
        return " ".join(self.words(self.dice.randint(least, most)))

    def sentence(self, words: int = 0) -> str:
        """One sentence of so many words (0: 8 to 16)."""
        written = " ".join(self.words(words or self.dice.randint(8, 16)))
        return written[0].upper() + written[1:] + "."

    def sentences(self, count: int) -> str:
        return " ".join(self.sentence() for _ in range(count))

    def prose(self, words: int) -> str:
        """Sentences of exactly so many words in all."""
        written = []
        while words > 0:
            length = words if words <= 18 else self.dice.randint(8, min(16, words - 5))
            written.append(self.sentence(length))
            words -= length
        return " ".join(written)
