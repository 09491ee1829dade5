"""Functions that a user declares pure: components like any other.

A declared function may run early when its arguments are predicted, and equal calls inside a run share one result, as
copies. Its callers see an ordinary function.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import ConfigurationError, kind_of, knows_its_options
from ..text.values import snapshot
from . import patches
from .components import Facts, vouch
from .methods import METHODS, Method, build_call, read_call

F = TypeVar("F", bound=Callable[..., Any])


CALL = Method(
    "__call__", "function", "tool", "sync", read_call, build_call, snapshot, copy=copy.deepcopy, by_object=True
)  # fmt: skip
COROUTINE = Method(
    "__call__", "coroutine", "tool", "async", read_call, build_call, snapshot, copy=copy.deepcopy, by_object=True
)  # fmt: skip
METHODS.update({(method.family, method.name): method for method in (CALL, COROUTINE)})


@knows_its_options
def pure(function: F, *, concurrency: int = 1, local: bool = True) -> F:
    """Declare that `function` only computes its result from its arguments: it may run early, or once for equal calls.
    Gives the function to call from now on; the one that was given stays as it was.

    `concurrency`: how many early calls may run at a time, on threads of Accel (default: 1). `local=False`: it sends its
    arguments to a remote service (default: it does not). Raises ConfigurationError for generators and for what isn't a
    function.
    """
    if not callable(function) or isinstance(function, type):
        raise ConfigurationError(
            f"accel.pure takes a function, not {kind_of(function)}.", "Declare the function itself."
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigurationError(f"{function.__qualname__} yields; a pure function returns.", "Return a list instead.")
    if not isinstance(concurrency, int) or isinstance(concurrency, bool) or concurrency < 1:
        raise ConfigurationError(
            f"accel.pure(concurrency={concurrency!r}) is not a number of calls.",
            "Give the number of early calls that may run at a time, at least 1.",
        )
    import wrapt  # see `patches.install`

    method = COROUTINE if inspect.iscoroutinefunction(function) else CALL
    vouch(function, Facts(pure=True, concurrency=concurrency, local=local, reason="declared with accel.pure"))

    def call(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if instance is not None:  # a bound method: its object isn't among the arguments
            return wrapped(*args, **kwargs)
        return patches.reach(method, wrapped, wrapped, args, kwargs)

    return wrapt.FunctionWrapper(function, call)  # type: ignore[return-value]
