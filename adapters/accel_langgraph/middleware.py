"""Middleware of LangChain's agents that may rewrite what goes to a model, or stop it. `create_agent` takes no metadata
by which the nodes that it makes of them could be marked as guards."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from langchain_core.runnables import Runnable
from langgraph.pregel import Pregel

from accel.parts.references import referenced
from accel.text.objects import is_a

_HOOKS = ("before_agent", "before_model", "after_model", "after_agent", "wrap_model_call")
_LET_PASS = frozenset((
    "ContextEditingMiddleware", "HumanInTheLoopMiddleware", "LLMToolSelectorMiddleware", "ModelFallbackMiddleware",
    "ModelRefusalMiddleware", "ModelRetryMiddleware", "ModelRouterMiddleware", "ProviderToolSearchMiddleware",
    "ShellToolMiddleware", "SummarizationMiddleware", "TodoListMiddleware",
))  # fmt: skip
"""LangChain's own that keep nothing from a model, but save tokens, choose, or try again. Who asks a person pauses the
run, which is seen."""


def has_guard(runnable: Any) -> bool:
    """Whether a node of this runnable is a hook of middleware that may be a guard, or calls a model through one."""
    package = sys.modules.get("langchain.agents.middleware")  # without it nobody has made any
    if package is None:
        return False
    functions = [getattr(runnable, name, None) for name in ("func", "afunc")]
    for function in functions:
        if is_a(owner := getattr(function, "__self__", None), package.AgentMiddleware):
            return _is_guard(owner, package)
    if not any(str(getattr(function, "__module__", "")).startswith("langchain.agents.") for function in functions):
        return False
    found = referenced(
        [runnable], lambda value: is_a(value, package.AgentMiddleware), lambda value: is_a(value, (Runnable, Pregel))
    )
    return any(_is_guard(one.component, package) for one in found.values())


def _is_guard(value: Any, package: Any) -> bool:
    """Unless its class says `guard = False`."""
    if not is_a(value, package.AgentMiddleware) or getattr(type(value), "guard", None) is False:
        return False
    if any(type(value) is getattr(package, name, None) for name in _LET_PASS):
        return False
    # What LangChain makes of a function that only gives a system prompt.
    return any(not hook.__qualname__.startswith("dynamic_prompt.") for hook in _hooks(type(value), package))


def _hooks(cls: type, package: Any) -> Iterator[Any]:
    """The hooks that it has, for plain calls and for coroutines."""
    for name in (*_HOOKS, *(f"a{name}" for name in _HOOKS)):
        hook = getattr(cls, name, None)
        if hook is not None and hook is not getattr(package.AgentMiddleware, name, None):
            yield hook
