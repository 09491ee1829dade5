"""What stands in the place of a function, or of a method of a class: it is called, copied and pickled as that is."""

from __future__ import annotations

import copy
import sys
from functools import lru_cache
from operator import attrgetter
from typing import Any


@lru_cache(1)
def wrapper() -> Any:
    """The class, by wrapt's signature: made of a function, and of what takes (function, object, args, kwargs)."""
    import wrapt  # takes longer to import than all of Accel's core

    function: Any = wrapt.FunctionWrapper
    bound: Any = wrapt.BoundFunctionWrapper

    class Bound(bound):  # type: ignore[misc]
        """What its object, or class, gives."""

        def __copy__(self) -> Any:
            return self

        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            owner = self._self_instance
            return self if owner is None else getattr(copy.deepcopy(owner, memo), self.__name__)

        def __reduce_ex__(self, protocol: Any) -> Any:
            owner = self._self_owner if self._self_instance is None else self._self_instance
            return getattr, (owner, self.__name__)

    class Wrapper(function):  # type: ignore[misc]
        __bound_function_wrapper__ = Bound

        def __copy__(self) -> Any:
            return self

        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            return self

        def __reduce_ex__(self, protocol: Any) -> Any:
            """Its name; if another function has that, or none, what it wraps."""
            wrapped = self.__wrapped__
            try:
                named = attrgetter(wrapped.__qualname__)(sys.modules[wrapped.__module__])
            except (AttributeError, KeyError):
                named = None
            return wrapped.__qualname__ if named is self else (_itself, (wrapped,))

    return Wrapper


def _itself(function: Any) -> Any:
    return function
