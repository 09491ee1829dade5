"""Middleware of LangChain's agents that may rewrite what goes to a model or a tool, or stop it. `create_agent` takes no
metadata by which the nodes that it makes of them could be marked as guards."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence, Set
from typing import Any

from langchain_core.runnables import Runnable
from langgraph.prebuilt import ToolNode
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


_AROUND_TOOLS = ("wrap_tool_call",)
_LET_TOOLS_PASS = frozenset(("HumanInTheLoopMiddleware", "ToolErrorMiddleware", "ToolRetryMiddleware"))
"""LangChain's own that refuse no tool's call."""


def has_guard(runnable: Any) -> bool:
    """Whether a node of this runnable is a hook of middleware that may be a guard, or calls a model or tools through
    one."""
    package = sys.modules.get("langchain.agents.middleware")  # without it nobody has made any
    if is_a(runnable, ToolNode):
        hooks = (getattr(runnable, f"_{name}", None) for name in _both(_AROUND_TOOLS))
        return _may_refuse([hook for hook in hooks if hook is not None], package)
    if package is None:
        return False
    functions = [getattr(runnable, name, None) for name in ("func", "afunc")]
    for function in functions:
        if is_a(owner := getattr(function, "__self__", None), package.AgentMiddleware):
            return _is_guard(owner, package)
    if not any(str(getattr(function, "__module__", "")).startswith("langchain.agents.") for function in functions):
        return False
    return any(_is_guard(each, package) for each in _middleware([runnable], package))


def _may_refuse(around: Sequence[Any], package: Any) -> bool:
    """Whether what is around the calls of tools may be a guard: middleware, or a function of the program's that says
    nothing else (`guard = False`)."""
    found = _middleware(around, package) if around and package is not None else []
    if not found:
        return any(getattr(each, "guard", None) is not False for each in around)
    return any(_is_guard(each, package, _AROUND_TOOLS, _LET_TOOLS_PASS) for each in found)


def _middleware(roots: Sequence[Any], package: Any) -> list[Any]:
    found = referenced(
        roots, lambda value: is_a(value, package.AgentMiddleware), lambda value: is_a(value, (Runnable, Pregel))
    )
    return [one.component for one in found.values()]


def _is_guard(value: Any, package: Any, hooks: Sequence[str] = _HOOKS, lets_pass: Set[str] = _LET_PASS) -> bool:
    """Unless its class says `guard = False`."""
    if not is_a(value, package.AgentMiddleware) or getattr(type(value), "guard", None) is False:
        return False
    if any(type(value) is getattr(package, name, None) for name in lets_pass):
        return False
    # What LangChain makes of a function that only gives a system prompt.
    return any(not hook.__qualname__.startswith("dynamic_prompt.") for hook in _hooks(type(value), package, hooks))


def _both(hooks: Sequence[str]) -> tuple[str, ...]:
    """For plain calls and for coroutines."""
    return (*hooks, *(f"a{name}" for name in hooks))


def _hooks(cls: type, package: Any, hooks: Sequence[str]) -> Iterator[Any]:
    """The hooks of these that it has."""
    for name in _both(hooks):
        hook = getattr(cls, name, None)
        if hook is not None and hook is not getattr(package.AgentMiddleware, name, None):
            yield hook
