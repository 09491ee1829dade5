"""Tools that are made of functions (`@tool`): those that somebody has declared are components, one by one; calls of the
others are not even seen."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool

from accel.parts.components import add_kind, register, said_of

FUNCTION_TOOLS = (StructuredTool, Tool)
CONFIG = "config"
"""What LangChain gives their leaf methods, and these hand on to functions that ask for it."""


for _cls in FUNCTION_TOOLS:
    add_kind(_cls, lambda tool: tool.func or getattr(tool, "coroutine", None) or tool)


def is_of_function(tool: Any) -> bool:
    """Whether its leaf methods are LangChain's, which call a function."""
    return next((cls for cls in type(tool).__mro__ if "_run" in vars(cls)), None) in FUNCTION_TOOLS


def takes(tool: BaseTool) -> bool:
    """Whether its calls are seen: it is declared, and its function gets nothing but what the model said."""
    if not is_of_function(tool):
        return True
    said = said_of(tool)
    if said.readonly is None and (tool.metadata or {}).get("readonly") is True:
        said = said_of(register(tool, readonly=True))
    if not (said.readonly or said.pure):
        return False
    return not any(map(_asks, (getattr(tool, "func", None), getattr(tool, "coroutine", None))))


def _asks(function: Callable[..., Any] | None) -> bool:
    """Whether LangChain gives a function more than its arguments: of the run around it."""
    if function is None:
        return False
    try:
        hints = get_type_hints(function)
    except Exception:  # noqa: BLE001 - whatever the names in it stand for
        return True
    return "callbacks" in inspect.signature(function).parameters or any(
        hint is RunnableConfig or RunnableConfig in getattr(hint, "__args__", ()) for hint in hints.values()
    )
