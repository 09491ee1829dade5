"""Threads of plain pools: what a run submits to one is a part of the run.

A `ThreadPoolExecutor` runs a function in a context of its own, so that nobody would know of its calls. Accel's scope
goes along; of the program's own context nothing does.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from functools import partial
from types import BuiltinMethodType
from typing import Any

from ..parts.methods import patches
from ..text.objects import is_a
from ..trace.sites import call_site
from .scope import Scope, Within, scope


def install() -> None:
    patches.wrap(ThreadPoolExecutor, "submit", _submit)


def _submit(wrapped: Callable[..., Any], pool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    here = scope.get()
    if here is None or not args or _has_context(args[0]):
        return wrapped(*args, **kwargs)
    function, *given = args
    return wrapped(partial(_within, here.called_at(call_site() or here.called), function), *given, **kwargs)


def _has_context(function: Any) -> bool:
    """Whether it is run in a context that somebody has copied. A user's object is not asked what it is."""
    inner = function.func if is_a(function, partial) else function
    return is_a(inner, BuiltinMethodType) and is_a(inner.__self__, Context)


def _within(here: Scope, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    with Within(scope, here):
        return function(*args, **kwargs)
