"""Who called: LangChain runs steps of chains, prompts of models and elements of batches in tasks and threads of their
own, out of sight of the program's frames. Where the program enters, its frames are noted for those. And that tools were
used, whether they are components or not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableParallel, RunnableSequence
from langchain_core.tools import BaseTool

from accel.parts import patches
from accel.run.scope import scope
from accel.run.uses import aused, used
from accel.trace.record import call_site

ENTRIES: tuple[tuple[type, str], ...] = (
    (Runnable, "batch"),
    (Runnable, "abatch"),
    (RunnableSequence, "ainvoke"),
    (RunnableSequence, "batch"),
    (RunnableSequence, "abatch"),
    (RunnableParallel, "invoke"),
    (RunnableParallel, "ainvoke"),
    (BaseChatModel, "ainvoke"),
)
"""The public methods behind which frames are lost."""


def install() -> None:
    for cls, name in ENTRIES:
        patches.wrap(cls, name, _anoting if name.startswith("a") else _noting)
    patches.wrap(BaseTool, "run", used)
    patches.wrap(BaseTool, "arun", aused)


def _noting(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    here = scope.get()
    if here is None:
        return wrapped(*args, **kwargs)
    before = scope.set(replace(here, called=call_site() or here.called))
    try:
        return wrapped(*args, **kwargs)
    finally:
        scope.reset(before)


def _anoting(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    awaited = wrapped(*args, **kwargs)
    return awaited if scope.get() is None else _noted(awaited, call_site())


async def _noted(awaited: Awaitable[Any], site: str) -> Any:
    """`site`: of the call; another task may await it."""
    here = scope.get()
    if here is None:
        return await awaited
    before = scope.set(replace(here, called=site or here.called))
    try:
        return await awaited
    finally:
        scope.reset(before)
