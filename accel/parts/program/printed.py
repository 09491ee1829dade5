"""Entries of a program's dicts as it writes them into its prompts: a number, a list with commas, a whole entry as JSON.

f"{USERS[name]['age']}", ", ".join(USERS[name]["langs"]), json.dumps(USERS[name], indent=2)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...text.dumps import Dump, is_plain
from ...text.objects import is_small
from ...text.values import Tree, leaves, snapshot
from ...trace.ambient import CREDENTIAL

MAX_LEAVES = 32
"""Of a list or dict: nobody prints more of one entry."""
MOST_LOOKED_AT = 4 * MAX_LEAVES
"""Lists and dicts around them included."""


def in_print(values: Sequence[Any]) -> Iterator[list[str]]:
    """In each way in which all of these can be printed, what that gives. None for what holds the key of an account."""
    if not all(is_small(value, MOST_LOOKED_AT, _held) for value in values):
        return
    try:
        trees = [snapshot(value, exact=True) for value in values]
    except RuntimeError:
        return  # another thread is changing one of them
    for write in _WAYS:
        texts = [text for tree in trees if (text := _written(write, tree)) is not None]
        if len(texts) == len(trees):
            yield texts


def _held(value: Any) -> Sequence[Any]:
    """What a list or dict holds."""
    return [*value.values()] if type(value) is dict else value if type(value) in (list, tuple) else ()


def _written(write: Callable[[Tree], str | None], tree: Tree) -> str | None:
    try:
        return write(tree)
    except ValueError:
        return None  # an int of more digits than Python prints


def _number(tree: Tree) -> str | None:
    return str(tree) if type(tree) in (int, float) else None


def _joined(between: str) -> Callable[[Tree], str | None]:
    def write(tree: Tree) -> str | None:
        texts = isinstance(tree, list) and 0 < len(tree) <= MAX_LEAVES and all(type(part) is str for part in tree)
        return between.join(tree) if texts else None

    return write


def _dumped(style: Dump) -> Callable[[Tree], str | None]:
    def write(tree: Tree) -> str | None:
        held = leaves(tree) if isinstance(tree, list | dict) and is_plain(tree) else []
        names = (step for path, _ in held for step in path if isinstance(step, str))
        return style.shown(tree) if 0 < len(held) <= MAX_LEAVES and not any(map(CREDENTIAL.search, names)) else None

    return write


_WAYS = (
    _number,
    *map(_joined, (", ", "\n", "\n- ")),
    *map(_dumped, (Dump("str"), Dump("json"), Dump("json", indent=2))),
)
