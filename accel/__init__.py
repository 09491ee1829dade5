"""Accel: the drop-in accelerator for LangGraph and LlamaIndex.

``fast = accelerate(graph)`` gives back the same kind of object, with the same results, sooner.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import accelerate as accelerate
    from .api import settle as settle
    from .api import uninstall as uninstall
    from .commands.benchmark import bench as bench
    from .commands.check import check as check
    from .errors import AccelError as AccelError
    from .parts.components import register as register
    from .parts.functions import pure as pure
    from .run.settings import Budget as Budget

_HOMES = {
    "accelerate": "api",
    "settle": "api",
    "uninstall": "api",
    "register": "parts.components",
    "AccelError": "errors",
    "pure": "parts.functions",
    "Budget": "run.settings",
    "check": "commands.check",
    "bench": "commands.benchmark",
}
__all__ = sorted(_HOMES)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
