"""Coroutines around others."""

from __future__ import annotations

import types
import weakref
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


def around(outer: Coroutine[Any, Any, R], inner: Awaitable[Any]) -> Coroutine[Any, Any, R]:
    """The one that awaits the other. A task that is cancelled before it begins closes what it was given, and not what
    would have been awaited there, of which Python would then say that it never was."""
    if isinstance(inner, types.CoroutineType):
        weakref.finalize(outer, inner.close).atexit = False
    return outer
