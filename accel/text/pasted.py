"""What a tree of templates would send with a call, and what of it can be neither saved nor sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .evaluate import Env, leaf_of, rows_of, talk_of, text_of
from .paths import UNKNOWN, Index
from .templates import Join, Ref, Talk, Template, leaves_in
from .turns import Turn
from .values import Opaque, Tree, leaves


def is_opaque(tree: Tree) -> bool:
    """Whether a tree holds something that can't be saved or sent."""
    if isinstance(tree, Opaque):
        return True
    if isinstance(tree, Talk):
        return is_opaque([tree.start, *([dict(one.turn.said), dict(one.turn.told)] for one in tree.turns)])
    if isinstance(tree, dict):
        return any(map(is_opaque, tree.values()))
    return isinstance(tree, list) and any(map(is_opaque, tree))


def pasted(tree: Tree, binding: Index, position: int, env: Env) -> list[str]:
    """Every value that holes put into the input of an element: what would leave with the call, beside the template."""
    found: list[str] = []
    for leaf in leaves_in(tree):
        if isinstance(leaf, Template):
            holes: tuple[Any, ...] = leaf.holes
            for hole in holes:
                if isinstance(hole, Join):
                    for row in rows_of(hole, binding, position, env):
                        found.extend(text for text in row or () if text is not None)
                elif isinstance(hole, Ref):
                    found.append(str(text_of(Template((hole,)), binding, position, env)))
        elif isinstance(leaf, Talk):
            found += pasted(leaf.start, binding, position, env)
            bare = (replace(taken, turn=Turn(style=taken.turn.style)) for taken in leaf.turns)
            found += _texts(talk_of(Talk([], tuple(bare)), [], env))
        else:
            found += _texts(leaf_of(leaf, binding, position, env))
    return found


def _texts(value: Tree) -> Iterator[str]:
    return (str(v) for _, v in leaves(value) if v is not None and v is not UNKNOWN and not isinstance(v, Opaque))
