"""What `asgiref.local.Local` keeps (Django's language, database, tenant): in a ContextVar, for one thread alone.

On another thread such data is not there, unless somebody has brought it. asgiref does so where it moves work to a
thread, and so does Accel, for an early call.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from ..text.objects import own

_NAME, _MODULE = "asgiref.local", "asgiref.local"
_NOTHING: dict[str, Any] = {}


def here(var: ContextVar[Any], value: Any) -> Any:
    """What a variable's value shows on this thread."""
    if var.name != _NAME or not _is_homed(value):
        return value
    return value.data if value.thread_id == threading.get_ident() else _NOTHING


def since(var: ContextVar[Any], before: Any, value: Any) -> tuple[Any, Any]:
    """What a variable held before, for the thread that it was for, and what it shows on this one."""
    return (before.data if var.name == _NAME and _is_homed(before) else before), here(var, value)


def bring(context: Mapping[ContextVar[Any], Any], thread: int) -> None:
    """Have this thread see, in the context that it is in, what that thread sees in one."""
    for var, value in context.items():
        if var.name == _NAME and _is_homed(value) and value.thread_id == thread != threading.get_ident():
            var.set(type(value)(threading.get_ident(), value.data))


def is_of_thread(value: Any) -> bool:
    """Whether it is a `Local` that nobody brings to another thread."""
    kept = (own(value) or {}).get("_storage") if type(value).__module__ == _MODULE else None
    return isinstance(kept, threading.local)


def _is_homed(value: Any) -> bool:
    return type(value).__module__ == _MODULE and hasattr(value, "thread_id")
