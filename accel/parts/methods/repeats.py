"""Which calls give the same whenever they are made, as somebody vouches: those that the runs of a batch may share."""

from __future__ import annotations

from typing import Any

from ...text.values import Tree
from ..listed.facts import Facts
from .methods import Method


def repeats(component: Any, method: Method, tree: Tree, facts: Facts) -> bool:
    """Whether a call with this input may be made once for several runs. A sample never is; what a search finds, as
    long as nobody writes (`epochs`)."""
    if not facts.pure or method.hands_on is None or method.kind in ("stream", "astream"):
        return False
    if facts.deterministic is not None:
        return facts.deterministic
    if method.op == "searching":
        return bool(facts.readonly or facts.owned)
    if method.copy is not None:
        return True  # shared inside a run, too
    asked = getattr(type(component), "accel_repeats", None)
    return asked is not None and bool(asked(component, tree))
