"""Write epochs of resources: how many writes passed through this process, within runs and outside of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from ...process import forks
from ...process.coroutines import around

_lock = forks.lock()
_epochs: defaultdict[object, int] = defaultdict(int)


def resource_of(component: Any) -> object:
    """What a read reads and a write changes: the store's own name where it has one, else the object."""
    name = getattr(type(component), "accel_resource", None)
    return name(component) if callable(name) else id(component)


def epoch(resource: object) -> int:
    """How many writes to this resource passed through this process, in or outside runs."""
    return _epochs[resource]


def bump(resource: object) -> None:
    with _lock:
        _epochs[resource] += 1


def write(instance: Any, wrapped: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A write of no run still moves the epoch; before and after, so that no read spans it."""
    resource = resource_of(instance)
    bump(resource)
    result = wrapped(*args, **kwargs)
    if hasattr(result, "__await__"):
        return around(_bump_after(resource, result), result)
    bump(resource)
    return result


async def _bump_after(resource: object, result: Any) -> Any:
    try:
        return await result
    finally:
        bump(resource)
