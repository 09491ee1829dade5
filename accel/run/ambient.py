"""The ambient context of a call: ContextVars the user set, and configuration values components may read.

An early call runs in a copy of the run's entry context and retires only where the program sees the same (invariant 3).
"""

from __future__ import annotations

import contextvars
from collections.abc import Hashable, Mapping
from hashlib import sha256
from typing import Any

from ..values import Opaque

FRAMEWORK_VARS: set[str | contextvars.ContextVar[Any]] = {
    "accel_scope",
    "accel_around",
    "accel_priority",
    "accel_cancel_token",
    "decimal_context",
    "current_async_library_cvar",
}
"""ContextVars that frameworks set for themselves, or their names; adapters add theirs."""

Ambient = tuple[dict[contextvars.ContextVar[Any], Any], Hashable]


def user_vars(context: Mapping[contextvars.ContextVar[Any], Any]) -> dict[contextvars.ContextVar[Any], Any]:
    return {var: value for var, value in context.items() if FRAMEWORK_VARS.isdisjoint((var, var.name))}


def unchanged(issued: Ambient, demanded: Ambient) -> bool:
    """Whether nothing a component could read differs. Mutable values count by identity."""
    (left, config), (right, other) = issued, demanded
    if config != other or left.keys() != right.keys():
        return False
    return all(_alike(left[var], right[var]) for var in left)


def fingerprint(ambient: Ambient) -> str:
    """Equal for contexts that say the same; tells nothing of what that is. A variable that is None says nothing."""
    variables, config = ambient
    told = sorted((var.name, _shown(value)) for var, value in variables.items() if value is not None)
    return sha256(repr((told, _shown(config))).encode()).hexdigest()


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"
    if isinstance(value, Opaque):
        return _shown(value.obj)
    plain = value is None or isinstance(value, str | int | float | bool | bytes)
    return repr(value) if plain else f"{type(value).__qualname__} {id(value)}"


def _alike(left: Any, right: Any) -> bool:
    if left is right:
        return True
    return type(left) is type(right) and isinstance(left, str | int | float | bool | bytes) and bool(left == right)
