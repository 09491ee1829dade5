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
        _inner[weakref.ref(outer, _close)] = inner
    return outer


_inner: dict[weakref.ref[Any], types.CoroutineType[Any, Any, Any]] = {}
"""By the one around it, which still is. No `finalize`: most calls of a program pass here."""


def _close(gone: weakref.ref[Any]) -> None:
    _inner.pop(gone).close()
