"""What a call does before all else, which its component could do on its own."""

from __future__ import annotations

from dataclasses import dataclass

from ..text.steps import path_text
from ..text.values import Tree


@dataclass(frozen=True, slots=True)
class First:
    """What a call does before all else, in another component: a search embeds its query.

    `op`, `method`: of that inner call. `path`: where in the outer call's input its only argument stands.
    """

    op: str
    method: str
    path: tuple[str | int, ...]

    def __str__(self) -> str:
        return f"{self.op} of {path_text(self.path).removeprefix('.')}"


def leads(tree: Tree, path: tuple[str | int, ...]) -> bool:
    """Whether a tree has something at the end of a path."""
    for step in path:
        if isinstance(step, int) and isinstance(tree, list) and step < len(tree):
            tree = tree[step]
        elif isinstance(tree, dict) and step in tree:
            tree = tree[step]
        else:
            return False
    return True
