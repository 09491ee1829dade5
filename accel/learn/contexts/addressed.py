"""For whom a run was: what its input says beside its questions.

A program may look up somebody's text by any field of its input: a tenant, a user's id, a plan. Text that is nobody's
known (`Known.foreign`) is used in a run only if every such field has a value that it was seen with. A question is
another one in each request and names nobody; what comes back while other fields differ does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ...text.values import Tree, leaves
from ...trace.ambient import Dimensions, digest

FREE = "=text "
"""How the digest of a free text begins, of which each run may have another."""
INPUT = "the input"
LONGEST = 100_000
"""A text of more characters is not taken apart."""
_NAME = re.compile(r"\S*(\s\S+)?")
"""What may name somebody: up to two words. More, or a question, is free text."""


def fields(given: Tree) -> Dimensions:
    """What a run was given, by field: digests. The elements of a list are one value, of which only names count where
    there are any."""
    found: dict[str, list[Tree]] = {}
    for path, leaf in _told_apart(given):
        name = ".".join("*" if isinstance(step, int) else str(step) for step in path)
        found.setdefault(name, []).append(leaf)
    return {f"{INPUT}'s {name}" if name else INPUT: _told(values) for name, values in found.items()}


def _told_apart(given: Tree, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Tree]]:
    """The fields, also those of texts that are objects or lists in JSON."""
    for at, leaf in leaves(given, path):
        held = _held_in(leaf) if isinstance(leaf, str) else None
        if held:
            yield from _told_apart(held, at)
        else:
            yield at, leaf


def _held_in(text: str) -> Tree:
    """The object or list that a text is in JSON; None if it is none."""
    text = text.strip()
    if len(text) > LONGEST or (text[:1], text[-1:]) not in (("{", "}"), ("[", "]")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def is_question(told: Dimensions) -> bool:
    """Whether there is nothing beside one free text."""
    return len(told) == 1 and all(value.startswith(FREE) for value in told.values())


def _told(values: list[Tree]) -> str:
    names = [value for value in values if not _is_free(value)]
    if not names:
        return FREE + digest(tuple(values))
    return digest(names[0] if len(values) == 1 else tuple(sorted({digest(name) for name in names})))


def _is_free(value: Tree) -> bool:
    return isinstance(value, str) and (value.rstrip().endswith("?") or not _NAME.fullmatch(value.strip()))
