"""Which runs prove something for each other: those that are about something else.

What is equal in two runs with different inputs is part of the program, and not of anybody's data (invariant 10). A
number or an id doesn't make an input a different one: somebody may ask the same thing twice.
"""

from __future__ import annotations

from collections.abc import Hashable

from ..text.values import Tree, freeze, leaves


def witness(value: Tree) -> Hashable:
    """Equal for inputs that prove nothing for each other."""
    told = [(place, text) for place, text in leaves(value) if isinstance(text, str) and not _is_id(text)]
    return tuple(told) if told else freeze(value)


def _is_id(text: str) -> bool:
    """Whether every word has a digit in it, as in ids and dates; an empty text tells nothing, either."""
    return all(any(map(str.isdigit, word)) for word in text.split())
