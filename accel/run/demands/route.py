"""Where the calls of patched leaf methods go: into the run that they are made in, else straight on.

Outside of accelerated runs a call costs one context look-up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...parts.methods import patches
from ...parts.methods.epochs import write
from ...parts.methods.methods import Method
from ..gains.pace import load
from ..scope import scope
from ..waits.gates import early_calls
from . import unscoped
from .demands import demand


def route(method: Method, component: Any, wrapped: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A patched leaf was called."""
    here = scope.get()
    if here is not None:
        return demand(here.run, here, method, component, wrapped, args, kwargs)
    if method.op == "ingestion":
        return write(component, wrapped, args, kwargs)
    if load.runs or early_calls.inside:
        return unscoped.call(method, component, wrapped, args, kwargs)
    return wrapped(*args, **kwargs)


patches.route = route
