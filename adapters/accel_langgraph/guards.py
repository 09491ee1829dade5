"""Callback handlers that may stop a call before it is made: LangChain asks them when it begins, which an early call
does not wait for. They say so by `raise_error`; LangChain only logs what others raise."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import BaseCallbackHandler

from accel.graph.rules import GUARDED, Reason

_STARTS = (
    "on_chat_model_start", "on_llm_start", "on_retriever_start", "on_tool_start", "on_chain_start",
)  # fmt: skip
_THEIRS = frozenset(("accel", "accel_langgraph", "langchain_core", "langgraph", "langsmith"))
"""Packages whose handlers record, and stop nothing."""


def guard_of(callbacks: Any) -> Reason | None:
    """Who may stop a call; None if nobody may. `callbacks`: a list of handlers, or a manager of them."""
    handlers = callbacks.handlers if hasattr(callbacks, "handlers") else callbacks or ()
    names = [type(handler).__name__ for handler in handlers if _may_stop(handler)]
    return GUARDED(handler=names[0], lifted="raise_error=False if it only records") if names else None


def _may_stop(handler: Any) -> bool:
    if not getattr(handler, "raise_error", False) or type(handler).__module__.partition(".")[0] in _THEIRS:
        return False
    return any(getattr(type(handler), name, None) is not getattr(BaseCallbackHandler, name) for name in _STARTS)
