"""Who called: LangChain runs steps of chains, prompts of models and elements of batches in tasks and threads of their
own, out of sight of the program's frames. Where the program enters, its frames are noted for those. And that tools were
used, whether they are components or not."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.llms import BaseLLM
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    RouterRunnable,
    Runnable,
    RunnableBranch,
    RunnableGenerator,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
    RunnableSequence,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase, RunnableEachBase
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.runnables.passthrough import RunnableAssign, RunnablePick
from langchain_core.runnables.retry import RunnableRetry
from langchain_core.tools import BaseTool, StructuredTool, Tool

from accel.parts.methods import patches
from accel.process.coroutines import around
from accel.run.scope import scope
from accel.run.uses import aused, used
from accel.run.waits.inner import step
from accel.trace.sites import call_site

_END = object()
Entry = tuple[tuple[type, ...], tuple[str, ...], Callable[..., Any]]


def _entries() -> tuple[Entry, ...]:
    """The public methods behind which frames are lost: coroutines, which any task may await, threads, and streams that
    are read in tasks."""
    parts = (RunnableLambda, RunnablePassthrough, RunnableAssign, RunnablePick, RunnableGenerator, RunnableParallel)
    around = (RunnableBindingBase, RunnableRetry, RunnableWithFallbacks, DynamicRunnable, RunnableEachBase)
    chosen = (RunnableBranch, RouterRunnable)
    leaves = (BaseChatModel, BaseLLM, BaseRetriever, BaseTool, Tool, StructuredTool)
    every = (Runnable, RunnableSequence, *parts, *around, *chosen, *leaves)
    return (
        (every, ("ainvoke", "abatch"), _anoting),
        ((Runnable, RunnableSequence, *around, RouterRunnable), ("batch",), _noting),
        ((RunnableParallel,), ("invoke",), _noting),
        ((RunnableSequence, *parts), ("astream",), _anoting_stream),
    )


def install() -> None:
    for classes, names, wrapper in _entries():
        for cls in classes:
            for name in names:
                if name in vars(cls):
                    patches.wrap(cls, name, wrapper)
    patches.wrap(BaseTool, "run", used)
    patches.wrap(BaseTool, "arun", aused)


def _noting(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    here = scope.get()
    if here is None:
        return wrapped(*args, **kwargs)
    before = scope.set(here.called_at(call_site() or here.called))
    try:
        return wrapped(*args, **kwargs)
    finally:
        scope.reset(before)


def _anoting(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    awaited = wrapped(*args, **kwargs)
    return awaited if scope.get() is None else around(_noted(awaited, call_site()), awaited)


async def _noted(awaited: Awaitable[Any], site: str) -> Any:
    """`site`: of the call; another task may await it."""
    here = scope.get()
    if here is None or not site:
        return await awaited
    before = scope.set(here.called_at(site))
    try:
        return await awaited
    finally:
        scope.reset(before)


def _anoting_stream(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    stream = wrapped(*args, **kwargs)
    site = call_site() if scope.get() is not None else ""
    return _noted_stream(stream, site) if site else stream


async def _noted_stream(stream: AsyncGenerator[Any], site: str) -> AsyncIterator[Any]:
    """`site`: of the call; another task may read it."""
    async with aclosing(stream):
        while True:
            here = scope.get()
            before = scope.set(here.called_at(site)) if here is not None else None
            try:
                item = await step(stream, _END)
            finally:
                if before is not None:
                    scope.reset(before)
            if item is _END:
                return
            yield item
