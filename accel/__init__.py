"""Accel: the drop-in accelerator for LangGraph and LlamaIndex.

``fast = accelerate(graph)`` gives back the same kind of object, with the same results, sooner.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .api import accelerate as accelerate
    from .api import settle as settle
    from .api import uninstall as uninstall
    from .commands.benchmark import bench as bench
    from .commands.check import check as check
    from .errors import AccelError as AccelError
    from .errors import AccelWarning as AccelWarning
    from .errors import ConfigurationError as ConfigurationError
    from .insight import Accelerated as Accelerated
    from .insight import abatch as abatch
    from .insight import awarmup as awarmup
    from .insight import batch as batch
    from .insight import explain as explain
    from .insight import load_plan as load_plan
    from .insight import report as report
    from .insight import save_plan as save_plan
    from .insight import timeline as timeline
    from .insight import warmup as warmup
    from .parts.components import register as register
    from .parts.functions import pure as pure
    from .reports.report import Report as Report
    from .run.deadline import deadline as deadline
    from .run.plans.plan import Plan as Plan
    from .run.settings import Budget as Budget
    from .run.settings import Cap as Cap
    from .run.switch import mode as mode
    from .run.switch import set_mode as set_mode

_HOMES = {
    "api": ("accelerate", "settle", "uninstall"),
    "commands.benchmark": ("bench",),
    "commands.check": ("check",),
    "errors": ("AccelError", "AccelWarning", "ConfigurationError"),
    "insight": (
        "Accelerated",
        "abatch",
        "awarmup",
        "batch",
        "explain",
        "load_plan",
        "report",
        "save_plan",
        "timeline",
        "warmup",
    ),
    "parts.components": ("register",),
    "parts.functions": ("pure",),
    "reports.report": ("Report",),
    "run.deadline": ("deadline",),
    "run.plans.plan": ("Plan",),
    "run.settings": ("Budget", "Cap"),
    "run.switch": ("mode", "set_mode"),
}
"""By module, what is public of it: imported when it is first asked for."""
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME_OF)
__version__ = "0.1.0"

if not TYPE_CHECKING:  # a checker must not take every name for one of ours

    def __getattr__(name: str) -> object:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
