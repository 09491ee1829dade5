"""Functions that a user declares pure: components like any other.

A declared function may run early when its arguments are predicted, and equal calls inside a run share one result, as
copies. Its callers see an ordinary function.
"""

from __future__ import annotations

import inspect
import types
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, overload

from ..errors import AccelWarning, ConfigurationError, knows_its_options
from ..text.copies import copy_data
from ..text.values import snapshot
from .components import Facts, register, vouch
from .declarable import check_function, forms
from .methods import patches
from .methods.methods import METHODS, Kind, Method, build_call, read_call
from .methods.wrappers import wrapper

F = TypeVar("F", bound=Callable[..., Any])


def _method_of(family: str, kind: Kind) -> Method:
    return Method(
        "__call__", family, "tool", kind, read_call, build_call, snapshot, copy=copy_data, fresh=False, by_object=True
    )


CALL, COROUTINE = _method_of("function", "sync"), _method_of("coroutine", "async")
METHODS.update({(method.family, method.name): method for method in (CALL, COROUTINE)})


AT_A_TIME = 8
"""Early calls of a coroutine function, on the run's own loop, where none is in another one's way."""
_NONE_YET: Any = object()
"""The function of a decorator that is only given options so far."""


@overload
def pure(function: F, *, concurrency: int | None = None, local: bool = True) -> F: ...


@overload
def pure(*, concurrency: int | None = None, local: bool = True) -> Callable[[F], F]: ...


@knows_its_options
def pure(function: Any = _NONE_YET, *, concurrency: int | None = None, local: bool = True) -> Any:
    """Declare that `function` only computes its result from its arguments: it may run early, or once for equal calls.
    Gives the function to call from now on; the one that was given stays as it was. Also as a decorator, with options or
    without.

    An object that can be called is a function, too. A method, of an object or in the body of its class, is declared as
    by `register(..., methods=[...], pure=True)`: it may run early, of its own object.

    Results that aren't data, and those that hold an argument, are what the program's own call gave, each time.

    `concurrency`: how many early calls may run at a time (default: 1, on a thread of Accel; of coroutines
    8, on the run's loop). `local=False`: it sends its arguments to a remote service (default: it does not).
    Raises ConfigurationError for generators and for what isn't a function, such as a framework's tool: its function is
    declared.
    """
    if function is _NONE_YET:
        return lambda given: pure(given, concurrency=concurrency, local=local)
    check_function(function)
    if concurrency is not None and (
        not isinstance(concurrency, int) or isinstance(concurrency, bool) or concurrency < 1
    ):
        raise ConfigurationError(
            f"accel.pure(concurrency={concurrency!r}) is not a number of calls.",
            "Give the number of early calls that may run at a time, at least 1.",
        )
    asynchronous = any(map(inspect.iscoroutinefunction, forms(function)))
    if concurrency is None and asynchronous:
        concurrency = AT_A_TIME
    if isinstance(function, types.MethodType):
        return _method(function, concurrency, local)
    owner = getattr(function, "__self__", None)
    if isinstance(function, types.BuiltinFunctionType) and not isinstance(owner, types.ModuleType | None):
        raise ConfigurationError(
            f"accel.pure can't declare {function.__name__!r} of a {type(owner).__name__}: nothing sees its calls.",
            "Declare a function of your own that calls it.",
        )
    method = COROUTINE if asynchronous else CALL
    vouch(function, Facts(pure=True, concurrency=concurrency, local=local, reason="declared with accel.pure"))

    def call(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if instance is not None:  # a bound method: its object isn't among the arguments
            _warn(wrapped.__name__, type(instance).__name__)
            return wrapped(*args, **kwargs)
        return patches.reach(method, wrapped, wrapped, args, kwargs)

    return _declared()(function, call, concurrency, local)


def _method(function: Any, concurrency: int | None, local: bool) -> Any:
    """A method of one object."""
    owner, name = function.__self__, function.__name__
    if isinstance(owner, type):
        raise ConfigurationError(
            f"{owner.__name__}.{name} is a method of a class, which accel.pure can't declare.",
            "Declare a function of your own that calls it.",
        )
    _register(owner, name, concurrency, local)
    return getattr(owner, name)


def _register(owner: Any, name: str, concurrency: int | None, local: bool) -> None:
    """A method of an object, or of all objects of a class."""
    register(owner, methods=[name], pure=True, concurrency=concurrency or 1, local=local)


@lru_cache(1_024)
def _warn(name: str, cls: str) -> None:
    """Once for each: it was put into the class after that was made."""
    remedy = f"accel.register({cls}, methods=[{name!r}], pure=True) does."
    what = f"accel.pure lets no call of the method {cls}.{name} go."
    warnings.warn(AccelWarning(what, remedy), stacklevel=3)


@lru_cache(1)
def _declared() -> Any:
    """The class of declared functions."""
    base: Any = wrapper()

    class Declared(base):  # type: ignore[misc]
        def __init__(self, function: Any, call: Any, concurrency: int | None, local: bool) -> None:
            super().__init__(function, call)
            self._self_concurrency, self._self_local = concurrency, local

        def __set_name__(self, owner: type, name: str) -> None:
            """It stands in the body of a class: a method of its objects."""
            setattr(owner, name, self.__wrapped__)
            _register(owner, name, self._self_concurrency, self._self_local)

    return Declared
