"""What others get of a call's result: a copy, as the program may change what it got; or nothing, of a result that no
copy can stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...text.copies import Rows, shares
from .call import Call


def copied(call: Call, result: Any, given: Sequence[Any], unfit: Callable[[Call, str, str], None]) -> Any:
    """For others, where results of its kind are shared. Nothing comes to them of one that is its maker's alone: the
    call is `unfit` to be early, for a reason and with a remedy."""
    copy = call.method.copy
    if copy is None or result is None:
        return result
    why, remedy = "its results are objects that no copy can stand for", "give back data, if its calls are to be early"
    try:
        if call.method.fresh or not shares(result, given):
            return (Rows.of(result) if call.method.op == "embedding" else None) or copy(result)
        why, remedy = "it hands back objects it was given", "give back new ones, if its calls are to be early"
    except Exception:  # noqa: BLE001, S110  # code of the program's says what it holds, and how it is copied
        pass
    unfit(call, why, remedy)
    call.outcome.drop()
    return None
