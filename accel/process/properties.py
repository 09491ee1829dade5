"""Properties that are worked out once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

T_co = TypeVar("T_co", covariant=True)


class cached_property(functools.cached_property[T_co]):  # noqa: TID251
    """Without the lock that Python 3.11 holds meanwhile, one for all objects of a class: a child that was forked then
    would wait for it for ever, and so would two threads that have a lock of Accel's and wait for each other. It may be
    worked out twice."""

    def __init__(self, func: Callable[[Any], T_co]) -> None:
        super().__init__(func)
        self.lock = nullcontext()
