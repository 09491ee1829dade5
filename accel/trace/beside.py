"""The values that came in beside a run's input, as far as prompts may hold them: texts and numbers by their names."""

from __future__ import annotations

import contextvars
from collections.abc import Mapping
from typing import Any

from ..text.values import Tree, snapshot
from .ambient import CREDENTIAL, value_of

BESIDE = "beside"
"""What they are called in graphs."""
COORDINATES: set[str] = set()
"""Names by which frameworks find a run's state again: what they say is not what a run is about. Adapters add theirs."""


def told_beside(variables: Mapping[contextvars.ContextVar[Any], Any], beside: Mapping[str, Any]) -> Tree:
    """By kind, as the framework tells; ContextVars by their names. Credentials are none of it, nor are coordinates,
    nor objects, which would be kept alive. None if nothing came in."""
    given = {"ContextVar": {var.name: value_of(seen) for var, seen in variables.items()}, **beside}
    return _data(snapshot({kind: value for kind, value in given.items() if value is not None}))


def _data(tree: Tree) -> Tree:
    if isinstance(tree, dict):
        told = {name: value for name, value in tree.items() if not (name in COORDINATES or CREDENTIAL.search(name))}
        held = {name: _data(value) for name, value in told.items()}
        return {name: value for name, value in held.items() if value is not None} or None
    if isinstance(tree, list):
        held_all = [_data(item) for item in tree]
        return held_all if None not in held_all else None
    return tree if type(tree) in (str, int, float) else None
