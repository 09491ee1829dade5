"""What a program may choose its words by: fields of what a run is given that some runs share and others don't.

Words that stand in every call of a node are used for the values they were seen with (`contexts`). Those that stand in
some of its calls only (where a value is missing, a text is cut off, an element is of some kind) are shown by these
alone: a tenant whose runs did without them has shown nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..text.values import leaves
from .view import View

Path = tuple[str | int, ...]


def may_be_chosen(shown: Sequence[View], others: Sequence[View], but: Path | None = None) -> bool:
    """Whether words that these runs show, and the others don't, may be those of a user or tenant: if it is one run by
    what its input says, or all of them share a field that is another one in others. `but`: a field that has to differ.
    """
    if len({view.witness for view in shown}) < 2:
        return True
    first, *rest = map(_fields, shown)
    shared = {path: value for path, value in first.items() if all(path in one and one[path] == value for one in rest)}
    beside = [_fields(view) for view in others]
    return any(
        _differs(fields, path, value)
        for path, value in shared.items()
        if but is None or path[1 : len(but) + 1] != but
        for fields in beside
    )


def _differs(fields: dict[Path, object], path: Path, value: object) -> bool:
    """Whether another run has something else there. That its list is shorter tells nothing."""
    return fields[path] != value if path in fields else all(isinstance(step, str) for step in path)


def _fields(view: View) -> dict[Path, object]:
    """What a run was given, and what came in beside it, by path."""
    return {
        (source, *path): value
        for source, given in (("input", view.trace.input), ("beside", view.trace.beside))
        for path, value in leaves(given)
        if isinstance(value, bool | int | float) or (isinstance(value, str) and value)
    }
